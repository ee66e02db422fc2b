/** How much memory a conversion takes, and how large its blocks can be within a limit. */
import type { SrteLayout } from '../architecture/srte-layout.js';
import { UserError } from '../errors.js';
import { lowRankBytes } from '../linalg/low-rank.js';
import { rowsMade } from './make-tables.js';
import type { SrtePlan } from './plan.js';

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
