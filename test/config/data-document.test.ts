import { expect, it } from 'vitest';
import { checkDocument } from '../../src/config/check-document.js';
import { documentOfData } from '../../src/config/document.js';
import { applyOverrides } from '../../src/config/overrides.js';
import { SCHEMA } from './model-schema.js';

const FILE = 'model.pt: config';

it('problems of data have a path and no line, in the order of the data', () => {
  const data = { model: { tie: 'no', layers: [{ kind: 'mamba', state: 'x' }], num_layers: 0 } };
  const document = documentOfData(data, FILE);
  expect(document.value).toBe(data);
  const { problems } = checkDocument(document, { schema: SCHEMA });
  expect(problems.map(({ file, line, path }) => [file, line, path])).toEqual([
    [FILE, undefined, 'model.tie'],
    [FILE, undefined, 'model.layers.0.state'],
    [FILE, undefined, 'model.num_layers'],
  ]);
});

it('a document of data has its keys', () => {
  const document = documentOfData({ model: { layers: [1, { x: 'y' }] } }, FILE);
  expect(document.has(['model', 'layers', 1, 'x'])).toBe(true);
  expect(document.has(['model', 'layers', 2])).toBe(false);
  expect(document.locate(['model', 'layers'])).toEqual({ file: FILE });
});

it('a document of data can be overridden', () => {
  const document = documentOfData({ model: { num_layers: 3 } }, FILE);
  const changed = applyOverrides(document, ['model.num_layers=4', 'model.new=1']);
  expect(changed.value).toEqual({ model: { num_layers: 4, new: 1 } });
  expect(changed.locate(['model', 'num_layers'])).toMatchObject({ file: '--set' });
  expect(document.value).toEqual({ model: { num_layers: 3 } });
});

it('a document of data treats __proto__ like any other key', () => {
  const value = JSON.parse('{"__proto__": {"constructor": 1}}');
  expect(documentOfData(value, FILE).has(['__proto__', 'constructor'])).toBe(true);
  expect(documentOfData({}, FILE).has(['__proto__'])).toBe(false);
});
