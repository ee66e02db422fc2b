/** Ranges of remote files, fetched ahead of a reader that goes through a file in order. */
import type { FetchedRange, HubFile } from './hub-client.js';

/** Bytes of one request. */
const PIECE_BYTES = 4 * 2 ** 20;

/** Most bytes that are requested before they are read. */
const MOST_AHEAD = 4 * PIECE_BYTES;

interface Piece {
  readonly position: number;
  readonly end: number;
  readonly bytes: Promise<Buffer>;
}

/** One reader's way through a file. */
interface Stream {
  pieces: Piece[];
  /** Position after the last byte that was read. */
  next: number;
  /** Position after the last byte that was requested. */
  requested: number;
  /** Bytes read in order. */
  run: number;
}

/** @throws as `HubClient.range`. */
type FetchRange = (file: HubFile, position: number, length: number) => Promise<FetchedRange>;

/**
 * Reads of remote files. A read that begins where the last one of its file ended is answered from pieces that were
 * requested in advance, as many as were read in order so far: a reader that jumps fetches nothing in vain.
 */
export class ReadAhead {
  readonly #fetch: FetchRange;
  readonly #streams = new Map<string, Stream>();

  constructor(fetch: FetchRange) {
    this.#fetch = fetch;
  }

  async read(file: HubFile, size: number, position: number, length: number): Promise<Buffer> {
    const key = `${file.repository}@${file.commit}/${file.name}`;
    const known = this.#streams.get(key);
    const stream =
      known?.next === position
        ? known
        : { pieces: [], next: position, requested: position, run: 0 };
    this.#streams.set(key, stream);
    const end = position + length;
    const ahead = Math.min(stream.run, MOST_AHEAD);
    while (stream.requested < Math.min(size, end + ahead)) {
      // What is read now comes whole; what may be read later, in full pieces.
      const isNow = stream.requested < end;
      const least = isNow ? Math.min(PIECE_BYTES, end - stream.requested) : PIECE_BYTES;
      const bytes = Math.min(ahead > 0 ? PIECE_BYTES : least, size - stream.requested);
      stream.pieces.push(this.#piece(file, stream.requested, bytes));
      stream.requested += bytes;
    }
    stream.next = end;
    stream.run += length;
    const pieces = stream.pieces.filter((piece) => piece.position < end && piece.end > position);
    stream.pieces = stream.pieces.filter((piece) => piece.end > end);
    try {
      const parts = await Promise.all(
        pieces.map(async (piece) =>
          (await piece.bytes).subarray(
            Math.max(0, position - piece.position),
            end - piece.position,
          ),
        ),
      );
      return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    } catch (error) {
      this.#streams.delete(key);
      throw error;
    }
  }

  #piece(file: HubFile, position: number, length: number): Piece {
    const bytes = this.#fetch(file, position, length).then((range) => range.bytes);
    // The error appears when the piece is read.
    bytes.catch(() => {});
    return { position, end: position + length, bytes };
  }
}
