/** Lines of files of any size, in bounded memory. */
import type { StoredText } from './files/source.js';

/** Maximum bytes of a line. The tokenizer takes about 50 bytes of memory per character. */
export const MOST_LINE_BYTES = 8_000_000;

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

/** Maximum lines of a batch: a million empty ones can arrive together. What larger batches hold outlives a young generation. */
const MOST_LINES = 4_000;

const [LF, CR] = [0x0a, 0x0d];
const NOTHING = Buffer.alloc(0);
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Lines of a source, in batches of those that arrive together, at most `MOST_LINES`. A last line without a line break
 * counts; an empty one does not.
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
    if (held.length > 0) held = [];
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
    let lines: Line[] = [];
    let from = 0;
    for (let at = lineEnd(chunk, 0); at >= 0; at = lineEnd(chunk, from)) {
      lines.push(end(at === from ? NOTHING : chunk.subarray(from, at)));
      from = at + 1;
      if (lines.length < MOST_LINES) continue;
      yield lines;
      lines = [];
    }
    const rest = chunk.subarray(from);
    heldBytes += rest.length;
    // The bytes of a line that is too long are not kept.
    if (heldBytes > MOST_LINE_BYTES) held = [];
    else if (rest.length > 0) held.push(rest);
    if (lines.length > 0) yield lines;
  }
  if (heldBytes > 0) yield [end(NOTHING)];
}

/** The first line break from a place on; a search in native code would take longer for the many of an empty text. */
const lineEnd = (chunk: Buffer, from: number): number =>
  chunk[from] === LF ? from : chunk.indexOf(LF, from);

const hasContent = ({ bytes }: Line): boolean =>
  bytes === undefined || (bytes.length > 0 && bytes.toString().trim() !== '');

/** The first lines with content, all lines from them on, and the number of blank ones before: there can be millions. */
export async function firstLines(batches: AsyncGenerator<Line[]>): Promise<{
  readonly blank: number;
  readonly lines: readonly Line[];
  readonly all: AsyncGenerator<readonly Line[]>;
}> {
  let blank = 0;
  let lines: readonly Line[] = [];
  for (;;) {
    const next = await batches.next();
    if (next.done) break;
    if (next.value.some(hasContent)) {
      lines = next.value;
      break;
    }
    blank += next.value.length;
  }
  const all = (async function* () {
    yield lines;
    yield* batches;
  })();
  return { blank, lines, all };
}
