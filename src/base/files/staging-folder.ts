/** The folder in which an output is built: its layout, its lock, and recovery of an earlier run. */

import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type UserError, usageError } from '../errors.js';
import { parseJson } from '../text/json.js';
import type { Move } from './file-system.js';
import {
  areMovesDone,
  exists,
  isRemovedName,
  makeFolder,
  removeQuietly,
  revertMoves,
  syncFolder,
  takeFreeName,
} from './file-system.js';
import { refuseInputsIn } from './input-registry.js';
import { isRunning, isTemporaryFile } from './temporary.js';
import type { OutputKind, OutputTarget } from './write-whole.js';

// Record of an unfinished output for the next run.

export interface Journal {
  readonly kind: OutputKind;
  /** Text that identifies the inputs and options of the result. */
  readonly identity: string;
  /** Names of all files, the main one last. Present once all are written; moving them may have begun. */
  readonly complete?: readonly string[];
}

/** Version of the format. Journals of other versions are ignored. */
const VERSION = 1;

/** Reads a journal; undefined if it is missing or not valid. */
function readJournal(file: string): Journal | undefined {
  try {
    const { version, kind, identity, complete } = parseJson(
      fs.readFileSync(file, 'utf8'),
    ) as Readonly<Record<string, unknown>>;
    if (version !== VERSION || typeof identity !== 'string') return undefined;
    if (kind !== 'file' && kind !== 'folder') return undefined;
    if (complete === undefined) return { kind, identity };
    return isNameList(complete) ? { kind, identity, complete } : undefined;
  } catch {
    return undefined;
  }
}

/** Writes a journal and syncs it to disk. */
function writeJournal(file: string, journal: Journal): void {
  const temporary = `${file}.new`;
  const descriptor = fs.openSync(temporary, 'w');
  try {
    fs.writeSync(descriptor, JSON.stringify({ version: VERSION, ...journal }));
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
  fs.renameSync(temporary, file);
  syncFolder(path.dirname(file));
}

const isNameList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isPlainName);

/** Whether a name is a direct entry of a folder, without a path. */
export const isPlainName = (name: unknown) =>
  typeof name === 'string' &&
  name !== '' &&
  name !== '.' &&
  name !== '..' &&
  !name.includes('/') &&
  path.basename(name) === name;

export class StagingFolder {
  readonly files: string;
  readonly spool: string;
  readonly #root: string;
  readonly #replaced: string;
  readonly #journal: string;
  readonly #lock: string;
  readonly #place: OutputTarget;

