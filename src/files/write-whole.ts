/** Files that are written whole or not at all, however large. */

import fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.js';
import { removeQuietly, syncFolder, takeFreeName } from './config-names.js';
import { noteOutput, refuseInput } from './inputs.js';
import { alreadyExists, explained } from './refusals.js';
import { sweep, temporaryFileName } from './temporary.js';

// Bytes into an open file.

/** Where a writer puts its bytes, one after the other. */
export interface ByteSink {
  /** Bytes written so far. */
  readonly position: number;
  /** Takes the bytes before it resolves: the caller may reuse their memory then. */
  write(bytes: Uint8Array): Promise<void>;
}

/** The bytes of a tensor, contiguous and little-endian, in pieces that may reuse their memory. */
export type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Fills an open file and closes it.
 * @param target What the user asked to have written; named in messages.
 * @param finish What to do when all is written.
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
    await explained(target, sink.synced);
    await explained(target, async () => finish?.());
  } finally {
    await sink.synced().catch(() => {});
    await explained(target, () => handle.close());
  }
}

/** Small pieces are gathered to this many bytes before they are written. */
const BUFFER_BYTES = 2 ** 18;
/** So many bytes are sent on to the disk while more are written: not all of them at the end. */
const SYNC_BYTES = 2 ** 26;

class FileSink implements ByteSink {
  readonly #handle: FileHandle;
  readonly #target: string;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #buffered = 0;
  #written = 0;
  #nextSync: number;
  #syncing: Promise<void> | undefined;

  /** @param isSynced Whether it is to be on the disk at the end. */
  constructor(handle: FileHandle, target: string, isSynced: boolean) {
    this.#handle = handle;
    this.#target = target;
    this.#nextSync = isSynced ? SYNC_BYTES : Number.POSITIVE_INFINITY;
  }

  /** What the system says of bytes that it was to bring to the disk. It says so once. */
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
      const { bytesWritten } = await explained(
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
    await explained(this.#target, this.synced);
    this.#nextSync = this.#written + SYNC_BYTES;
    this.#syncing = this.#handle.datasync();
    // A failure is met at its turn, when it is awaited.
    this.#syncing.catch(() => {});
  }
}

/** Files that must not outlive the process. */
const temporaryFiles = new Set<string>();
process.on('exit', () => {
  for (const file of temporaryFiles) removeQuietly(file);
});

/**
 * Writes `target` through a sibling that takes its name when all bytes are on the disk, so that no reader
 * ever sees half of it. When anything fails the sibling is removed, and what was there before stays.
 * A device or pipe is written to as it is.
 * @param force Whether to replace a file that exists already.
 * @param fill Writes the content. Not called when it is known before that the file cannot be written.
 * @throws UserError when the file is one that the command reads, or exists and `force` is off, or the system
 * refuses; and what `fill` throws.
 */
export async function writeWhole(
  target: string,
  force: boolean,
  fill: (sink: ByteSink) => Promise<void>,
): Promise<void> {
  const { file, mode, isStream } = await explained(target, () => findPlace(target, force));
  if (isStream) return writeContent(await explained(target, () => open(file, 'w')), target, fill);
  const folder = path.dirname(file);
  sweep(folder);
  const sibling = path.join(folder, temporaryFileName());
  await writeThrough(sibling, target, mode, fill, () => {
    // Again: more may have been read meanwhile.
    refuseInput(file, target);
    if (force) fs.renameSync(sibling, file);
    else takeFreeName(sibling, file);
    syncFolder(folder);
  });
  noteOutput(target);
}

/**
 * Writes a temporary file, brings it to the disk and gives it its name. It never outlives the process.
 * @param temporary Its path, which must be free.
 * @param target What the user asked to have written; named in messages.
 * @param mode The permissions to give it, when they are not the usual ones.
 */
export async function writeThrough(
  temporary: string,
  target: string,
  mode: number | undefined,
  fill: (sink: ByteSink) => Promise<void>,
  takeName: () => void,
): Promise<void> {
  temporaryFiles.add(temporary);
  try {
    // At once: a file that is made while the process ends comes after what removes it.
    await explained(target, async () => fs.closeSync(fs.openSync(temporary, 'wx')));
    const handle = await explained(target, () => open(temporary, 'r+'));
    await writeContent(handle, target, fill, async () => {
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.sync();
    });
    await explained(target, takeName);
  } finally {
    removeQuietly(temporary);
    temporaryFiles.delete(temporary);
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
  if (existing.isDirectory()) throw isFolder(target);
  refuseInput(target);
  if (existing.isFile() && !force) throw alreadyExists(target);
  return {
    file: fs.realpathSync.native(target),
    mode: existing.mode,
    isStream: !existing.isFile(),
  };
}

export const isFolder = (target: string) =>
  new UserError('usage', `${target} is a folder`, { suggestion: 'name a file in it' });
