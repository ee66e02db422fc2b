/** Resources of a conversion: engine of its matrix products, memory, and disk space. */
import os from 'node:os';
import { UserError, usageError } from '../../base/errors.js';
import { lowRankBytes, lowRankMultiplications } from '../../base/linalg/low-rank.js';
import type { MatrixProducts } from '../../base/linalg/matrix.js';
import { plainProducts } from '../../base/linalg/matrix.js';
import { setting } from '../../base/text/setting.js';
import { formatBytes } from '../../base/text/units.js';
import { sumOf } from '../../base/values.js';
import type { EngineName } from '../../engine/engine.js';
import type { SrteLayout } from '../../model/architecture/srte-layout.js';
import type { ConversionJob } from './job.js';
import type { SrtePlan } from './srte/srte-plan.js';
import { rowsMade } from './srte/srte-plan.js';

/** Matrix products, and the name of their engine. */
export interface MatmulBackend {
  readonly products: MatrixProducts;
  readonly name: string;
  /** Additional memory of the backend. */
  readonly bytes: number;
  close(): Promise<void>;
}

/** Multiplications below which loading an engine takes longer than it saves. */
const FEW_MULTIPLICATIONS = 1e9;
/** Measured memory of an engine and of its copies of blocks. */
const ENGINE_BYTES = { onnx: 120e6, tfjs: 160e6 } as const satisfies Record<EngineName, number>;

/** Backend of few matrix products, or none. */
export const JAVASCRIPT: MatmulBackend = {
  products: plainProducts,
  name: 'JavaScript',
  bytes: 0,
  close: async () => {},
};

/** Backend of the matrix products: an engine for many multiplications if one is available, else plain JavaScript. */
export async function matmulBackendFor(
  multiplications: number,
  { engine, threads }: Pick<ConversionJob, 'engine' | 'threads'>,
): Promise<MatmulBackend> {
  if (multiplications < FEW_MULTIPLICATIONS) return JAVASCRIPT;
  const { chooseProducts } = await import('../../engine/select/matmul-backends.js');
  const { ENGINES } = await import('../../engine/engine.js');
  const wish = { engine, threads: threads ?? os.availableParallelism() };
  try {
    const { products, engine: name, backend } = await chooseProducts(wish);
    const label = `${ENGINES[name]} (${backend})`;
    return { products, name: label, bytes: ENGINE_BYTES[name], close: () => products.close() };
  } catch (error) {
    // Plain JavaScript is slower, but equally correct.
    if (engine !== 'auto' || !(error instanceof UserError)) throw error;
    return JAVASCRIPT;
  }
}

/** Memory of a conversion. */
interface MemoryPlan {
  /** Rows of each table processed at a time. */
  readonly blockRows: number;
  /** Memory limit: the user's, or one that suffices. */
  readonly limitBytes: number;
  /** Predicted memory of the process. */
  readonly peakBytes: number;
}

/** Matmul backend and memory of a conversion. */
export interface Resources extends MemoryPlan {
  readonly backend: MatmulBackend;
}

/** Limit without `--max-memory`, where it suffices. */
const DEFAULT_MEMORY_BYTES = 512e6;

