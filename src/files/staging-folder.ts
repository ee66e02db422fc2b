/** The folder in which an output is built: where things are in it, and what to do with what is found. */

import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import type { Move } from './atomic-rename.js';
import { areDone, takeBack } from './atomic-rename.js';
import { exists, removeQuietly, syncFolder } from './config-names.js';
import { refuseInputsIn } from './inputs.js';
import type { OutputKind, OutputPlace } from './output-place.js';
import { codeOf } from './refusals.js';
import { releaseLock, takeLock } from './staging-lock.js';
import { isTemporaryFile } from './temporary.js';

// What an unfinished output says of itself to the next run.

export interface Journal {
  readonly kind: OutputKind;
  /** What the result depends on. */
  readonly identity: string;
  /** The names of all files, the main one last, once they are all written; moving them may have begun. */
  readonly complete?: readonly string[];
}

/** Changes with what it means. A journal of another version is none. */
const VERSION = 1;

/** Undefined when there is none that makes sense. */
function readJournal(file: string): Journal | undefined {
  try {
    const { version, kind, identity, complete } = JSON.parse(fs.readFileSync(file, 'utf8'));
    if (version !== VERSION || typeof identity !== 'string') return undefined;
    if (kind !== 'file' && kind !== 'folder') return undefined;
    if (complete === undefined) return { kind, identity };
    return isNameList(complete) ? { kind, identity, complete } : undefined;
  } catch {
    return undefined;
  }
}

/** It is on the disk, and whole, before this returns. */
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

/** Whether it names something in a folder, and nothing above or below. */
export const isPlainName = (name: unknown) =>
  typeof name === 'string' &&
  name !== '' &&
  name !== '.' &&
  name !== '..' &&
  !name.includes('/') &&
  path.basename(name) === name;

/** Not with `recursive`: where no folder can be made, as in /proc, that never stops trying. */
function makeFolder(folder: string): void {
  try {
    fs.mkdirSync(folder);
  } catch (error) {
    // Another run was faster: the lock decides.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

export class StagingFolder {
  readonly files: string;
  readonly spool: string;
  readonly #root: string;
  readonly #replaced: string;
  readonly #journal: string;
  readonly #lock: string;
  readonly #place: OutputPlace;

  constructor(place: OutputPlace) {
    this.#place = place;
    this.#root = path.join(path.dirname(place.file), `.${path.basename(place.file)}.minimind`);
    this.files = path.join(this.#root, 'files');
    this.spool = path.join(this.#root, 'spool');
    this.#replaced = path.join(this.#root, 'replaced');
    this.#journal = path.join(this.#root, 'journal.json');
    this.#lock = path.join(this.#root, 'lock');
  }

  /** Makes the folder where there is none, and takes the lock. */
  enter(): void {
    makeFolder(this.#root);
    // Where others can write too, it may be a link of theirs.
    if (!fs.lstatSync(this.#root).isDirectory()) {
      throw new UserError('usage', `${this.#root} is no folder, and is needed to write in`, {
        suggestion: 'remove it',
      });
    }
    // What an earlier run has left in it goes, or becomes the output.
    refuseInputsIn(this.#root, this.#place.target);
    try {
      takeLock(this.#lock, this.#place.target);
    } catch (error) {
      this.#removeEmpty();
      throw error;
    }
  }

  /** Where a file is written before it is finished. */
  unfinished(name: string): string {
    return path.join(this.#root, `${name}.unfinished`);
  }

  /**
   * Puts the old output in its place again when a move was cut short.
   * @returns What the journal says, which is true then.
   */
  recoverMoves(): Journal | undefined {
    const journal = readJournal(this.#journal);
    if (journal === undefined && this.holdsReplaced()) throw this.#lostJournal();
    if (journal?.complete !== undefined && !this.isInPlace(journal)) {
      takeBack(this.moves(journal.kind, journal.complete));
    }
    return journal;
  }

  #lostJournal(): UserError {
    const what = 'holds what was moved away, and no journal that says why';
    return new UserError('usage', `${this.#replaced} ${what}`, {
      suggestion: `move what you want to keep elsewhere, and remove ${this.#root}`,
    });
  }

  /** Whether all moves of a journal have been made. */
  isInPlace({ kind, complete }: Journal): boolean {
    return (
      complete !== undefined && areDone(this.moves(kind, complete)) && exists(this.#place.file)
    );
  }

  /** Whether something was moved away that has not been tidied up. */
  holdsReplaced(): boolean {
    return exists(this.#replaced) && fs.readdirSync(this.#replaced).length > 0;
  }

  /** How files come to their places: companions first, the main file, or the whole folder, last. */
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
    return exists(this.files) ? fs.readdirSync(this.files) : [];
  }

  /** Whether there is scratch, whole. */
  holdsScratch(): boolean {
    return exists(this.spool) && fs.readdirSync(this.spool).some((name) => !isTemporaryFile(name));
  }

  /** Begins with nothing. */
  startOver(journal: Journal): void {
    fs.rmSync(this.#replaced, { recursive: true, force: true });
    // Before the files, or half of them would pass for all.
    fs.rmSync(this.#journal, { force: true });
    syncFolder(this.#root);
    this.#removeAllBut([this.#lock]);
    fs.mkdirSync(this.files);
    this.#makeReady(journal);
  }

  /** Begins with the files that are finished, and the scratch. */
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

  /** Leaves what is finished for a later run. */
  leave(): void {
    this.#removeAllBut([this.#lock, this.#journal, this.files, this.spool, this.#replaced]);
    releaseLock(this.#lock);
  }

  /** Removes the folder. The journal goes late: it says why something was moved away. */
  remove(): void {
    this.#removeAllBut([this.#lock, this.#journal]);
    if (!this.holdsReplaced()) removeQuietly(this.#journal);
    releaseLock(this.#lock);
    this.#removeEmpty();
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
