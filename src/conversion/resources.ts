/** Resources of a conversion: what multiplies its matrices, its memory, and the space on the disk. */
import os from 'node:os';
import type { SrteLayout } from '../architecture/srte-layout.js';
import { UserError } from '../errors.js';
import { lowRankBytes, lowRankMultiplications } from '../linalg/low-rank.js';
import type { MatrixProducts } from '../linalg/matrix.js';
import { plainProducts } from '../linalg/matrix.js';
import type { EngineName } from '../runtime/engine.js';
import type { EngineChoice } from '../runtime/select/devices.js';
import { formatBytes } from '../text/units.js';
import type { ConversionJob } from './job.js';
import type { SrtePlan } from './srte/srte-plan.js';
import { rowsMade } from './srte/srte-plan.js';

/** Products of matrices, and the name of what computes them. */
export interface MatmulBackend {
  readonly products: MatrixProducts;
  readonly name: string;
  /** Memory on top of the process. */
  readonly bytes: number;
  close(): Promise<void>;
}

/** Fewer multiplications than this are done sooner than an engine is loaded. */
const FEW_MULTIPLICATIONS = 1e9;
/** Memory of an engine and of its copies of blocks: measured. */
const ENGINE_BYTES = { onnx: 120e6, tfjs: 160e6 } as const satisfies Record<EngineName, number>;

const JAVASCRIPT: MatmulBackend = {
  products: plainProducts,
  name: 'JavaScript',
  bytes: 0,
  close: async () => {},
};

/** An engine where there are many multiplications and one is available, else plain JavaScript. */
export async function matmulBackendFor(
  multiplications: number,
  { engine, threads }: { readonly engine: EngineChoice; readonly threads: number | undefined },
): Promise<MatmulBackend> {
  if (multiplications < FEW_MULTIPLICATIONS) return JAVASCRIPT;
  const { chooseProducts } = await import('../runtime/select/matmul-backends.js');
  const { ENGINES } = await import('../runtime/engine.js');
  const wish = { engine, threads: threads ?? os.availableParallelism() };
  try {
    const { products, engine: name, backend } = await chooseProducts(wish);
    const label = `${ENGINES[name]} (${backend})`;
    return { products, name: label, bytes: ENGINE_BYTES[name], close: () => products.close() };
  } catch (error) {
    // Slower, and as right.
    if (engine !== 'auto' || !(error instanceof UserError)) throw error;
    return JAVASCRIPT;
  }
}

/** Matmul backend and memory of a conversion. */
export interface Resources {
  readonly backend: MatmulBackend;
  /** Rows of each table that are worked on at a time. */
  readonly blockRows: number;
  /** Memory that the user allows. */
  readonly limitBytes: number;
  /** Predicted memory of the process. */
  readonly peakBytes: number;
}

const DEFAULT_MEMORY_BYTES = 512e6;

/** @throws UserError when the engine is not available, or the memory is not enough. */
export async function resourcesFor(
  srte: SrtePlan | null,
  job: Pick<ConversionJob, 'engine' | 'threads' | 'max-memory'>,
): Promise<Resources> {
  const backend = await matmulBackendFor(srte ? multiplications(srte) : 0, job);
  try {
    const limitBytes = Number(job['max-memory'] ?? DEFAULT_MEMORY_BYTES);
    return { backend, limitBytes, ...planMemory(srte, limitBytes, backend) };
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** Approximate multiplications of a plan: factorising tables, and multiplying pairs out. */
function multiplications({ source, target, tables }: SrtePlan): number {
  const { hidden } = source;
  const rows = Math.min(source.positions, target.positions);
  const made = tables.filter(({ isMade, form }) => isMade && form === 'low-rank').length;
  const products = tables.reduce((sum, { replaces }) => sum + replaces.length, 0);
  return (
    made * lowRankMultiplications(rows, hidden, assumedRank(target)) +
    products * rows * hidden * ((source.rank ?? 0) + (target.rank ?? 0))
  );
}

/** Blocks larger than this make nothing faster. */
const LARGEST_BLOCK_BYTES = 64e6;
/** So that even 4-bit values are whole bytes. */
const ROW_STEP = 4;
/** Memory of the process when it plans: differs from run to run, and is never more than this. */
const STARTED_BYTES = 144e6;
/** Buffers for reading ahead, casting and writing, and what is freed only now and then: measured. */
const STREAMING_BYTES = 48e6;

/** The least that is asked for is a multiple of this, so that it is enough the next time too. */
const LEAST_STEP_BYTES = 8e6;

/**
 * How large the blocks can be within the memory that the user allows.
 * @throws UserError with the least that would do, when the limit is below it.
 */
function planMemory(
  srte: SrtePlan | null,
  limitBytes: number,
  backend: MatmulBackend,
): Pick<Resources, 'blockRows' | 'peakBytes'> {
  const fixed =
    Math.max(process.memoryUsage.rss(), STARTED_BYTES) + backend.bytes + STREAMING_BYTES;
  const rowBytes = srte ? bytesPerRow(srte) : 0;
  const needed = (rows: number) => fixed + rows * rowBytes + factorisingBytes(srte, rows);
  if (needed(ROW_STEP) > limitBytes) {
    const least = Math.ceil(needed(ROW_STEP) / LEAST_STEP_BYTES) * LEAST_STEP_BYTES;
    throw new UserError(
      'usage',
      `--max-memory ${formatBytes(limitBytes)} is not enough: this conversion takes at least ${formatBytes(least)}`,
      { suggestion: `allow --max-memory ${Math.ceil(least / 1e6)}MB` },
    );
  }
  const most = srte ? rowsMade(srte) : ROW_STEP;
  let blockRows = Math.max(ROW_STEP, rowBytes ? LARGEST_BLOCK_BYTES / rowBytes : most);
  while (blockRows > ROW_STEP && needed(blockRows) > limitBytes) blockRows /= 2;
  blockRows = Math.max(ROW_STEP, Math.floor(Math.min(blockRows, most) / ROW_STEP) * ROW_STEP);
  return { blockRows, peakBytes: needed(blockRows) };
}

/** Rows of all sources of a table and of their mean in float64, and as they are read and written. */
function bytesPerRow({ source, tables }: SrtePlan): number {
  const most = tables.reduce((largest, { sources }) => Math.max(largest, sources.length), 1);
  return source.hidden * (8 * (most + 3) + 8);
}

function factorisingBytes(srte: SrtePlan | null, blockRows: number): number {
  if (!srte?.tables.some(({ form, isMade }) => isMade && form === 'low-rank')) return 0;
  return lowRankBytes(rowsMade(srte), srte.source.hidden, assumedRank(srte.target), blockRows);
}

/** A rank that is yet to be found is at most this, or else hardly worth having. */
const assumedRank = ({ rank, hidden }: SrteLayout): number => rank ?? Math.ceil(hidden / 4);
