/**
 * Builds an output, a folder or a file with companions, in a staging folder and moves it into place at the end.
 * At any interruption either the old or the new output is complete.
 *
 * The staging folder of OUT is `.OUT.minimind`, on the same disk:
 *
 * - `lock`: the process that owns the folder.
 * - `journal.json`: identity of the result; the names of all files once they are all written.
 * - `files/`: finished files. A file is written next to it, synced and renamed into it.
 * - `replaced/`: the old output, while it is being replaced.
 * - `spool/`: complete scratch files, kept as `files/` is.
 *
 * Recovery by the next run:
 *
 * | journal    | `files/`     | `replaced/` | end of the last run         | with `resume`  | without     |
 * |------------|--------------|-------------|-----------------------------|----------------|-------------|
 * | none       | any          | empty       | at the start, or reset      | starts over    | starts over |
 * | none       | any          | not empty   | (not possible)              | error          | error       |
 * | incomplete | some         | empty       | while writing               | keeps `files/` | starts over |
 * | complete   | all          | empty       | before the first move       | keeps `files/` | starts over |
 * | complete   | main is left | any         | between moves: reverts them | keeps `files/` | starts over |
 * | complete   | main is gone | any         | after the last move         | is `isInPlace` | starts over |
 *
 * Reverting restores the old output, with or without `resume`. If a new file exists at its place, the
 * run stops with an error and changes nothing. `resume` rejects files with another identity. A folder that is
 * already in place is replaced like any other.
 */
import path from 'node:path';
import { usageError } from '../errors.js';
import { setting } from '../text/setting.js';
import { removeAtEnd, watchEnd } from './early-end.js';
import {
  alreadyExists,
  exists,
  moveAll,
  renameTo,
  syncFolder,
  withFileErrors,
} from './file-system.js';
import { noteOutput, refuseInput } from './input-registry.js';
import type { Journal } from './staging-folder.js';
import { isPlainName, StagingFolder } from './staging-folder.js';
import {
  type ByteSink,
  checkReplaceable,
  type OutputTarget,
  resolveOutputTarget,
  writeThrough,
} from './write-whole.js';

export interface StagingOptions {
  readonly kind: 'file' | 'folder';
  /** Whether to replace what exists: a file, its companions, or a folder with a checkpoint. */
  readonly force: boolean;
  /** Whether to keep finished files of an earlier run with the same identity. */
  readonly resume: boolean;
  /** Text that identifies the inputs and options of the result; compared with the earlier run's. */
  readonly identity: string;
}

/** Outputs that are still open; abandoned when the process exits. */
const opened = new Set<Staging>();
process.on('exit', () => {
  for (const staging of opened) void staging.abandon();
});

export class Staging {
  readonly #place: OutputTarget;
  readonly #options: StagingOptions;
  readonly #folder: StagingFolder;
  readonly #finished = new Set<string>();
  #start: 'new' | 'resumed' | 'inPlace' = 'new';
  #ended = () => {};

