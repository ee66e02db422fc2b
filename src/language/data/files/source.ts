/** Files of any size as pieces of unpacked bytes, in bounded memory. */
import fs from 'node:fs';
import { noteStandardInput } from '../../../base/files/input-registry.js';
import { fileChunks } from '../../../base/files/read-file.js';
import { nameOfSource, type Packing, packingOf } from './packing.js';

/** How a file is stored, as far as it has been read. */
export interface StoredText {
  /** Null for bytes that are not packed. */
  packing: Packing | null;
  hasByteOrderMark: boolean;
  /** Lines that end in CR LF. */
  crlfLines: number;
  /** Unpacked; of Parquet, as JSON lines. */
  bytes: number;
}

/** A file, a pipe or `-`, opened for one pass. */
export interface DataSource {
  /** As the user wrote it; `<stdin>` for `-`. */
  readonly name: string;
  readonly stored: StoredText;
  /** Unpacked bytes, in pieces. */
  readonly chunks: AsyncGenerator<Buffer>;
}

/** Bytes on disk; null for pipes. */
export function fileBytes(file: string): number | null {
  if (file === '-') return null;
  try {
    const status = fs.statSync(file);
    return status.isFile() ? status.size : null;
  } catch {
    // Reading the file reports the error.
    return null;
  }
}

/**
 * Opens a file for one pass. Unpacks gzip and Zstandard, and gives rows of Parquet as JSON lines, regardless of its name.
 * @param onBytes Called with the number of bytes that were read from disk.
 * @param key Column of Parquet with the text, if the user named one.
 */
export function openSource(
  file: string,
  onBytes: (more: number) => void,
  key?: string,
): DataSource {
  const stored = { packing: null, hasByteOrderMark: false, crlfLines: 0, bytes: 0 };
  return { name: nameOfSource(file), stored, chunks: unpacked(file, onBytes, stored, key) };
}

async function* rawChunks(file: string): AsyncGenerator<Uint8Array> {
  if (file !== '-') {
    yield* fileChunks(file);
    return;
  }
  noteStandardInput();
  for await (const chunk of process.stdin) yield Buffer.from(chunk);
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  onBytes: (more: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    onBytes(chunk.length);
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  }
}

async function* unpacked(
  file: string,
  onBytes: (more: number) => void,
  stored: StoredText,
  key: string | undefined,
): AsyncGenerator<Buffer> {
  const raw = rawChunks(file);
  const { head, chunks } = await peeked(raw);
  stored.packing = packingOf(head);
  for await (const chunk of await opened()) {
    stored.bytes += chunk.length;
    yield chunk;
  }

  async function opened(): Promise<AsyncIterable<Buffer>> {
    const name = nameOfSource(file);
    switch (stored.packing) {
      case null:
        return counted(chunks, onBytes);
      case 'gzip':
        return (await import('./unpack.js')).gunzipped(name, counted(chunks, onBytes));
      case 'zstd':
        return (await import('./unpack.js')).unzstd(name, counted(chunks, onBytes));
      case 'parquet':
        // Parquet is read from its end, so the process opens the file again.
        await raw.return(undefined);
        return (await import('./parquet-rows.js')).parquetLines(file, onBytes, key);
    }
  }
}

/** The first piece of bytes, and all pieces. */
export async function peeked<Chunk extends Uint8Array>(
  chunks: AsyncGenerator<Chunk>,
): Promise<{ readonly head: Uint8Array; readonly chunks: AsyncGenerator<Chunk> }> {
  const first = await chunks.next();
  const all = (async function* () {
    try {
      if (first.done) return;
      yield first.value;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  })();
  return { head: first.done ? new Uint8Array() : first.value, chunks: all };
}
