/** Ranges of remote files, fetched ahead of a reader that goes through a file in order. */
import type { FetchedRange, HubFile } from './hub-client.js';

/** Bytes of one request. */
const PIECE_BYTES = 4 * 2 ** 20;

/** Most bytes that are requested before they are read. */
const MOST_AHEAD = 4 * PIECE_BYTES;

/** Most pieces that are kept, which a reader that comes back finds. */
const MOST_PIECES = 12;

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
    const isOnward = known?.next === position;
    const stream: Stream = { pieces: known?.pieces ?? [], run: isOnward ? known.run : 0, next: 0 };
    this.#streams.set(key, stream);
    const end = position + length;
    const ahead = Math.min(stream.run, MOST_AHEAD);
    const needed: Piece[] = [];
    for (let at = position; at < Math.min(size, end + ahead); ) {
      // A piece can be here from before a jump.
      let piece = stream.pieces.find((each) => each.position <= at && at < each.end);
      if (piece === undefined) {
        const wanted = ahead > 0 ? PIECE_BYTES : Math.min(PIECE_BYTES, end - at);
        piece = this.#piece(file, at, Math.min(wanted, size - at));
        stream.pieces.push(piece);
      }
      if (at < end) needed.push(piece);
      at = piece.end;
    }
    stream.next = end;
    stream.run += length;
    stream.pieces = stream.pieces
      .filter((piece) => piece.end !== end && !(piece.position >= position && piece.end < end))
      .slice(-MOST_PIECES);
    try {
      const parts: Buffer[] = [];
      let at = position;
      for (const piece of needed) {
        const bytes = await piece.bytes;
        parts.push(bytes.subarray(at - piece.position, end - piece.position));
        at = piece.end;
      }
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
