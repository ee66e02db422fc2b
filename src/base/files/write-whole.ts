/** Writes files atomically: complete or not at all, at any size. */

import fs from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { UserError, usageError } from '../errors.js';
import { formatBytes } from '../text/units.js';
import { sumOf } from '../values.js';
import { isConvertedName, isConvertedWeights } from './config-names.js';
import { removeAtEnd, watchEnd } from './early-end.js';
import {
  alreadyExists,
  removeQuietly,
  renameTo,
  syncFolder,
  takeFreeName,
  withFileErrors,
} from './file-system.js';
import { linkTarget, noteOutput, refuseInput, refuseInputsIn } from './input-registry.js';
import { removeStaleFiles, temporaryFileName } from './temporary.js';

// Writing bytes to an open file.

/** Sequential output of bytes. */
export interface ByteSink {
  readonly position: number;
  /** Consumes the bytes before it resolves: the caller may then reuse their buffer. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Contiguous little-endian bytes of a tensor, in pieces that may reuse one buffer. */
export type ByteChunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Writes the content of an open file and closes it.
 * @param target The output as the user wrote it, for messages.
 * @param finish Runs when all bytes are written.
 */
async function writeContent(
  handle: FileHandle,
  target: string,
  fill: (sink: ByteSink) => Promise<void>,
  finish?: () => Promise<void>,
): Promise<void> {
  const sink = new FileSink(handle, target, finish !== undefined);
  try {
    await fill(sink);
    await sink.flush();
    await withFileErrors(target, sink.synced);
    await withFileErrors(target, async () => finish?.());
  } finally {
    await sink.synced().catch(() => {});
    await withFileErrors(target, () => handle.close());
  }
}

/** Small writes are buffered up to this many bytes. */
const BUFFER_BYTES = 2 ** 18;
/** Bytes per sync to disk during the write, so that the last sync is short. */
const SYNC_BYTES = 2 ** 26;

class FileSink implements ByteSink {
  readonly #handle: FileHandle;
  readonly #target: string;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #buffered = 0;
  #written = 0;
  #nextSync: number;
  #syncing: Promise<void> | undefined;

  /** @param isSynced Whether to sync the file to disk at the end. */
  constructor(handle: FileHandle, target: string, isSynced: boolean) {
    this.#handle = handle;
    this.#target = target;
    this.#nextSync = isSynced ? SYNC_BYTES : Number.POSITIVE_INFINITY;
  }

  /** Waits for the sync; a sync error is reported only once. */
  readonly synced = async (): Promise<void> => this.#syncing;

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
      const { bytesWritten } = await withFileErrors(
        this.#target,
        () => this.#handle.write(bytes, done),
        `, after ${this.#written} bytes`,
      );
      done += bytesWritten;
      this.#written += bytesWritten;
    }
    if (this.#written >= this.#nextSync) await this.#sync();
  }

  async #sync(): Promise<void> {
    await withFileErrors(this.#target, this.synced);
    this.#nextSync = this.#written + SYNC_BYTES;
    this.#syncing = this.#handle.datasync();
    // The error is thrown later, when the sync is awaited.
    this.#syncing.catch(() => {});
  }
}

/** Files to remove when the process exits. */
const temporaryFiles = new Set<string>();
process.on('exit', () => {
  for (const file of temporaryFiles) removeQuietly(file);
});

/**
 * Writes `target` through a temporary file in the same folder. It is renamed when all bytes are on disk, so that no
 * reader sees a partial file. On failure it is removed, and the old file stays. Devices and pipes are written directly.
 * @param force Whether to replace an existing file.
 * @param fill Writes the content. Not called if checks before it fail.
 * @param isShort Whether the write is short, because the content exists already: no thread then watches for signals.
 * @throws UserError if the file is an input of the command, exists and `force` is off, or the system reports an error;
 *   rethrows errors of `fill`.
 */
export async function writeWhole(
  target: string,
  force: boolean,
  fill: (sink: ByteSink) => Promise<void>,
  { isShort = false } = {},
): Promise<void> {
  const { file, mode, isStream } = await withFileErrors(target, () => findPlace(target, force));
  if (isStream)
    return writeContent(await withFileErrors(target, () => open(file, 'w')), target, fill);
  if (!isShort) await watchEnd();
  const folder = path.dirname(file);
  removeStaleFiles(folder);
  const sibling = path.join(folder, temporaryFileName());
  await writeThrough(sibling, target, mode, fill, () => {
    // Check again: more inputs may have been read in the meantime.
    refuseInput(file, target);
    if (force) renameTo(sibling, file);
    else takeFreeName(sibling, file);
    syncFolder(folder);
  });
  noteOutput(target);
}

/**
 * Writes a temporary file, syncs it to disk and renames it. Removed when the process exits.
 * @param temporary Its path, which must be unused.
 * @param target The output as the user wrote it, for messages.
 * @param mode Permissions of the file, if not the default.
 */
export async function writeThrough(
  temporary: string,
  target: string,
  mode: number | undefined,
  fill: (sink: ByteSink) => Promise<void>,
  takeName: () => void,
): Promise<void> {
  temporaryFiles.add(temporary);
  const removed = removeAtEnd({ kind: 'file', path: temporary });
  try {
    // Synchronous: a file created during exit would be missed by the clean-up.
    await withFileErrors(target, async () => fs.closeSync(fs.openSync(temporary, 'wx')));
    const handle = await withFileErrors(target, () => open(temporary, 'r+'));
    await writeContent(handle, target, fill, async () => {
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.sync();
    });
    await withFileErrors(target, takeName);
  } finally {
    removeQuietly(temporary);
    temporaryFiles.delete(temporary);
    removed();
  }
}

