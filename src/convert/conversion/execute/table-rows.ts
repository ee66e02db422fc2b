/** Tables as rows of numbers, stored or computed: read singly or together, checked and compared. */

import type { RowSource } from '../../../base/linalg/low-rank.js';
import type { MatrixProduct, TableDistance } from '../../../base/linalg/matrix.js';
import { addComparison, emptyComparison, plainProduct } from '../../../base/linalg/matrix.js';
import { decodeValues } from '../../../base/tensor/decode-values.js';
import { setting } from '../../../base/text/setting.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { readRows, readRowsAsync, rowBytes } from '../../../checkpoint/view.js';
import type { Extension } from '../conversion-choices.js';
import { SrteFaults } from '../conversion-rules.js';
import type { StoredSrteTable } from '../srte/srte-tables.js';

/** A table whose rows may be stored in a tensor. */
export interface TableRows extends RowSource {
  /** [rows, columns]; null when they are computed. */
  readonly stored: StoredTensor | null;
}

/** A stored table; the product of a pair. */
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
 * Sines and cosines: column 2j of row t is sin(t · w), column 2j + 1 is cos(t · w), w = 10000^(−2j / H). Each step is
 * in float32, as in the published model.
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

/** The first `rows` rows of a table, extended by the rule of `extension`. */
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

/** Consecutive rows of a longer table that are rows of the original, or zeros. */
export interface RowRun {
  /** The first row of the original; null for zeros. */
  readonly from: number | null;
  /** Start of the run, relative to the first requested row. */
  readonly at: number;
  readonly length: number;
}

