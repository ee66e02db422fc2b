/** How far the tables of an output are from those that they take the place of. */

import { setImmediate as breathe } from 'node:timers/promises';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { isSameView } from '../../checkpoint/stored-tensor.js';
import { chunksOf } from '../../checkpoint/view.js';
import type { OpenedSide } from '../../cli/against.js';
import { checkpointSide, compareSides } from '../../cli/against.js';
import type { ModelFile } from '../../cli/model-file.js';
import { UserError } from '../../errors.js';
import { addComparison, emptyComparison, squaredNorm } from '../../linalg/comparison.js';
import type { RowSource } from '../../linalg/low-rank.js';
import type { MatrixProducts } from '../../linalg/product.js';
import type { Against } from '../../report/quick-test/against.js';
import type { DeviceChoice, EngineChoice } from '../../runtime/select/devices.js';
import { isSameShape } from '../../tensor/dtype.js';
import type { EncodableDtype } from '../../tensor/encode.js';
import type {
  ConversionPlan,
  PlannedTable,
  PlannedTensor,
  PlannedTie,
  SrtePlan,
} from '../plan/plan.js';
import type { SrteTable, SrteTables } from '../srte/srte-tables.js';
import { fittedRows, NonFiniteValues, sincosRows, storedRows } from './table-rows.js';
import { storedUnder } from './tensor-values.js';

/** Norms are Frobenius'. Null is what has no value: 0/0. */
export interface TableError {
  /** Numbers of the layers whose table it was. */
  readonly layers: readonly number[];
  /** The tensor of the input; of a pair, that of the rows. */
  readonly name: string;
  /** ‖had‖, over the rows that both have, as for all below; null when it was copied bit by bit, unread. */
  readonly norm: number | null;
  /** ‖had − gets‖. */
  readonly distance: number;
  /** distance / norm. */
  readonly relativeError: number | null;
  readonly largestError: number;
  readonly cosine: number | null;
}

/** Adds up, block by block, what is known of a table and the one in its place. */
export class TableComparison {
  readonly #sums = emptyComparison();
  #gets = 0;

