/** The tables of an output whose values have to be worked out: means, products and low-rank pairs. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { ByteFile } from '../checkpoint/byte-file.js';
import { contiguousStrides, type StoredTensor } from '../checkpoint/stored-tensor.js';
import { UserError } from '../errors.js';
import type { ByteSink } from '../files/byte-sink.js';
import { meanOfRows, squaredNorm } from '../linalg/comparison.js';
import { type LowRank, lowRank, type RowSource } from '../linalg/low-rank.js';
import type { MatrixProducts } from '../linalg/product.js';
import { decode } from '../tensor/decode.js';
import { type EncodableDtype, encode, isEncodable } from '../tensor/encode.js';
import { elementCount, type Shape } from '../tensor/shape.js';
import { STORED_DTYPES, type StoredDtype } from '../tensor/stored-dtype.js';
import { rowsKnown } from './layouts.js';
import { NonFiniteValues } from './non-finite.js';
import type { PlannedTable, SrtePlan } from './plan.js';
import { rowsTogether } from './rows-together.js';
import type { SrtePart } from './srte-names.js';
import type { SrteTables } from './srte-tables.js';
import { TableComparison, type TableError } from './table-errors.js';
import { sincosRows, storedRows, type TableRows } from './table-rows.js';

/** Files beside the output that are kept until it is whole. */
export interface Scratch {
  has(name: string): boolean;
  /** Writes a file, whole or not at all. */
  write(name: string, fill: (sink: ByteSink) => Promise<void>): Promise<void>;
  /** The file stays open until the scratch is closed. */
  open(name: string): ByteFile;
}

export interface MakingOptions {
  /** As the user wrote it, for messages. */
  readonly file: string;
  readonly scratch: Scratch;
  readonly products: MatrixProducts;
  readonly seed: number;
  /** Rows of all tables that are in memory at a time. */
  readonly blockRows: number;
  readonly saturate: boolean;
  /** Instead of the planned rank: the largest relative error of the pair. */
  readonly relativeError?: number | undefined;
  /** What is being done, and how many bytes it will work on. */
  readonly step: (label: string, bytes: number) => (bytes: number) => void;
  /** Is told of so many more bytes of tables that have been read. */
  readonly onBytes?: (bytes: number) => void;
}

/** A table that was worked out. */
export interface MadeTable {
  /** [1, rows, …] of the rows that the input has; [H, r] of a projection. */
  readonly parts: ReadonlyMap<SrtePart, StoredTensor>;
  /** Null for a full table. */
  readonly rank: number | null;
  /** Share of the squared norm of the table that a pair keeps; null for a full table, or for zeros. */
  readonly energy: number | null;
  /** Of a full table; a pair's are measured when it has been written. Null when they are yet to be. */
  readonly errors: readonly TableError[] | null;
}

/** Rows of a table that are worked out: of a longer one only those that the input has. */
export const rowsMade = ({ source, target }: SrtePlan): number =>
  Math.min(target.positions, rowsKnown(source));

/**
 * Works out a table, or takes it from the scratch where an earlier run has left it.
 * @throws UserError when values of the tables are not finite, or do not fit the dtype; when reading or
 * writing fails.
 */
export async function makeTable(
  plan: SrtePlan,
  number: number,
  found: SrteTables | null,
  options: MakingOptions,
): Promise<MadeTable> {
  const table = plan.tables[number];
  if (table === undefined || !isEncodable(table.dtype)) throw new Error(`no table ${number}`);
  const making = new Making(plan, table, table.dtype, found, options);
  return table.form === 'low-rank' ? making.pair() : making.full();
}

class Making {
  readonly #table: PlannedTable;
  readonly #dtype: EncodableDtype;
  readonly #options: MakingOptions;
  readonly #rows: number;
  readonly #columns: number;
  /** The tables that the values come from, and their names. */
  readonly #sources: readonly TableRows[];
  readonly #names: readonly string[];
  readonly #numbers: readonly number[];