/**
 * Checks early that a file can be written, before long work is started for it.
 * @throws UserError as `writeWhole` does.
 */
export async function refuseUnwritable(target: string, force: boolean): Promise<void> {
  await withFileErrors(target, async () => findPlace(target, force));
}

interface WriteTarget {
  /** Path of the file, with links resolved; of a device or pipe, as the user wrote it. */
  readonly file: string;
  /** Permissions of the replaced file, to keep. */
  readonly mode: number | undefined;
  /** Whether it is a device or pipe, without content to replace. */
  readonly isStream: boolean;
}

function findPlace(target: string, force: boolean): WriteTarget {
  if (target === '') throw usageError('the name of the file to write is empty');
  const existing = fs.statSync(target, { throwIfNoEntry: false });
  if (existing === undefined) return { file: target, mode: undefined, isStream: false };
  if (existing.isDirectory()) throw folderError(target);
  refuseInput(target);
  // A link such as /dev/stdout or a shell's >(…) leads to a pipe, which has no path.
  if (!existing.isFile()) return { file: target, mode: existing.mode, isStream: true };
  if (!force) throw alreadyExists(target);
  return { file: fs.realpathSync.native(target), mode: existing.mode, isStream: false };
}

export const folderError = (target: string) =>
  usageError(`${target} is a folder`, 'name a file in it');

// Finds the location of an output, and checks whether an existing file there may be replaced.

export type OutputKind = 'file' | 'folder';

export interface OutputTarget {
  /** The path as the user wrote it. */
  readonly target: string;
  readonly kind: OutputKind;
  /** Absolute path, with the link resolved if `target` is one. It need not exist. */
  readonly file: string;
}

/** @throws UserError if nothing can be written there; rethrows system errors. */
export function resolveOutputTarget(target: string, kind: OutputKind): OutputTarget {
  if (target === '') throw usageError(`the name of the ${kind} to write is empty`);
  const place = linkTarget(target);
  // Path as the system resolves it: `..` is the parent of a link's target.
  const isPlain = !/^\.{1,2}$/.test(path.basename(place));
  const file = isPlain
    ? path.join(fs.realpathSync.native(path.dirname(place)), path.basename(place))
    : fs.realpathSync.native(place);
  if (path.dirname(file) === file) throw usageError(`${target} is the root of a disk`);
  return { target, kind, file };
}

/** @throws UserError if the existing file must not, or cannot, be replaced. */
export function checkReplaceable({ target, kind, file }: OutputTarget, force: boolean): void {
  const existing = fs.statSync(file, { throwIfNoEntry: false });
  if (existing === undefined) return;
  if (kind === 'folder' && existing.isDirectory()) refuseInputsIn(file, target);
  else refuseInput(file, target);
  if (kind === 'folder') checkFolder(target, file, existing, force);
  else checkFile(target, existing, force);
}

function checkFile(target: string, existing: fs.Stats, force: boolean): void {
  if (existing.isDirectory()) throw folderError(target);
  if (!existing.isFile()) throw strangeKind(target, 'file');
  if (!force) throw alreadyExists(target);
}

/** A device, a pipe or a socket. */
const strangeKind = (target: string, kind: OutputKind): UserError =>
  usageError(`${target} is neither a file nor a folder`, `choose another name for the ${kind}`);

function checkFolder(target: string, file: string, existing: fs.Stats, force: boolean): void {
  if (existing.isFile()) {
    throw usageError(`${target} is a file`, 'name a folder');
  }
  if (!existing.isDirectory()) throw strangeKind(target, 'folder');
  if (existing.dev !== fs.statSync(path.dirname(file)).dev) {
    throw usageError(`${target} is a mount point, which cannot be replaced`, 'name a folder in it');
  }
  const entries = fs.readdirSync(file, { withFileTypes: true });
  if (entries.length === 0) return;
  if (!force) throw alreadyExists(target);
  const strange = entries.find((entry) => entry.isDirectory() || !isConvertedName(entry.name));
  if (strange === undefined && entries.some(({ name }) => isConvertedWeights(name))) return;
  const why = strange ? `holds ${strange.name}` : 'holds no weights';
  throw usageError(
    `${target} is not a folder written by a conversion: it ${why}`,
    'choose another name, or move its files elsewhere',
  );
}

/**
 * Checks that the disk has enough space.
 * @param target The output: a file, or a folder that may not exist yet.
 * @throws UserError if the files need more than the free space.
 */
export function refuseFullDisk(target: string, files: readonly { readonly bytes: number }[]): void {
  const neededBytes = sumOf(files, ({ bytes }) => bytes);
  const freeBytes = freeBytesOf(path.dirname(path.resolve(target)));
  if (freeBytes === undefined || neededBytes <= freeBytes) return;
  throw new UserError(
    'system',
    `cannot write ${target}: it takes ${formatBytes(neededBytes)}, and the disk has ${formatBytes(freeBytes)} free`,
    { suggestion: 'free some space, or write to another disk' },
  );
}

/** Free bytes of the disk; undefined if the system does not report them. */
function freeBytesOf(folder: string): number | undefined {
  try {
    const { blocks, bavail, bsize } = fs.statfsSync(folder);
    return blocks === 0 ? undefined : bavail * bsize;
  } catch {
    return undefined;
  }
}
