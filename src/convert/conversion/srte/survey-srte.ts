/** Survey of the SRTE tables of a checkpoint: how similar they are, and the error of sharing them. */

import { UserError, usageError } from '../../../base/errors.js';
import { symmetricEigenvalues } from '../../../base/linalg/eigenvalues.js';
import { addRowProducts, GramAccumulator } from '../../../base/linalg/gram.js';
import type { Matrix, SymmetricMatrix, TableDistance } from '../../../base/linalg/matrix.js';
import {
  addComparison,
  emptyComparison,
  meanOfRows,
  rowsView,
  squaredNorm,
  symmetricMatrix,
  symmetricValue,
} from '../../../base/linalg/matrix.js';
import { squaredLosses } from '../../../base/linalg/subspace-iteration.js';
import type { StoredDtype } from '../../../base/tensor/dtype.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import { formatInteger } from '../../../base/text/units.js';
import { sumOf } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { isSameView } from '../../../checkpoint/stored-tensor.js';
import { rowBytes } from '../../../checkpoint/view.js';
import type { NonFiniteSummary } from '../execute/table-rows.js';
import { NonFiniteValues, SrteRowReader } from '../execute/table-rows.js';
import type { SrteTables } from './srte-tables.js';
import { isSameAs, srteTablesWithCopies } from './srte-tables.js';

/** Norms and distances are Frobenius norms. Null is an undefined value: 0/0, or not finite. */
export interface TableSurvey {
  /** Null for a shared table. @count */
  readonly layer: number | null;
  /** Name in the file; for a low-rank pair, the name of the rows. */
  readonly name: string;
  /** Frobenius norm, as all norms here. @minimum 0 */
  readonly norm: number | null;
  /** Cosine similarity to the mean table; null when one of the two is zero. */
  readonly cosineToMean: number | null;
  /** Norm of the difference from the mean table; null without a mean. @minimum 0 */
  readonly distanceToMean: number | null;
  /** distanceToMean / norm: the relative error of replacing this table by the mean. @minimum 0 */
  readonly relativeDistance: number | null;
  /** Largest difference between a value of the table and of the mean. @minimum 0 */
  readonly largestDifference: number | null;
  /** Null when all values are finite. */
  readonly nonFinite: NonFiniteSummary | null;
}

export interface SrteSurvey extends SrteStorage {
  /** Whether layers share their tables. */
  readonly sharing: SrteTables['sharing'];
  /** Rows of a table. @count */
  readonly positions: number;
  /** Columns of a table. @count */
  readonly hidden: number;
  /** Rank of the stored low-rank pairs; null for full tables. @integer @minimum 1 */
  readonly storedRank: number | null;
  /** One per layer, in order; one when shared. */
  readonly tables: readonly TableSurvey[];
  /** Cosine similarity between all tables. */
  readonly cosines: readonly (readonly (number | null)[])[];
  /** Norm of the mean table; null without one. @minimum 0 */
  readonly meanNorm: number | null;
  /** Options for storing the tables. */
  readonly options: readonly SrteOption[];
  /** Remarks for the user. */
  readonly notes: readonly string[];
}

export interface SrteSurveyOptions {
  /** Ranks from 1 to min(L, H). By default the powers of two from 8 on that make a table smaller. */
  readonly ranks?: readonly number[];
  /** Called with each further number of processed table bytes. */
  readonly onBytes?: (bytes: number) => void;
}

/** Maximum tables, more than any model has layers; the number of cosines grows quadratically. */
const MOST_TABLES = 512;
/** Values of a block of all tables: 8 MB. */
const BLOCK_VALUES = 2 ** 20;
/** Rows of a block are a multiple of this, so that even 4-bit values are whole bytes. */
const ROW_STEP = 4;
/** Values of a few rows of all tables, or of a projection, in memory at once: 256 MB. */
const MOST_VALUES = 2 ** 25;
/** Maximum bytes of a Gram matrix: enough for tables with 9,900 columns. */
const MOST_GRAM_BYTES = 400e6;

