/** Tables of an output that must be computed: means, products and low-rank pairs. */

import { setImmediate as breathe } from 'node:timers/promises';
import { UserError } from '../../../base/errors.js';
import type { ByteSink } from '../../../base/files/write-whole.js';
import type { LowRank, RowSource } from '../../../base/linalg/low-rank.js';
import { lowRank } from '../../../base/linalg/low-rank.js';
import type { MatrixProducts } from '../../../base/linalg/matrix.js';
import {
  addComparison,
  emptyComparison,
  meanOfRows,
  squaredNorm,
} from '../../../base/linalg/matrix.js';
import { decodeValues } from '../../../base/tensor/decode-values.js';
import type { Shape, StoredDtype } from '../../../base/tensor/dtype.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import type { EncodableDtype } from '../../../base/tensor/encode.js';
import { encode, isEncodable } from '../../../base/tensor/encode.js';
import { parseJson } from '../../../base/text/json.js';
import { setting } from '../../../base/text/setting.js';
import type { ByteFile } from '../../../checkpoint/byte-file.js';
import { type StoredTensor, tensorIn } from '../../../checkpoint/stored-tensor.js';
import type { ConversionJob } from '../job.js';
import type { ConversionInput } from '../plan/conversion-plan.js';
import type { Resources } from '../resources.js';
import type { PlannedTable, SrtePlan } from '../srte/srte-plan.js';
import { rowsMade } from '../srte/srte-plan.js';
import type { SrtePart } from '../srte/srte-tables.js';
import type { ComparisonSums, RowRange, TableError, TableRows } from './table-rows.js';
import {
  alignedRows,
  NonFiniteValues,
  sincosRows,
  storedRows,
  TableComparison,
} from './table-rows.js';
import type { TableParts } from './tensor-values.js';
import { overflowError } from './tensor-values.js';

/** Files next to the output, kept until it is complete. */
export interface Scratch {
  has(name: string): boolean;
  /** Writes a file atomically. */
  write(name: string, fill: (sink: ByteSink) => Promise<void>): Promise<void>;
  /** The file stays open until the scratch is closed. */
  open(name: string): ByteFile;
}

export interface MadeTable {
  readonly parts: TableParts;
  /** Null for a full table. */
  readonly rank: number | null;
  /** Share of the table's squared norm in a pair; null for a full table, or for zeros. */
  readonly energy: number | null;
  /** Singular values of a pair's table, largest first; null for a full table. */
  readonly singularValues: readonly number[] | null;
  /** Errors of a full table; a pair's are measured after writing. Null until then. */
  readonly errors: readonly TableError[] | null;
}

/** Singular values that a result keeps, at most. */
const MOST_SINGULAR_VALUES = 1024;

interface PairNotes {
  readonly rank: number;
  readonly energy: number | null;
  readonly singularValues: readonly number[];
}

/**
 * Computes the tables of a plan, or reuses those of an earlier run from the scratch. Undefined for tables that are
 * already stored or not selected.
 * @param isWanted Selects tables by their number; all by default.
 * @throws UserError when values of the tables are not finite, or do not fit the dtype; when reading or writing fails.
 */
export async function makeTables(
  input: ConversionInput,
  plan: SrtePlan | null,
  resources: Resources,
  scratch: Scratch,
  isWanted: (table: number) => boolean = () => true,
): Promise<(MadeTable | undefined)[]> {
  const made: (MadeTable | undefined)[] = [];
  for (const [number, table] of (plan?.tables ?? []).entries()) {
    if (!plan || !table.isMade || !isWanted(number)) {
      made.push(undefined);
      continue;
    }
    const rows = Math.min(plan.target.positions, plan.source.positions);
    const bytes = rows * plan.source.hidden * table.sources.length;
    const onBytes = input.job.display.step(`merging ${table.name}`, bytes);
    const making = new Making(input, plan, table, resources, scratch, onBytes);
    made.push(await (table.form === 'low-rank' ? making.pair() : making.full()));
  }
  return made;
}

/** Some rows of a made table; for a pair, rows of the table that it approximates. */
export interface TableSlice extends RowRange {
  /** Number of the planned table. */
  readonly table: number;
}

/** Name in the scratch of the rows of a made table; of all rows without a slice. */
export function rowsName({ name, form }: PlannedTable, slice?: RowRange): string {
  const whole = `${name}.${form === 'low-rank' ? 'mean' : 'freqs'}`;
  return slice === undefined ? whole : `${whole}.${slice.first}-${slice.end}`;
}