  /** @param squaredNorm Of what it gets, which several tables may. */
  add(had: Float64Array, gets: Float64Array, squaredNorm: number): void {
    this.#gets += squaredNorm;
    addComparison(this.#sums, had, gets);
  }

  result(): Omit<TableError, 'layers' | 'name'> {
    const { squaredNorm, dot, squaredDistance, largestDifference } = this.#sums;
    const cosine = quotient(dot, Math.sqrt(squaredNorm) * Math.sqrt(this.#gets));
    return {
      norm: Math.sqrt(squaredNorm),
      distance: Math.sqrt(squaredDistance),
      relativeError: quotient(Math.sqrt(squaredDistance), Math.sqrt(squaredNorm)),
      largestError: largestDifference,
      // Rounding may carry it a little beyond; equal tables have none.
      cosine: squaredDistance === 0 && cosine !== null ? 1 : clamped(cosine),
    };
  }
}

const quotient = (part: number, whole: number): number | null =>
  whole === 0 ? (part === 0 ? null : Number.POSITIVE_INFINITY) : part / whole;

const clamped = (value: number | null) =>
  value === null ? null : Math.max(-1, Math.min(1, value));

/** ‖had − gets‖ / ‖had‖ of all tables together; a table that several layers had counts for each. */
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

// How far the tables of a written output are from those of the input.

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

// Reads an output again, and compares it with what it should be.

/**
 * @param valuesOf The bytes that a tensor should have.
 * @throws UserError when a name is missing, or a tensor has other values.
 */
export async function checkOutput(
  { tensors }: ConversionPlan,
  output: Checkpoint,
  valuesOf: (tensor: PlannedTensor) => AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const names = new Set([...output.tensors.keys(), ...output.aliases.keys()]);
  const wanted = tensors.flatMap(({ name, aliases }) => [name, ...aliases]);
  const missing = wanted.find((name) => !names.has(name));
  if (missing !== undefined) throw differs(output.path, missing, 'is missing');
  if (names.size !== wanted.length) {
    throw differs(output.path, '', `has ${names.size} names instead of ${wanted.length}`);
  }
  for (const tensor of tensors) {
    const stored = storedUnder(tensor.name, output);
    if (!isSameShape(stored.shape, tensor.shape) || stored.dtype !== tensor.dtype) {
      throw differs(output.path, tensor.name, 'has another shape or type');
    }
    const loose = tensor.aliases.find((name) => !isSameView(storedUnder(name, output), stored));
    if (loose !== undefined) throw differs(output.path, loose, `is not ${tensor.name}`);
    await compare(chunksOf(stored), valuesOf(tensor), onBytes, () =>
      differs(output.path, tensor.name, 'has other values'),
    );
  }
}

/** What was written is not what stands there. */
export class WrongOutput extends UserError {}

function differs(file: string, name: string, message: string): UserError {
  return new WrongOutput('system', `${file} is not what was written: ${name} ${message}`, {
    suggestion: 'check the disk: what was read back differs from what should stand there',
  });
}

/** Compares bytes that come in pieces of different sizes. */
async function compare(
  found: AsyncIterable<Uint8Array>,
  wanted: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
  refuse: () => UserError,
): Promise<void> {
  const pieces = found[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of wanted) {
    for (let at = 0; at < chunk.length; ) {
      if (rest.length === 0) {
        const next = await pieces.next();
        if (next.done) throw refuse();
        rest = next.value;
      }
      const length = Math.min(rest.length, chunk.length - at);
      if (Buffer.compare(rest.subarray(0, length), chunk.subarray(at, at + length)) !== 0) {
        throw refuse();
      }
      rest = rest.subarray(length);
      at += length;
    }
    onBytes(chunk.length);
  }
  if (rest.length > 0 || !(await pieces.next()).done) throw refuse();
}

// The proof of a conversion: the input and the output, run on the same tokens.

/** The input and the output, run on the same tokens; its memory and its time are not those of the run. */
export interface Proof {
  /**
   * `same` within rounding; `differs` as a conversion that is not exact may; `failed` when one that keeps all
   * values differs by more than rounding; `skipped` when it could not be made.
   */
  readonly verdict: 'same' | 'differs' | 'failed' | 'skipped';
  /** Whether the conversion keeps every value that the model computes with. */
  readonly isExact: boolean;
  /** Why it could not be made. */
  readonly why: string | null;
  readonly against: Against | null;
}

/** The part of a conversion's result that its proof needs. */
interface ProvenResult {
  readonly srte: { readonly relativeError: number | null } | null;
  readonly output: { readonly path: string };
}

/** Of the flags of a conversion. */
export interface ProofFlags {
  readonly tie: string | undefined;
  readonly dtype: EncodableDtype | undefined;
  readonly target: string | undefined;
  readonly set: readonly string[] | undefined;
  readonly context: number | undefined;
  readonly seed: number;
  readonly engine: EngineChoice;
  readonly device: DeviceChoice | undefined;
  readonly threads: number | undefined;
  readonly quiet: boolean;
}

/**
 * Runs both models of a conversion that is done, each by its own config.
 * @param source What describes the input.
 * @returns That it could not be made, and why, when there is no room for a model or no engine: the output stands
 * all the same.
 */
export async function proofOf(
  input: Checkpoint,
  source: ModelFile,
  result: ProvenResult,
  flags: ProofFlags,
): Promise<Proof> {
  const isExact = keepsValues(result, flags);
  let output: OpenedSide | undefined;
  try {
    output = await checkpointSide(result.output.path, source, flags);
    const { context, seed, engine, device = 'auto', threads, quiet } = flags;
    const wishes = { context, seed, engine, device, compute: 'f32', threads, quiet } as const;
    const own = { loaded: source, checkpoint: input };
    const against = await compareSides(own, output, {
      ...wishes,
      ids: undefined,
      full: false,
      otherWay: undefined,
    });
    const isSame = against.partsAt === null;
    return {
      verdict: isSame ? 'same' : isExact ? 'failed' : 'differs',
      isExact,
      why: null,
      against,
    };
  } catch (error) {
    if (!(error instanceof UserError) || error.code === 'interrupted') throw error;
    return { verdict: 'skipped', isExact, why: error.message, against: null };
  } finally {
    output?.checkpoint?.close();
  }
}

/** Whether every value that the output's layers compute with is one of the input's. When in doubt it is not. */
const keepsValues = (
  { srte }: Pick<ProvenResult, 'srte'>,
  { tie, dtype, target, set }: ProofFlags,
): boolean =>
  [tie, dtype, target].every((each) => each === undefined) &&
  (set ?? []).length === 0 &&
  (srte === null || srte.relativeError === 0);