/**
 * Compares the SRTE tables of a checkpoint with each other and with their mean, the best shared table in the
 * least-squares sense, and computes the error of the best shared table of each rank. Reads the tables once, in blocks
 * of rows over all layers. All sums are in float64.
 *
 * A table M' for all layers has the error Σᵢ‖Tᵢ − M'‖² = Σᵢ‖Tᵢ − M‖² + n·‖M − M'‖², because the differences of the n
 * tables Tᵢ to their mean M add up to zero. For the best M' of each rank the last term comes from the eigenvalues of
 * MᵀM, without reading the tables again. Differences below about 10⁻⁷ of the mean's norm cannot be distinguished from
 * rounding; the errors of storing the result are not included.
 *
 * For tables [L, H] the work grows with L·H² and H³ (and with L²·H and L³ if H is more than L), and with n²·L·H. It
 * takes about 20 MB of memory and 4·min(L, H)² bytes: 67 MB for 65536 × 4096, for any number of layers. Signals and
 * timers are still handled.
 *
 * @throws UserError with every reason when there are no such tables or they cannot be compared; when a rank is invalid;
 * when reading fails.
 */
export async function surveySrte(
  checkpoint: Checkpoint,
  options: SrteSurveyOptions = {},
): Promise<SrteSurvey> {
  const found = await srteTablesWithCopies(checkpoint);
  checkSize(found, checkpoint.path);
  const ranks = options.ranks ?? usualRanks(found);
  checkRanks(ranks, found);
  const gram = gramFor(found, ranks);
  const pass = await passOver(found, gram, options.onBytes);
  const squares = sumOver(found, (table) => symmetricValue(pass.dots, table, table));
  const hasMean = Number.isFinite(pass.squaredMean);
  const eigenvalues = gram && hasMean ? await symmetricEigenvalues(await gram.finish()) : null;
  return {
    ...storageOf(found),
    sharing: found.sharing,
    positions: found.positions,
    hidden: found.hidden,
    storedRank: found.rank,
    tables: found.tables.map((_, table) => tableSurvey(found, pass, table)),
    cosines: cosinesOf(pass.dots),
    meanNorm: finiteOrNull(Math.sqrt(pass.squaredMean)),
    options: sharingOptions(found, ranks, {
      squares,
      squaredDistances: sumOver(found, (table) => pass.comparisons[table]?.squaredDistance ?? 0),
      squaredMean: pass.squaredMean,
      eigenvalues,
    }),
    notes: [
      ...sharingNotes(found),
      ...(ranks.length > 0 && eigenvalues === null ? [rankNote(found, hasMean)] : []),
    ],
  };
}

/** Total bytes that `surveySrte` will report to `onBytes`. @throws UserError as it does. */
export async function bytesToSurvey(checkpoint: Checkpoint): Promise<number> {
  const { tables } = await srteTablesWithCopies(checkpoint);
  return sumOf(tables, ({ rows }) => rows.bytes);
}

const sumOver = ({ tables }: SrteTables, value: (table: number) => number): number =>
  tables.reduce((sum, _, table) => sum + value(table), 0);

function checkSize({ tables, hidden, rank }: SrteTables, file: string): void {
  const refuse = (message: string) => new UserError('refused-file', `${file}: ${message}`);
  if (tables.length > MOST_TABLES) {
    throw refuse(
      `${formatInteger(tables.length)} SRTE tables are more than ${MOST_TABLES}, the limit of this comparison`,
    );
  }
  if (tables.length * hidden * ROW_STEP > MOST_VALUES || hidden * (rank ?? 0) > MOST_VALUES) {
    throw refuse(
      `${formatInteger(tables.length)} SRTE tables of ${formatInteger(hidden)} columns are too wide to be compared`,
    );
  }
}

/** Null without requested ranks, or when it needs too much memory. */
function gramFor({ positions, hidden }: SrteTables, ranks: readonly number[]) {
  const isWanted = ranks.length > 0 && GramAccumulator.bytes(positions, hidden) <= MOST_GRAM_BYTES;
  return isWanted ? new GramAccumulator(positions, hidden) : null;
}

async function passOver(
  { tables, positions, hidden }: SrteTables,
  gram: GramAccumulator | null,
  onBytes: (bytes: number) => void = () => {},
): Promise<SrtePass> {
  const fitting = Math.floor(BLOCK_VALUES / (tables.length * hidden * ROW_STEP));
  const blockRows = Math.min(positions, Math.max(1, fitting) * ROW_STEP);
  const values = new Float64Array(tables.length * blockRows * hidden);
  const pass = new SrtePass(tables.length, hidden, blockRows, gram);
  const reader = new SrteRowReader();
  for (let row = 0; row < positions; row += blockRows) {
    const rows = Math.min(blockRows, positions - row);
    const columns = rows * hidden;
    for (const [index, table] of tables.entries()) {
      const target = values.subarray(index * columns, (index + 1) * columns);
      await reader.read(table, row, rows, target);
    }
    await pass.add({ values, rows: tables.length, columns }, row);
    onBytes(sumOf(tables, (table) => rows * rowBytes(table.rows)));
  }
  return pass;
}