/** @throws UserError when the engine is not available, or `--max-memory` is insufficient. */
export async function resourcesFor(
  srte: SrtePlan | null,
  job: Pick<ConversionJob, 'engine' | 'threads' | 'maxMemory'>,
): Promise<Resources> {
  const backend = await matmulBackendFor(srte ? multiplications(srte) : 0, job);
  try {
    const started = Math.max(process.memoryUsage.rss(), STARTED_BYTES);
    return { backend, ...planMemory(srte, job, backend, started) };
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** Upper bound of the memory of an index, for each tensor of input and output. */
const INDEX_BYTES = 2.5e3;

/**
 * Block sizes and memory of a process that only carries out a plan. They do not depend on the work of this process, so
 * they are the same for every run of the plan.
 * @param tensors Number of tensors in the index of the input.
 * @throws UserError when `--max-memory` is insufficient.
 */
export const plannedMemory = (
  srte: SrtePlan | null,
  job: Pick<ConversionJob, 'maxMemory'>,
  backend: Pick<MatmulBackend, 'bytes'>,
  tensors: number,
): MemoryPlan => planMemory(srte, job, backend, STARTED_BYTES + INDEX_BYTES * tensors);

/** Approximate multiplications of a plan: factorising tables, and multiplying pairs. */
function multiplications({ source, target, tables }: SrtePlan): number {
  const { hidden } = source;
  const rows = Math.min(source.positions, target.positions);
  const made = tables.filter(({ isMade, form }) => isMade && form === 'low-rank').length;
  const products = sumOf(tables, ({ replaces }) => replaces.length);
  return (
    made * lowRankMultiplications(rows, hidden, assumedRank(target)) +
    products * rows * hidden * ((source.rank ?? 0) + (target.rank ?? 0))
  );
}

const LARGEST_BLOCK_BYTES = 64e6;
/** Rows are processed in multiples of this, so that even 4-bit values are whole bytes. */
const ROW_STEP = 4;
/** Upper bound of the process's memory when it plans; varies from run to run. */
const STARTED_BYTES = 144e6;
/** Measured buffers for reading ahead, casting and writing, and memory that is freed late. */
const STREAMING_BYTES = 48e6;

/** Reported sizes are rounded up to a multiple of this, so that the smallest limit suffices in the next run. */
const ROUNDING_BYTES = 8e6;

/**
 * Block sizes within the user's memory limit. Without a limit, the default applies if the smallest blocks fit in it;
 * else the limit is that of the largest blocks. The size of blocks then does not depend on the earlier work of this
 * process.
 * @throws UserError with the required minimum, when the user's limit is lower.
 */
function planMemory(
  srte: SrtePlan | null,
  { maxMemory: asked }: Pick<ConversionJob, 'maxMemory'>,
  backend: Pick<MatmulBackend, 'bytes'>,
  startedBytes: number,
): MemoryPlan {
  const rowBytes = srte ? bytesPerRow(srte) : 0;
  const fixed = startedBytes + backend.bytes + STREAMING_BYTES;
  const needed = (rows: number) => fixed + rows * rowBytes + factorisingBytes(srte, rows);
  const most = srte ? rowsMade(srte) : ROW_STEP;
  const largest = Math.max(ROW_STEP, rowBytes ? LARGEST_BLOCK_BYTES / rowBytes : most);
  const enough =
    needed(ROW_STEP) <= DEFAULT_MEMORY_BYTES ? DEFAULT_MEMORY_BYTES : roundedUp(needed(largest));
  const limitBytes = asked === undefined ? enough : Number(asked);
  if (needed(ROW_STEP) > limitBytes) {
    const least = roundedUp(needed(ROW_STEP));
    throw usageError(
      `${setting('maxMemory')} ${formatBytes(limitBytes)} is not enough: this conversion takes at least ${formatBytes(least)}`,
      `allow ${setting('maxMemory', `${Math.ceil(least / 1e6)}MB`)}`,
    );
  }
  let blockRows = largest;
  while (blockRows > ROW_STEP && needed(blockRows) > limitBytes) blockRows /= 2;
  blockRows = Math.max(ROW_STEP, Math.floor(Math.min(blockRows, most) / ROW_STEP) * ROW_STEP);
  return { limitBytes, blockRows, peakBytes: needed(blockRows) };
}

const roundedUp = (bytes: number): number => Math.ceil(bytes / ROUNDING_BYTES) * ROUNDING_BYTES;

/** Bytes of a row of all sources of a table and of their mean, in float64 and in stored form. */
function bytesPerRow({ source, tables }: SrtePlan): number {
  const most = tables.reduce((largest, { sources }) => Math.max(largest, sources.length), 1);
  return source.hidden * (8 * (most + 3) + 8);
}

function factorisingBytes(srte: SrtePlan | null, blockRows: number): number {
  if (!srte?.tables.some(({ form, isMade }) => isMade && form === 'low-rank')) return 0;
  return lowRankBytes(rowsMade(srte), srte.source.hidden, assumedRank(srte.target), blockRows);
}

/** Assumed bound of an unknown rank; a larger one is hardly useful. */
const assumedRank = ({ rank, hidden }: SrteLayout): number => rank ?? Math.ceil(hidden / 4);
