/**
 * The loop of a runner: does the free units of a plan, each under its lock, and waits for those that others do. It can be
 * repeated, and run at once with itself on any machine: a unit with a result is skipped.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { watchEnd } from '../base/files/early-end.js';
import { makeFolder, withFileErrors } from '../base/files/file-system.js';
import { LOCK_TIMES, type LockTimes, LockWatch, ownerIn, PartLock } from './part-lock.js';
import { lockFile, refreshFolders, type UnitStore } from './unit-store.js';

/** How a runner does units. */
export interface UnitWork<Unit> {
  /** Whether a result that is there is whole; one that is not is replaced. By default all are. */
  readonly isWhole?: (unit: Unit) => Promise<boolean>;
  /** Units that must be done before this one. By default there are none. */
  readonly needs?: (unit: Unit) => Promise<readonly Unit[]>;
  /** Writes the result of a unit. @returns The amount of its work. */
  readonly run: (unit: Unit, lock: PartLock) => Promise<number>;
}

export interface RunTimes {
  readonly times?: LockTimes | undefined;
  /** Milliseconds between two looks at the units of others. */
  readonly poll?: number | undefined;
}

/**
 * Does units that have no result yet, those that need no other unit first.
 * @returns Amount of work of each unit that this runner did, by its id.
 * @throws UserError when a folder or lock cannot be written; rethrows errors of `work`. Finished units stay.
 */
export async function runUnits<Unit>(
  units: readonly Unit[],
  store: UnitStore<Unit>,
  work: UnitWork<Unit>,
  { times = LOCK_TIMES, poll = 2_000 }: RunTimes = {},
): Promise<ReadonlyMap<string, number>> {
  const [root] = store.folders;
  await withFileErrors(root, () => store.folders.forEach(makeFolder));
  const runner = new UnitRunner(store, work, times, poll);
  await runner.ensure(await runner.inOrder(units));
  return runner.done;
}

class UnitRunner<Unit> {
  readonly done = new Map<string, number>();
  readonly #store: UnitStore<Unit>;
  readonly #work: UnitWork<Unit>;
  readonly #times: LockTimes;
  readonly #poll: number;
  readonly #watch: LockWatch;

  constructor(store: UnitStore<Unit>, work: UnitWork<Unit>, times: LockTimes, poll: number) {
    this.#store = store;
    this.#work = work;
    this.#times = times;
    this.#poll = poll;
    this.#watch = new LockWatch(times);
  }

  /** Those that need nothing first, so that no free unit waits for another one. */
  async inOrder(units: readonly Unit[]): Promise<readonly Unit[]> {
    if (this.#work.needs === undefined) return units;
    const counted: { readonly unit: Unit; readonly count: number }[] = [];
    for (const unit of units) {
      if (await this.#isThere(unit)) continue;
      counted.push({ unit, count: (await this.#needed(unit)).length });
    }
    return counted.toSorted((a, b) => a.count - b.count).map(({ unit }) => unit);
  }

  /** Does the free ones of some units, then waits for those that others do. */
  async ensure(units: readonly Unit[]): Promise<void> {
    let pending = units;
    while (pending.length > 0) {
      const busy: Unit[] = [];
      for (const unit of pending) {
        if (!(await this.#attempt(unit))) busy.push(unit);
      }
      pending = busy;
      if (pending.length > 0) await delay(this.#poll);
    }
  }

  /** @returns Whether the unit has a result; false when another runner works on it. */
  async #attempt(unit: Unit): Promise<boolean> {
    if (await this.#isThere(unit)) return true;
    const file = lockFile(this.#store, unit);
    const breakStale = () => withFileErrors(file, () => this.#watch.breakStale(file));
    if (ownerIn(file) !== undefined && !(await breakStale())) return false;
    await this.ensure(await this.#needed(unit));
    await watchEnd();
    const lock = await withFileErrors(file, () => PartLock.take(file, this.#times));
    if (lock === undefined) {
      await breakStale();
      return false;
    }
    try {
      // Another owner may have done it meanwhile.
      if (!(await this.#isThere(unit))) {
        this.done.set(this.#store.idOf(unit), await this.#work.run(unit, lock));
      }
      return true;
    } finally {
      lock.release();
    }
  }

  async #needed(unit: Unit): Promise<readonly Unit[]> {
    return (await this.#work.needs?.(unit)) ?? [];
  }

  /** The check of completeness: a result of this plan, with whole content. */
  async #isThere(unit: Unit): Promise<boolean> {
    refreshFolders(this.#store.folders);
    if (this.#store.doneIn(unit) === undefined) return false;
    return (await this.#work.isWhole?.(unit)) ?? true;
  }
}
