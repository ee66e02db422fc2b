import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { GGUF_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { errorOf, fileIn, folderOf, opened, ruleBrokenBy } from '../temp-folder.js';
import {
  ARCHITECTURE,
  array,
  gguf,
  key,
  splitKeys,
  tensor,
  text,
  types,
  u32,
  u64,
} from './files.js';

const { UINT32, BOOL, STRING, ARRAY } = types;

const floats = (count: number) => Buffer.alloc(4 * count);

const [FIRST, SECOND] = ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf'];

const part = (number: number, { count = 2, total = 2, name = `w${number}` } = {}) =>
  gguf({ keys: splitKeys(number, count, total), tensors: [tensor({ name })] });

const split = (files: Readonly<Record<string, Uint8Array>>) => path.join(folderOf(files), FIRST);

type Attack = readonly [keyof typeof GGUF_RULES, string, () => Uint8Array | string];

const ATTACKS: readonly Attack[] = [
  ['gguf-version', 'version 1', () => gguf({ version: u32(1) })],
  ['gguf-version', 'version 4', () => gguf({ version: u32(4) })],
  ['gguf-version', 'big-endian', () => gguf({ version: Buffer.from([0, 0, 0, 3]) })],
  ['gguf-whole', 'a header cut off', () => gguf().subarray(0, 12)],
  [
    'gguf-whole',
    'a key cut off',
    () => gguf({ tensors: [], data: Buffer.alloc(0) }).subarray(0, 50),
  ],
  [
    'gguf-whole',
    'a string beyond the file',
    () => gguf({ keys: [key('a', STRING, Buffer.concat([u64(2n ** 63n), Buffer.alloc(99)]))] }),
  ],
  [
    'gguf-whole',
    'an array of numbers beyond the file',
    () => gguf({ keys: [key('a', ARRAY, array(UINT32, 2n ** 62n, Buffer.alloc(99)))] }),
  ],
  [
    'gguf-whole',
    'an array of strings beyond the file',
    () => gguf({ keys: [key('a', ARRAY, array(STRING, 999_999, Buffer.alloc(800)))] }),
  ],
  ['gguf-counts', 'more tensors than bytes', () => gguf({ tensorCount: 1000 })],
  ['gguf-counts', 'more keys than bytes', () => gguf({ keyCount: 1000 })],
  ['gguf-counts', 'the largest number of tensors', () => gguf({ tensorCount: 2n ** 64n - 1n })],
  [
    'gguf-counts',
    'more keys than allowed',
    () => gguf({ keyCount: 100_001, data: Buffer.alloc(2_000_000) }),
  ],
  [
    'gguf-counts',
    'more tensors than a small file can have',
    () => gguf({ tensorCount: 150_001, data: Buffer.alloc(6_000_000) }),
  ],
  ['gguf-key', 'no bytes', () => gguf({ keys: [key('', UINT32, u32(1))] })],
  ['gguf-key', '65,536 bytes', () => gguf({ keys: [key('k'.repeat(65_536), UINT32, u32(1))] })],
  ['gguf-key', 'Latin-1', () => gguf({ keys: [key(Buffer.from([0xe9]), UINT32, u32(1))] })],
  ['gguf-key-twice', 'the same value', () => gguf({ keys: [ARCHITECTURE, ARCHITECTURE] })],
  ['gguf-value-type', 'type 13', () => gguf({ keys: [key('a', 13, u32(1))] })],
  ['gguf-value-type', 'of an array', () => gguf({ keys: [key('a', ARRAY, array(99, 0, u32(1)))] })],
  ['gguf-boolean', '2', () => gguf({ keys: [key('a', BOOL, Buffer.from([2]))] })],
  [
    'gguf-boolean',
    '255 in an array',
    () => gguf({ keys: [key('a', ARRAY, array(BOOL, 2, Buffer.from([1, 255])))] }),
  ],
  ['gguf-string', 'Latin-1', () => gguf({ keys: [key('a', STRING, text(Buffer.from([0xe9])))] })],
  [
    'gguf-strings',
    'two of 9 MiB',
    () =>
      gguf({ keys: ['a', 'b'].map((name) => key(name, STRING, text('x'.repeat(9 * 2 ** 20)))) }),
  ],
  [
    'gguf-array',
    'arrays in an array',
    () => gguf({ keys: [key('a', ARRAY, array(ARRAY, 1, array(UINT32, 0, u32(1))))] }),
  ],
  [
    'gguf-array-strings',
    '8,000,001 strings',
    () => gguf({ keys: [key('a', ARRAY, array(STRING, 8_000_001, Buffer.alloc(99)))] }),
  ],
  [
    'gguf-array-elements',
    '257 arrays of 4,096 elements',
    () => {
      const full = array(BOOL, 4096, Buffer.alloc(4096));
      return gguf({ keys: Array.from({ length: 257 }, (_, n) => key(`a${n}`, ARRAY, full)) });
    },
  ],
  ...[0, 4, 48].map(
    (alignment): Attack => [
      'gguf-alignment',
      String(alignment),
      () => gguf({ keys: [key('general.alignment', UINT32, u32(alignment))] }),
    ],
  ),
  [
    'gguf-alignment',
    'of another type',
    () => gguf({ keys: [key('general.alignment', 10, u64(32))] }),
  ],
  ['gguf-name', 'no bytes', () => gguf({ tensors: [tensor({ name: '' })] })],
  ['gguf-name', '128 bytes', () => gguf({ tensors: [tensor({ name: 'w'.repeat(128) })] })],
  ['gguf-name', 'Latin-1', () => gguf({ tensors: [tensor({ name: Buffer.from([0xe9]) })] })],
  [
    'gguf-name-twice',
    'of two tensors',
    () => gguf({ tensors: [tensor({}), tensor({ offset: 32 })], data: floats(12) }),
  ],
  ['gguf-rank', 'no dimensions', () => gguf({ tensors: [tensor({ sizes: [], rank: 0 })] })],
  ['gguf-rank', 'five', () => gguf({ tensors: [tensor({ sizes: [1, 1, 1, 1, 4] })] })],
  [
    'gguf-elements',
    'sizes of 2^32',
    () => gguf({ tensors: [tensor({ sizes: [2 ** 32, 2 ** 32] })] }),
  ],
  [
    'gguf-elements',
    'with a zero among them',
    () => gguf({ tensors: [tensor({ sizes: [2 ** 32, 2 ** 32, 0] })], data: floats(0) }),
  ],
  ...[4, 5, 31, 36, 42, 2 ** 31].map(
    (type): Attack => ['gguf-type', String(type), () => gguf({ tensors: [tensor({ type })] })],
  ),
  ['gguf-block', 'half a block', () => gguf({ tensors: [tensor({ sizes: [16, 2], type: 8 })] })],
  ['gguf-offset', '4', () => gguf({ tensors: [tensor({ offset: 4 })], data: floats(5) })],
  ['gguf-tiling', 'a gap', () => gguf({ tensors: [tensor({ offset: 32 })], data: floats(12) })],
  [
    'gguf-tiling',
    'two on the same bytes',
    () => gguf({ tensors: [tensor({}), tensor({ name: 'v' })] }),
  ],
  [
    'gguf-tiling',
    'an overlap',
    () =>
      gguf({
        tensors: [tensor({ sizes: [16] }), tensor({ name: 'v', offset: 32 })],
        data: floats(16),
      }),
  ],
  ['gguf-data-end', 'a value too few', () => gguf({ data: floats(3) })],
  ['gguf-data-end', 'beyond 2^53', () => gguf({ tensors: [tensor({ sizes: [2 ** 51] })] })],
  ['gguf-data-end', 'bytes after the padding', () => gguf({ data: Buffer.alloc(33) })],
  ['gguf-part-name', 'a part by another name', () => part(1)],
  ['gguf-part-present', 'the second is missing', () => split({ [FIRST]: part(0) })],
  ['gguf-part-agrees', 'the first one twice', () => split({ [FIRST]: part(0), [SECOND]: part(0) })],
  [
    'gguf-part-agrees',
    'of three',
    () => split({ [FIRST]: part(0, { count: 3 }), [SECOND]: part(1) }),
  ],
  ['gguf-part-agrees', 'no metadata', () => split({ [FIRST]: gguf(), [SECOND]: part(1) })],
  [
    'gguf-part-tensors',
    'one too few',
    () => split({ [FIRST]: part(0, { total: 3 }), [SECOND]: part(1) }),
  ],
  [
    'gguf-part-tensors',
    'a name in both',
    () => split({ [FIRST]: part(0), [SECOND]: part(1, { name: 'w0' }) }),
  ],
];

const written = (content: Uint8Array | string): string =>
  typeof content === 'string' ? content : fileIn('x.gguf', content);

describe('a GGUF file', () => {
  it.each(ATTACKS)('is refused by %s: %s', (rule, _, make) => {
    expect(ruleBrokenBy(written(make()))).toBe(rule);
  });

  it('is tested against every rule', () => {
    expect([...new Set(ATTACKS.map(([rule]) => rule))].sort()).toEqual(
      Object.keys(GGUF_RULES).sort(),
    );
  });

  it('is refused with the position of the fault', () => {
    expect(errorOf(fileIn('x.gguf', gguf({ data: Buffer.alloc(33) })))).toMatchObject({
      problems: [{ path: expect.stringContaining('byte '), rule: 'gguf-data-end' }],
    });
  });
});

describe('opening a GGUF file', () => {
  it.each([
    ['version 2', gguf({ version: u32(2) })],
    ['padding at the end', gguf({ data: Buffer.concat([floats(4), Buffer.alloc(16)]) })],
    ['no tensors and no padding', gguf({ tensors: [], data: floats(0) }).subarray(0, 69)],
    [
      'an alignment of 64',
      gguf({
        keys: [key('general.alignment', UINT32, u32(64))],
        alignment: 64,
      }),
    ],
    ['a tensor without elements', gguf({ tensors: [tensor({ sizes: [0, 4] })], data: floats(0) })],
  ])('accepts %s', (_, content) => {
    expect(errorOf(fileIn('x.gguf', content))).toBeUndefined();
  });

  it('finds all parts of a split model by any of its files, and by its folder', () => {
    const folder = folderOf({ [FIRST]: part(0), [SECOND]: part(1) });
    for (const target of [folder, path.join(folder, FIRST), path.join(folder, SECOND)]) {
      const { tensors, files } = opened(target);
      expect([...tensors.keys()]).toEqual(['w0', 'w1']);
      expect(files.length).toBe(2);
      for (const each of tensors.values()) expect(readTensor(each).length).toBe(16);
    }
  });
});

describe('token ids in the metadata', () => {
  const TOKENS = key(
    'tokenizer.ggml.tokens',
    ARRAY,
    array(STRING, 3, Buffer.concat(['a', 'b', 'c'].map((each) => text(each)))),
  );
  const [INT32, UINT64] = [5, 10];
  const i32 = (value: number) => Buffer.from(Int32Array.of(value).buffer);
  const warningsOf = (id: Buffer) =>
    opened(fileIn('x.gguf', gguf({ keys: [ARCHITECTURE, TOKENS, id] }))).warnings;
  const name = 'tokenizer.ggml.bos_token_id';

  it.each([
    ['2^32', key(name, UINT64, u64(2 ** 32)), '4294967296'],
    ['a negative one', key(name, INT32, i32(-1)), '-1'],
    ['one beyond the vocabulary', key(name, UINT32, u32(3)), '3'],
    ['2^63', key(name, UINT64, u64(2n ** 63n)), '9223372036854775808'],
  ])('are warned of: %s', (_, id, shown) => {
    expect(warningsOf(id)).toEqual([
      `key "${name}" is ${shown}, expected the id of a token: 0 to 2; it is not used`,
    ]);
  });

  it('are fine in the vocabulary, and as the largest number for none', () => {
    expect(warningsOf(key(name, UINT32, u32(2)))).toEqual([]);
    expect(warningsOf(key(name, UINT32, u32(2 ** 32 - 1)))).toEqual([]);
  });
});
