/** Several tables of one size, read together. */
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { readRowsAsync, rowBytes } from '../checkpoint/view.js';
import { decode } from '../tensor/decode.js';
import type { TableRows } from './table-rows.js';

/** The same rows of all tables. */
export interface TogetherRows {
  readonly firstRow: number;
  /** [tables, rows · columns]; its memory is used again. */
  readonly values: Float64Array;
  /** Values of one table. */
  readonly columns: number;
}

/** So many values of all tables, in float64, stay in a processor's cache while they are worked on. */
const CACHED_NUMBERS = 2 ** 16;
/** So that even 4-bit values are whole bytes. */
const ROW_STEP = 4;

/**
 * The first `rows` rows of all tables, in order. Stored ones are read ahead, and decoded a few rows at a time.
 * @param blockRows That all tables together may take, in float64, with what is read ahead.
 * @throws UserError when reading fails.
 */
export async function* rowsTogether(
  tables: readonly TableRows[],
  rows: number,
  blockRows: number,
): AsyncGenerator<TogetherRows, undefined> {
  const stored = tables.flatMap((table) => table.stored ?? []);
  if (stored.length === tables.length) yield* decodedRows(stored, rows, blockRows);
  else yield* workedOutRows(tables, rows, blockRows);
}

async function* workedOutRows(
  tables: readonly TableRows[],
  rows: number,
  blockRows: number,
): AsyncGenerator<TogetherRows, undefined> {
  const width = tables[0]?.columns ?? 0;
  const memory = new Float64Array(Math.min(blockRows, rows) * width * tables.length);
  for (const [firstRow, count] of steps(0, rows, blockRows)) {
    const columns = count * width;
    const values = memory.subarray(0, columns * tables.length);
    for (const [index, table] of tables.entries()) {
      await table.read(firstRow, count, part(values, index, columns));
    }
    yield { firstRow, values, columns };
  }
}

/** @param tensors [rows, columns] each. */
async function* decodedRows(
  tensors: readonly StoredTensor[],
  rows: number,
  blockRows: number,
): AsyncGenerator<TogetherRows, undefined> {
  const width = tensors[0]?.shape[1] ?? 0;
  const cached = inSteps(CACHED_NUMBERS / (width * tensors.length));
  const memory = new Float64Array(cached * width * tensors.length);
  for await (const { firstRow, count, bytes } of bytesAhead(tensors, rows, blockRows)) {
    for (const [row, few] of steps(0, count, cached)) {
      const columns = few * width;
      const values = memory.subarray(0, columns * tensors.length);
      for (const [index, tensor] of tensors.entries()) {
        const own = part(bytes[index] ?? new Uint8Array(), row, rowBytes(tensor), few);
        decode(tensor.dtype, own, part(values, index, columns));
      }
      yield { firstRow: firstRow + row, values, columns };
    }
  }
}

/** Blocks of bytes of all tensors. While one is worked on the next is read. */
async function* bytesAhead(tensors: readonly StoredTensor[], rows: number, blockRows: number) {
  const widest = Math.max(...tensors.map((tensor) => rowBytes(tensor) / (tensor.shape[1] ?? 1)));
  // Two blocks as they are stored take as much as one in float64.
  const most = Math.min(rows, inSteps((blockRows * 8) / (2 * widest)));
  const buffers = [0, 1].map(() =>
    tensors.map((tensor) => new Uint8Array(most * rowBytes(tensor))),
  );
  const blocks = [...steps(0, rows, most)];
  const request = (turn: number) => {
    const [firstRow, count] = blocks[turn] ?? [0, 0];
    const bytes = tensors.map((tensor, index) =>
      part(buffers[turn % 2]?.[index] ?? new Uint8Array(), 0, rowBytes(tensor), count),
    );
    const read = Promise.all(
      tensors.map((tensor, index) =>
        readRowsAsync(tensor, firstRow, count, bytes[index] ?? new Uint8Array()),
      ),
    );
    // A failure is met at its turn, when it is awaited.
    read.catch(() => {});
    return { firstRow, count, bytes, read };
  };
  let next = request(0);
  for (let turn = 0; turn < blocks.length; turn++) {
    const { read, ...block } = next;
    await read;
    if (turn + 1 < blocks.length) next = request(turn + 1);
    yield block;
  }
}

/** Part `index` of an array whose parts are so long; or several of them. */
const part = <Values extends Float64Array | Uint8Array>(
  values: Values,
  index: number,
  length: number,
  parts = 1,
) => values.subarray(index * length, (index + parts) * length) as Values;

const inSteps = (rows: number) => Math.max(ROW_STEP, Math.floor(rows / ROW_STEP) * ROW_STEP);

function* steps(first: number, rows: number, step: number): Generator<readonly [number, number]> {
  for (let row = first; row < rows; row += step) yield [row, Math.min(step, rows - row)];
}
