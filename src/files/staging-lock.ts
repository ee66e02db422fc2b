/** A lock file with the id of the process that owns it: one run at a time. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import { UserError } from '../errors.js';
import { removeQuietly, takeFreeName } from './config-names.js';
import { isRunning } from './temporary.js';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Time of taking the lock, in milliseconds of the disk's clock. */
  readonly since: number;
}

/** Locks of this process. Another lock with its process id was left by an earlier process. */
const held = new Set<string>();

/**
 * Takes a lock; also replaces the lock of a process that has ended.
 * @param file The lock; its folder exists.
 * @param target The output, for messages.
 * @throws UserError if another process owns the lock, or may own it.
 */
export function takeLock(file: string, target: string): void {
  const unique = `${file}-${randomUUID()}`;
  try {
    refuseIfHeld(file, file, target);
    if (fs.existsSync(file)) removeStale(file, `${unique}.old`, target);
    // Link a complete file, so that no other process reads a partial lock.
    fs.writeFileSync(unique, JSON.stringify({ pid: process.pid, host: os.hostname() }));
    takeFreeName(unique, file);
    held.add(file);
  } catch (error) {
    // Another process was faster.
    refuseIfHeld(file, file, target);
    throw error;
  } finally {
    removeQuietly(unique);
  }
}

export function releaseLock(file: string): void {
  removeQuietly(file);
  held.delete(file);
}

/** Moves the lock before checking it again: if another process took it in the meantime, moves it back. */
function removeStale(file: string, aside: string, target: string): void {
  fs.renameSync(file, aside);
  try {
    refuseIfHeld(aside, file, target);
  } catch (error) {
    fs.renameSync(aside, file);
    throw error;
  }
  removeQuietly(aside);
}

/**
 * @param file Path to read.
 * @param lock Path of the lock, for messages.
 */
function refuseIfHeld(file: string, lock: string, target: string): void {
  const holder = holderOf(file);
  if (holder === undefined) return;
  const { pid, host } = holder;
  if (host !== os.hostname()) {
    throw heldBy(holder, target, `check on ${host} whether it still runs; if not, remove ${lock}`);
  }
  if (pid === process.pid ? held.has(lock) : isRunning(pid)) {
    throw heldBy(
      holder,
      target,
      `wait until it has ended; if process ${pid} is another program, remove ${lock}`,
    );
  }
}

const heldBy = ({ pid, host, since }: Holder, target: string, suggestion: string) =>
  new UserError(
    'usage',
    `${target} is being written by another run: process ${pid} on ${host}, started ${ageOf(since)}`,
    { suggestion },
  );

const AGES = [
  ['day', 24 * 60],
  ['hour', 60],
  ['minute', 1],
] as const;

function ageOf(since: number): string {
  const minutes = (Date.now() - since) / 60_000;
  const [unit, length] = AGES.find((each) => minutes >= each[1]) ?? [];
  if (length === undefined) return 'less than a minute ago';
  const count = Math.floor(minutes / length);
  return `${count} ${unit}${count === 1 ? '' : 's'} ago`;
}

/** Owner of a lock; undefined without a lock, or if a crash left it unreadable. */
function holderOf(file: string): Holder | undefined {
  try {
    const { pid, host } = JSON.parse(fs.readFileSync(file, 'utf8')) as Partial<Holder>;
    if (Number.isSafeInteger(pid) && Number(pid) > 0 && typeof host === 'string') {
      return { pid: Number(pid), host, since: fs.statSync(file).mtimeMs };
    }
  } catch {
    // Treated as no lock.
  }
  return undefined;
}
