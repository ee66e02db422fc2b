/** How far the tables of a written output are from those of the input. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { squaredNorm } from '../linalg/comparison.js';
import type { RowSource } from '../linalg/low-rank.js';
import type { MatrixProducts } from '../linalg/product.js';
import { NonFiniteValues } from './non-finite.js';
import { storedUnder } from './output-values.js';
import type { PlannedTable, PlannedTie, SrtePlan } from './plan.js';
import type { SrteTable, SrteTables } from './srte-tables.js';
import { TableComparison, type TableError } from './table-errors.js';
import { fittedRows, sincosRows, storedRows } from './table-rows.js';

interface MeasureInput {
  /** Of the input, for messages. */
  readonly file: string;
  readonly srte: SrtePlan;
  readonly table: PlannedTable;
  /** Of the input; null when they are computed. */
  readonly tables: SrteTables | null;
  readonly output: Checkpoint;
}

interface MeasureOptions {
  readonly products: MatrixProducts;
  readonly blockRows: number;
  readonly step: (label: string, bytes: number) => (bytes: number) => void;
}

/**
 * Compares a table of the output with each that it takes the place of, over the rows that both have.
 * @throws UserError when reading fails, or values are not finite.
 */
export async function measureTable(
  { file, srte, table, tables, output }: MeasureInput,
  { products, blockRows, step }: MeasureOptions,
): Promise<TableError[]> {
  const replaced = table.replaces.flatMap((number) => {
    const had = tables?.tables[number];
    return had ? [{ number, had, rows: storedRows(had, products.timesTransposed) }] : [];
  });
  const rows = Math.min(srte.source.positions, srte.target.positions);
  if (isExact(srte, table, tables)) return replaced.map(({ number, had }) => exact(number, had));
  const gets = fittedRows(outputRows(srte, table, output, products), rows, null);
  const tell = step(`measuring ${table.name}`, rows * gets.columns * replaced.length);
  const had = replaced.map((each) => ({ name: each.had.name, rows: each.rows }));
  const errors = await compareRows(file, gets, had, blockRows, tell);
  return errors.map((error, index) => ({ layers: [replaced[index]?.number ?? 0], ...error }));
}

/** The error of one tensor that is not part of the SRTE. */
export type TensorError = Omit<TableError, 'layers'>;

/**
 * Compares a tied tensor of the output with the embedding and the head that it replaces.
 * @throws UserError when reading fails, or values are not finite.
 */
export async function measureTie(
  { name, from }: PlannedTie,
  input: Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>,
  output: Checkpoint,
  { step }: Pick<MeasureOptions, 'step'>,
): Promise<TensorError[]> {
  const rowsIn = (tensor: string, checkpoint: typeof input) =>
    storedRows({ rows: storedUnder(tensor, checkpoint), projection: null });
  const gets = rowsIn(name, output);
  const had = from.map((each) => ({ name: each, rows: rowsIn(each, input) }));
  const blockRows = Math.max(1, Math.floor(BLOCK_NUMBERS / gets.columns));
  const tell = step(`measuring ${name}`, gets.rows * gets.columns * had.length);
  return compareRows(input.path, gets, had, blockRows, tell);
}

/** Numbers of a tied tensor that are compared at a time. */
const BLOCK_NUMBERS = 2 ** 17;

/** The errors of `gets` in the place of each of `had`, over the rows of `gets`. */
async function compareRows(
  file: string,
  gets: RowSource,
  had: readonly { readonly name: string; readonly rows: RowSource }[],
  blockRows: number,
  tell: (numbers: number) => void,
): Promise<TensorError[]> {
  const { rows, columns } = gets;
  const nonFinite = new NonFiniteValues(had.length, columns);
  const comparisons = had.map(() => new TableComparison());
  const memory = [0, 1].map(() => new Float64Array(Math.min(blockRows, rows) * columns));
  for (let row = 0; row < rows; row += blockRows) {
    const count = Math.min(blockRows, rows - row);
    const [got, own] = memory.map((values) => values.subarray(0, count * columns));
    if (!got || !own) throw new Error('no memory');
    await gets.read(row, count, got);
    const squares = squaredNorm(got);
    for (const [index, { rows: source }] of had.entries()) {
      await source.read(row, count, own);
      if (!Number.isFinite(squaredNorm(own))) nonFinite.add(index, own, row);
      comparisons[index]?.add(own, got, squares);
      tell(count * columns);
      await breathe();
    }
  }
  const names = had.map(({ name }) => name);
  nonFinite.refuseAny(file, names);
  return comparisons.map((each, index) => ({ name: names[index] ?? '', ...each.result() }));
}

/** Whether the table is the one that it replaces, to the last bit, as far as it reaches. */
function isExact(srte: SrtePlan, table: PlannedTable, tables: SrteTables | null): boolean {
  const [source] = table.sources;
  const stored = tables?.tables[source ?? 0];
  return (
    !table.isMade &&
    srte.target.form === srte.source.form &&
    table.replaces.length === 1 &&
    stored?.rows.dtype === table.dtype
  );
}

const exact = (number: number, { name }: SrteTable): TableError => ({
  layers: [number],
  name,
  norm: null,
  distance: 0,
  relativeError: 0,
  largestError: 0,
  cosine: 1,
});

function outputRows(
  { target: { positions, hidden } }: SrtePlan,
  { name, form }: PlannedTable,
  output: Checkpoint,
  { timesTransposed }: MatrixProducts,
): RowSource {
  const part = (leaf: string) => storedUnder(`${name}.${leaf}`, output);
  const table = (leaf: string) => {
    const tensor = part(leaf);
    return { ...tensor, shape: tensor.shape.slice(1), strides: tensor.strides.slice(1) };
  };
  switch (form) {
    case 'table':
      return storedRows({ rows: table('freqs'), projection: null });
    case 'low-rank':
      return storedRows(
        { rows: table('lowrank'), projection: part('proj.weight') },
        timesTransposed,
      );
    case 'sincos':
      return sincosRows(positions, hidden);
  }
}