/**
 * Computes some rows of a made table, bit for bit as `makeTables` does: no row depends on another one.
 * @returns Sums of the comparison with each source; empty for a pair, which is compared when it is written.
 * @throws UserError as `makeTables`.
 */
export async function makeSlice(
  input: ConversionInput,
  plan: SrtePlan,
  slice: TableSlice,
  resources: Resources,
  scratch: Scratch,
): Promise<readonly ComparisonSums[]> {
  const table = plan.tables[slice.table];
  if (table === undefined) throw new RangeError(`no table ${slice.table}`);
  const values = (slice.end - slice.first) * plan.source.hidden * table.sources.length;
  const onBytes = input.job.display.step(`merging ${table.name}`, values);
  return new Making(input, plan, table, resources, scratch, onBytes).slice(slice);
}

/** Errors of a full table, from the sums of its slices in order. */
export function sliceErrors(
  input: ConversionInput,
  { sources }: PlannedTable,
  slices: readonly (readonly ComparisonSums[])[],
): readonly TableError[] {
  return sources.map((number, index) => {
    const comparison = new TableComparison();
    for (const sums of slices) {
      const own = sums[index];
      if (own !== undefined) comparison.addSums(own);
    }
    const name = input.srte?.tables?.tables[number]?.name ?? '';
    return { layers: [number], name, ...comparison.result() };
  });
}

class Making {
  readonly #table: PlannedTable;
  readonly #dtype: EncodableDtype;
  /** Path of the input as given, for messages. */
  readonly #file: string;
  readonly #job: ConversionJob;
  readonly #products: MatrixProducts;
  readonly #blockRows: number;
  readonly #scratch: Scratch;
  /** Called with the number of table bytes read. */
  readonly #onBytes: (bytes: number) => void;
  /** Alternative to a planned rank: the largest relative error of the replaced tables. */
  readonly #maxError: number | undefined;
  readonly #rows: number;
  readonly #columns: number;
  /** Source tables of the values, followed by those that are only compared. */
  readonly #sources: readonly TableRows[];
  readonly #names: readonly string[];
  readonly #numbers: readonly number[];
  /** Number of tables in `#sources` that the values come from. */
  readonly #merged: number;

