import fs from 'node:fs';
import { UserError, usageError } from '../base/errors.js';
import { refuseUnconfined } from '../base/files/confined-reads.js';
import { codeOf, missingAdvice, missingReason, systemAdvice } from '../base/files/file-system.js';
import { noteInput } from '../base/files/input-registry.js';
import {
  type ByteRange,
  fileNamesIn,
  fileStatus,
  folderNamesIn,
  type MountedFile,
  mountedPath,
  pathKind,
} from '../base/files/mounted.js';
import { hubSuggestion } from '../base/text/hub-names.js';
import { sumOf } from '../base/values.js';
import { refusal } from './checkpoint-rules.js';

/** A read-only file with random access. */
export class ByteFile {
  /** The path as the user or an index file wrote it. */
  readonly path: string;
  /** Size at opening, bytes. */
  readonly size: number;
  /** Modification time at opening, in milliseconds since 1970. */
  readonly changedAt: number;
  /** Path on the disk, which differs from `path` for a mounted file. */
  readonly #place: string;
  #descriptor: number | undefined;
  #bytesRead = 0;

  protected constructor(
    path: string,
    status: { readonly size: number; readonly mtimeMs: number },
    descriptor?: number,
    place = path,
  ) {
    this.path = path;
    this.#place = place;
    this.size = status.size;
    this.changedAt = status.mtimeMs;
    this.#descriptor = descriptor;
  }

  /** @throws UserError if the file does not exist, cannot be read, or is not a regular file. */
  static open(path: string): ByteFile {
    const mounted = mountedFile(path);
    if (mounted && mounted.localPath === undefined) return new PartlyHere(path, mounted);
    const place = mounted?.localPath ?? path;
    if (mounted === undefined) refuseUnconfined(path);
    let descriptor: number | undefined;
    try {
      // O_NONBLOCK: opening a named pipe would block until a writer opens it.
      descriptor = fs.openSync(place, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
      const status = fs.fstatSync(descriptor);
      if (!status.isFile()) {
        throw refusal(path, {
          rule: 'file-is-regular',
          message: status.isDirectory()
            ? 'is a folder where a file should be'
            : 'is not a regular file, which random access requires',
          suggestion: status.isDirectory()
            ? 'name a file in it'
            : 'copy its content into a file first',
        });
      }
      noteInput(place, fs.fstatSync(descriptor, { bigint: true }));
      return new ByteFile(path, status, descriptor, place);
    } catch (error) {
      if (descriptor !== undefined) fs.closeSync(descriptor);
      throw cannotRead(path, error);
    }
  }

  /** Whether the bytes are computed: no other program can read them. */
  get isComputed(): boolean {
    return false;
  }

  /** Whether values come over a network: they are read only where the user asks for them. */
  get isRemote(): boolean {
    return false;
  }

  /** Announces ranges that are about to be read one by one. */
  willRead(_ranges: readonly ByteRange[]): void {
    // The disk needs no announcement.
  }

  /** Reads `length` bytes from `position` into a new buffer. */
  read(position: number, length: number): Buffer {
    const target = Buffer.allocUnsafeSlow(length);
    this.readInto(target, position);
    return target;
  }

  /** Fills `target` with the bytes from `position` on. */
  readInto(target: Uint8Array, position: number): void {
    try {
      let filled = 0;
      while (filled < target.length) {
        const count = fs.readSync(
          this.#open(),
          target,
          filled,
          target.length - filled,
          position + filled,
        );
        if (count === 0) throw this.#shrunk(position + filled);
        filled += count;
        this.#bytesRead += count;
      }
    } catch (error) {
      throw cannotRead(this.path, error);
    }
  }

  /** `readInto` without blocking the process. */
  async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    let filled = 0;
    while (filled < target.length) {
      const count = await new Promise<number>((resolve, reject) => {
        fs.read(
          this.#open(),
          target,
          filled,
          target.length - filled,
          position + filled,
          (error, bytesRead) => (error ? reject(cannotRead(this.path, error)) : resolve(bytesRead)),
        );
      });
      if (count === 0) throw this.#shrunk(position + filled);
      filled += count;
      this.#bytesRead += count;
    }
  }

  /** Bytes read so far; bytes read twice count twice. */
  get bytesRead(): number {
    return this.#bytesRead;
  }

  protected countRead(bytes: number): void {
    this.#bytesRead += bytes;
  }

