/**
 * Locks of units of work on a shared file system. A lock is a file that is made by `link`, which is atomic on NFS too, and
 * whose owner rewrites it every few seconds. Whether an owner is gone is judged without comparing clocks: on the same
 * machine by its process, elsewhere when the file has not changed for a while of the observer's own clock.
 *
 * A lock only saves work. Two owners, after a wrong judgement, write the same bytes, each renamed as a whole.
 */

import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import { UserError } from '../base/errors.js';
import { removeAtEnd } from '../base/files/early-end.js';
import {
  codeOf,
  readReplaced,
  removeQuietly,
  renameTo,
  takeFreeName,
} from '../base/files/file-system.js';
import { onPulse } from '../base/files/mounted.js';
import { isRunning, PROCESS_SPACE } from '../base/files/temporary.js';
import { parseJson } from '../base/text/json.js';

export interface LockOwner {
  readonly token: string;
  readonly host: string;
  readonly pid: number;
  /** Scope of the process id: boot of a machine and namespace. */
  readonly space: string;
  /** Start of the process in ticks of its machine; empty where the system does not say. */
  readonly born: string;
  /** Number of this version of the file. */
  readonly beat: number;
  /** Work done by the owner in this unit, and its time. */
  readonly bytes: number;
  readonly seconds: number;
}

/** Milliseconds between two writes of a lock, and without a change until its owner counts as gone. */
export interface LockTimes {
  readonly beat: number;
  readonly stale: number;
}

export const LOCK_TIMES: LockTimes = { beat: 5_000, stale: 90_000 };

/** All versions of a lock have this length, so that one write replaces it. */
const LOCK_BYTES = 512;

export class PartLock {
  /** Name of this owner, which is in the lock. */
  readonly token: string;
  readonly #file: string;
  readonly #descriptor: number;
  readonly #start = performance.now();
  readonly #timer: NodeJS.Timeout;
  readonly #endPulse: () => void;
  readonly #released: () => void;
  #beat = 0;
  #bytes = 0;

  /**
   * Takes a lock if it is free.
   * @returns Undefined when it is not.
   * @throws System errors.
   */
  static take(file: string, { beat }: LockTimes = LOCK_TIMES): PartLock | undefined {
    const token = randomUUID();
    const own = ownName(file, token);
    const descriptor = fs.openSync(own, 'wx+');
    try {
      fs.writeSync(descriptor, encodedOwner(ownerOf(token)), 0, LOCK_BYTES, 0);
      fs.fsyncSync(descriptor);
      if (takesName(own, file)) return new PartLock(file, token, descriptor, beat);
    } catch (error) {
      closeQuietly(descriptor);
      throw error;
    } finally {
      removeQuietly(own);
    }
    closeQuietly(descriptor);
    return undefined;
  }

  private constructor(file: string, token: string, descriptor: number, period: number) {
    this.token = token;
    this.#file = file;
    this.#descriptor = descriptor;
    this.#timer = setInterval(() => this.#write(), period);
    this.#timer.unref();
    this.#endPulse = onPulse(() => this.#write());
    held.add(this);
    this.#released = removeAtEnd({ kind: 'lock', path: file, text: token });
  }

  /** Counts work for the next version of the lock. */
  readonly add = (bytes: number): void => {
    this.#bytes += bytes;
  };

