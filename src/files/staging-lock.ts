/** One run at a time: a file that names the process that holds it. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import { UserError } from '../errors.js';
import { removeQuietly, takeFreeName } from './config-names.js';
import { isRunning } from './temporary.js';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When it took the lock, in milliseconds of the disk's clock. */
  readonly since: number;
}

/** Those of this process. A lock with its id that is none of them is left from another of the same id. */
const held = new Set<string>();

/**
 * Takes a lock, from a process that has ended too.
 * @param file The lock; its folder exists.
 * @param target What it is for, for messages.
 * @throws UserError when another process holds it, or may.
 */
export function takeLock(file: string, target: string): void {
  const unique = `${file}-${randomUUID()}`;
  try {
    refuseIfHeld(file, file, target);
    if (fs.existsSync(file)) removeStale(file, `${unique}.old`, target);
    // The name comes with the content, so that nobody reads half of it.
    fs.writeFileSync(unique, JSON.stringify({ pid: process.pid, host: os.hostname() }));
    takeFreeName(unique, file);
    held.add(file);
  } catch (error) {
    // Someone was faster.
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

/** Moves it first: if someone has taken the lock meanwhile, it is theirs that was moved, and goes back. */
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

/** @param file Where to look; `lock` is what it is called. */
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

/** Undefined when there is no lock, or one that a dying machine has left unreadable. */
function holderOf(file: string): Holder | undefined {
  try {
    const { pid, host } = JSON.parse(fs.readFileSync(file, 'utf8')) as Partial<Holder>;
    if (Number.isSafeInteger(pid) && Number(pid) > 0 && typeof host === 'string') {
      return { pid: Number(pid), host, since: fs.statSync(file).mtimeMs };
    }
  } catch {
    // As if there was none.
  }
  return undefined;
}
