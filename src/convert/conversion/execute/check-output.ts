/** Checks of a written output: the errors of its tables, its values read again, and a run of both models. */
import os from 'node:os';
import { setImmediate as breathe } from 'node:timers/promises';
import { UserError, usageError } from '../../../base/errors.js';
import type { RowSource } from '../../../base/linalg/low-rank.js';
import type { MatrixProducts } from '../../../base/linalg/matrix.js';
import { squaredNorm } from '../../../base/linalg/matrix.js';
import type { ProgressDisplay } from '../../../base/progress-display.js';
import { decodeValues } from '../../../base/tensor/decode-values.js';
import { isSameShape, STORED_DTYPES } from '../../../base/tensor/dtype.js';
import type { ScaleDtype, WeightForm } from '../../../base/tensor/group-quantization.js';
import { setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { sumOf } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { reshaped } from '../../../checkpoint/computed-file.js';
import { withUnpackedWeights } from '../../../checkpoint/packed-weights.js';
import { isSameView, type StoredTensor, storedTypeOf } from '../../../checkpoint/stored-tensor.js';
import { readInChunks } from '../../../checkpoint/view.js';
import type { OpenedModel, TwoModelComparison } from '../../../engine/compare/compare-outputs.js';
import type { ModelFile } from '../../../input/model-input/model-file.js';
import type { ConversionJob, StepProgress } from '../job.js';
import type {
  ConversionInput,
  ConversionPlan,
  PlannedTensor,
  PlannedTie,
} from '../plan/conversion-plan.js';
import { SCALE_ROUNDING } from '../plan/plan-quantization.js';
import type { Resources } from '../resources.js';
import type { PlannedTable, SrtePlan } from '../srte/srte-plan.js';
import type { SrteTables, StoredSrteTable } from '../srte/srte-tables.js';
import type { MadeTable } from './make-tables.js';
import type { TableError } from './table-rows.js';
import {
  fittedRows,
  NonFiniteValues,
  sincosRows,
  storedRows,
  TableComparison,
} from './table-rows.js';
import { requireStoredTensor } from './tensor-values.js';

export interface MeasuredTable extends PlannedTable {
  /**
   * Share of the squared norm that a pair keeps of its table; null for others, and for a plan.
   * @minimum 0 @maximum 1
   */
  readonly energy: number | null;
  /**
   * Singular values of the table that a pair replaces, largest first: those of the rank and some beyond it, at most
   * 1,024. Null for others, and for a plan.
   */
  readonly singularValues: readonly number[] | null;
  /** One error per replaced table. */
  readonly errors: readonly TableError[];
}

/**
 * Compares the tables of the output with the replaced ones.
 * @param made Computed tables, by number.
 * @throws UserError when reading fails, or values are not finite.
 */
export async function measureTables(
  input: ConversionInput,
  srte: SrtePlan | null,
  made: readonly (MadeTable | undefined)[],
  output: Checkpoint,
  resources: Resources,
): Promise<MeasuredTable[]> {
  const result: MeasuredTable[] = [];
  for (const [number, table] of srte?.tables.entries() ?? []) {
    if (srte === null) continue;
    const known = made[number];
    const errors = known?.errors ?? (await measureTable(input, srte, table, output, resources));
    const { rank = table.rank, energy = null, singularValues = null } = known ?? {};
    // Layers with the same table have the same error.
    const isShared = input.srte?.tables?.sharing === 'shared';
    result.push({
      ...table,
      rank: rank ?? table.rank,
      energy,
      singularValues,
      errors: isShared ? errors.map((error) => ({ ...error, layers: [] })) : errors,
    });
  }
  return result;
}

/** Compares the rows that both have. */
async function measureTable(
  { job, srte: source }: ConversionInput,
  srte: SrtePlan,
  table: PlannedTable,
  output: Checkpoint,
  { backend: { products }, blockRows }: Resources,
): Promise<TableError[]> {
  const tables = source?.tables ?? null;
  const replaced = table.replaces.flatMap((number) => {
    const had = tables?.tables[number];
    return had ? [{ number, had, rows: storedRows(had, products.timesTransposed) }] : [];
  });
  const rows = Math.min(srte.source.positions, srte.target.positions);
  if (isExact(srte, table, tables)) return replaced.map(({ number, had }) => exact(number, had));
  const gets = fittedRows(outputRows(srte, table, output, products), rows, null);
  const bytes = rows * gets.columns * replaced.length;
  const onProgress = job.display.step(`measuring ${table.name}`, bytes);
  const had = replaced.map((each) => ({ name: each.had.name, rows: each.rows }));
  const errors = await compareRows(job.checkpoint.path, gets, had, blockRows, onProgress);
  return errors.map((error, index) => ({ layers: [replaced[index]?.number ?? 0], ...error }));
}

/** Error of one tensor outside the SRTE. */
export type TensorError = Omit<TableError, 'layers'>;

/**
 * Compares a tied tensor of the output with the embedding and the head that it replaces.
 * @throws UserError when reading fails, or values are not finite.
 */
export async function measureTie(
  { name, from }: PlannedTie,
  input: Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>,
  output: Checkpoint,
  step: StepProgress,
): Promise<TensorError[]> {
  const rowsIn = (tensor: string, checkpoint: typeof input) =>
    storedRows({ rows: requireStoredTensor(tensor, checkpoint), projection: null });
  const gets = rowsIn(name, output);
  const had = from.map((each) => ({ name: each, rows: rowsIn(each, input) }));
  const blockRows = Math.max(1, Math.floor(BLOCK_NUMBERS / gets.columns));
  const onProgress = step(`measuring ${name}`, gets.rows * gets.columns * had.length);
  return compareRows(input.path, gets, had, blockRows, onProgress);
}

/**
 * Compares the tensors in blocks of a GGUF file with their sources.
 * @throws UserError when reading fails, or values are not finite.
 */
export async function measureBlocks(
  planned: readonly PlannedTensor[],
  input: Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>,
  output: Checkpoint,
  step: StepProgress,
): Promise<TensorError[]> {
  const inBlocks = planned.filter(({ blocks }) => blocks !== undefined);
  if (inBlocks.length === 0) return [];
  const total = sumOf(inBlocks, ({ name }) => requireStoredTensor(name, input).elements);
  const onProgress = step('measuring', total);
  const errors: TensorError[] = [];
  for (const { name, shape } of inBlocks) {
    const columns = shape.at(-1) ?? 1;
    const rowsIn = (checkpoint: typeof input) => {
      const tensor = requireStoredTensor(name, checkpoint);
      const matrix = reshaped(tensor, [tensor.elements / columns, columns]);
      return storedRows({ rows: matrix, projection: null });
    };
    const blockRows = Math.max(1, Math.floor(BLOCK_NUMBERS / columns));
    const had = [{ name, rows: rowsIn(input) }];
    errors.push(...(await compareRows(input.path, rowsIn(output), had, blockRows, onProgress)));
  }
  return errors;
}

/** Error of a quantized weight. */
export interface QuantizationError extends TensorError {
  /** Bound of the error of a value: half the largest scale, and the rounding to the type of the weight. */
  readonly bound: number;
}

/** Compares the written values of the quantized weights with those of the input. */
export async function measureQuantized(
  { quantization, tensors }: ConversionPlan,
  input: Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>,
  output: Checkpoint,
  step: StepProgress,
): Promise<QuantizationError[]> {
  if (quantization === undefined) return [];
  const unpacked = withUnpackedWeights(output);
  const bytes = tensors.reduce((sum, { action }) => {
    const isWeight = action.do === 'quantize' && action.part === 'packed';
    return sum + (isWeight ? action.weight.bytes : 0);
  }, 0);
  const onBytes = step('measuring quantized weights', bytes);
  const errors: QuantizationError[] = [];
  for (const { name, action } of tensors) {
    if (action.do !== 'quantize' || action.part !== 'scale') continue;
    const { weight, form } = action;
    if (weight.action.do !== 'copy') throw new Error(`${weight.name} is not a tensor of the input`);
    const rowsOf = (tensor: StoredTensor) => storedRows({ rows: tensor, projection: null });
    const gets = rowsOf(requireStoredTensor(weight.name, unpacked));
    const had = rowsOf(requireStoredTensor(weight.action.from, input));
    const blockRows = Math.max(1, Math.floor(BLOCK_NUMBERS / gets.columns));
    const valueBytes = weight.bytes / gets.rows / gets.columns;
    const own = [{ name: weight.name, rows: had }];
    const bound = await boundOf(requireStoredTensor(name, output), form);
    const found = await compareRows(input.path, gets, own, blockRows, (numbers) =>
      onBytes(numbers * valueBytes),
    );
    errors.push(...found.map((error) => ({ ...error, bound })));
  }
  return errors;
}

/** Half the largest scale, and the rounding of weight and result to the type of the scales. */
async function boundOf(scales: StoredTensor, { bits }: WeightForm): Promise<number> {
  let largest = 0;
  const width = STORED_DTYPES[scales.dtype].bits / 8;
  for await (const chunk of readInChunks(scales)) {
    const values = new Float64Array(chunk.length / width);
    decodeValues(scales.dtype, chunk, values);
    for (const value of values) largest = Math.max(largest, value);
  }
  const rounding = scales.dtype in SCALE_ROUNDING ? SCALE_ROUNDING[scales.dtype as ScaleDtype] : 0;
  return largest * (0.5 + 2 * rounding * (2 ** bits - 1));
}

/** Numbers of a tied tensor compared at a time. */
const BLOCK_NUMBERS = 2 ** 17;

/** Errors of `gets` as a replacement for each tensor of `had`, over the rows of `gets`. */
async function compareRows(
  file: string,
  gets: RowSource,
  had: readonly { readonly name: string; readonly rows: RowSource }[],
  blockRows: number,
  onProgress: (numbers: number) => void,
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
      onProgress(count * columns);
      await breathe();
    }
  }
  const names = had.map(({ name }) => name);
  nonFinite.refuseAny(file, names);
  return comparisons.map((each, index) => ({ name: names[index] ?? '', ...each.result() }));
}