  /** Whether the lock still has this owner: another runner may have judged it gone. */
  get isOwn(): boolean {
    return ownerIn(this.#file)?.token === this.token;
  }

  release(): void {
    held.delete(this);
    clearInterval(this.#timer);
    this.#endPulse();
    closeQuietly(this.#descriptor);
    if (this.isOwn) removeQuietly(this.#file);
    this.#released();
  }

  #write(): void {
    const seconds = (performance.now() - this.#start) / 1000;
    const version = { ...ownerOf(this.token), beat: ++this.#beat, bytes: this.#bytes, seconds };
    try {
      fs.writeSync(this.#descriptor, encodedOwner(version), 0, LOCK_BYTES, 0);
      // A client of NFS keeps what is written for half a minute. Without waiting: the work goes on.
      fs.fdatasync(this.#descriptor, () => {});
    } catch {
      // A disk that is full or away: without the beat, another may take the unit.
    }
  }
}

/** A token becomes part of a file name. */
const TOKEN = /^[\w-]+$/;

/** Name under which an owner writes a lock before it takes it. */
const ownName = (file: string, token: string): string => `${file}.${token}`;

/** Locks of this process, released when it exits. */
const held = new Set<PartLock>();
process.on('exit', () => {
  for (const lock of [...held]) lock.release();
});

/** Whether a file got a name that was free. */
function takesName(own: string, file: string): boolean {
  try {
    takeFreeName(own, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST' || error instanceof UserError) return false;
    throw error;
  }
}

/** NFS reports errors of earlier writes when a file is closed. */
function closeQuietly(descriptor: number): void {
  try {
    fs.closeSync(descriptor);
  } catch {
    // The lock only saves work.
  }
}

const ownerOf = (token: string): LockOwner => ({
  token,
  host: os.hostname(),
  pid: process.pid,
  space: PROCESS_SPACE,
  born: birthOf(process.pid),
  beat: 0,
  bytes: 0,
  seconds: 0,
});

/** Start of a process in ticks since boot: field 22 of /proc/PID/stat. It differs between processes of one id. */
function birthOf(pid: number): string {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

const encodedOwner = (owner: LockOwner): Buffer =>
  Buffer.from(JSON.stringify({ ...owner, host: owner.host.slice(0, 200) }).padEnd(LOCK_BYTES));

/** The owner of a lock; undefined without a lock, or for one that is being written or broken. */
export function ownerIn(file: string): LockOwner | undefined {
  try {
    const owner = parseJson(readReplaced(file)) as LockOwner | null;
    return typeof owner?.token === 'string' && TOKEN.test(owner.token) ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Watches locks of others, and removes those whose owner is gone. */
export class LockWatch {
  readonly #times: LockTimes;
  readonly #now: () => number;
  /** Last content of a lock, and when it was first seen. */
  readonly #seen = new Map<string, { readonly content: string; readonly since: number }>();

  /** @param now The observer's own clock in milliseconds, which need not agree with any other. */
  constructor(times: LockTimes = LOCK_TIMES, now = () => performance.now()) {
    this.#times = times;
    this.#now = now;
  }

  /** Removes a lock if its owner is gone. @returns Whether the lock may be free now. */
  breakStale(file: string): boolean {
    const content = lockContent(file);
    if (content === undefined) {
      this.#seen.delete(file);
      return true;
    }
    if (!this.#isGone(file, content)) return false;
    this.#seen.delete(file);
    return removeLock(file, content);
  }

  #isGone(file: string, content: string): boolean {
    const owner = ownerIn(file);
    if (owner?.space === PROCESS_SPACE) return !isAlive(owner);
    const seen = this.#seen.get(file);
    if (seen?.content !== content) {
      this.#seen.set(file, { content, since: this.#now() });
      return false;
    }
    return this.#now() - seen.since >= this.#times.stale;
  }
}

/** Whether the process of an owner on this machine still runs, not another one with its id. */
function isAlive({ pid, born, token }: LockOwner): boolean {
  if (pid === process.pid) return [...held].some((lock) => lock.token === token);
  return isRunning(pid) && (born === '' || birthOf(pid) === born);
}

/** Moves a lock aside and removes it; if it is another one by now, moves it back. */
function removeLock(file: string, content: string): boolean {
  const aside = `${file}.${randomUUID()}.old`;
  try {
    renameTo(file, aside);
  } catch (error) {
    // Another observer was faster.
    if (codeOf(error) === 'ENOENT') return true;
    throw error;
  }
  const isSame = lockContent(aside) === content;
  if (isSame) {
    // Its owner may have been killed between taking the name and giving up its own.
    const { token } = ownerIn(aside) ?? {};
    if (token !== undefined) removeQuietly(ownName(file, token));
  } else {
    try {
      takeFreeName(aside, file);
    } catch {
      // A third one took the free name: both may work, and write the same.
    }
  }
  removeQuietly(aside);
  return isSame;
}

function lockContent(file: string): string | undefined {
  try {
    return readReplaced(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