  constructor(
    { job, srte }: ConversionInput,
    plan: SrtePlan,
    table: PlannedTable,
    { backend, blockRows }: Resources,
    scratch: Scratch,
    onBytes: (bytes: number) => void,
  ) {
    if (!isEncodable(table.dtype)) throw new Error(`${table.name} cannot be ${table.dtype}`);
    this.#table = table;
    this.#dtype = table.dtype;
    this.#file = job.checkpoint.path;
    this.#job = job;
    this.#products = backend.products;
    this.#blockRows = blockRows;
    this.#scratch = scratch;
    this.#onBytes = onBytes;
    this.#maxError = job.rank === undefined ? job.maxError : undefined;
    this.#rows = rowsMade(plan);
    this.#columns = plan.source.hidden;
    const isCompared = table.form === 'low-rank' && this.#maxError !== undefined;
    const compared = isCompared ? table.replaces.filter((n) => !table.sources.includes(n)) : [];
    this.#numbers = [...table.sources, ...compared];
    this.#merged = Math.max(1, table.sources.length);
    const { timesTransposed } = this.#products;
    const tables = this.#numbers.flatMap((index) => srte?.tables?.tables[index] ?? []);
    this.#names = tables.map(({ name }) => name);
    this.#sources =
      tables.length > 0
        ? tables.map((each) => storedRows(each, timesTransposed))
        : [sincosRows(this.#rows, this.#columns)];
  }

  /** The mean of the sources, or the only one, as a full table; computes the errors in the same pass. */
  async full(): Promise<MadeTable> {
    const shape = [1, this.#rows, this.#columns];
    const comparisons = this.#sources.map(() => new TableComparison());
    const saved = await this.#once('freqs', (sink) => this.#writeRows(sink, comparisons));
    const errors = comparisons.map((each, index) => ({
      layers: [this.#numbers[index] ?? 0],
      name: this.#names[index] ?? '',
      ...each.result(),
    }));
    const parts = new Map([['freqs', this.#part('freqs', this.#dtype, shape)] as const]);
    // Tables of an earlier run were not compared in this one.
    return {
      parts,
      rank: null,
      energy: null,
      singularValues: null,
      errors: saved === 'made' ? errors : null,
    };
  }

  async slice(range: RowRange): Promise<readonly ComparisonSums[]> {
    const comparisons = this.#sources.map(() => new TableComparison());
    const isPair = this.#table.form === 'low-rank';
    await this.#scratch.write(rowsName(this.#table, range), (sink) =>
      isPair ? this.#writeUnfactorised(sink, range) : this.#writeRows(sink, comparisons, range),
    );
    return isPair ? [] : comparisons.map(({ sums }) => sums);
  }

  async #writeRows(
    sink: ByteSink,
    comparisons: readonly TableComparison[],
    range = this.#allRows,
  ): Promise<void> {
    const encoder = this.#encoder(
      `${this.#table.name}.freqs`,
      this.#columns,
      this.#dtype,
      range.first,
    );
    for await (const { rows, values } of this.#means(range)) {
      const { bytes, written } = encoder(rows);
      const squares = squaredNorm(written);
      for (const [index, had] of values.entries()) comparisons[index]?.add(had, written, squares);
      await sink.write(bytes);
    }
  }

  /** The best pair of the requested rank for the mean of the sources. */
  async pair(): Promise<MadeTable> {
    const notes = await this.#pairNotes();
    const { rank, energy, singularValues } = notes;
    const parts = new Map<SrtePart, StoredTensor>([
      ['lowrank', this.#part('lowrank', this.#dtype, [1, this.#rows, rank])],
      ['proj.weight', this.#part('proj.weight', this.#dtype, [this.#columns, rank])],
    ]);
    return { parts, rank, energy, singularValues, errors: null };
  }

  /** Rank, energy and singular values of the pair, once both parts are written. */
  async #pairNotes(): Promise<PairNotes> {
    if (!this.#scratch.has(this.#nameOf('json'))) {
      const table = await this.#tableToFactorise();
      const pair = await this.#factorised(table, await this.#allowedLoss(table));
      await this.#writePair(pair, table);
      const kept = squaredNorm(pair.singularValues);
      const energy = pair.squaredNorm === 0 ? null : Math.min(1, kept / pair.squaredNorm);
      const singularValues = [...pair.spectrum.subarray(0, MOST_SINGULAR_VALUES)];
      const text = JSON.stringify({ rank: pair.rank, energy, singularValues });
      await this.#scratch.write(this.#nameOf('json'), (sink) => sink.write(Buffer.from(text)));
    }
    return this.#json('json');
  }

  /**
   * The mean of the sources, or a product, stored in float32, or in float64 if the output is. A single table is read
   * anyway, to check that its values are finite.
   */
  async #tableToFactorise(): Promise<RowSource> {
    await this.#once('mean', (sink) => this.#writeUnfactorised(sink));
    const rows = this.#part('mean', this.#unfactorisedDtype, [this.#rows, this.#columns]);
    return storedRows({ rows, projection: null });
  }

  get #unfactorisedDtype(): 'F32' | 'F64' {
    return this.#dtype === 'F64' ? 'F64' : 'F32';
  }

  async #writeUnfactorised(sink: ByteSink, range = this.#allRows): Promise<void> {
    const encoder = this.#encoder(
      `${this.#table.name} before it is factorised`,
      this.#columns,
      this.#unfactorisedDtype,
      range.first,
    );
    await this.#mergeRows((rows) => sink.write(encoder(rows).bytes), range);
  }

  /** Reads all tables once. If the rank depends on an error, also stores the error of merging. */
  async #mergeRows(
    onRows: (rows: Float64Array) => Promise<unknown>,
    range = this.#allRows,
  ): Promise<void> {
    const maxError = this.#maxError;
    const spread: MergeNorms = { had: 0, merged: 0, distance: 0 };
    for await (const { rows, values } of this.#means(range)) {
      if (maxError !== undefined) addSpread(spread, rows, values);
      await onRows(rows);
    }
    if (maxError === undefined || this.#scratch.has(this.#nameOf('spread'))) return;
    const text = JSON.stringify(spread);
    await this.#scratch.write(this.#nameOf('spread'), (sink) => sink.write(Buffer.from(text)));
  }

  /**
   * Largest ‖M − P‖ / ‖M‖ of a pair P for the merged table M that keeps ‖Tᵢ − P‖ over all replaced tables Tᵢ within the
   * requested share of ‖Tᵢ‖; undefined when the rank is given. For the mean, Σ‖Tᵢ − P‖² = Σ‖Tᵢ − M‖² + n·‖M − P‖². For
   * another merge, the triangle inequality gives a bound.
   * @throws UserError when merging alone exceeds the error.
   */
  async #allowedLoss(table: RowSource): Promise<number | undefined> {
    const maxError = this.#maxError;
    if (maxError === undefined) return undefined;
    const spread = await this.#spread();
    const { had, merged, distance } = spread;
    const tables = this.#sources.length;
    const budget = maxError ** 2 * had;
    const isMean = this.#merged === tables;
    const left = isMean ? budget - distance : Math.sqrt(budget) - Math.sqrt(distance);
    if (left < 0 || (left === 0 && distance > 0)) {
      const cost = Math.sqrt(distance / had).toPrecision(3);
      const rank = largestUsefulRank(table);
      const best = this.#errorOf(lossOf(await this.#factors(table, { rank })), spread);
      throw new UserError(
        'refused-file',
        `${this.#file}: one table for all layers has an error of ${cost} at any rank, more than ${maxError}`,
        {
          suggestion: `write ${setting('maxError', best)} for rank ${rank}, or keep a table for each layer`,
        },
      );
    }
    // Rounding of the comparison must not raise the reported error above the bound.
    const loss = isMean ? Math.sqrt(left / tables) : left / Math.sqrt(tables);
    return merged === 0 ? 0 : (loss / Math.sqrt(merged)) * (1 - 1e-6);
  }

