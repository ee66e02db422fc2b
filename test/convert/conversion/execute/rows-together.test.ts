import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { StoredDtype } from '../../../../src/base/tensor/dtype.js';
import { ByteFile } from '../../../../src/checkpoint/byte-file.js';
import { tensorIn } from '../../../../src/checkpoint/stored-tensor.js';
import {
  alignedRows,
  sincosRows,
  storedRows,
  type TableRows,
} from '../../../../src/convert/conversion/execute/table-rows.js';
import { fileIn } from '../../../checkpoint/temp-folder.js';
import { made } from '../files.js';

/** Wide rows: at most four rows of two tables fit in the cache. */
const [ROWS, COLUMNS] = [26, 40_000];
const value = (table: number, index: number) => ((index * (table + 3)) % 257) - 128;

function tableOf(table: number, dtype: StoredDtype, isTurned = false): TableRows {
  const { bytes } = made([ROWS, COLUMNS], (index) => value(table, index), dtype);
  const tensor = tensorIn(ByteFile.open(fileIn('table', bytes)), dtype, [ROWS, COLUMNS]);
  // A view of the same bytes: element (row, column) is at row + column · ROWS.
  const rows = isTurned ? { ...tensor, strides: [1, ROWS] } : tensor;
  return storedRows({ rows, projection: null });
}

/** All rows of all tables, read one table after the other, and together. */
async function bothWays(tables: readonly TableRows[], blockRows: number) {
  const alone = tables.map(() => new Float64Array(ROWS * COLUMNS));
  for (const [index, table] of tables.entries()) {
    await table.read(0, ROWS, alone[index] ?? new Float64Array());
  }
  const together = tables.map(() => new Float64Array(ROWS * COLUMNS));
  let next = 0;
  let parts = 0;
  for await (const { firstRow, values, columns } of alignedRows(
    tables,
    { first: 0, end: ROWS },
    blockRows,
  )) {
    expect(firstRow).toBe(next);
    for (const [index, target] of together.entries()) {
      target.set(values.subarray(index * columns, (index + 1) * columns), firstRow * COLUMNS);
    }
    next += columns / COLUMNS;
    parts++;
  }
  expect(next).toBe(ROWS);
  return { alone, together, parts };
}

it.each<[string, () => TableRows[], number, number]>([
  ['of two dtypes', () => [tableOf(0, 'F32'), tableOf(1, 'F64')], 16, 7],
  ['in blocks of the fewest rows', () => [tableOf(0, 'BF16'), tableOf(1, 'BF16')], 1, 7],
  ['with strides', () => [tableOf(0, 'F16', true), tableOf(1, 'F16')], 8, 7],
  ['with a computed one', () => [tableOf(0, 'F32'), sincosRows(ROWS, COLUMNS)], 12, 3],
])(
  'tables %s have the same rows if they are read together',
  async (_, tables, blockRows, parts) => {
    const read = await bothWays(tables(), blockRows);
    expect(read.parts).toBe(parts);
    for (const [index, values] of read.together.entries()) {
      expect(Buffer.compare(bytesOf(values), bytesOf(read.alone[index]))).toBe(0);
    }
    expect(read.alone[0]?.some((number) => number === 0)).toBe(true);
  },
);

const bytesOf = (values = new Float64Array()) => Buffer.from(values.buffer);

it('reading ahead reports that a file ends', async () => {
  const file = fileIn('table', made([ROWS, COLUMNS], () => 1).bytes);
  const tensor = tensorIn(ByteFile.open(file), 'F32', [ROWS, COLUMNS]);
  fs.truncateSync(file, ROWS * COLUMNS * 2);
  const whole = bothWays(
    [{ ...storedRows({ rows: tensor, projection: null }), read: () => {} }],
    4,
  );
  await expect(whole).rejects.toMatchObject({
    code: 'refused-file',
    problems: [{ message: expect.stringContaining('ends here') }],
  });
});