/** Whether the table equals the replaced one exactly, over its rows. */
export function isExact(srte: SrtePlan, table: PlannedTable, tables: SrteTables | null): boolean {
  const [source] = table.sources;
  const stored = tables?.tables[source ?? 0];
  return (
    !table.isMade &&
    srte.target.form === srte.source.form &&
    table.replaces.length === 1 &&
    stored?.rows.dtype === table.dtype
  );
}

const exact = (number: number, { name }: StoredSrteTable): TableError => ({
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
  const part = (leaf: string) => requireStoredTensor(`${name}.${leaf}`, output);
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

/**
 * Compares the names, types and shapes of an output with its plan.
 * @throws UserError for one that is missing or differs.
 */
export function checkIndex({ tensors }: ConversionPlan, output: Checkpoint): void {
  const names = new Set([...output.tensors.keys(), ...output.aliases.keys()]);
  const expected = tensors.flatMap(({ name, aliases }) => [name, ...aliases]);
  const missing = expected.find((name) => !names.has(name));
  if (missing !== undefined) throw differs(output.path, missing, 'is missing');
  if (names.size !== expected.length) {
    throw differs(output.path, '', `has ${names.size} names instead of ${expected.length}`);
  }
  for (const tensor of tensors) {
    const stored = requireStoredTensor(tensor.name, output);
    if (storedTypeOf(stored) !== (tensor.blocks ?? tensor.dtype)) {
      throw differs(output.path, tensor.name, 'has another type');
    }
    if (!isSameShape(stored.shape, tensor.shape) || stored.dtype !== tensor.dtype) {
      throw differs(output.path, tensor.name, 'has another shape or type');
    }
    const loose = tensor.aliases.find(
      (name) => !isSameView(requireStoredTensor(name, output), stored),
    );
    if (loose !== undefined) throw differs(output.path, loose, `is not ${tensor.name}`);
  }
}

/**
 * @param valuesOf Expected bytes of a tensor.
 * @throws UserError when a name is missing, or a tensor has other values.
 */
export async function checkOutput(
  plan: ConversionPlan,
  output: Checkpoint,
  valuesOf: (tensor: PlannedTensor) => AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): Promise<void> {
  checkIndex(plan, output);
  for (const tensor of plan.tensors) {
    const stored = requireStoredTensor(tensor.name, output);
    await requireEqualBytes(readInChunks(asBytes(stored)), valuesOf(tensor), onBytes, () =>
      differs(output.path, tensor.name, 'has other values'),
    );
  }
}

/** The bytes of a tensor in its file, with blocks as they are. */
function asBytes(tensor: StoredTensor): StoredTensor {
  const { encoding } = tensor;
  if (encoding === undefined) return tensor;
  const { file, position, bytes } = encoding;
  const storage = { file, position, bytes, isBigEndian: false };
  const { shape, ...rest } = tensor;
  return {
    ...rest,
    ...{ dtype: 'U8', shape: [bytes], strides: [1], offset: 0, elements: bytes, bytes, storage },
  };
}

/** Error of an output that differs from the written data. */
export class WrongOutput extends UserError {}

function differs(file: string, name: string, message: string): UserError {
  return new WrongOutput('system', `${file} differs from what was written: ${name} ${message}`, {
    suggestion: 'check the disk: it returned other bytes than were written',
  });
}

/** Compares streams of bytes with pieces of different sizes. */
async function requireEqualBytes(
  found: AsyncIterable<Uint8Array>,
  expected: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
  refuse: () => UserError,
): Promise<void> {
  const pieces = found[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of expected) {
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

/** The input and the output, run on the same tokens. Its memory and time are not part of the conversion's. */
export interface Proof {
  /**
   * `same` within rounding; `differs` when values change; `failed` when an exact conversion differs by more than
   * rounding; `skipped` when it could not run.
   */
  readonly verdict: 'same' | 'differs' | 'failed' | 'skipped';
  /** Whether the conversion keeps every value used by the model. */
  readonly isExact: boolean;
  /** Reason why it could not run. */
  readonly why: string | null;
  /** Comparison of the models; null if they cannot be compared. */
  readonly against: TwoModelComparison | null;
}

/** The flags that a proof depends on. */
export type ProofJob = Pick<
  ConversionJob,
  | 'checkpoint'
  | 'out'
  | 'tie'
  | 'dtype'
  | 'quantize'
  | 'target'
  | 'set'
  | 'context'
  | 'seed'
  | 'engine'
  | 'device'
  | 'threads'
> & { readonly display: ProgressDisplay };

/**
 * Runs both models of a finished conversion, each with its own config.
 * @param source The config of the input.
 * @param keepsSrte Whether every value of the SRTE is the input's.
 * @returns A reason instead of a comparison when there is no engine, or not enough memory for a model. The output is
 * still valid then.
 */
export async function prove(
  { checkpoint, out, tie, dtype, quantize, target, set = [], ...job }: ProofJob,
  source: ModelFile,
  keepsSrte: boolean,
): Promise<Proof> {
  const { checkpointSide, compareTwoModels } = await import(
    '../../../engine/compare/compare-outputs.js'
  );
  // Conservative: values count as changed unless each is certainly one of the input's.
  const isChanged =
    [tie, dtype, quantize, target].some((each) => each !== undefined) || set.length > 0;
  const isExact = keepsSrte && !isChanged;
  let output: OpenedModel | undefined;
  try {
    output = await checkpointSide({ path: out }, source, job.display);
    const { context, seed, engine, device = 'auto', threads, display } = job;
    const against = await compareTwoModels(
      { loaded: source, checkpoint },
      output,
      {
        ...{ context, seed, engine, device, compute: 'f32', threads },
        ids: undefined,
        full: false,
        otherWay: undefined,
      },
      display,
    );
    const isSame = against.partsAt === null;
    const verdict = isSame ? 'same' : isExact ? 'failed' : 'differs';
    return { verdict, isExact, why: null, against };
  } catch (error) {
    if (!(error instanceof UserError) || error.code === 'interrupted') throw error;
    return { verdict: 'skipped', isExact, why: error.message, against: null };
  } finally {
    output?.checkpoint?.close();
  }
}

/** @throws UserError when the models certainly cannot run, before the conversion. */
export async function checkProvable(job: ConversionJob, source: ModelFile | undefined) {
  const { context = 1, maxPositions: cut = Number.POSITIVE_INFINITY, device = 'auto' } = job;
  if (source === undefined) {
    const file = job.checkpoint.path;
    throw usageError(
      `${setting('prove')} requires a config of ${file}, found none`,
      `name one that does with ${setting('config', 'FILE')}, or leave ${setting('prove')} out`,
    );
  }
  const positions = Math.min(source.model.positions, cut);
  if (context > positions) {
    throw usageError(
      `${setting('context')}: ${formatInteger(context)} tokens are more than the ${formatInteger(positions)} positions of the model`,
      `write ${setting('context', positions)}, or less`,
    );
  }
  if (device === 'auto') return;
  const { chooseEngine } = await import('../../../engine/select/devices.js');
  const threads = job.threads ?? os.availableParallelism();
  const chosen = await chooseEngine({ engine: job.engine, device, threads, compute: 'f32' });
  await chosen.engine.close();
}