function tableSurvey({ sharing, tables }: SrteTables, pass: SrtePass, table: number): TableSurvey {
  const squares = symmetricValue(pass.dots, table, table);
  const norm = Math.sqrt(squares);
  const { dot, squaredDistance, largestDifference } = pass.comparisons[table] ?? emptyComparison();
  const distance = Math.sqrt(squaredDistance);
  return {
    layer: sharing === 'shared' ? null : table,
    name: tables[table]?.name ?? '',
    norm: finiteOrNull(norm),
    cosineToMean: cosine(dot, squares, pass.squaredMean),
    distanceToMean: finiteOrNull(distance),
    relativeDistance: ratio(distance, norm),
    // A largest difference does not exist for NaN.
    largestDifference: Number.isFinite(distance) ? largestDifference : null,
    nonFinite: pass.nonFinite.found[table] ?? null,
  };
}

function cosinesOf(dots: SymmetricMatrix): (number | null)[][] {
  const squares = Array.from({ length: dots.size }, (_, row) => symmetricValue(dots, row, row));
  return squares.map((square, row) =>
    squares.map((other, column) => cosine(symmetricValue(dots, row, column), square, other)),
  );
}

/** Divides by the root of the product of both squared norms, so that equal tables give exactly 1. */
function cosine(dot: number, squares: number, others: number): number | null {
  const value = ratio(dot, Math.sqrt(squares * others));
  // Rounding may exceed the range a little.
  return value === null ? null : Math.max(-1, Math.min(1, value));
}

function sharingNotes({ sharing, tables }: SrteTables): string[] {
  const distinct = tables.filter((table, index) => tables.findIndex(isSameAs(table)) === index);
  return [
    ...(sharing === 'shared'
      ? ['The SRTE is shared already: all layers have this one table.']
      : []),
    ...(distinct.length < tables.length
      ? [`Some layers share a table: there are ${distinct.length} for ${tables.length} layers.`]
      : []),
  ];
}

const rankNote = ({ positions, hidden }: SrteTables, hasMean: boolean): string =>
  `Ranks were not compared: ${
    hasMean
      ? `tables of ${formatInteger(positions)} × ${formatInteger(hidden)} take too much memory for that`
      : 'the mean of the tables has no finite norm'
  }.`;

/** One pass over tables, block by block: the sums that their survey needs. */
export class SrtePass {
  /** The products of all tables with each other, [n, n]. */
  readonly dots: SymmetricMatrix;
  /** Comparison of each table with the mean. */
  readonly comparisons: readonly TableDistance[];
  readonly nonFinite: NonFiniteValues;
  squaredMean = 0;
  readonly #gram: GramAccumulator | null;
  readonly #mean: Float64Array;

  /**
   * @param tables Number of tables, n.
   * @param columns Columns of each.
   * @param blockRows Maximum rows of a block.
   * @param gram Receives the rows of the mean while they are finite.
   */
  constructor(tables: number, columns: number, blockRows: number, gram: GramAccumulator | null) {
    this.dots = symmetricMatrix(tables);
    this.comparisons = Array.from({ length: tables }, emptyComparison);
    this.nonFinite = new NonFiniteValues(tables, columns);
    this.#gram = gram;
    this.#mean = new Float64Array(blockRows * columns);
  }

  /**
   * Adds the next rows of all tables.
   * @param block [n, rows · columns]: the rows of a table one after the other.
   * @param firstRow Their index in the table.
   */
  async add(block: Matrix, firstRow: number): Promise<void> {
    const mean = this.#mean.subarray(0, block.columns);
    meanOfRows(block, mean);
    const squares = squaredNorm(mean);
    this.squaredMean += squares;
    for (const [table, comparison] of this.comparisons.entries()) {
      const { values } = rowsView(block, table, table + 1);
      addComparison(comparison, values, mean);
      if (!Number.isFinite(squares)) this.nonFinite.add(table, values, firstRow);
    }
    await addRowProducts(this.dots, block);
    if (Number.isFinite(this.squaredMean)) await this.#gram?.add(mean);
  }
}

/** Current storage of the tables. */
export interface SrteStorage {
  /** The widest dtype of the tables. @pattern ^[A-Z][A-Z0-9_]*$ */
  readonly dtype: StoredDtype;
  /** All tables together, shared tensors once. @count */
  readonly parameters: number;
  /** Bytes of the tables. @count */
  readonly bytes: number;
}

