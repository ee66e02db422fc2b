/** Source texts of values, and the positions of values in them. */
import { LineCounter } from 'yaml';
import { type PropertyPath, UserError } from '../base/errors.js';
import { setting } from '../base/text/setting.js';
import { escapeText } from './quote.js';

/** A position for display; an override has no line. */
export interface Location {
  readonly file: string;
  /** 1-based. */
  readonly line?: number;
  /** 1-based, in characters (code points). */
  readonly column?: number;
  /** Input line, safe to print and cut around the column. */
  readonly excerpt?: string;
}

/** A source of values: text, or data without text. */
export interface Source {
  readonly file: string;
  /** Orders problems of several sources: the document is 0, its overrides 1, 2, … */
  readonly rank: number;
  /** Location of the UTF-16 offset `offset` in the text. */
  at(offset: number): Location;
}

/** A position in a source. Cheap to keep by the hundred thousand; `source.at(offset)` is not. */
export interface SourcePosition {
  readonly source: Source;
  readonly offset: number;
}

/** Text of a document. All line breaks of `text` are `\n`. */
export class TextSource implements Source {
  readonly file: string;
  readonly rank = 0;
  readonly text: string;
  /** The text with its own line breaks. */
  readonly original: string;
  /** Lines of the file where `text` is a translation of it. */
  readonly #written: readonly string[] | undefined;
  /** Filled here because the parser misses line breaks in invalid documents. */
  readonly #lines = new LineCounter();

  /** @param written Text of the file, with the same lines, where `original` is a translation of it. */
  constructor(file: string, original: string, written?: string) {
    const text = original.replace(/\r\n?/g, '\n');
    this.file = file;
    this.original = original;
    this.text = text;
    this.#written = written?.split(/\r\n?|\n/);
    this.#lines.addNewLine(0);
    for (let i = text.indexOf('\n'); i !== -1; i = text.indexOf('\n', i + 1)) {
      this.#lines.addNewLine(i + 1);
    }
  }

  at(offset: number): Location {
    // An error "at the end" points after the last visible character.
    const end = this.#written ? this.text.length : this.text.trimEnd().length;
    if (end === 0) return { file: this.file, line: 1 };
    const { line, col } = this.#lines.linePos(Math.max(0, Math.min(offset, end)));
    const [start, next] = this.#lines.lineStarts.slice(line - 1, line + 1);
    const text = this.text.slice(start, next === undefined ? undefined : next - 1);
    const written = this.#written?.[line - 1];
    // A column of the translation is not one of the file.
    if (written !== undefined && written !== text) {
      return { file: this.file, line, excerpt: excerptOf(written, 0) };
    }
    const column = [...text.slice(0, col - 1)].length + 1;
    return { file: this.file, line, column, excerpt: excerptOf(text, col - 1) };
  }
}

/** Text of one `--set`; `rank` is 1 for the first on a command line. */
export const overrideSource = (text: string, rank: number): Source => ({
  file: setting('set'),
  rank,
  at: () => ({ file: setting('set'), excerpt: excerptOf(text, 0) }),
});

export const dataSource = (file: string): Source => ({
  file,
  rank: 0,
  at: () => ({ file }),
});

const EXCERPT_CHARACTERS = 100;

/** `line` made safe to print, cut to about 100 characters around the UTF-16 offset `offset`. */
function excerptOf(line: string, offset: number): string {
  if (line.length <= EXCERPT_CHARACTERS) return escapeText(line);
  const wanted = Math.min(offset - EXCERPT_CHARACTERS / 2, line.length - EXCERPT_CHARACTERS);
  const start = Math.max(0, wanted);
  const end = start + EXCERPT_CHARACTERS;
  const before = start > 0 ? '…' : '';
  const after = end < line.length ? '…' : '';
  // Removes halves of surrogate pairs at the cuts.
  const cut = line.slice(start, end).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '');
  return before + escapeText(cut) + after;
}

