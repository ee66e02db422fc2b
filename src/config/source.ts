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
