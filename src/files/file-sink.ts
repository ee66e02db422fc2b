/** Bytes into an open file. */

import type { FileHandle } from 'node:fs/promises';
import { explained } from './refusals.js';

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
export async function writeContent(
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
