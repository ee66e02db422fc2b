/** Lines of files of any size, in bounded memory. */
import fs from 'node:fs';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { UserError } from '../../base/errors.js';
import { noteStandardInput } from '../../base/files/input-registry.js';
import { fileChunks } from '../../base/files/read-file.js';
import { formatInteger } from '../../base/text/units.js';

/** Maximum bytes of a line. The tokenizer takes about 50 bytes of memory per character. */
export const MOST_LINE_BYTES = 8_000_000;

/**
 * Maximum ratio of unpacked to packed bytes of gzip data, beyond the first ones. Texts have 3 to 20, and gzip at most
 * 1032.
 */
export const GZIP_BOUNDS = { ratio: 100, first: 100_000_000 } as const;

export interface Line {
  /** 1-based. */
  readonly number: number;
  /** Without its line break; undefined for a line that is too long. */
  readonly bytes: Buffer | undefined;
  /** Bytes of the line, also of one that is too long. */
  readonly length: number;
}

/** A line of one of the files. */
export interface Place {
  /** Path of the file. */
  readonly file: string;
  /** 1-based; for a stream of ids, the number of the window. @integer */
  readonly line: number;
}

/** How a file is stored, as far as it has been read. */
export interface StoredText {
  isGzip: boolean;
  hasByteOrderMark: boolean;
  /** Lines that end in CR LF. */
  crlfLines: number;
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

/** Name of a source in messages. */
export const nameOfSource = (file: string): string => (file === '-' ? '<stdin>' : file);

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
 * Opens a file for one pass, and unpacks gzip regardless of its name.
 * @param onBytes Called with the number of bytes that were read from disk.
 */
export function openSource(file: string, onBytes: (more: number) => void): DataSource {
  const stored = { isGzip: false, hasByteOrderMark: false, crlfLines: 0, bytes: 0 };
  const name = nameOfSource(file);
  return { name, stored, chunks: unpacked(name, countedLines(rawChunks(file), onBytes), stored) };
}

async function* rawChunks(file: string): AsyncGenerator<Uint8Array> {
  if (file !== '-') {
    yield* fileChunks(file);
    return;
  }
  noteStandardInput();
  for await (const chunk of process.stdin) yield Buffer.from(chunk);
}

async function* countedLines(
  chunks: AsyncIterable<Uint8Array>,
  onBytes: (more: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    onBytes(chunk.length);
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  }
}

async function* unpacked(
  name: string,
  chunks: AsyncGenerator<Buffer>,
  stored: StoredText,
): AsyncGenerator<Buffer> {
  const first = await chunks.next();
  if (first.done) return;
  const all = (async function* () {
    try {
      yield first.value;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  })();
  stored.isGzip = first.value[0] === 0x1f && first.value[1] === 0x8b;
  for await (const chunk of stored.isGzip ? gunzipped(name, all) : all) {
    stored.bytes += chunk.length;
    yield chunk;
  }
}

async function* gunzipped(name: string, packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const output = new PassThrough();
  const unzip = createGunzip();
  const done = pipeline(Readable.from(packed), unzip, output);
  done.catch(() => {});
  let unpackedBytes = 0;
  try {
    for await (const chunk of output) {
      unpackedBytes += chunk.length;
      const most = Math.max(GZIP_BOUNDS.first, GZIP_BOUNDS.ratio * unzip.bytesWritten);
      if (unpackedBytes > most) throw unpacksTooMuch(name, unzip.bytesWritten, unpackedBytes);
      yield chunk;
    }
    await done;
  } catch (cause) {
    if (cause instanceof UserError) throw cause;
    throw new UserError('refused-file', `${name}: the gzip data is broken or cut short`, {
      cause,
      suggestion: 'copy the file again, or give the unpacked one',
    });
  }
}

function unpacksTooMuch(name: string, packed: number, unpacked: number): UserError {
  const [from, to] = [packed, unpacked].map((bytes) => formatInteger(Math.floor(bytes)));
  return new UserError(
    'refused-file',
    `${name}: its first ${from} bytes of gzip data unpack to ${to}, more than ${GZIP_BOUNDS.ratio} times as many`,
    { suggestion: 'check where the file comes from; if it is right, give the unpacked one' },
  );
}

const [LF, CR] = [0x0a, 0x0d];
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Lines of a source, in batches of those that arrive together. A last line without a line break counts; an empty one
 * does not.
 */
export async function* readLines({
  chunks,
  stored,
}: {
  readonly chunks: AsyncIterable<Buffer>;
  readonly stored: StoredText;
}): AsyncGenerator<Line[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = 0;
  const end = (last: Buffer): Line => {
    const length = heldBytes + last.length;
    const isTooLong = length > MOST_LINE_BYTES;
    let bytes = isTooLong ? undefined : held.length === 0 ? last : Buffer.concat([...held, last]);
    held = [];
    heldBytes = 0;
    number++;
    if (bytes === undefined) return { number, bytes, length };
    if (number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
      stored.hasByteOrderMark = true;
      bytes = bytes.subarray(3);
    }
    if (bytes.at(-1) === CR) {
      stored.crlfLines++;
      bytes = bytes.subarray(0, -1);
    }
    return { number, bytes, length };
  };
  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      lines.push(end(chunk.subarray(from, at)));
      from = at + 1;
    }
    const rest = chunk.subarray(from);
    heldBytes += rest.length;
    // The bytes of a line that is too long are not kept.
    if (heldBytes > MOST_LINE_BYTES) held = [];
    else if (rest.length > 0) held.push(rest);
    if (lines.length > 0) yield lines;
  }
  if (heldBytes > 0) yield [end(Buffer.alloc(0))];
}

/** The first piece of bytes, and all pieces. */
export async function peeked(
  chunks: AsyncIterable<Buffer>,
): Promise<{ readonly head: Buffer; readonly chunks: AsyncIterable<Buffer> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  const head = first.done ? Buffer.alloc(0) : first.value;
  const all = (async function* () {
    if (first.done) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
  return { head, chunks: all };
}

/** The first lines with content, and all lines. */
export async function firstLines(batches: AsyncGenerator<Line[]>): Promise<{
  readonly lines: readonly Line[];
  readonly all: AsyncGenerator<readonly Line[]>;
}> {
  const read: Line[][] = [];
  for (;;) {
    const next = await batches.next();
    if (next.done) break;
    read.push(next.value);
    if (next.value.some(({ bytes }) => bytes === undefined || bytes.toString().trim() !== ''))
      break;
  }
  const all = (async function* () {
    yield* read;
    yield* batches;
  })();
  return { lines: read.flat(), all };
}
