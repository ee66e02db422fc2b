import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { IMATRIX_RULES, ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { readImatrix } from '../../../src/checkpoint/gguf/imatrix.js';
import { fileIn } from '../temp-folder.js';
import { gguf, tensor } from './files.js';
import { entry, i32, imatrix, older } from './imatrix-files.js';

const read = (bytes: Uint8Array) => [...readImatrix(fileIn('imatrix', bytes))];

describe('an importance matrix', () => {
  it('has the mean of the squares of each column, in a .dat file', () => {
    const bytes = older([entry('blk.0.attn_q.weight', 4, [4, 8, 0]), entry('b', 0, [5])]);
    const chunks = Buffer.concat([bytes, i32(7), i32(3), Buffer.from('wik')]);
    for (const each of [bytes, chunks]) {
      expect(read(each)).toEqual([
        ['blk.0.attn_q.weight', Float32Array.of(1, 2, 0)],
        ['b', Float32Array.of(5)],
      ]);
    }
  });

  it('has those of each expert in a GGUF file, and 1 for an expert without tokens', () => {
    const bytes = imatrix({ 'blk.0.ffn_up_exps.weight': { sums: [2, 4, 9, 9], counts: [2, 0] } });
    expect(read(bytes)).toEqual([['blk.0.ffn_up_exps.weight', Float32Array.of(1, 2, 1, 1)]]);
  });
});

function ruleBrokenBy(bytes: Uint8Array): string | undefined {
  try {
    readImatrix(fileIn('imatrix', bytes));
    return undefined;
  } catch (error) {
    return ruleOf(error);
  }
}

/** A .dat file with bytes after its entries. */
const withEnd = (...bytes: readonly (string | Uint8Array)[]) =>
  Buffer.concat([older([entry('a', 1, [1])]), ...bytes.map((each) => Buffer.from(each))]);

function problemsOf(read: () => unknown): string {
  try {
    read();
    return '';
  } catch (error) {
    return error instanceof UserError ? JSON.stringify(error.problems) : String(error);
  }
}

const float = (value: number) => Buffer.from(Float32Array.of(value).buffer);

type Attack = readonly [keyof typeof IMATRIX_RULES, string, () => Uint8Array];

const ATTACKS: readonly Attack[] = [
  ['imatrix-whole', 'an empty file', () => Buffer.alloc(0)],
  [
    'imatrix-whole',
    'an entry cut off',
    () => older([entry('long name', 1, [1, 2, 3])]).subarray(0, -5),
  ],
  ['imatrix-whole', 'a length beyond the file', () => older([entry('a', 1, [1], 2 ** 31 - 1)])],
  ['imatrix-entries', 'none', () => older([])],
  ['imatrix-entries', 'a negative number', () => Buffer.concat([i32(-1), Buffer.alloc(99)])],
  ['imatrix-entries', 'more than bytes', () => Buffer.concat([i32(999), Buffer.alloc(99)])],
  ['imatrix-entries', 'more than the bound', () => Buffer.concat([i32(12_001), Buffer.alloc(1e6)])],
  ['imatrix-entries', 'a GGUF file of a model', () => gguf()],
  ['imatrix-name', 'an empty name', () => older([entry('', 1, [1, 2])])],
  ['imatrix-name', 'a long name', () => older([entry('a'.repeat(128), 1, [1])])],
  ['imatrix-name', 'a negative length', () => Buffer.concat([i32(1), i32(-5), Buffer.alloc(99)])],
  ['imatrix-name', 'bytes that are not UTF-8', () => older([entry(Buffer.from([0xff]), 1, [1])])],
  ['imatrix-name', 'sums without a name', () => imatrix({ '': { sums: [1], counts: [1] } })],
  ['imatrix-name-twice', 'twice', () => older([entry('a', 1, [1]), entry('a', 1, [1])])],
  ['imatrix-length', 'no values', () => older([entry('long name', 1, [], 0), entry('b', 1, [1])])],
  ['imatrix-length', 'a negative number', () => older([entry('a', 1, [1], -1)])],
  ['imatrix-value', 'NaN', () => older([entry('a', 1, [Number.NaN])])],
  ['imatrix-value', 'infinity', () => older([entry('a', 1, [Number.POSITIVE_INFINITY])])],
  ['imatrix-value', 'a negative value', () => older([entry('a', 1, [-1])])],
  ['imatrix-value', 'negative counts', () => imatrix({ a: { sums: [1], counts: [-1] } })],
  ['imatrix-value', 'negative calls', () => older([entry('a', -1, [1])])],
  ['imatrix-value', 'a huge value', () => older([entry('a', 1, [3e38])])],
  [
    'imatrix-value',
    'a huge mean in a GGUF file',
    () => imatrix({ a: { sums: [3e38], counts: [1] } }),
  ],
  ['imatrix-zero', 'zeros alone', () => older([entry('a', 1, [1]), entry('b', 3, [0, 0])])],
  ['imatrix-zero', 'zeros in a GGUF file', () => imatrix({ a: { sums: [0, 0], counts: [4] } })],
  ['imatrix-whole', 'bytes after the name of the data', () => withEnd(i32(7), i32(3), 'wik', '!')],
  ['imatrix-whole', 'other bytes after the entries', () => withEnd('garbage '.repeat(99))],
  [
    'imatrix-whole',
    'a negative length of the name of the data',
    () => withEnd(i32(7), i32(-3), 'wik'),
  ],
  ['imatrix-pair', 'sums without counts', () => imatrix({ a: { sums: [1] } })],
  [
    'imatrix-pair',
    'counts that divide nothing',
    () => imatrix({ a: { sums: [1, 2, 3], counts: [1, 1] } }),
  ],
  [
    'imatrix-pair',
    'sums of another type',
    () =>
      gguf({
        tensors: [
          tensor({ name: 'a.in_sum2', sizes: [1], type: 26 }),
          tensor({ name: 'a.counts', sizes: [1], offset: 32 }),
        ],
        data: Buffer.concat([float(1), Buffer.alloc(28), float(1)]),
      }),
  ],
];

describe('an importance matrix is refused for', () => {
  it.each(ATTACKS)('%s: %s', (rule, _, make) => {
    expect(ruleBrokenBy(make())).toBe(rule);
  });

  it('a number of entries, with the bound in words', () => {
    const bytes = Buffer.concat([i32(12_001), Buffer.alloc(1e6)]);
    expect(problemsOf(() => readImatrix(fileIn('imatrix', bytes)))).toMatch(
      /the number of entries.*is 12,001, expected 1 to 12,000 and bytes for all/,
    );
  });

  it('every rule', () => {
    expect(new Set(ATTACKS.map(([rule]) => rule))).toEqual(new Set(Object.keys(IMATRIX_RULES)));
  });
});