  constructor(
    plan: SrtePlan,
    table: PlannedTable,
    dtype: EncodableDtype,
    found: SrteTables | null,
    options: MakingOptions,
  ) {
    this.#table = table;
    this.#dtype = dtype;
    this.#options = options;
    this.#rows = rowsMade(plan);
    this.#columns = plan.source.hidden;
    this.#numbers = table.sources;
    const { timesTransposed } = options.products;
    const tables = table.sources.flatMap((index) => found?.tables[index] ?? []);
    this.#names = tables.map(({ name }) => name);
    this.#sources =
      tables.length > 0
        ? tables.map((each) => storedRows(each, timesTransposed))
        : [sincosRows(this.#rows, this.#columns)];
  }

  /** The mean of the sources, or the only one, as a full table; compared with each of them on the way. */
  async full(): Promise<MadeTable> {
    const shape = [1, this.#rows, this.#columns];
    const comparisons = this.#sources.map(() => new TableComparison());
    const saved = await this.#once('freqs', async (sink) => {
      const encoder = this.#encoder(`${this.#table.name}.freqs`, this.#columns);
      for await (const { rows, values } of this.#means()) {
        const { bytes, written } = encoder(rows);
        const squares = squaredNorm(written);
        for (const [index, had] of values.entries()) {
          comparisons[index]?.add(had, written, squares);
        }
        await sink.write(bytes);
      }
    });
    const errors = comparisons.map((each, index) => ({
      layers: [this.#numbers[index] ?? 0],
      name: this.#names[index] ?? '',
      ...each.result(),
    }));
    const parts = new Map([['freqs', this.#part('freqs', this.#dtype, shape)] as const]);
    // What an earlier run made was not compared in this one.
    return { parts, rank: null, energy: null, errors: saved === 'made' ? errors : null };
  }

  /** The best pair of the wanted rank for the mean of the sources. */
  async pair(): Promise<MadeTable> {
    const notes = await this.#pairNotes();
    const { rank, energy } = notes;
    const parts = new Map<SrtePart, StoredTensor>([
      ['lowrank', this.#part('lowrank', this.#dtype, [1, this.#rows, rank])],
      ['proj.weight', this.#part('proj.weight', this.#dtype, [this.#columns, rank])],
    ]);
    return { parts, rank, energy, errors: null };
  }

  /** What is known of the pair, once both parts are written. */
  async #pairNotes(): Promise<{ readonly rank: number; readonly energy: number | null }> {
    const { scratch } = this.#options;
    if (!scratch.has(this.#file('json'))) {
      const table = await this.#tableToFactorise();
      const pair = await this.#factorised(table);
      await this.#writePair(pair, table);
      const kept = squaredNorm(pair.singularValues);
      const energy = pair.squaredNorm === 0 ? null : Math.min(1, kept / pair.squaredNorm);
      const text = JSON.stringify({ rank: pair.rank, energy });
      await scratch.write(this.#file('json'), (sink) => sink.write(Buffer.from(text)));
    }
    const file = scratch.open(this.#file('json'));
    return JSON.parse(file.read(0, file.size).toString());
  }

  /**
   * The mean of the sources, or a product, written down: in float32, unless the output is in float64. A
   * single table has to be read once in any case, to see that its values are finite.
   */
  async #tableToFactorise(): Promise<RowSource> {
    const dtype = this.#dtype === 'F64' ? 'F64' : 'F32';
    await this.#once('mean', async (sink) => {
      const encoder = this.#encoder(
        `${this.#table.name} before it is factorised`,
        this.#columns,
        dtype,
      );
      for await (const { rows } of this.#means()) await sink.write(encoder(rows).bytes);
    });
    const rows = this.#part('mean', dtype, [this.#rows, this.#columns]);
    return storedRows({ rows, projection: null });
  }

  /** @throws UserError when no pair that is worth having keeps within the error. */
  async #factorised(table: RowSource): Promise<LowRank> {
    const { file, products, seed, blockRows, relativeError } = this.#options;
    const onRows = this.#watchPasses(table);
    const reading = { seed, products, blockRows, onRows };
    if (relativeError === undefined) {
      return lowRank(table, { want: { rank: this.#plannedRank() }, ...reading });
    }
    const mostRank = largestUsefulRank(table);
    const pair = await lowRank(table, { want: { relativeError, mostRank }, ...reading });
    const lost = lossOf(pair);
    if (pair.rank < mostRank || lost <= relativeError) return pair;
    throw new UserError(
      'refused-file',
      `${file}: no pair that is smaller than the table keeps within an error of ${relativeError}: with the largest, of rank ${mostRank}, it is ${lost.toPrecision(3)}`,
      { suggestion: 'allow a larger --max-error, or keep the full table with --to shared' },
    );
  }

  /** How far each pass over a table is: nobody knows before how many there will be. */
  #watchPasses({ rows, columns }: RowSource): (rows: number) => void {
    const { step } = this.#options;
    const rowBytes = columns * Float64Array.BYTES_PER_ELEMENT;
    let pass = 0;
    let left = 0;
    let tell: (bytes: number) => void = () => {};
    return (count) => {
      if (left === 0) {
        pass++;
        left = rows;
        tell = step(`factorising ${this.#table.name}, pass ${pass}`, rows * rowBytes);
      }
      left -= count;
      tell(count * rowBytes);
    };
  }

  #plannedRank(): number {
    const { rank } = this.#table;
    if (rank === null) throw new Error(`no rank for ${this.#table.name}`);
    return rank;
  }

  async #writePair({ rank, projection, left }: LowRank, table: RowSource): Promise<void> {
    const { scratch } = this.#options;
    await scratch.write(this.#file('lowrank'), async (sink) => {
      const encoder = this.#encoder(`${this.#table.name}.lowrank`, rank);
      const [values, target] = [this.#block(this.#columns), this.#block(rank)];
      for (const [firstRow, rows] of this.#blocks()) {
        const block = values.subarray(0, rows * this.#columns);
        await table.read(firstRow, rows, block);
        const result = target.subarray(0, rows * rank);
        await left({ values: block, rows, columns: this.#columns }, result);
        await sink.write(encoder(result).bytes);
      }
    });
    await scratch.write(this.#file('proj.weight'), async (sink) => {
      const encoder = this.#encoder(`${this.#table.name}.proj.weight`, rank);
      await sink.write(encoder(projection.values).bytes);
    });
  }

  /** Some rows at a time: the mean of the sources, and the rows of each of them. */
  async *#means(): AsyncGenerator<{
    readonly rows: Float64Array;
    readonly values: readonly Float64Array[];
  }> {
    const { file, blockRows, onBytes = () => {} } = this.#options;
    const nonFinite = new NonFiniteValues(this.#sources.length, this.#columns);
    let mean = new Float64Array();
    for await (const together of rowsTogether(this.#sources, this.#rows, blockRows)) {
      const { firstRow, values: memory, columns } = together;
      if (mean.length < columns) mean = new Float64Array(columns);
      const rows = mean.subarray(0, columns);
      meanOfRows({ values: memory, rows: this.#sources.length, columns }, rows);
      const values = this.#sources.map((_, index) =>
        memory.subarray(index * columns, (index + 1) * columns),
      );
      // What is not finite in a source is not finite in the mean.
      if (!Number.isFinite(squaredNorm(rows))) {
        for (const [index, own] of values.entries()) nonFinite.add(index, own, firstRow);
      }
      onBytes(memory.length);
      yield { rows, values };
      await breathe();
    }
    nonFinite.refuseAny(file, this.#names);
  }

  *#blocks(): Generator<readonly [firstRow: number, rows: number]> {
    const { blockRows } = this.#options;
    for (let row = 0; row < this.#rows; row += blockRows) {
      yield [row, Math.min(blockRows, this.#rows - row)];
    }
  }

  #block(columns: number): Float64Array {
    return new Float64Array(Math.min(this.#options.blockRows, this.#rows) * columns);
  }

  /**
   * Numbers as they are written, and as they will be read again. The memory of both is used again.
   * @param name Of the tensor, for the message when a number does not fit.
   */
  #encoder(name: string, columns: number, dtype: EncodableDtype = this.#dtype) {
    const { saturate, file } = this.#options;
    const width = STORED_DTYPES[dtype].bits / 8;
    let bytes = new Uint8Array();
    let numbers = new Float64Array();
    let firstRow = 0;
    return (values: Float64Array) => {
      if (numbers.length < values.length) {
        numbers = new Float64Array(values.length);
        bytes = new Uint8Array(values.length * width);
      }
      const target = bytes.subarray(0, values.length * width);
      const overflow = encode(dtype, values, target, { saturate });
      if (overflow >= 0 && !saturate) {
        const place = `row ${firstRow + Math.floor(overflow / columns)}, column ${overflow % columns}`;
        throw overflowError(file, name, dtype, values[overflow] ?? Number.NaN, place);
      }
      const written = numbers.subarray(0, values.length);
      decode(dtype, target, written);
      firstRow += values.length / columns;
      return { bytes: target, written };
    };
  }

  async #once(part: string, fill: (sink: ByteSink) => Promise<void>): Promise<'made' | 'there'> {
    const { scratch } = this.#options;
    if (scratch.has(this.#file(part))) return 'there';
    await scratch.write(this.#file(part), fill);
    return 'made';
  }

  #file(part: string): string {
    return `${this.#table.name}.${part}`;
  }

  #part(part: string, dtype: StoredDtype, shape: Shape): StoredTensor {
    return tensorIn(this.#options.scratch.open(this.#file(part)), dtype, shape);
  }
}

/** The largest rank of which a pair takes less than the table [rows, columns] does; at least 1. */
const largestUsefulRank = ({ rows, columns }: RowSource): number =>
  Math.max(1, Math.min(columns - 1, Math.ceil((rows * columns) / (rows + columns)) - 1));

/** ‖A − U·Σ·Vᵀ‖ / ‖A‖; of zeros 0. */
function lossOf({ squaredNorm: whole, singularValues }: LowRank): number {
  return whole === 0 ? 0 : Math.sqrt(Math.max(0, 1 - squaredNorm(singularValues) / whole));
}

/** The tensor that the whole of a file is. */
export function tensorIn(file: ByteFile, dtype: StoredDtype, shape: Shape): StoredTensor {
  const elements = elementCount(shape) ?? Number.NaN;
  return {
    kind: 'tensor',
    dtype,
    shape,
    elements,
    strides: contiguousStrides(shape),
    offset: 0,
    storage: { file, position: 0, bytes: file.size, isBigEndian: false },
    bytes: file.size,
  };
}

/** A value that is too large for the type that it is to be written as. */
export function overflowError(
  file: string,
  name: string,
  dtype: EncodableDtype,
  value: number,
  place: string,
): UserError {
  return new UserError('refused-file', `${file} has values that ${dtype} cannot hold`, {
    problems: [
      {
        severity: 'error',
        file,
        path: `tensor ${JSON.stringify(name)}`,
        message: `would hold ${value} in ${place}, which ${dtype} cannot: it would become infinite`,
        suggestion: 'choose a wider --dtype, or cut such values to the largest with --saturate',
      },
    ],
  });
}
