import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatJson, jsonOrUndefined, parseJson } from '../../../src/base/text/json.js';
import { ROOT } from '../../fixtures.js';

describe('JSON of Python', () => {
  // Python 3.11: json.loads('{"a": [0.0, Infinity, -Infinity, NaN], "Infinity": "NaN"}')
  it('has numbers that are not finite', () => {
    expect(parseJson('{"a": [0.0, Infinity, -Infinity, NaN], "Infinity": "NaN"}')).toEqual({
      a: [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
      Infinity: 'NaN',
    });
  });

  // Python refuses these too.
  it.each(['1Infinity', '-NaN', 'Infinityx', '+Infinity', '[NaN', '{NaN: 1}', 'inf', '"a" NaN'])(
    'is not %s',
    (text) => {
      expect(jsonOrUndefined(text)).toBe(undefined);
    },
  );

  it('keeps words within texts', () => {
    const value = { 'number:': 'number:NaN', b: ['\\', 'NaN, "Infinity"', Number.NaN] };
    expect(parseJson(formatJson(value))).toEqual(value);
    expect(formatJson(value)).toContain(', "Infinity'.replace(' "', ' \\"'));
  });

  it('reads what it writes', () => {
    const number = fc.double();
    const leaf = fc.oneof(number, fc.string(), fc.constantFrom('NaN', 'Infinity'), fc.boolean());
    const data = fc.dictionary(fc.string(), fc.oneof(leaf, fc.array(leaf)));
    fc.assert(
      fc.property(data, fc.constantFrom(undefined, 2), (value, indent) => {
        // JSON has one zero: -0 is written as 0.
        expect(JSON.stringify(parseJson(formatJson(value, indent)))).toBe(JSON.stringify(value));
        expect(formatJson(value, indent)).not.toMatch(/:\s*null/);
      }),
    );
  });

  it.each([
    ['nests', '['.repeat(1e6), 'nests values more than 512 deep'],
    ['nests objects', '{"a":'.repeat(1e6), 'nests values more than 512 deep'],
    ['has many lists', `[${'[],'.repeat(2e6)}[]]`, 'more than 2,000,000 lists'],
    ['has many keys', `{${'"":0,'.repeat(1e6)}"":0}`, 'more than 1,000,000 keys'],
    ['has many words', `[${'NaN,'.repeat(1e6)}NaN]`, 'more than 1,000,000 NaN and Infinity'],
  ])('is refused before it is parsed when it %s', (_, text, message) => {
    expect(() => parseJson(text)).toThrow(message);
  });

  it('reads many numbers that are not finite within seconds', () => {
    const value = parseJson(`{"__proto__": NaN, "a": [${'NaN,'.repeat(999_998)}Infinity]}`);
    expect(Object.getOwnPropertyDescriptor(value, '__proto__')?.value).toBe(Number.NaN);
    const { a } = value as { readonly a: readonly number[] };
    expect(a.slice(-2)).toEqual([Number.NaN, Number.POSITIVE_INFINITY]);
  }, 20_000);

  it('counts only what is not in a text', () => {
    const text = JSON.stringify({ a: '[{'.repeat(1000), '\\"': '\\' });
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it('ends soon on a text without an end', () => {
    expect(jsonOrUndefined(`NaN"${'\\"'.repeat(1_000_000)}`)).toBe(undefined);
  });
});

/** Files of the source that parse without the bounds of `parseJson`, and why they may. */
const UNBOUNDED = {
  'model/architecture/family.ts': 'a schema that it has just written',
  'checkpoint/json-scanner.ts': 'one string',
  'report/render/page/page.ts': 'an answer that the program has just written',
  'explorer/link.ts': 'a link, of which a decoder checks each part',
  'explorer/page/page-data.ts': 'parts of the page that this package wrote',
  'library/models/describe-model.ts': 'a value of the caller, copied',
  'cli/family-list.ts': 'a file of the package',
  'config/syntax/json-edits.ts': 'one string',
  'input/published/published-file.ts': 'a file of the package',
  'input/hub/data-reader.ts': 'an answer of its own thread',
  'report/diff-report.ts': 'values of a config that was read within bounds',
  'engine/adapters/adapters.ts': 'an answer of its own process',
  'engine/adapters/system-adapters.ts': 'an answer of a program of the system',
  'engine/select/survey.ts': 'an answer of its own process',
  'base/text/json.ts': 'the bounds themselves',
  'language/tokenizer/template-process.ts': 'a message of the process that started it',
} as const;

describe('JSON.parse', () => {
  it('reads no text of a file that can be anyone’s', () => {
    const source = path.join(ROOT, 'src');
    const found = fs
      .readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((each) => each.endsWith('.ts'))
      .filter((each) => fs.readFileSync(path.join(source, each), 'utf8').includes('JSON.parse('))
      .map((each) => each.replaceAll(path.sep, '/'))
      .sort();
    expect(found).toEqual(Object.keys(UNBOUNDED).sort());
  });
});
