/** How far the tables of a written output are from those of the input. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { squaredNorm } from '../linalg/comparison.js';
import type { RowSource } from '../linalg/low-rank.js';
import type { MatrixProducts } from '../linalg/product.js';
import { NonFiniteValues } from './non-finite.js';
import { storedUnder } from './output-values.js';
import type { PlannedTable, SrtePlan } from './plan.js';
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
  const { hidden } = srte.source;
  const tell = step(`measuring ${table.name}`, rows * hidden * replaced.length);
  const nonFinite = new NonFiniteValues(replaced.length, hidden);
  const comparisons = replaced.map(() => new TableComparison());
  const memory = [0, 1].map(() => new Float64Array(Math.min(blockRows, rows) * hidden));
  for (let row = 0; row < rows; row += blockRows) {
    const count = Math.min(blockRows, rows - row);
    const [got, had] = memory.map((values) => values.subarray(0, count * hidden));
    if (!got || !had) throw new Error('no memory');
    await gets.read(row, count, got);
    const squares = squaredNorm(got);
    for (const [index, { rows: source }] of replaced.entries()) {
      await source.read(row, count, had);
      if (!Number.isFinite(squaredNorm(had))) nonFinite.add(index, had, row);
      comparisons[index]?.add(had, got, squares);
      tell(count * hidden);
      await breathe();
    }
  }
  nonFinite.refuseAny(
    file,
    replaced.map(({ had }) => had.name),
  );
  return replaced.map(({ number, had }, index) => ({
    layers: [number],
    name: had.name,
    ...(comparisons[index] ?? new TableComparison()).result(),
  }));
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