  /** Whether size or modification time changed since the file was opened. */
  hasChanged(): boolean {
    const { size, mtimeMs } = fs.fstatSync(this.#open());
    return size !== this.size || mtimeMs !== this.changedAt;
  }

  close(): void {
    if (this.#descriptor !== undefined) fs.closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /**
   * Absolute path without symbolic links, for a library that opens the file itself.
   * @throws UserError if the file at that path is not the one that was opened.
   */
  locate(): string {
    const opened = fs.fstatSync(this.#open(), { bigint: true });
    try {
      const path = fs.realpathSync(this.#place);
      const there = fs.statSync(path, { bigint: true });
      const isSame = there.dev === opened.dev && there.ino === opened.ino;
      if (isSame && there.size === BigInt(this.size)) return path;
    } catch (error) {
      throw cannotRead(this.path, error);
    }
    throw refusal(this.path, {
      rule: 'file-stays',
      message: 'is another file than when it was opened',
      suggestion: 'wait until the program that writes it has finished, and run again',
    });
  }

  #open(): number {
    if (this.#descriptor === undefined) throw new Error(`${this.path} is read after it was closed`);
    return this.#descriptor;
  }

  #shrunk(position: number): UserError {
    return refusal(this.path, {
      rule: 'file-is-whole',
      place: `byte ${position}`,
      message: `ends here; it had ${this.size} bytes when it was opened`,
      suggestion: 'wait until the program that writes it has finished',
    });
  }
}

function mountedFile(path: string): MountedFile | undefined {
  const found = mountedPath(path);
  if (found === undefined) return undefined;
  const { folder, name } = found;
  if (folder.names.has(name)) return folder.open(name);
  throw usageError(`there is no file ${path}`);
}

/** A file of a mounted folder of which only parts are on this machine. */
class PartlyHere extends ByteFile {
  readonly #file: MountedFile;

  constructor(path: string, file: MountedFile) {
    super(path, { size: file.size, mtimeMs: file.version });
    this.#file = file;
  }

  override get isComputed(): boolean {
    return true;
  }

  override get isRemote(): boolean {
    return true;
  }

  override willRead(ranges: readonly ByteRange[]): void {
    this.#file.willRead(ranges);
  }

  override readInto(target: Uint8Array, position: number): void {
    this.#file.readInto(target, position);
    this.countRead(target.length);
  }

  override async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    await this.#file.readIntoAsync(target, position);
    this.countRead(target.length);
  }

  override hasChanged(): boolean {
    return false;
  }

  override close(): void {
    // Its folder stays mounted until the command ends.
  }

  override locate(): string {
    throw new Error(`${this.path} is not on the disk`);
  }
}

/** Sorted names of the files in a folder; undefined where it is missing or is a file. */
export function fileNamesAt(folder: string): string[] | undefined {
  try {
    return pathKind(folder) === 'folder' ? fileNamesIn(folder).sort() : undefined;
  } catch (error) {
    throw cannotRead(folder, error);
  }
}

/** Names of the folders in a folder. */
export function folderNamesAt(folder: string): string[] {
  try {
    return folderNamesIn(folder);
  } catch (error) {
    throw cannotRead(folder, error);
  }
}

/** Sizes of files together, for a limit: those that cannot be read count as 0. */
export const bytesAt = (files: Iterable<string>): number => sumOf(files, sizeAt);

function sizeAt(file: string): number {
  try {
    return fileStatus(file)?.size ?? 0;
  } catch {
    return 0;
  }
}

/** Turns a system error into an error message for the user. */
function cannotRead(path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (error instanceof UserError || code === undefined) return error;
  if (MISSING.has(code)) {
    const suggestion = missingReason(path) ?? hubSuggestion(path) ?? missingAdvice(path);
    return usageError(`there is no file or folder ${path || "''"}`, suggestion, error);
  }
  const suggestion = systemAdvice(code, 'file');
  return new UserError('system', `cannot read ${path}: ${(error as Error).message}`, {
    cause: error,
    ...(suggestion && { suggestion }),
  });
}

const MISSING: ReadonlySet<string> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'ERR_INVALID_ARG_VALUE',
]);

/** Path with all links resolved; undefined if it does not exist. */
export function realPath(path: string): string | undefined {
  try {
    return fs.realpathSync(path);
  } catch (error) {
    if (MISSING.has(codeOf(error) ?? '')) return undefined;
    throw cannotRead(path, error);
  }
}
