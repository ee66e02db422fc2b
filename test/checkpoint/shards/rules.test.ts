import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { UserError } from '../../../src/base/errors.js';
import { SHARD_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { inPackage } from '../../fixtures.js';
import { errorOf, fileIn, folderOf, opened, ruleBrokenBy, safetensors } from '../temp-folder.js';
import {
  binFolder,
  FIRST,
  first,
  folderWith,
  hubCache,
  INDEX,
  legacy,
  outside,
  SECOND,
  second,
  shards,
  weightMap,
  withExtra,
  withLink,
  withMap,
  withName,
  withText,
} from './folders.js';

type Attack = readonly [keyof typeof SHARD_RULES, string, () => string];

const ATTACKS: readonly Attack[] = [
  [
    'shard-index-size',
    '32 MB and a byte',
    () => {
      const folder = folderWith({ weight_map: weightMap });
      fs.truncateSync(path.join(folder, INDEX), 32_000_001);
      return folder;
    },
  ],
  [
    'shard-index-utf8',
    'Latin-1 in a string',
    () => withText(Buffer.from(JSON.stringify({ extra: 'é', weight_map: weightMap }), 'latin1')),
  ],
  ['shard-index-depth', '33 levels', () => withExtra('['.repeat(32) + ']'.repeat(32))],
  [
    'shard-index-depth',
    'levels of two kinds',
    () => withExtra('{"a":['.repeat(99) + ']}'.repeat(99)),
  ],
  ['shard-index-depth', 'levels that never end', () => withText('['.repeat(1_000_000))],
  [
    'shard-index-keys',
    'more than 400,000 keys',
    () => withExtra(`{${Array.from({ length: 400_000 }, (_, at) => `"${at}":0`).join()}}`),
  ],
  [
    'shard-index-key-twice',
    'in the map',
    () => withText(`{"weight_map":{"a":"${FIRST}","a":"${SECOND}"}}`),
  ],
  ['shard-index-key-twice', 'the map', () => withText('{"weight_map":{},"weight_map":{}}')],
  ['shard-index-key-twice', 'written in two ways', () => withExtra('{"a":1,"\\u0061":2}')],
  ['shard-index-key-twice', '__proto__', () => withExtra('{"__proto__":1,"__proto__" \n\t\r:2}')],
  [
    'shard-index-key-twice',
    'after a list of objects',
    () => withExtra('{"a":[{"b":1},{"b":1}],"a":2}'),
  ],
  ...[
    '',
    'hello',
    '{"weight_map": {}',
    '{"weight_map": {},}',
    '{"weight_map": {}} {}',
    "{'weight_map': {}}",
    '{"weight_map": {}, "x": NaN}',
    '{"weight_map": {}, "x": "\\q"}',
    '{"weight_map": {}, "\\q": 1}',
    '{"weight_map": {}, "x',
    '{"weight_map": {}, "x\\',
    '{"a" "weight_map": {}}',
    '[]]',
    '\ufeff{"weight_map": {}}',
  ].map((text): Attack => ['shard-index-json', JSON.stringify(text), () => withText(text)]),
  ...['[]', 'null', '"model.safetensors"', '5'].map(
    (text): Attack => ['shard-index-object', text, () => withText(text)],
  ),
  ['shard-index-map', 'no map', () => folderWith({ metadata: {} })],
  ...[[FIRST], null, FIRST, 5].map(
    (map): Attack => ['shard-index-map', JSON.stringify(map), () => withMap(map)],
  ),
  ['shard-index-map', 'a map in the prototype', () => withText('{"__proto__":{"weight_map":{}}}')],
  ['shard-index-empty', 'no tensors', () => withMap({})],
  [
    'shard-count',
    '4,001 files',
    () =>
      withMap(
        Object.fromEntries(Array.from({ length: 4001 }, (_, at) => [at, `${at}.safetensors`])),
      ),
  ],
  [
    'shard-tensor-count',
    '50,001 tensors in two small files',
    () => withMap(Object.fromEntries(Array.from({ length: 50_001 }, (_, at) => [at, FIRST]))),
  ],
  ...[5, null, [SECOND], { name: SECOND }, true].map(
    (name): Attack => ['shard-name-text', JSON.stringify(name), () => withName(name)],
  ),
  ...[
    '',
    '.',
    '..',
    `../${SECOND}`,
    `./${SECOND}`,
    `a/../${SECOND}`,
    `a//${SECOND}`,
    `/${SECOND}`,
    `/etc/x.safetensors`,
    `${SECOND}/`,
    'C:x.safetensors',
    'C:\\x.safetensors',
    '\\\\server\\x.safetensors',
    'a\\..\\x.safetensors',
    'https://example.org/x.safetensors',
    'file:x.safetensors',
    'x.safetensors:stream',
    'model\0.safetensors',
    'model.safetensors\0',
  ].map((name): Attack => ['shard-name-path', JSON.stringify(name), () => withName(name)]),
  ...['model.bin', 'model', 'safetensors', '.safetensors', 'model.SAFETENSORS', 'model.json'].map(
    (name): Attack => ['shard-name-extension', name, () => withName(name)],
  ),
  [
    'shard-name-extension',
    'safetensors in an index of .bin',
    () => folderOf({ 'm.bin.index.json': JSON.stringify({ weight_map: { a: FIRST } }), ...shards }),
  ],
  [
    'shard-name-extension',
    'an index with an unknown extension',
    () => fileIn('flax.index.json', JSON.stringify({ weight_map: { a: 'flax-1-of-1.msgpack' } })),
  ],
  ['shard-exists', 'no file', () => withName('model-3.safetensors')],
  ['shard-exists', 'below a file', () => withName(`${FIRST}/x.safetensors`)],
  ['shard-exists', 'a link to nothing', () => withLink('nothing')],
  ['shard-in-folder', 'a link to a file elsewhere', () => withLink(outside())],
  ['shard-in-folder', 'a link in a link', () => withLink(path.join(withLink(outside()), SECOND))],
  [
    'shard-in-folder',
    'a link to a folder whose name begins in the same way',
    () => {
      const folder = folderWith({ weight_map: weightMap });
      fs.mkdirSync(`${folder}2`);
      fs.writeFileSync(path.join(`${folder}2`, SECOND), safetensors(second));
      return withLink(path.join(`${folder}2`, SECOND), folder);
    },
  ],
  [
    'shard-in-folder',
    'a linked folder',
    () => {
      const folder = withName(`sub/${SECOND}`);
      fs.symlinkSync(path.dirname(outside()), path.join(folder, 'sub'));
      return folder;
    },
  ],
  [
    'shard-in-folder',
    'the blobs of another repository',
    () => hubCache('models--org--other/blobs'),
  ],
  ['shard-in-folder', 'blobs outside of a hub cache', () => hubCache('name/blobs', 'name')],
  [
    'shard-format',
    'safetensors and PyTorch',
    () => binFolder(safetensors({ 'a.w': [1] }), legacy('b.w')),
  ],
  ['shard-state-dict', 'two keys', () => binFolder(legacy('a.w', 'model'), legacy('b.w', 'net'))],
  ['shard-state-dict', 'a key and none', () => binFolder(legacy('a.w'), legacy('b.w', 'net'))],
  ['shard-tensor-present', 'a tensor in no file', () => withMap({ ...weightMap, 'd.w': SECOND })],
  [
    'shard-tensor-listed',
    'a tensor outside the index',
    () => withMap({ 'a.w': FIRST, 'c.w': SECOND }),
  ],
  [
    'shard-tensor-place',
    'a tensor in two files',
    () => withMap(weightMap, { [SECOND]: safetensors({ ...second, 'a.w': [9, 9] }) }),
  ],
];

describe('the rules of shards', () => {
  it.each(ATTACKS)('include %s, which refuses: %s', (rule, _, attack) => {
    expect(ruleBrokenBy(attack())).toBe(rule);
  });

  it('are all tested', () => {
    expect(new Set(ATTACKS.map(([rule]) => rule))).toEqual(new Set(Object.keys(SHARD_RULES)));
  });

  it('report the fault and its position', () => {
    const error = errorOf(withMap({ 'a.w': FIRST, 'c.w': SECOND }));
    expect((error as UserError).problems).toEqual([
      {
        severity: 'error',
        file: expect.stringMatching(/index\.json$/),
        path: `shard ${FIRST}`,
        message: 'holds tensors that the index does not name: "b.w"',
        rule: 'shard-tensor-listed',
        suggestion: 'download the index and all of its files together',
      },
    ]);
  });

  it('list all missing files', () => {
    const error = errorOf(withMap({ a: 'x-10.safetensors', b: 'x-9.safetensors', c: FIRST }));
    expect((error as UserError).problems[0]?.message).toBe(
      'names 3 files, and these are not there: "x-9.safetensors", "x-10.safetensors"',
    );
  });

  it('leave faults in a shard to the rules of its format', () => {
    expect(ruleBrokenBy(withMap(weightMap, { [SECOND]: '' }))).toBe('file-kind');
    expect(ruleBrokenBy(inPackage('fixtures/checkpoints/hostile/sharded/evil_bin'))).toBe(
      'pickle-global',
    );
    const folder = folderOf({
      [FIRST]: safetensors(first),
      [INDEX]: JSON.stringify({ weight_map: weightMap }),
    });
    fs.mkdirSync(path.join(folder, SECOND));
    expect(ruleBrokenBy(folder)).toBe('file-is-regular');
  });

  it.each([
    ['the maximum depth', '['.repeat(31) + ']'.repeat(31)],
    ['the same key in several objects', '[{"a":1},{"a":{"a":1}}]'],
    ['equal strings that are not keys', '["a","a",":","a"]'],
    ['brackets in strings', `"${'['.repeat(99)}\\"${'{'.repeat(99)}"`],
    ['a backslash at the end of a string', '{"a\\\\":"\\\\"}'],
  ])('allow %s', (_, extra) => {
    expect(opened(withExtra(extra)).tensors.size).toBe(3);
  });
});