  /**
   * Error ‖Tᵢ − P‖ over all replaced tables Tᵢ of a pair P with this loss ‖M − P‖ / ‖M‖, as for `#allowedLoss`, rounded
   * up to three digits.
   */
  #errorOf(loss: number, { had, merged, distance }: MergeNorms): number {
    const tables = this.#sources.length;
    const own = tables * merged * loss ** 2;
    const isMean = this.#merged === tables;
    const error = isMean ? Math.sqrt(distance + own) : Math.sqrt(distance) + Math.sqrt(own);
    const share = had === 0 ? 0 : error / Math.sqrt(had);
    const digits = 10 ** (2 - Math.floor(Math.log10(share || 1)));
    return Number((Math.ceil(share * digits * (1 + 1e-5)) / digits).toPrecision(3));
  }

  async #spread(): Promise<MergeNorms> {
    // An interrupted run can leave the merged table without its norms.
    if (!this.#scratch.has(this.#nameOf('spread'))) await this.#mergeRows(async () => {});
    return this.#json('spread');
  }

  #json<T>(part: string): T {
    const file = this.#scratch.open(this.#nameOf(part));
    return parseJson(file.read(0, file.size).toString()) as T;
  }

  /** @throws UserError when no useful pair has a sufficiently small error. */
  async #factorised(table: RowSource, allowedLoss: number | undefined): Promise<LowRank> {
    const maxError = this.#maxError;
    if (allowedLoss === undefined) return this.#factors(table, { rank: this.#plannedRank() });
    const mostRank = largestUsefulRank(table);
    const pair = await this.#factors(table, { relativeError: allowedLoss, mostRank });
    const lost = lossOf(pair);
    if (pair.rank < mostRank || lost <= allowedLoss) return pair;
    const best = this.#errorOf(lost, await this.#spread());
    throw new UserError(
      'refused-file',
      `${this.#file}: no pair smaller than the table has an error of at most ${maxError}: the largest, of rank ${mostRank}, has ${best}`,
      {
        suggestion: `write ${setting('maxError', best)}, or keep the full table: ${setting('layout', 'shared')} without ${setting('maxError')}`,
      },
    );
  }

  /** Approximation of a table by a pair of a rank, or of the smallest rank for an error. */
  #factors(table: RowSource, want: Parameters<typeof lowRank>[1]['want']): Promise<LowRank> {
    return lowRank(table, {
      want,
      seed: this.#job.seed,
      products: this.#products,
      blockRows: this.#blockRows,
      onRows: this.#watchPasses(table),
    });
  }

  /** Shows the progress of each pass over a table. The number of passes is unknown in advance. */
  #watchPasses({ rows, columns }: RowSource): (rows: number) => void {
    const { step } = this.#job.display;
    const rowBytes = columns * Float64Array.BYTES_PER_ELEMENT;
    let pass = 0;
    let left = 0;
    let onProgress: (bytes: number) => void = () => {};
    return (count) => {
      if (left === 0) {
        pass++;
        left = rows;
        onProgress = step(`factorising ${this.#table.name}, pass ${pass}`, rows * rowBytes);
      }
      left -= count;
      onProgress(count * rowBytes);
    };
  }

  #plannedRank(): number {
    const { rank } = this.#table;
    if (rank === null) throw new Error(`no rank for ${this.#table.name}`);
    return rank;
  }

  async #writePair({ rank, projection, left }: LowRank, table: RowSource): Promise<void> {
    await this.#scratch.write(this.#nameOf('lowrank'), async (sink) => {
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
    await this.#scratch.write(this.#nameOf('proj.weight'), async (sink) => {
      const encoder = this.#encoder(`${this.#table.name}.proj.weight`, rank);
      await sink.write(encoder(projection.values).bytes);
    });
  }

  /** The mean of the sources and the rows of each source, a few rows at a time. */
  async *#means(range: RowRange): AsyncGenerator<{
    readonly rows: Float64Array;
    readonly values: readonly Float64Array[];
  }> {
    const nonFinite = new NonFiniteValues(this.#sources.length, this.#columns);
    let mean = new Float64Array();
    for await (const together of alignedRows(this.#sources, range, this.#blockRows)) {
      const { firstRow, values: memory, columns } = together;
      if (mean.length < columns) mean = new Float64Array(columns);
      const rows = mean.subarray(0, columns);
      meanOfRows({ values: memory, rows: this.#merged, columns }, rows);
      const values = this.#sources.map((_, index) =>
        memory.subarray(index * columns, (index + 1) * columns),
      );
      // A value that is not finite in a merged table is also not finite in the mean.
      const checked = [rows, ...values.slice(this.#merged)];
      if (!checked.every((each) => Number.isFinite(squaredNorm(each)))) {
        for (const [index, own] of values.entries()) nonFinite.add(index, own, firstRow);
      }
      this.#onBytes(memory.length);
      yield { rows, values };
      await breathe();
    }
    nonFinite.refuseAny(this.#file, this.#names);
  }

  get #allRows(): RowRange {
    return { first: 0, end: this.#rows };
  }

  *#blocks(): Generator<readonly [firstRow: number, rows: number]> {
    for (let row = 0; row < this.#rows; row += this.#blockRows) {
      yield [row, Math.min(this.#blockRows, this.#rows - row)];
    }
  }

  #block(columns: number): Float64Array {
    return new Float64Array(Math.min(this.#blockRows, this.#rows) * columns);
  }

  /**
   * Numbers as written, and as read again. Their memory is reused.
   * @param name Tensor name for the message when a number does not fit.
   * @param first Number of the first row.
   */
  #encoder(name: string, columns: number, dtype: EncodableDtype = this.#dtype, first = 0) {
    const { saturate } = this.#job;
    const width = STORED_DTYPES[dtype].bits / 8;
    let bytes = new Uint8Array();
    let numbers = new Float64Array();
    let firstRow = first;
    return (values: Float64Array) => {
      if (numbers.length < values.length) {
        numbers = new Float64Array(values.length);
        bytes = new Uint8Array(values.length * width);
      }
      const target = bytes.subarray(0, values.length * width);
      const overflow = encode(dtype, values, target, { saturate });
      if (overflow >= 0 && !saturate) {
        const place = `row ${firstRow + Math.floor(overflow / columns)}, column ${overflow % columns}`;
        throw overflowError(this.#file, name, dtype, values[overflow] ?? Number.NaN, place);
      }
      const written = numbers.subarray(0, values.length);
      decodeValues(dtype, target, written);
      firstRow += values.length / columns;
      return { bytes: target, written };
    };
  }

  async #once(part: string, fill: (sink: ByteSink) => Promise<void>): Promise<'made' | 'there'> {
    if (this.#scratch.has(this.#nameOf(part))) return 'there';
    await this.#scratch.write(this.#nameOf(part), fill);
    return 'made';
  }

  #nameOf(part: string): string {
    return `${this.#table.name}.${part}`;
  }

  #part(part: string, dtype: StoredDtype, shape: Shape): StoredTensor {
    return tensorIn(this.#scratch.open(this.#nameOf(part)), dtype, shape);
  }
}

/** Squared Frobenius norms. */
interface MergeNorms {
  /** Sum over the replaced tables. */
  had: number;
  merged: number;
  /** Sum of the distances between the replaced tables and the merged one. */
  distance: number;
}

function addSpread(
  spread: MergeNorms,
  merged: Float64Array,
  tables: readonly Float64Array[],
): void {
  spread.merged += squaredNorm(merged);
  for (const table of tables) {
    const sums = emptyComparison();
    addComparison(sums, table, merged);
    spread.had += sums.squaredNorm;
    spread.distance += sums.squaredDistance;
  }
}

/** The largest rank at which a pair is smaller than the table [rows, columns]; at least 1. */
const largestUsefulRank = ({ rows, columns }: RowSource): number =>
  Math.max(1, Math.min(columns - 1, Math.ceil((rows * columns) / (rows + columns)) - 1));

/** ‖A − U·Σ·Vᵀ‖ / ‖A‖; 0 for a zero matrix. */
function lossOf({ squaredNorm: whole, singularValues }: LowRank): number {
  return whole === 0 ? 0 : Math.sqrt(Math.max(0, 1 - squaredNorm(singularValues) / whole));
}
