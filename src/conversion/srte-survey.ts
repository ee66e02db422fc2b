/** What the SRTE tables of a checkpoint have in common, and so what sharing them would cost. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { rowBytes } from '../checkpoint/view.js';
import { UserError } from '../errors.js';
import { emptyComparison } from '../linalg/comparison.js';
import { symmetricEigenvalues } from '../linalg/eigenvalues.js';
import { GramAccumulator } from '../linalg/gram.js';
import { type SymmetricMatrix, valueAt } from '../linalg/matrix.js';
import type { NonFinite } from './non-finite.js';
import {
  checkRanks,
  finiteOrNull,
  ratio,
  type SrteOption,
  type SrteStorage,
  sharingOptions,
  storageOf,
  usualRanks,
} from './srte-options.js';
import { SrtePass } from './srte-pass.js';
import { SrteRowReader } from './srte-rows.js';
import { isSameAs, type SrteTables, srteTablesWithCopies } from './srte-tables.js';

/** Norms and distances are Frobenius'. Null is what has no value: 0/0, or no finite one. */
export interface TableSurvey {
  /** Null for a shared table. */
  readonly layer: number | null;
  /** As the file names it; of a low-rank pair, the name of the rows. */
  readonly name: string;
  readonly norm: number | null;
  readonly cosineToMean: number | null;
  readonly distanceToMean: number | null;
  /** distanceToMean / norm: the relative error of the mean in the place of this table. */
  readonly relativeDistance: number | null;
  /** Of a value of the table from that of the mean. */
  readonly largestDifference: number | null;
  /** Null when all values are finite. */
  readonly nonFinite: NonFinite | null;
}

export interface SrteSurvey extends SrteStorage {
  readonly sharing: SrteTables['sharing'];
  /** A table has so many rows … */
  readonly positions: number;
  /** … and columns. */
  readonly hidden: number;
  /** Of the low-rank pairs that the tables are stored as; null when they are stored whole. */
  readonly storedRank: number | null;
  /** One for each layer, in order; one when shared. */
  readonly tables: readonly TableSurvey[];
  /** Cosine similarity of each table to each. */
  readonly cosines: readonly (readonly (number | null)[])[];
  readonly meanNorm: number | null;
  readonly options: readonly SrteOption[];
  /** What deserves a word. */
  readonly notes: readonly string[];
}

export interface SurveyOptions {
  /** Each from 1 to min(L, H). By default the powers of two that make a table smaller, from 8 on. */
  readonly ranks?: readonly number[];
  /** Is told of so many more bytes of the tables that have been worked on. */
  readonly onBytes?: (bytes: number) => void;
}

/** More layers than any model has; the cosines grow with their square. */
const MOST_TABLES = 512;
/** Values of a block of all tables: 8 MB. */
const BLOCK_VALUES = 2 ** 20;
/** The rows of a block are a multiple of these, so that even 4-bit values are whole bytes. */
const ROW_STEP = 4;
/** Values of a few rows of all tables, or of a projection, that are held at once: 256 MB. */
const MOST_VALUES = 2 ** 25;
/** For the Gram matrix of tables that are 9,900 wide. */
const MOST_GRAM_BYTES = 400e6;

/**
 * Compares the SRTE tables of a checkpoint with each other and with their mean, the best shared table in
 * the least-squares sense, and works out what the best shared table of each rank would lose. Reads the
 * tables once, in blocks of rows over all layers. All sums are in float64.
 *
 * A table M' for all layers is wrong by Σᵢ‖Tᵢ − M'‖² = Σᵢ‖Tᵢ − M‖² + n·‖M − M'‖², because the
 * differences of the n tables Tᵢ to their mean M add up to zero. For the best M' of each rank the last
 * term comes from the eigenvalues of MᵀM, without a second look at the tables. What is below about 10⁻⁷
 * of the mean's norm cannot be told from rounding; the errors of storing the result are not counted.
 *
 * For tables [L, H] the work grows with L·H² and H³ (and with L²·H and L³ if H is more than L), and with
 * n²·L·H. It takes about 20 MB of memory and 4·min(L, H)² bytes: 67 MB for 65536 × 4096, for any number
 * of layers. Signals and timers get through.
 *
 * @throws UserError when there are no such tables or they cannot be compared, with every reason; when a
 * rank is none of theirs; when reading fails.
 */
export async function surveySrte(
  checkpoint: Checkpoint,
  options: SurveyOptions = {},
): Promise<SrteSurvey> {
  const found = await srteTablesWithCopies(checkpoint);
  checkSize(found, checkpoint.path);
  const ranks = options.ranks ?? usualRanks(found);
  checkRanks(ranks, found);
  const gram = gramFor(found, ranks);
  const pass = await passOver(found, gram, options.onBytes);
  const squares = sumOver(found, (table) => valueAt(pass.dots, table, table));
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

/** Bytes that `surveySrte` will tell of, for its progress. @throws UserError as it does. */
export async function bytesToSurvey(checkpoint: Checkpoint): Promise<number> {
  const { tables } = await srteTablesWithCopies(checkpoint);
  return tables.reduce((sum, { rows }) => sum + rows.bytes, 0);
}

const sumOver = ({ tables }: SrteTables, value: (table: number) => number): number =>
  tables.reduce((sum, _, table) => sum + value(table), 0);

function checkSize({ tables, hidden, rank }: SrteTables, file: string): void {
  const refuse = (message: string) => new UserError('refused-file', `${file}: ${message}`);
  if (tables.length > MOST_TABLES) {
    throw refuse(
      `${tables.length} SRTE tables are more than ${MOST_TABLES}, which is as many as are compared`,
    );
  }
  if (tables.length * hidden * ROW_STEP > MOST_VALUES || hidden * (rank ?? 0) > MOST_VALUES) {
    throw refuse(`${tables.length} SRTE tables of ${hidden} columns are too wide to be compared`);
  }
}

/** Null when no rank is asked for, or its memory would be too much. */
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
    onBytes(tables.reduce((sum, table) => sum + rows * rowBytes(table.rows), 0));
  }
  return pass;
}

function tableSurvey({ sharing, tables }: SrteTables, pass: SrtePass, table: number): TableSurvey {
  const squares = valueAt(pass.dots, table, table);
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
    // No value is larger than one that is not a number.
    largestDifference: Number.isFinite(distance) ? largestDifference : null,
    nonFinite: pass.nonFinite.found[table] ?? null,
  };
}

function cosinesOf(dots: SymmetricMatrix): (number | null)[][] {
  const squares = Array.from({ length: dots.size }, (_, row) => valueAt(dots, row, row));
  return squares.map((square, row) =>
    squares.map((other, column) => cosine(valueAt(dots, row, column), square, other)),
  );
}

/** By the squares of both norms: the root of their product makes that of equal tables exactly 1. */
function cosine(dot: number, squares: number, others: number): number | null {
  const value = ratio(dot, Math.sqrt(squares * others));
  // Rounding may carry it a little beyond.
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
  `Ranks were not looked into: ${
    hasMean
      ? `tables of ${positions} × ${hidden} take too much memory for that`
      : 'the mean of the tables has no finite norm'
  }.`;
