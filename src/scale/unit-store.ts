/** Units of a plan, their results and locks, and the progress that these show. */
import fs from 'node:fs';
import path from 'node:path';
import { runsOf, sumOf } from '../base/values.js';
import { LOCK_TIMES, type LockOwner, ownerIn } from './part-lock.js';

/** Where one kind of work keeps the results of its units. A unit is what one runner does at a time, under one lock. */
export interface UnitStore<Unit> {
  /** Folders of the results, the one that has the others first. */
  readonly folders: readonly [root: string, ...string[]];
  /** Folder of the locks. */
  readonly locks: string;
  /** Name of a unit in a folder. */
  readonly idOf: (unit: Unit) => string;
  /** Amount of work in the result of a unit; undefined without a result of this plan. */
  readonly doneIn: (unit: Unit) => number | undefined;
}

export const lockFile = <Unit>({ locks, idOf }: UnitStore<Unit>, unit: Unit): string =>
  path.join(locks, `${idOf(unit)}.lock`);

/** Opens folders, which makes a client of NFS ask for their current names. */
export function refreshFolders(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      fs.closeSync(fs.openSync(folder, 'r'));
    } catch {
      // Not made yet, or cleared. Some systems cannot open folders.
    }
  }
}

export type StateName = 'done' | 'running' | 'stalled' | 'missing';

/** Progress of a part. */
export interface PartProgress<Part> {
  readonly part: Part;
  readonly state: StateName;
  /** Hosts that work on it. */
  readonly hosts: readonly string[];
  /** Finished work, that of running units included. */
  readonly done: number;
}

export interface Progress<Part> {
  readonly parts: readonly PartProgress<Part>[];
  readonly done: number;
  /** Work of all runners in a second; null when none runs. */
  readonly perSecond: number | null;
  /** Parts that are not done. */
  readonly missing: readonly number[];
}

/**
 * Progress of a plan, as its results and locks show it.
 * @param unitsOf Units that a finish needs of a part.
 */
export function progressOf<Part extends { readonly part: number }, Unit>(
  plan: { readonly parts: readonly Part[] },
  store: UnitStore<Unit>,
  unitsOf: (part: Part) => readonly Unit[],
): Progress<Part> {
  const [root] = store.folders;
  refreshFolders(store.folders);
  let clock: number | undefined;
  let perSecond = 0;
  const parts = plan.parts.map((part): PartProgress<Part> => {
    const states = new Set<StateName>();
    const hosts = new Set<string>();
    let done = 0;
    for (const unit of unitsOf(part)) {
      const amount = store.doneIn(unit);
      if (amount !== undefined) {
        done += amount;
        continue;
      }
      clock ??= diskTime(root);
      const { state, owner } = lockState(lockFile(store, unit), clock);
      states.add(state);
      if (owner === undefined) continue;
      hosts.add(owner.host);
      done += owner.bytes;
      if (owner.seconds > 0) perSecond += owner.bytes / owner.seconds;
    }
    const state = UNFINISHED.find((each) => states.has(each)) ?? 'done';
    return { part, state, hosts: [...hosts], done };
  });
  return {
    parts,
    done: sumOf(parts, (part) => part.done),
    perSecond: perSecond > 0 ? perSecond : null,
    missing: parts.filter(({ state }) => state !== 'done').map(({ part }) => part.part),
  };
}

/** States of a part with units that are not done: the first that one of them has. */
const UNFINISHED = ['running', 'stalled', 'missing'] as const;

/**
 * State of a unit without a result, by its lock. The owner is there only while it runs.
 * @param clock Time of the disk.
 */
function lockState(
  lock: string,
  clock: number,
): { readonly state: (typeof UNFINISHED)[number]; readonly owner?: LockOwner } {
  const owner = ownerIn(lock);
  if (owner === undefined) return { state: 'missing' };
  const age = clock - (fs.statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? clock);
  return age > LOCK_TIMES.stale ? { state: 'stalled' } : { state: 'running', owner };
}

/** Time of the disk of a folder in milliseconds, for the age of locks: clocks of machines may differ. */
function diskTime(root: string): number {
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
