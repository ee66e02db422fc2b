/** States of parts, as their locks and results show them, and the names of those that are missing. */
import fs from 'node:fs';
import path from 'node:path';
import { runsOf } from '../text/words.js';
import type { LaunchedJob } from './launch.js';
import { LOCK_TIMES, type LockOwner, ownerIn } from './part-lock.js';

export type StateName = 'done' | 'running' | 'stalled' | 'missing';

/** Fields of every answer about work in parts. */
export interface PartsAnswer {
  readonly action: 'plan' | 'part' | 'status' | 'finish' | 'launch';
  readonly plan: { readonly file: string; readonly hash: string };
  readonly parts: readonly {
    readonly part: number;
    readonly state: StateName;
    /** Hosts that work on it. */
    readonly hosts: readonly string[];
  }[];
  readonly missing: readonly number[];
  /** The missing parts as an array of Slurm: `7,19`. */
  readonly array: string;
  /** Null for other actions. */
  readonly ran: {
    readonly parts: readonly number[];
    readonly units: number;
    /** Units that an earlier run or another runner did. */
    readonly unitsThere: number;
    readonly seconds: number;
  } | null;
  /** Null for other actions. */
  readonly job: LaunchedJob | null;
}

/**
 * State of work that is not done, by its lock. The owner is there only while it runs.
 * @param clock Time of the disk.
 */
export function lockState(
  lock: string,
  clock: number,
): { readonly state: Exclude<StateName, 'done'>; readonly owner?: LockOwner } {
  const owner = ownerIn(lock);
  if (owner === undefined) return { state: 'missing' };
  const age = clock - (fs.statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? clock);
  return age > LOCK_TIMES.stale ? { state: 'stalled' } : { state: 'running', owner };
}

/** Time of the disk of a folder in milliseconds, for the age of locks: clocks of machines may differ. */
export function diskTime(root: string): number {
  if (!fs.existsSync(root)) return Date.now();
  const probe = path.join(root, `.probe-${process.pid}`);
  try {
    fs.writeFileSync(probe, '');
    return fs.statSync(probe).mtimeMs;
  } catch {
    return Date.now();
  } finally {
    fs.rmSync(probe, { force: true });
  }
}

/** `3,7-9,19`: parts as schedulers take them. */
export function arrayText(parts: readonly number[]): string {
  return runsOf([...new Set(parts)].toSorted((a, b) => a - b))
    .map(([from, to]) =>
      from === to ? `${from}` : to === from + 1 ? `${from},${to}` : `${from}-${to}`,
    )
    .join(',');
}