/** An option for storing one table for all layers. */
export interface SrteOption {
  /** Null for the mean itself; else its best approximation of this rank. @integer @minimum 1 */
  readonly rank: number | null;
  /** Parameters of the tables. @count */
  readonly parameters: number;
  /** Bytes in the current dtype of the tables. @count */
  readonly bytes: number;
  /** Reduction of the parameters; negative for an increase. @integer */
  readonly savedParameters: number;
  /** Bytes that it saves. @integer */
  readonly savedBytes: number;
  /** Share of the mean's squared norm that is kept, 0 to 1; null for a zero mean. @minimum 0 */
  readonly energy: number | null;
  /** Root of the sum of all squared differences over the sum of all squares. @minimum 0 */
  readonly relativeError: number | null;
}

/** Sums that the errors of all options are computed from. */
export interface SharingErrors {
  /** Sum of the squares of all tables. */
  readonly squares: number;
  /** Sum of their squared distances to the mean. */
  readonly squaredDistances: number;
  readonly squaredMean: number;
  /** Eigenvalues of the mean's Gram matrix, the largest first; null when unknown. */
  readonly eigenvalues: Float64Array | null;
}

function storageOf({ tables }: SrteTables): SrteStorage {
  const tensors: StoredTensor[] = [];
  for (const tensor of tables.flatMap(({ rows, projection }) => [
    rows,
    ...(projection ? [projection] : []),
  ])) {
    if (!tensors.some((known) => isSameView(known, tensor))) tensors.push(tensor);
  }
  const dtypes = tensors.map(({ dtype }) => dtype);
  return {
    dtype: dtypes.reduce((a, b) => (STORED_DTYPES[b].bits > STORED_DTYPES[a].bits ? b : a)),
    parameters: sumOf(tensors, ({ elements }) => elements),
    bytes: sumOf(tensors, ({ bytes }) => bytes),
  };
}

/** Smallest rank tried by default; smaller ones are only useful for small tables. */
const USUAL_RANK = 8;

/** The powers of two at which a pair is smaller than a table and than the stored form. */
function usualRanks({ positions, hidden, rank: stored }: SrteTables): number[] {
  const most = Math.min(stored ?? hidden, (positions * hidden) / (positions + hidden));
  const ranks: number[] = [];
  for (let rank = 1; rank < most; rank *= 2) ranks.push(rank);
  const usual = ranks.filter((rank) => rank >= USUAL_RANK);
  return usual.length > 0 ? usual : ranks;
}

/** @throws UserError when a rank is invalid for the tables. */
function checkRanks(ranks: readonly number[], { positions, hidden }: SrteTables): void {
  const most = Math.min(positions, hidden);
  const wrong = ranks.find((rank) => !Number.isInteger(rank) || rank < 1 || rank > most);
  if (wrong === undefined) return;
  throw usageError(
    `${wrong} is not a rank of a table of ${formatInteger(positions)} × ${formatInteger(hidden)}`,
    `choose a whole number from 1 to ${most}`,
  );
}

/** The mean, unless the table is shared already, and each rank, if errors of ranks are known. */
function sharingOptions(
  found: SrteTables,
  ranks: readonly number[],
  errors: SharingErrors,
): SrteOption[] {
  const { positions, hidden, sharing, tables } = found;
  const stored = storageOf(found);
  const option = (rank: number | null, parameters: number, squaredLoss: number): SrteOption => {
    const bytes = Math.ceil((parameters * STORED_DTYPES[stored.dtype].bits) / 8);
    const squaredError = errors.squaredDistances + tables.length * squaredLoss;
    return {
      rank,
      parameters,
      bytes,
      savedParameters: stored.parameters - parameters,
      savedBytes: stored.bytes - bytes,
      energy: ratio(errors.squaredMean - squaredLoss, errors.squaredMean),
      relativeError: ratio(Math.sqrt(squaredError), Math.sqrt(errors.squares)),
    };
  };
  const losses = errors.eigenvalues ? squaredLosses(errors.eigenvalues, ranks) : [];
  return [
    ...(sharing === 'shared' ? [] : [option(null, positions * hidden, 0)]),
    ...losses.map((loss, index) => {
      const rank = ranks[index] ?? 0;
      return option(rank, rank * (positions + hidden), loss);
    }),
  ];
}

const finiteOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** `part` / `whole`; null when it is 0/0, or either is not finite. */
const ratio = (part: number, whole: number): number | null =>
  Number.isFinite(whole) ? finiteOrNull(part / whole) : null;
