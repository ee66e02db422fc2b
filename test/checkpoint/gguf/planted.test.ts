/** Faults planted in a file of Python's gguf package. Each is refused by its rule. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../fixtures.js';
import { errorOf, fileIn, ruleBrokenBy } from '../temp-folder.js';
import { u32, u64 } from './files.js';

const FILE = fs.readFileSync(inPackage('fixtures/gguf/rounding.gguf'));

/** Position of a text in the header; its length is in the 8 bytes before. */
const at = (text: string) => FILE.indexOf(text);

const put = (position: number, bytes: Uint8Array): Buffer => {
  const copy = Buffer.from(FILE);
  copy.set(bytes, position);
  return copy;
};

/** Positions of the fields after the name of a tensor of two dimensions. */
const entry = (name: string) => {
  const rank = at(name) + name.length;
  return { rank, sizes: rank + 4, type: rank + 20, offset: rank + 24 };
};

const KEY = 'general.architecture';
const VALUE = at(KEY) + KEY.length;
const q8 = entry('q8_0');

const PLANTED: readonly (readonly [what: string, rule: string, content: Buffer])[] = [
  ['another magic number', 'file-kind', put(0, Buffer.from('GGML'))],
  ['version 1', 'gguf-version', put(4, u32(1))],
  ['a big-endian version', 'gguf-version', put(4, Buffer.from([0, 0, 0, 3]))],
  ['2^40 tensors', 'gguf-counts', put(8, u64(2 ** 40))],
  ['2^40 keys', 'gguf-counts', put(16, u64(2 ** 40))],
  ['a key longer than the file', 'gguf-whole', put(at(KEY) - 8, u64(2 ** 24))],
  ['a key without bytes', 'gguf-key', put(at(KEY) - 8, u64(0))],
  ['an unknown type of value', 'gguf-value-type', put(VALUE, u32(77))],
  ['a string longer than the file', 'gguf-whole', put(VALUE + 4, u64(2n ** 62n))],
  ['a string that is not UTF-8', 'gguf-string', put(VALUE + 12, Buffer.from([0xff]))],
  ['a name that is not UTF-8', 'gguf-name', put(at('q8_0'), Buffer.from([0xff]))],
  ['two tensors of one name', 'gguf-name-twice', put(at('q8_0'), Buffer.from('q4_0'))],
  ['nine dimensions', 'gguf-rank', put(q8.rank, u32(9))],
  ['sizes whose product is beyond 2^53', 'gguf-elements', put(q8.sizes, u64(2n ** 60n))],
  ['rows that are not whole blocks', 'gguf-block', put(q8.sizes, u64(63))],
  ['an unknown type of tensor', 'gguf-type', put(q8.type, u32(4))],
  ['an offset that is not aligned', 'gguf-offset', put(q8.offset, u64(4097))],
  ['an offset in another tensor', 'gguf-tiling', put(q8.offset, u64(32))],
  ['an offset beyond the file', 'gguf-tiling', put(q8.offset, u64(2n ** 62n))],
  ['a file cut off in its values', 'gguf-data-end', FILE.subarray(0, -1000)],
  ['a file with bytes after its values', 'gguf-data-end', Buffer.concat([FILE, Buffer.alloc(999)])],
];

describe('a file of the gguf package', () => {
  it('is read without a fault', () => {
    expect(errorOf(fileIn('x.gguf', FILE))).toBeUndefined();
  });

  it.each(PLANTED)('with %s is refused by %s', (_, rule, content) => {
    expect(ruleBrokenBy(fileIn('x.gguf', content))).toBe(rule);
  });
});
