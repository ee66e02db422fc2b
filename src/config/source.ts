import type { PropertyPath } from '../errors.js';
import { UserError } from '../errors.js';
import { escapeText } from './quote.js';

/** Where something stands, as far as it can be told: an override has no line. */
export interface Location {
  readonly file: string;
  /** 1-based. */
  readonly line?: number;
  /** 1-based, in characters (code points). */
  readonly column?: number;
  /** The line of input, made safe to print and cut around the column. */
  readonly excerpt?: string;
}

/** A text that values come from. */
export interface Source {
  readonly file: string;
  /** Orders problems of several sources: the document is 0, its overrides 1, 2, … */
  readonly rank: number;
  /** The line that the UTF-16 offset `offset` is on, from 0 on. Cheap. */
  lineAt(offset: number): number;
  /** Where the UTF-16 offset `offset` of the text stands. */
  at(offset: number): Location;
}

/** One spot of a source. Cheap to keep by the hundred thousand; `source.at(offset)` is not. */
export interface Place {
  readonly source: Source;
  readonly offset: number;
}

const EXCERPT_CHARACTERS = 100;

/** The text of a document. Its line breaks are all `\n`. */
export class TextSource implements Source {
  readonly file: string;
  readonly rank = 0;
  readonly text: string;
  #lineStarts: number[] | undefined;

  constructor(file: string, text: string) {
    this.file = file;
    this.text = text;
  }

  at(offset: number): Location {
    // An error "at the end" points behind the last character that is there to be seen.
    const end = this.text.trimEnd().length;
    // Where nothing stands there is nothing to show.
    if (end === 0) return { file: this.file, line: 1 };
    const spot = Math.max(0, Math.min(offset, end));
    const line = this.lineAt(spot);
    const start = this.#starts()[line] ?? 0;
    const newline = this.text.indexOf('\n', start);
    const text = this.text.slice(start, newline === -1 ? undefined : newline);
    const column = countCharacters(text.slice(0, spot - start)) + 1;
    return { file: this.file, line: line + 1, column, excerpt: excerptOf(text, spot - start) };
  }

  lineAt(offset: number): number {
    return lastAtOrBelow(this.#starts(), offset);
  }

  #starts(): number[] {
    if (this.#lineStarts === undefined) {
      this.#lineStarts = [0];
      for (let i = this.text.indexOf('\n'); i !== -1; i = this.text.indexOf('\n', i + 1)) {
        this.#lineStarts.push(i + 1);
      }
    }
    return this.#lineStarts;
  }
}

/** The text of one `--set`. */
export class OverrideSource implements Source {
  readonly file = '--set';
  readonly rank: number;
  readonly #text: string;

  /** `rank` is 1 for the first `--set` of a command line. */
  constructor(text: string, rank: number) {
    this.#text = text;
    this.rank = rank;
  }

  lineAt(): number {
    return 0;
  }

