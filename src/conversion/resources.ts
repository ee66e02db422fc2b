/** What multiplies matrices. */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { SrteLayout } from '../architecture/srte-layout.js';
import { UserError } from '../errors.js';
import { lowRankBytes } from '../linalg/low-rank.js';
import type { MatrixProducts } from '../linalg/product.js';
import { plainProducts } from '../linalg/product.js';
import { formatBytes } from '../report/kit/units.js';
import type { EngineName } from '../runtime/engine.js';
import type { EngineChoice } from '../runtime/select/devices.js';
import type { SrtePlan } from './plan/plan.js';
import { rowsMade } from './srte/srte-plan.js';

/** What computes the products of matrices, and its name for the report. */
export interface Multiplier {
  readonly products: MatrixProducts;
  readonly name: string;
  /** That it takes beside the process. */
  readonly bytes: number;
  close(): Promise<void>;
}

/** Fewer multiplications than this are done sooner than an engine is loaded. */
const FEW_MULTIPLICATIONS = 1e9;
/** Memory of an engine and of its copies of blocks: measured. */
const ENGINE_BYTES = { onnx: 120e6, tfjs: 160e6 } as const satisfies Record<EngineName, number>;

export const PLAIN: Multiplier = {
  products: plainProducts,
  name: 'JavaScript',
  bytes: 0,
  close: async () => {},
};

/** An engine where there are many multiplications, and one is to be had. */
export async function multiplierFor(
  multiplications: number,
  { engine, threads }: { readonly engine: EngineChoice; readonly threads: number | undefined },
): Promise<Multiplier> {
  if (multiplications < FEW_MULTIPLICATIONS) return PLAIN;
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
    return PLAIN;
  }
}

// How much memory a conversion takes, and how large its blocks can be within a limit.

export interface MemoryPlan {
  /** Rows of each table that are worked on at a time. */
  readonly blockRows: number;
  /** Of the process, predicted. */
  readonly peakBytes: number;
}

/** Blocks larger than this make nothing faster. */
const LARGEST_BLOCK_BYTES = 64e6;
/** So that even 4-bit values are whole bytes. */
const ROW_STEP = 4;
/** Of the process when it plans: what it has by then differs from run to run, and is never more than this. */
const STARTED_BYTES = 144e6;
/** Buffers for reading ahead, casting and writing, and what is freed only now and then: measured. */
const STREAMING_BYTES = 48e6;

/** The least that is asked for is a multiple of this, so that it is enough the next time too. */
const LEAST_STEP_BYTES = 8e6;

/**
 * @param limitBytes What the user allows.
 * @param taken What the process has taken already, and what engines will take.
 * @throws UserError with the least that would do, when the limit is below it.
 */
export function planMemory(
  srte: SrtePlan | null,
  limitBytes: number,
  taken: { readonly processBytes: number; readonly engineBytes: number },
  quoteBytes: (bytes: number) => string,
): MemoryPlan {
  const fixed = Math.max(taken.processBytes, STARTED_BYTES) + taken.engineBytes + STREAMING_BYTES;
  const rowBytes = srte ? bytesPerRow(srte) : 0;
  const needed = (rows: number) => fixed + rows * rowBytes + factorisingBytes(srte, rows);
  if (needed(ROW_STEP) > limitBytes) {
    const least = Math.ceil(needed(ROW_STEP) / LEAST_STEP_BYTES) * LEAST_STEP_BYTES;
    throw new UserError(
      'usage',
      `--max-memory ${quoteBytes(limitBytes)} is not enough: this conversion takes at least ${quoteBytes(least)}`,
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

// Whether an output can fit on its disk.

/**
 * @param target Where the files go: a file, or a folder that may not be there yet.
 * @throws UserError when the disk has less space than they take.
 */
export function refuseFullDisk(target: string, files: readonly { readonly bytes: number }[]): void {
  const neededBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const freeBytes = freeBytesOf(path.dirname(path.resolve(target)));
  if (freeBytes === undefined || neededBytes <= freeBytes) return;
  throw new UserError(
    'system',
    `cannot write ${target}: it takes ${formatBytes(neededBytes)}, and the disk has ${formatBytes(freeBytes)} free`,
    { suggestion: 'free some space, or write to another disk' },
  );
}

/** Undefined where the system does not say. */
function freeBytesOf(folder: string): number | undefined {
  try {
    const { blocks, bavail, bsize } = fs.statfsSync(folder);
    return blocks === 0 ? undefined : bavail * bsize;
  } catch {
    return undefined;
  }
}
