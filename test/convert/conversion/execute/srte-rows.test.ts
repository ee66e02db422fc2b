import { describe, expect, it } from 'vitest';
import { SrteRowReader } from '../../../../src/convert/conversion/execute/table-rows.js';
import { storageOf, tensorIn, tensorOf } from '../../../checkpoint/stored-tensors.js';

const numbers = (length: number, from = 0) => Array.from({ length }, (_, index) => index + from);

async function rowsOf(
  table: Parameters<SrteRowReader['read']>[0],
  first: number,
  rows: number,
  columns: number,
  reader = new SrteRowReader(),
): Promise<number[]> {
  const target = new Float64Array(rows * columns);
  await reader.read(table, first, rows, target);
  return [...target];
}

describe('rows of a table', () => {
  it('are read from their offsets', async () => {
    const table = { rows: tensorOf(numbers(24), [8, 3]), projection: null };
    expect(await rowsOf(table, 0, 8, 3)).toEqual(numbers(24));
    expect(await rowsOf(table, 4, 2, 3)).toEqual(numbers(6, 12));
  });

  it('are read from a view with strides', async () => {
    // Stored column by column.
    const rows = { ...tensorOf(numbers(12), [4, 3]), strides: [1, 4] };
    expect(await rowsOf({ rows, projection: null }, 0, 4, 3)).toEqual([
      0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11,
    ]);
  });

  it('are the product of a pair', async () => {
    const table = {
      name: 'a',
      rows: tensorOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [5, 2]),
      projection: tensorOf([1, 0, 0, 1, 10, 100], [3, 2]),
    };
    expect(await rowsOf(table, 4, 1, 3)).toEqual([9, 10, 1090]);
    expect(await rowsOf(table, 0, 2, 3)).toEqual([1, 2, 210, 3, 4, 430]);
  });

  it('may have four bits per value, and no whole number of bytes', async () => {
    // 0.5, 1, 1.5, 2, 3, 4, 6 are the codes 1 to 7, two in a byte, the first in the low half.
    const bytes = Uint8Array.of(0x21, 0x43, 0x65, 0x17, 0x32, 0x54, 0x76, 0x21, 0x43);
    const rows = tensorIn(storageOf(bytes), [6, 3], { dtype: 'F4' });
    const table = { rows, projection: null };
    expect(await rowsOf(table, 0, 4, 3)).toEqual([0.5, 1, 1.5, 2, 3, 4, 6, 0.5, 1, 1.5, 2, 3]);
    expect(await rowsOf(table, 4, 2, 3)).toEqual([4, 6, 0.5, 1, 1.5, 2]);
  });

  it('are correct after the reader has read a larger table', async () => {
    const reader = new SrteRowReader();
    const large = {
      name: 'a',
      rows: tensorOf(numbers(40), [10, 4]),
      projection: tensorOf(numbers(12), [3, 4]),
    };
    const small = {
      name: 'b',
      rows: tensorOf([1, 2], [2, 1]),
      projection: tensorOf([3, 5], [2, 1]),
    };
    await rowsOf(large, 0, 10, 3, reader);
    expect(await rowsOf(small, 0, 2, 2, reader)).toEqual([3, 5, 6, 10]);
  });
});