  /**
   * Locks the output for this run, and recovers files of an earlier one.
   * @throws UserError if OUT exists and may not be replaced, if another run writes it, if the identity differs on
   *   `resume`, or on a system error.
   */
  static async open(target: string, options: StagingOptions): Promise<Staging> {
    const place = await withFileErrors(target, () => resolveOutputTarget(target, options.kind));
    await watchEnd();
    const staging = new Staging(place, options);
    await withFileErrors(target, () => staging.#begin());
    return staging;
  }

  private constructor(place: OutputTarget, options: StagingOptions) {
    this.#place = place;
    this.#options = options;
    this.#folder = new StagingFolder(place);
  }

  /** Name for `write` of the main file: the file name of OUT, with links resolved. */
  get mainName(): string {
    return path.basename(this.#place.file);
  }

  /** Whether finished or scratch files of an earlier run were kept. */
  get isResumed(): boolean {
    return this.#start !== 'new';
  }

  /** Whether an earlier run has already moved all files into place: only `commit` is missing. */
  get isInPlace(): boolean {
    return this.#start === 'inPlace';
  }

  isFinished(name: string): boolean {
    return this.#finished.has(name);
  }

  finished(name: string): string {
    if (!this.isFinished(name)) throw new Error(`${name} is not finished`);
    if (!this.isInPlace) return path.join(this.#folder.files, name);
    return this.#inOutput(name, this.#place.file);
  }

  spool(name: string): string {
    return path.join(this.#folder.spool, name);
  }

  /**
   * Writes a complete file of the output. In a folder OUT it gets this name. For a file OUT it is the main file
   * if the names are equal, else a companion in the same folder.
   * @throws UserError if a companion exists and `force` is off, or the system reports an error; rethrows errors
   *   of `fill`. The other files stay.
   */
  async write(name: string, fill: (sink: ByteSink) => Promise<void>): Promise<void> {
    if (!isPlainName(name)) throw new RangeError(`${name} is not a file name`);
    if (this.isFinished(name)) throw new Error(`${name} is finished already`);
    this.#checkCompanion(name);
    const target = this.#inOutput(name, this.#place.target);
    const temporary = this.#folder.unfinished(name);
    await writeThrough(temporary, target, undefined, fill, () => {
      renameTo(temporary, path.join(this.#folder.files, name));
      syncFolder(this.#folder.files);
    });
    this.#finished.add(name);
  }

  /**
   * Takes a complete, synced file of the same disk into the output, by renaming it.
   * @throws UserError as `write`.
   */
  async adopt(name: string, from: string): Promise<void> {
    if (!isPlainName(name)) throw new RangeError(`${name} is not a file name`);
    if (this.isFinished(name)) throw new Error(`${name} is finished already`);
    this.#checkCompanion(name);
    await withFileErrors(this.#inOutput(name, this.#place.target), () => {
      renameTo(from, path.join(this.#folder.files, name));
      syncFolder(this.#folder.files);
    });
    this.#finished.add(name);
  }

  /**
   * Moves all files into place and removes the staging folder. Contains no await, so that no signal handler
   * runs before it is done or reverted.
   * @throws UserError if a new file exists at the target in the meantime, or the system reports an error.
   */
  async commit(): Promise<void> {
    if (!this.isInPlace) await withFileErrors(this.#place.target, () => this.#putInPlace());
    for (const name of this.#finished) noteOutput(this.#inOutput(name, this.#place.target));
    opened.delete(this);
    this.#folder.remove();
    this.#ended();
  }

  /** Whether a later run can resume from the existing files. */
  get isWorthKeeping(): boolean {
    return this.#finished.size > 0 || this.#folder.holdsReplaced() || this.#folder.holdsScratch();
  }

  /**
   * After a failure: keeps finished files for a later run, removes all others, and returns whether files were
   * kept. Contains no await, because it also runs when the process exits.
   */
  async abandon(): Promise<'kept' | 'removed'> {
    opened.delete(this);
    const keeps = this.isWorthKeeping;
    if (keeps) this.#folder.leave();
    else this.#folder.remove();
    this.#ended();
    return keeps ? 'kept' : 'removed';
  }

  /** After a failure that would repeat: keeps only the files that were moved aside. */
  async discard(): Promise<void> {
    opened.delete(this);
    if (this.#folder.holdsReplaced()) this.#folder.leave();
    else this.#folder.remove();
    this.#ended();
  }

  #begin(): void {
    this.#folder.enter();
    opened.add(this);
    this.#ended = removeAtEnd({ kind: 'staging', place: this.#place });
    try {
      this.#recover(this.#folder.recoverMoves());
    } catch (error) {
      for (const name of this.#folder.finished()) this.#finished.add(name);
      void this.abandon();
      throw error;
    }
  }

  #recover(earlier: Journal | undefined): void {
    const { kind, identity, resume, force } = this.#options;
    const isSame = earlier?.kind === kind && earlier.identity === identity;
    if (resume && isSame && this.#folder.isInPlace(earlier)) {
      for (const name of earlier.complete ?? []) this.#finished.add(name);
      this.#start = 'inPlace';
      return;
    }
    checkReplaceable(this.#place, force);
    const names = this.#folder.finished();
    const isLeft = names.length > 0 || this.#folder.holdsScratch();
    if (!resume || earlier === undefined || !isLeft || this.#folder.isInPlace(earlier)) {
      this.#folder.startOver({ kind, identity });
      return;
    }
    if (!isSame) throw otherIdentity(this.#place.target);
    this.#folder.keepFinished({ kind, identity });
    for (const name of names) this.#finished.add(name);
    this.#start = 'resumed';
  }

  #putInPlace(): void {
    const { kind, identity, force } = this.#options;
    const companions = [...this.#finished].filter((name) => name !== this.mainName);
    const complete = kind === 'folder' ? [...this.#finished] : [...companions, this.mainName];
    if (kind === 'file' && !this.isFinished(this.mainName)) throw new Error('no main file');
    checkReplaceable(this.#place, force);
    for (const name of companions) this.#checkCompanion(name);
    this.#folder.write({ kind, identity, complete });
    try {
      moveAll(this.#folder.moves(kind, complete));
    } catch (error) {
      this.#folder.recoverMoves();
      throw error;
    }
  }

  #checkCompanion(name: string): void {
    const { kind, force } = this.#options;
    if (kind === 'folder' || name === this.mainName) return;
    const companion = this.#inOutput(name, this.#place.file);
    refuseInput(companion);
    if (!force && exists(companion)) throw alreadyExists(companion);
  }

  /**
   * Final path of a file.
   * @param output The path of OUT, resolved or as the user wrote it.
   */
  #inOutput(name: string, output: string): string {
    if (this.#options.kind === 'folder') return path.join(output, name);
    return name === this.mainName ? output : path.join(path.dirname(output), name);
  }
}

const otherIdentity = (target: string) =>
  usageError(
    `the unfinished ${target} comes from another input or other settings`,
    `use those again to resume it; without ${setting('resume')} it starts over`,
  );