/** @param stored Number of rows of the original. */
export function* runsOf(
  stored: number,
  firstRow: number,
  count: number,
  extension: Extension | null,
): Generator<RowRun, undefined> {
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

/** Values of the same rows of all tables. */
export interface AlignedRows {
  readonly firstRow: number;
  /** [tables, rows · columns]; its memory is reused. */
  readonly values: Float64Array;
  readonly columns: number;
}

/** Number of float64 values of all tables that stay in a processor's cache. */
const CACHED_NUMBERS = 2 ** 16;
/** Rows are read in multiples of this, so that even 4-bit values are whole bytes. */
const ROW_STEP = 4;

/** Rows of a table from `first` up to `end`. */
export interface RowRange {
  /** A multiple of 4, so that values begin with a whole byte. */
  readonly first: number;
  readonly end: number;
}

/**
 * A range of rows of all tables, in order. Stored ones are read ahead, and decoded a few rows at a time.
 * @param blockRows Limit of rows for all tables together in float64, including the data read ahead.
 * @throws UserError when reading fails.
 */
export async function* alignedRows(
  tables: readonly TableRows[],
  range: RowRange,
  blockRows: number,
): AsyncGenerator<AlignedRows, undefined> {
  const stored = tables.flatMap((table) => table.stored ?? []);
  if (stored.length === tables.length) yield* decodedRows(stored, range, blockRows);
  else yield* workedOutRows(tables, range, blockRows);
}

async function* workedOutRows(
  tables: readonly TableRows[],
  { first, end }: RowRange,
  blockRows: number,
): AsyncGenerator<AlignedRows, undefined> {
  const width = tables[0]?.columns ?? 0;
  const memory = new Float64Array(Math.min(blockRows, end - first) * width * tables.length);
  for (const [firstRow, count] of rowRanges(first, end, blockRows)) {
    const columns = count * width;
    const values = memory.subarray(0, columns * tables.length);
    for (const [index, table] of tables.entries()) {
      await table.read(firstRow, count, part(values, index, columns));
    }
    yield { firstRow, values, columns };
  }
}

/** @param tensors Tensors [rows, columns]. */
async function* decodedRows(
  tensors: readonly StoredTensor[],
  range: RowRange,
  blockRows: number,
): AsyncGenerator<AlignedRows, undefined> {
  const width = tensors[0]?.shape[1] ?? 0;
  const cached = inSteps(CACHED_NUMBERS / (width * tensors.length));
  const memory = new Float64Array(cached * width * tensors.length);
  for await (const { firstRow, count, bytes } of bytesAhead(tensors, range, blockRows)) {
    for (const [row, few] of rowRanges(0, count, cached)) {
      const columns = few * width;
      const values = memory.subarray(0, columns * tensors.length);
      for (const [index, tensor] of tensors.entries()) {
        const own = part(bytes[index] ?? new Uint8Array(), row, rowBytes(tensor), few);
        decodeValues(tensor.dtype, own, part(values, index, columns));
      }
      yield { firstRow: firstRow + row, values, columns };
    }
  }
}

/** Blocks of bytes of all tensors. The next block is read while one is in use. */
async function* bytesAhead(
  tensors: readonly StoredTensor[],
  { first, end }: RowRange,
  blockRows: number,
) {
  const widest = Math.max(...tensors.map((tensor) => rowBytes(tensor) / (tensor.shape[1] ?? 1)));
  // Two stored blocks together may use as much memory as one in float64.
  const most = Math.min(end - first, inSteps((blockRows * 8) / (2 * widest)));
  const buffers = [0, 1].map(() =>
    tensors.map((tensor) => new Uint8Array(most * rowBytes(tensor))),
  );
  const blocks = [...rowRanges(first, end, most)];
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
    // The error is handled when the read is awaited.
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

/** Part `index` of an array of equal parts of this length, or several of them. */
const part = <Values extends Float64Array | Uint8Array>(
  values: Values,
  index: number,
  length: number,
  parts = 1,
) => values.subarray(index * length, (index + parts) * length) as Values;

const inSteps = (rows: number) => Math.max(ROW_STEP, Math.floor(rows / ROW_STEP) * ROW_STEP);

function* rowRanges(
  first: number,
  rows: number,
  step: number,
): Generator<readonly [number, number]> {
  for (let row = first; row < rows; row += step) yield [row, Math.min(step, rows - row)];
}

/** Location of a table's values. */
export type SrteValues = Pick<StoredSrteTable, 'rows' | 'projection'>;

/** Reads rows of tables as float64. Its memory is reused between readings. */
export class SrteRowReader {
  #bytes = new Uint8Array();
  #rows = new Float64Array();
  #projection = new Float64Array();

  readonly #product: MatrixProduct;

  /** @param product For tables stored as pairs. */
  constructor(product: MatrixProduct = plainProduct) {
    this.#product = product;
  }

  /**
   * Writes rows of a table, row-major, to `target`, which has exactly this size.
   * @param firstRow A multiple of 4, like `rows` except for the last ones, so that values fill whole bytes.
   * @throws UserError when reading fails.
   */
  async read(
    { rows: stored, projection }: SrteValues,
    firstRow: number,
    rows: number,
    target: Float64Array,
  ): Promise<void> {
    if (projection === null) {
      this.#decode(stored, firstRow, rows, target);
      return;
    }
    const [hidden = 0, rank = 0] = projection.shape;
    this.#rows = atLeast(this.#rows, rows * rank);
    this.#projection = atLeast(this.#projection, hidden * rank);
    this.#decode(stored, firstRow, rows, this.#rows);
    this.#decode(projection, 0, hidden, this.#projection);
    await this.#product(
      { values: this.#rows, rows, columns: rank },
      { values: this.#projection, rows: hidden, columns: rank },
      target,
    );
  }

  #decode(tensor: StoredTensor, firstRow: number, rows: number, target: Float64Array): void {
    const length = rows * rowBytes(tensor);
    if (this.#bytes.length < length) this.#bytes = new Uint8Array(length);
    const bytes = this.#bytes.subarray(0, length);
    readRows(tensor, firstRow, rows, bytes);
    decodeValues(tensor.dtype, bytes, target);
  }
}

const atLeast = (numbers: Float64Array<ArrayBuffer>, length: number) =>
  numbers.length >= length ? numbers : new Float64Array(length);

/** The values of a table that are not finite. */
export interface NonFiniteSummary {
  /** Number of values. @count */
  readonly count: number;
  /** Row and column of the first one. @count */
  readonly row: number;
  /** Column of the first one. @count */
  readonly column: number;
  /** The first value. */
  readonly value: 'NaN' | 'Infinity' | '-Infinity';
}

/** Collects values that are not finite from blocks of tables. */
export class NonFiniteValues {
  /** Null for a table with only finite values. */
  readonly found: (NonFiniteSummary | null)[];
  readonly #columns: number;

  /** @param tables Number of tables. @param columns Columns of each. */
  constructor(tables: number, columns: number) {
    this.found = new Array<null>(tables).fill(null);
    this.#columns = columns;
  }

  /** @param values Rows of a table from `firstRow` on. */
  add(table: number, values: Float64Array, firstRow: number): void {
    for (const [index, value] of values.entries()) {
      if (Number.isFinite(value)) continue;
      const known = this.found[table];
      this.found[table] = known
        ? { ...known, count: known.count + 1 }
        : {
            count: 1,
            row: firstRow + Math.floor(index / this.#columns),
            column: index % this.#columns,
            value: String(value) as NonFiniteSummary['value'],
          };
    }
  }

  /** @param names Names of the tables. @throws UserError when a value is not finite. */
  refuseAny(file: string, names: readonly string[]): void {
    const faults = new SrteFaults(file);
    for (const [table, found] of this.found.entries()) {
      if (found === null) continue;
      const others = found.count > 1 ? `, and ${found.count - 1} more that are not finite` : '';
      faults.add({
        rule: 'srte-finite',
        tensor: names[table] ?? '',
        message: `holds ${found.value} in row ${found.row}, column ${found.column} (layer ${table})${others}`,
        suggestion: `replace it, or use the table of another layer with ${setting('merge', 'layer:N')}`,
      });
    }
    faults.throwAny();
  }
}

/** Norms are Frobenius norms. Null is an undefined value: 0/0. */
export interface TableError {
  /** Numbers of the layers that use the table. @count */
  readonly layers: readonly number[];
  /** The tensor of the input; for a pair, the one of the rows. */
  readonly name: string;
  /** ‖had‖, over the rows that both have, as for all below; null when it was copied without reading. @minimum 0 */
  readonly norm: number | null;
  /** ‖had − gets‖. @minimum 0 */
  readonly distance: number;
  /** distance / norm. @real @minimum 0 */
  readonly relativeError: number | null;
  /** Largest error of a value. @minimum 0 */
  readonly largestError: number;
  /** Cosine similarity; null when one of the two is zero. @minimum -1 @maximum 1 */
  readonly cosine: number | null;
}

/** Sums of a comparison over some rows. */
export interface ComparisonSums extends Readonly<TableDistance> {
  /** Squared norm of the replacement. */
  readonly gets: number;
}

/** Accumulates the error of a replaced table block by block. */
export class TableComparison {
  readonly #sums = emptyComparison();
  #gets = 0;

  /** @param squaredNorm Squared norm of the replacement, which several tables may share. */
  add(had: Float64Array, gets: Float64Array, squaredNorm: number): void {
    this.#gets += squaredNorm;
    addComparison(this.#sums, had, gets);
  }

  /** The sums so far, as data. */
  get sums(): ComparisonSums {
    return { ...this.#sums, gets: this.#gets };
  }

  /** Adds the sums of other rows of the same tables. */
  addSums({ gets, ...sums }: ComparisonSums): void {
    this.#gets += gets;
    this.#sums.squaredNorm += sums.squaredNorm;
    this.#sums.dot += sums.dot;
    this.#sums.squaredDistance += sums.squaredDistance;
    this.#sums.largestDifference = Math.max(this.#sums.largestDifference, sums.largestDifference);
  }

  result(): Omit<TableError, 'layers' | 'name'> {
    const { squaredNorm, dot, squaredDistance, largestDifference } = this.#sums;
    const cosine = quotient(dot, Math.sqrt(squaredNorm) * Math.sqrt(this.#gets));
    return {
      norm: Math.sqrt(squaredNorm),
      distance: Math.sqrt(squaredDistance),
      relativeError: quotient(Math.sqrt(squaredDistance), Math.sqrt(squaredNorm)),
      largestError: largestDifference,
      // Rounding may exceed the range a little; equal tables are exactly 1.
      cosine: squaredDistance === 0 && cosine !== null ? 1 : clamped(cosine),
    };
  }
}

const quotient = (part: number, whole: number): number | null =>
  whole === 0 ? (part === 0 ? null : Number.POSITIVE_INFINITY) : part / whole;

const clamped = (value: number | null) =>
  value === null ? null : Math.max(-1, Math.min(1, value));

/** ‖had − gets‖ / ‖had‖ of all tables together; a table of several layers counts for each. */
export function overallError(errors: readonly TableError[]): number | null {
  let had = 0;
  let lost = 0;
  for (const { norm, distance, layers } of errors) {
    const times = Math.max(1, layers.length);
    had += times * (norm ?? 0) ** 2;
    lost += times * distance ** 2;
  }
  return lost === 0 && errors.length > 0 ? 0 : quotient(Math.sqrt(lost), Math.sqrt(had));
}
