/** Tables as rows of numbers, whatever they are stored or computed as. */
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import type { RowSource } from '../linalg/low-rank.js';
import type { MatrixProduct } from '../linalg/product.js';
import type { Extension } from './request.js';
import { SrteRowReader, type SrteValues } from './srte-rows.js';

/** A table whose rows may be those of a tensor. */
export interface TableRows extends RowSource {
  /** [rows, columns]; null when they are worked out. */
  readonly stored: StoredTensor | null;
}

/** A stored table; of a pair, the product. */
export function storedRows(table: SrteValues, product?: MatrixProduct): TableRows {
  const reader = new SrteRowReader(product);
  const [rows = 0, width = 0] = table.rows.shape;
  return {
    rows,
    columns: table.projection?.shape[0] ?? width,
    stored: table.projection === null ? table.rows : null,
    read: (firstRow, count, target) => reader.read(table, firstRow, count, target),
  };
}

/**
 * Sines and cosines: column 2j of row t is sin(t · w), column 2j + 1 is cos(t · w), w = 10000^(−2j / H).
 * In float32 at each step, as the original computes them.
 */
export function sincosRows(rows: number, columns: number): TableRows {
  const exponent = Math.fround(-Math.log(10_000) / columns);
  const frequencies = Float64Array.from({ length: columns / 2 }, (_, j) =>
    Math.fround(Math.exp(Math.fround(2 * j * exponent))),
  );
  return {
    rows,
    columns,
    stored: null,
    read(firstRow, count, target) {
      for (let row = 0; row < count; row++) {
        for (const [j, frequency] of frequencies.entries()) {
          const angle = Math.fround((firstRow + row) * frequency);
          target[row * columns + 2 * j] = Math.fround(Math.sin(angle));
          target[row * columns + 2 * j + 1] = Math.fround(Math.cos(angle));
        }
      }
    },
  };
}

/** The first `rows` rows of a table; beyond its last as `extension` says. */
export function fittedRows(
  source: RowSource,
  rows: number,
  extension: Extension | null,
): RowSource {
  if (rows <= source.rows) return { ...source, rows };
  const { columns } = source;
  return {
    rows,
    columns,
    async read(firstRow, count, target) {
      for (const { from, at, length } of runsOf(source.rows, firstRow, count, extension)) {
        const part = target.subarray(at * columns, (at + length) * columns);
        if (from === null) part.fill(0);
        else await source.read(from, length, part);
      }
    },
  };
}

/** Rows of a longer table that are rows of the one it was made from, or zeros, one after the other. */
export interface Run {
  /** The first row of the original; null for zeros. */
  readonly from: number | null;
  /** Where the run begins, from the first wanted row. */
  readonly at: number;
  readonly length: number;
}

/** @param stored Rows of the original. */
export function* runsOf(
  stored: number,
  firstRow: number,
  count: number,
  extension: Extension | null,
): Generator<Run, undefined> {
  for (let at = 0; at < count; ) {
    const row = firstRow + at;
    const isBeyond = row >= stored;
    if (isBeyond && extension !== 'repeat') {
      yield { from: null, at, length: count - at };
      return;
    }
    const from = row % stored;
    const length = Math.min(count - at, stored - from);
    yield { from, at, length };
    at += length;
  }
}