  at(): Location {
    return { file: this.file, excerpt: excerptOf(this.#text, 0) };
  }
}

/** Values that were never text. */
export class DataSource implements Source {
  readonly file: string;
  readonly rank = 0;

  constructor(file: string) {
    this.file = file;
  }

  lineAt(): number {
    return 0;
  }

  at(): Location {
    return { file: this.file };
  }
}

/** `line` safe to print, cut to about a hundred characters around the UTF-16 offset `offset`. */
function excerptOf(line: string, offset: number): string {
  if (line.length <= EXCERPT_CHARACTERS) return escapeText(line);
  const wanted = Math.min(offset - EXCERPT_CHARACTERS / 2, line.length - EXCERPT_CHARACTERS);
  const start = wholeCharacter(line, Math.max(0, wanted));
  const end = wholeCharacter(line, start + EXCERPT_CHARACTERS);
  const before = start > 0 ? '…' : '';
  const after = end < line.length ? '…' : '';
  return before + escapeText(line.slice(start, end)) + after;
}

/** `offset`, or the one after it when `offset` would cut a surrogate pair. */
function wholeCharacter(text: string, offset: number): number {
  const low = text.charCodeAt(offset);
  const high = text.charCodeAt(offset - 1);
  const cuts = low >= 0xdc00 && low <= 0xdfff && high >= 0xd800 && high <= 0xdbff;
  return cuts ? offset + 1 : offset;
}

function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** The index of the last number in the ascending `numbers` that is not above `limit`. */
function lastAtOrBelow(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((numbers[middle] ?? Number.POSITIVE_INFINITY) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * What was found wrong about a value while it was read: it is `wrong` as a whole, so that nothing more
 * is to be said about it; or it is an `incomplete` mapping, which lacks what was written badly.
 */
export type Flaw = 'wrong' | 'incomplete';

/** Where a value stands, and all that is in it. Parallel to the value; shared where that is shared. */
export interface Mark {
  readonly place: Place;
  /** Only where a problem tells of it already. */
  readonly flaw?: Flaw;
  /** Of a mapping. */
  readonly entries?: ReadonlyMap<string, Entry>;
  /** Of a list. */
  readonly items?: readonly Entry[];
}

/** What a mapping or a list holds at one key. */
export interface Entry {
  /** Where the key stands; an item of a list has none. */
  readonly key?: Place;
  readonly mark: Mark;
}

/** The entry of `mark` at a key, or at an index given as a number or as text. */
function entryOf(mark: Mark, segment: string | number): Entry | undefined {
  if (mark.items !== undefined) return mark.items[Number(segment)];
  return mark.entries?.get(String(segment));
}

/** The entry at `path`, and how far the document reaches on the way there. */
export function follow(
  root: Mark,
  path: PropertyPath,
): { readonly entry: Entry; readonly isWhole: boolean } {
  let entry: Entry = { mark: root };
  for (const segment of path) {
    const next = entryOf(entry.mark, segment);
    if (next === undefined) return { entry, isWhole: false };
    entry = next;
  }
  return { entry, isWhole: true };
}

/** Whether a mistake that was told already makes the value at `path`, or that it is not there, unsure. */
export function isDoubtful(root: Mark, path: PropertyPath): boolean {
  let mark = root;
  for (const segment of path) {
    if (mark.flaw === 'wrong') return true;
    const next = entryOf(mark, segment);
    if (next === undefined) return mark.flaw !== undefined;
    mark = next.mark;
  }
  return holdsFlaw(mark);
}

function holdsFlaw({ flaw, entries, items = [] }: Mark): boolean {
  if (flaw !== undefined) return true;
  return [...(entries?.values() ?? []), ...items].some(({ mark }) => holdsFlaw(mark));
}

/** The largest document that is read, in bytes. A config has a few thousand. */
export const MAX_DOCUMENT_BYTES = 1_000_000;

/** The refusal of a document that is longer than `MAX_DOCUMENT_BYTES`. */
export function tooLarge(file: string): UserError {
  return refuse(
    file,
    'is larger than 1 MB, the most that is read as a config',
    'give a config: a short YAML or JSON file',
  );
}

/**
 * The text of a document: UTF-8, or UTF-16 with a byte order mark, with every line break as `\n` and
 * without the mark.
 *
 * @throws UserError `refused-file` when the bytes are too many or are not text.
 */
export function decode(bytes: Uint8Array | string, file: string): string {
  const size = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.byteLength;
  if (size > MAX_DOCUMENT_BYTES) throw tooLarge(file);
  const raw = typeof bytes === 'string' ? bytes : decodeBytes(Buffer.from(bytes), file);
  const text = (raw.startsWith('\uFEFF') ? raw.slice(1) : raw).replace(/\r\n?/g, '\n');
  if (text.includes('\0')) throw notText(file);
  return text;
}

function decodeBytes(bytes: Buffer, file: string): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decodeUtf16(bytes, file);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) {
    const even = bytes.length % 2 === 0 ? bytes : Buffer.concat([bytes, Buffer.from([0])]);
    return decodeUtf16(Buffer.from(even).swap16().subarray(0, bytes.length), file);
  }
  if (bytes.includes(0)) throw notText(file);
  const text = bytes.toString('utf8');
  const again = Buffer.from(text, 'utf8');
  if (again.equals(bytes)) return text;
  // What is not UTF-8 became U+FFFD, and so does not come back as it was.
  const offset = bytes.findIndex((byte, i) => byte !== again[i]);
  const line = bytes.subarray(0, offset).filter((byte) => byte === 0x0a).length + 1;
  throw refuse(
    file,
    `is not UTF-8 text: byte ${offset}, on line ${line}, is wrong`,
    'save the file as UTF-8',
  );
}

function decodeUtf16(littleEndian: Buffer, file: string): string {
  try {
    return new TextDecoder('utf-16le', { fatal: true }).decode(littleEndian);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw refuse(file, 'begins as UTF-16 text, but is not', 'save the file as UTF-8');
  }
}

function notText(file: string): UserError {
  return refuse(
    file,
    'is not a text file: it contains NUL bytes',
    'give a YAML or JSON file, saved as UTF-8',
  );
}

function refuse(file: string, what: string, suggestion: string): UserError {
  return new UserError('refused-file', `${escapeText(file)} ${what}`, { suggestion });
}
