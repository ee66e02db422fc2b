/** Files that are written whole or not at all, however large. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.js';
import type { ByteSink } from './byte-sink.js';

/** Files that must not outlive the process. */
const temporaryFiles = new Set<string>();
process.on('exit', () => {
  for (const file of temporaryFiles) removeQuietly(file);
});

function removeQuietly(file: string): void {
  try {
    fs.rmSync(file, { force: true });
  } catch {
    // What went wrong before is what the user has to know.
  }
}

/**
 * Writes `target` through a sibling that takes its name when all bytes are on the disk, so that no reader
 * ever sees half of it. When anything fails the sibling is removed, and what was there before stays.
 * A device or pipe is written to as it is.
 * @param force Whether to replace a file that exists already.
 * @param fill Writes the content. Not called when it is known before that the file cannot be written.
 * @throws UserError when the file exists and `force` is off, or the system refuses; and what `fill` throws.
 */
export async function writeWhole(
  target: string,
  force: boolean,
  fill: (sink: ByteSink) => Promise<void>,
): Promise<void> {
  const { file, mode, isStream } = await explained(target, async () => findPlace(target, force));
  if (isStream) return writeContent(await explained(target, () => open(file, 'w')), target, fill);
  const sibling = path.join(path.dirname(file), `.minimind-${process.pid}-${randomUUID()}.tmp`);
  temporaryFiles.add(sibling);
  try {
    const handle = await explained(target, () => open(sibling, 'wx'));
    await writeContent(handle, target, fill, async () => {
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.sync();
    });
    await explained(target, async () => takeName(sibling, file, force));
    syncFolder(path.dirname(file));
  } finally {
    removeQuietly(sibling);
    temporaryFiles.delete(sibling);
  }
}

/**
 * Says beforehand that a file cannot be written, so that nobody works for it in vain.
 * @throws UserError as `writeWhole` does.
 */
export async function refuseUnwritable(target: string, force: boolean): Promise<void> {
  await explained(target, async () => findPlace(target, force));
}

interface Place {
  /** The file itself, where `target` is a link to it. */
  readonly file: string;
  /** Permissions of the file that is replaced, to keep. */
  readonly mode: number | undefined;
  /** Whether it is a device or a pipe, which has no content to replace. */
  readonly isStream: boolean;
}

function findPlace(target: string, force: boolean): Place {
  if (target === '') throw new UserError('usage', 'the name of the file to write is empty');
  const existing = fs.statSync(target, { throwIfNoEntry: false });
  if (existing === undefined) return { file: target, mode: undefined, isStream: false };
  if (existing.isDirectory()) {
    throw new UserError('usage', `${target} is a folder`, { suggestion: 'name a file in it' });
  }
  if (existing.isFile() && !force) throw alreadyExists(target);
  return { file: fs.realpathSync(target), mode: existing.mode, isStream: !existing.isFile() };
}

/** Fills an open file and closes it. @param finish What to do when all is written. */
async function writeContent(
  handle: FileHandle,
  target: string,
  fill: (sink: ByteSink) => Promise<void>,
  finish = async () => {},
): Promise<void> {
  const sink = new FileSink(handle, target);
  try {
    await fill(sink);
    await sink.flush();
    await explained(target, finish);
  } finally {
    await explained(target, () => handle.close());
  }
}

/** Small pieces are gathered to this many bytes before they are written. */
const BUFFER_BYTES = 2 ** 18;

class FileSink implements ByteSink {
  readonly #handle: FileHandle;
  readonly #target: string;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #buffered = 0;
  #written = 0;

  constructor(handle: FileHandle, target: string) {
    this.#handle = handle;
    this.#target = target;
  }

  get position(): number {
    return this.#written + this.#buffered;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#buffered + bytes.length > BUFFER_BYTES) await this.flush();
    if (bytes.length > BUFFER_BYTES) return this.#writeOut(bytes);
    this.#buffer.set(bytes, this.#buffered);
    this.#buffered += bytes.length;
  }

  async flush(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#buffered);
    this.#buffered = 0;
    await this.#writeOut(bytes);
  }

  async #writeOut(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await explained(
        this.#target,
        () => this.#handle.write(bytes, done),
        `, after ${this.#written} bytes`,
      );
      done += bytesWritten;
      this.#written += bytesWritten;
    }
  }
}

/** Gives the sibling its name. Without `force` it must be free still. */
function takeName(sibling: string, file: string, force: boolean): void {
  if (force) {
    fs.renameSync(sibling, file);
    return;
  }
  try {
    // A link fails when the name was taken meanwhile; a rename would replace what took it.
    fs.linkSync(sibling, file);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    if (fs.existsSync(file)) throw alreadyExists(file);
    fs.renameSync(sibling, file);
  }
}

/** What file systems without hard links (FAT, some network shares) answer. */
const NO_LINKS: ReadonlySet<string> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

/** Brings the new name to the disk. */
function syncFolder(folder: string): void {
  try {
    const descriptor = fs.openSync(folder, 'r');
    try {
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    // Not every system lets a folder be opened or synced. The content is on the disk already.
  }
}

/** @param where How far the writing had come. */
async function explained<T>(target: string, act: () => Promise<T>, where = ''): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw cannotWrite(target, error, where);
  }
}

function cannotWrite(target: string, error: unknown, where: string): unknown {
  const code = codeOf(error);
  if (error instanceof UserError || code === undefined) return error;
  if (code === 'EEXIST') return alreadyExists(target);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new UserError('usage', `cannot write ${target}: there is no such folder`, {
      suggestion: 'make the folder first, or choose another',
      cause: error,
    });
  }
  const suggestion = ADVICE.get(code);
  return new UserError('system', `cannot write ${target}${where}: ${(error as Error).message}`, {
    cause: error,
    ...(suggestion && { suggestion }),
  });
}

const alreadyExists = (target: string) =>
  new UserError('usage', `${target} exists already`, {
    suggestion: 'choose another name, or replace it with --force',
  });

const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'free some space, or write to another disk'],
  ['EDQUOT', 'free some of your quota, or write to another disk'],
  ['EFBIG', 'write to a file system that takes files of this size'],
  ['EROFS', 'choose a folder that can be written to'],
  ['EACCES', 'check the permissions of the folder'],
  ['EPERM', 'check the permissions of the folder'],
]);

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
