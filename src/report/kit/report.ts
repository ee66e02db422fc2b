/**
 * A report: what a command has to say, apart from how it looks. Commands build one; `render.ts` turns
 * it into a table, CSV or Markdown. JSON does not come from here but from the result object itself.
 */
import stringWidth from 'string-width';

/** The ways of printing an answer. JSON prints the result object, the others the report made of it. */
export const FORMATS = ['table', 'json', 'csv', 'markdown'] as const;

export type Format = (typeof FORMATS)[number];

/** How a piece of text should strike the eye; a colour on a terminal, nothing elsewhere. */
export type Tone = 'plain' | 'dim' | 'strong' | 'good' | 'bad' | 'warning' | Hue;

/** Tells lines of a plot apart, and means nothing else. */
export type Hue = 'hue1' | 'hue2' | 'hue3' | 'hue4' | 'hue5';

/** One cell: the text that people read and the exact value that programs read (CSV). */
export interface Cell {
  readonly text: string;
  /** Defaults to the text. */
  readonly value?: string | number | boolean | undefined;
  readonly tone?: Tone;
}

export interface Column {
  /** Header for people. */
  readonly title: string;
  /** Header in CSV, with the unit in it: `srte_parameters`. */
  readonly key: string;
  readonly align?: 'left' | 'right';
  /** Text that may be wrapped when the terminal is narrow. Numbers never are. */
  readonly wrap?: boolean;
}

export interface TableBlock {
  readonly kind: 'table';
  readonly columns: readonly Column[];
  /** Each row has a cell for each column. */
  readonly rows: readonly (readonly Cell[])[];
  /** What is shown in its place on a terminal that is too narrow for it. */
  readonly narrower?: TableBlock | undefined;
}

export interface TextBlock {
  readonly kind: 'heading' | 'note';
  readonly text: string;
  readonly tone?: Tone;
}

export interface Series {
  /** The character that stands for it. */
  readonly mark: string;
  readonly label: string;
  readonly tone: Tone;
  /** Above zero; the first stands at the left. */
  readonly values: readonly number[];
  /** Whether its mark is seen where others have theirs too. */
  readonly isOnTop?: boolean;
}

/** A value over the whole width of a plot. */
export interface Level {
  /** The character that it is drawn with. */
  readonly mark: string;
  readonly label: string;
  readonly value: number;
}

/** Values on a logarithmic scale, side by side. CSV has none. */
export interface PlotBlock {
  readonly kind: 'plot';
  /** What the values are, and what they stand over. */
  readonly title: string;
  /** The number of the first value; 0 when nothing is said. */
  readonly first?: number;
  readonly series: readonly Series[];
  readonly levels: readonly Level[];
  /** How high it may be, without title, axis and legend; as high as it likes when nothing is said. */
  readonly mostRows?: number;
}

export type Block = TableBlock | TextBlock | PlotBlock;

export interface Report {
  readonly blocks: readonly Block[];
}

export interface RenderOptions {
  /** Columns of the terminal; `Number.POSITIVE_INFINITY` when there is none. */
  readonly width: number;
  /** chalk's colour level: 0 none, 1 basic, 2 256 colours, 3 millions. */
  readonly colourLevel: 0 | 1 | 2 | 3;
}

// Text measured and laid out in terminal columns. All of it is `printable` text, without colours.

/** Below this, lines stay as long: nobody reads at ten columns, and some terminals claim to have none. */
const NARROWEST = 20;

/** The columns to lay out for. A terminal that says 0 does not know its width. */
export function usableWidth(width: number): number {
  return width > 0 ? Math.max(NARROWEST, width) : Number.POSITIVE_INFINITY;
}

/**
 * Text of which each code unit is one character of one column: ASCII, and the signs, lines and blocks
 * that reports are drawn with. Nearly all text is; the rest needs tables that take milliseconds to load.
 */
const SIMPLE = /^[ -~×·–—−…→●\u2500-\u259f]*$/;

/** Columns that `text` takes on a terminal. */
export function textWidth(text: string): number {
  return SIMPLE.test(text) ? text.length : stringWidth(text);
}

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for characters: never to be torn apart. */
export function graphemes(text: string): string[] {
  if (SIMPLE.test(text)) return text.split('');
  segmenter ??= new Intl.Segmenter('en');
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** `text` cut off at `width` columns. */
export function clip(text: string, width: number): string {
  return splitAt(graphemes(text), width)[0];
}

/**
 * `text` in lines of at most `width` columns, broken between words; a word is broken only when it is
 * longer than a line. Lines after the first begin with `hanging`, by default with as many spaces as the
 * text does. No line ends in a space. A word is broken behind a dot, slash, underscore or hyphen when that
 * leaves half a line or more.
 */
export function wrap(text: string, width: number, hanging?: string): string[] {
  const whole = text.trimEnd();
  if (width === Number.POSITIVE_INFINITY || textWidth(whole) <= width) return [whole];
  const leading = ' '.repeat(whole.length - whole.trimStart().length);
  const [first, later] = [leading, hanging ?? leading].map((indent) =>
    indent.length * 2 <= width ? indent : '',
  ) as [string, string];

  const lines: string[] = [];
  let line: string | undefined;
  for (const [, gap = '', word = ''] of whole.trimStart().matchAll(/( *)([^ ]+)/g)) {
    const joined = line === undefined ? first + word : line + gap + word;
    if (textWidth(joined) <= width) {
      line = joined;
      continue;
    }
    if (line !== undefined) lines.push(line);
    let rest = graphemes(word);
    for (;;) {
      const indent = lines.length === 0 ? first : later;
      const [head, tail] = splitWord(rest, width - indent.length);
      line = indent + head;
      if (tail.length === 0) break;
      lines.push(line);
      rest = tail;
    }
  }
  if (line !== undefined) lines.push(line);
  return lines.map((each) => each.trimEnd());
}

const JOINTS: ReadonlySet<string> = new Set(['.', '/', '_', '-']);

/** `splitAt` for a word: names of tensors and files have joints, at which they are still read easily. */
function splitWord(characters: readonly string[], width: number): [string, string[]] {
  const [head, tail] = splitAt(characters, width);
  if (tail.length === 0) return [head, tail];
  const fitting = characters.length - tail.length;
  const joint = characters.slice(0, fitting).findLastIndex((character) => JOINTS.has(character));
  if (joint + 1 < fitting / 2) return [head, tail];
  return [characters.slice(0, joint + 1).join(''), characters.slice(joint + 1)];
}

/** As many characters as fit, at least one, and the rest. */
function splitAt(characters: readonly string[], width: number): [string, string[]] {
  let used = 0;
  let count = 0;
  for (const character of characters) {
    used += textWidth(character);
    if (used > width && count > 0) break;
    count++;
  }
  return [characters.slice(0, count).join(''), characters.slice(count)];
}