  constructor(place: OutputTarget) {
    this.#place = place;
    this.#root = path.join(path.dirname(place.file), `.${path.basename(place.file)}.minimind`);
    this.files = path.join(this.#root, 'files');
    this.spool = path.join(this.#root, 'spool');
    this.#replaced = path.join(this.#root, 'replaced');
    this.#journal = path.join(this.#root, 'journal.json');
    this.#lock = path.join(this.#root, 'lock');
  }

  /** Creates the folder if needed, and takes the lock. */
  enter(): void {
    makeFolder(this.#root);
    // In a folder that others can write to, it may be their link.
    if (!fs.lstatSync(this.#root).isDirectory()) {
      throw usageError(
        `expected a folder at ${this.#root}, which is needed for writing, found something else`,
        'remove it',
      );
    }
    // Files of an earlier run in it are removed or become the output.
    refuseInputsIn(this.#root, this.#place.target);
    try {
      takeLock(this.#lock, this.#place.target);
    } catch (error) {
      this.#removeEmpty();
      throw error;
    }
  }

  /** Path of a file while it is written. */
  unfinished(name: string): string {
    return path.join(this.#root, `${name}.unfinished`);
  }

  /**
   * Restores the old output if a move was interrupted.
   * @returns The journal, valid after the recovery.
   */
  recoverMoves(): Journal | undefined {
    const journal = readJournal(this.#journal);
    if (journal === undefined && this.holdsReplaced()) throw this.#lostJournal();
    if (journal?.complete !== undefined && !this.isInPlace(journal)) {
      revertMoves(this.moves(journal.kind, journal.complete));
    }
    return journal;
  }

  #lostJournal(): UserError {
    const what = 'has files of an interrupted run, but no journal';
    return usageError(
      `${this.#replaced} ${what}`,
      `move what you want to keep elsewhere, and remove ${this.#root}`,
    );
  }

  isInPlace({ kind, complete }: Journal): boolean {
    return (
      complete !== undefined && areMovesDone(this.moves(kind, complete)) && exists(this.#place.file)
    );
  }

  /** Whether replaced files are still kept aside. */
  holdsReplaced(): boolean {
    return exists(this.#replaced) && fs.readdirSync(this.#replaced).length > 0;
  }

  /** Moves of files to their places: companions first, then the main file or the complete folder. */
  moves(kind: OutputKind, names: readonly string[]): Move[] {
    const parent = path.dirname(this.#place.file);
    const move = (from: string, name: string): Move => ({
      from,
      to: path.join(parent, name),
      aside: path.join(this.#replaced, name),
    });
    return kind === 'folder'
      ? [move(this.files, path.basename(this.#place.file))]
      : names.map((name) => move(path.join(this.files, name), name));
  }

  finished(): string[] {
    const names = exists(this.files) ? fs.readdirSync(this.files) : [];
    return names.filter((name) => !isRemovedName(name));
  }

  /** Whether complete scratch files exist. */
  holdsScratch(): boolean {
    return exists(this.spool) && fs.readdirSync(this.spool).some((name) => !isTemporaryFile(name));
  }

  /** Starts without any earlier files. */
  startOver(journal: Journal): void {
    fs.rmSync(this.#replaced, { recursive: true, force: true });
    // Remove the journal first: otherwise a partial set of files could count as complete.
    fs.rmSync(this.#journal, { force: true });
    syncFolder(this.#root);
    this.#removeAllBut([this.#lock]);
    fs.mkdirSync(this.files);
    this.#makeReady(journal);
  }

  /** Starts with the finished files and the scratch files. */
  keepFinished(journal: Journal): void {
    this.#removeAllBut([this.#lock, this.#journal, this.files, this.spool]);
    fs.mkdirSync(this.files, { recursive: true });
    this.#makeReady(journal);
    for (const name of fs.readdirSync(this.spool).filter(isTemporaryFile)) {
      removeQuietly(path.join(this.spool, name));
    }
  }

  #makeReady(journal: Journal): void {
    makeFolder(this.spool);
    fs.mkdirSync(this.#replaced);
    this.write(journal);
    syncFolder(path.dirname(this.#root));
  }

  write(journal: Journal): void {
    writeJournal(this.#journal, journal);
  }

  /** Keeps finished files for a later run. */
  leave(): void {
    this.#removeAllBut([this.#lock, this.#journal, this.files, this.spool, this.#replaced]);
    releaseLock(this.#lock);
  }

  /** Removes the folder. The journal is removed late, because it explains why files were moved aside. */
  remove(): void {
    this.#removeAllBut([this.#lock, this.#journal]);
    if (!this.holdsReplaced()) removeQuietly(this.#journal);
    releaseLock(this.#lock);
    this.#removeEmpty();
  }

  /** Keeps finished files if there are any, and removes all others. */
  abandon(): void {
    if (this.finished().length > 0 || this.holdsReplaced() || this.holdsScratch()) this.leave();
    else this.remove();
  }

  #removeEmpty(): void {
    try {
      fs.rmdirSync(this.#root);
    } catch {
      // Another run has entered it.
    }
  }

  #removeAllBut(kept: readonly string[]): void {
    if (!exists(this.#root)) return;
    for (const name of fs.readdirSync(this.#root)) {
      const file = path.join(this.#root, name);
      if (!kept.includes(file)) removeQuietly(file);
    }
  }
}

/** Leaves the staging folder of an output to a later run, for a process that ends. */
export const abandonStaging = (place: OutputTarget): void => new StagingFolder(place).abandon();

// Lock file with the id of the process that owns it: one run at a time.

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
function takeLock(file: string, target: string): void {
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

function releaseLock(file: string): void {
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
  usageError(
    `${target} is being written by another run: process ${pid} on ${host}, started ${ageOf(since)}`,
    suggestion,
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
    const { pid, host } = parseJson(fs.readFileSync(file, 'utf8')) as Partial<Holder>;
    if (Number.isSafeInteger(pid) && Number(pid) > 0 && typeof host === 'string') {
      return { pid: Number(pid), host, since: fs.statSync(file).mtimeMs };
    }
  } catch {
    // Treated as no lock.
  }
  return undefined;
}