/**
 * State of a value with a reported mistake: `wrong` values get no further messages, `incomplete` mappings lack a
 * misspelled key.
 */
type Flaw = 'wrong' | 'incomplete';

/** A value with its position and those of all its parts. Aliases share their value. */
export interface LocatedValue {
  readonly value: unknown;
  readonly place: SourcePosition;
  /** Position of its key in a mapping. */
  readonly key?: SourcePosition;
  readonly flaw?: Flaw;
  /** Values in a mapping or list, by key or index. */
  readonly parts?: ReadonlyMap<string, LocatedValue>;
}

/** Value at `path`, or the innermost existing one above it. */
export function follow(
  root: LocatedValue,
  path: PropertyPath,
): { readonly at: LocatedValue; readonly isWhole: boolean } {
  let at = root;
  for (const segment of path) {
    const next = at.parts?.get(String(segment));
    if (next === undefined) return { at, isWhole: false };
    at = next;
  }
  return { at, isWhole: true };
}

/** Whether a mistake is reported at `path`, or is the reason for a missing value. */
export function isWrong(root: LocatedValue, path: PropertyPath): boolean {
  const { at, isWhole } = follow(root, path);
  return isWhole ? at.flaw === 'wrong' : at.flaw !== undefined;
}

/** Whether a reported mistake makes the value at `path`, or its absence, uncertain. */
export function isUncertain(root: LocatedValue, [segment, ...rest]: PropertyPath): boolean {
  if (root.flaw === 'wrong') return true;
  if (segment === undefined) return holdsFlaw(root);
  const next = root.parts?.get(String(segment));
  return next === undefined ? root.flaw !== undefined : isUncertain(next, rest);
}

const holdsFlaw = ({ flaw, parts = new Map() }: LocatedValue): boolean =>
  flaw !== undefined || [...parts.values()].some(holdsFlaw);

/** Maximum document size in bytes. A typical config has a few thousand. */
export const MAX_DOCUMENT_BYTES = 1_000_000;

/** Error for a document larger than `MAX_DOCUMENT_BYTES`. */
export function tooLarge(file: string): UserError {
  return refuse(
    file,
    'is larger than 1 MB, the most that is read as a config',
    'give a config: a short YAML or JSON file',
  );
}

/**
 * Decodes a document: UTF-8, or UTF-16 with a byte order mark, which is removed.
 *
 * @throws UserError `refused-file` for too many bytes, or bytes that are not text.
 */
export function decodeText(bytes: Uint8Array | string, file: string): string {
  const size = typeof bytes === 'string' ? new TextEncoder().encode(bytes).length : bytes.length;
  if (size > MAX_DOCUMENT_BYTES) throw tooLarge(file);
  const raw = typeof bytes === 'string' ? bytes : decodeBytes(bytes, file);
  const text = raw.replace(/^\uFEFF/, '');
  if (text.includes('\0')) throw notText(file);
  return text;
}

function decodeBytes(bytes: Uint8Array, file: string): string {
  const [first, second] = bytes;
  const isMarked = (a: number, b: number) => first === a && second === b;
  const encoding = isMarked(0xff, 0xfe) ? 'utf-16le' : isMarked(0xfe, 0xff) ? 'utf-16be' : 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    if (encoding !== 'utf-8') {
      throw refuse(file, 'begins as UTF-16 text, but is not', 'save the file as UTF-8');
    }
    if (bytes.includes(0)) throw notText(file);
    // Bytes that are not UTF-8 became U+FFFD, so re-encoding changes them.
    const again = new TextEncoder().encode(
      new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes),
    );
    const offset = bytes.findIndex((byte, i) => byte !== again[i]);
    const line = bytes.subarray(0, offset).filter((byte) => byte === 0x0a).length + 1;
    throw refuse(
      file,
      `is not UTF-8 text: byte ${offset}, on line ${line}, is wrong`,
      'save the file as UTF-8',
    );
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
