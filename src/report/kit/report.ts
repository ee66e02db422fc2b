/**
 * A report: the content of a command's output without its format. Commands build one; `render.ts` turns it into a
 * table, CSV or Markdown. JSON is made from the result object itself.
 */
import stringWidth from 'string-width';

/** Output formats. JSON prints the result object, the others the report. */
export const FORMATS = ['table', 'json', 'csv', 'markdown'] as const;

export type Format = (typeof FORMATS)[number];

/** Style of a text; a colour on a terminal, no effect elsewhere. */
export type Tone = 'plain' | 'dim' | 'strong' | 'good' | 'bad' | 'warning' | Hue;

/** Colour that distinguishes lines of a plot. */
export type Hue = 'hue1' | 'hue2' | 'hue3' | 'hue4' | 'hue5';

/** A cell: text for people and exact value for programs (CSV). */
export interface Cell {
  readonly text: string;
  /** Defaults to the text. */
  readonly value?: string | number | boolean | undefined;
  readonly tone?: Tone;
}

export interface Column {
  /** Header for people. */
  readonly title: string;
  /** Header in CSV, with the unit: `srte_parameters`. */
  readonly key: string;
  readonly align?: 'left' | 'right';
  /** Whether text may be wrapped on a narrow terminal. Numbers are never wrapped. */
  readonly wrap?: boolean;
  /** Whether text is cut in the middle on a narrow terminal: for names, which differ at their ends. */
  readonly cut?: boolean;
}

export interface TableBlock {
  readonly kind: 'table';
  readonly columns: readonly Column[];
  /** Each row has a cell for each column. */
  readonly rows: readonly (readonly Cell[])[];
  /** Replacement on a terminal that is too narrow. */
  readonly narrower?: TableBlock | undefined;
}

export interface TextBlock {
  readonly kind: 'heading' | 'note';
  readonly text: string;
  readonly tone?: Tone;
}

export interface Series {
  /** Character of the series. */
  readonly mark: string;
  readonly label: string;
  readonly tone: Tone;
  /** Positive values from left to right. */
  readonly values: readonly number[];
  /** Whether its mark is drawn over other marks. */
  readonly isOnTop?: boolean;
}

/** A horizontal line across a plot. */
export interface Level {
  /** Character of the line. */
  readonly mark: string;
  readonly label: string;
  readonly value: number;
}

/** Values on a logarithmic scale, side by side. Omitted in CSV. */
export interface PlotBlock {
  readonly kind: 'plot';
  /** Quantities of both axes. */
  readonly title: string;
  /** Number of the first value; default 0. */
  readonly first?: number;
  readonly series: readonly Series[];
  readonly levels: readonly Level[];
  /** Maximum height without title, axis and legend; unlimited by default. */
  readonly mostRows?: number;
}

/** An axis of a line plot. */
export interface Axis {
  /** Default: linear. A logarithmic axis shows positive values only. */
  readonly scale?: 'linear' | 'log';
  /** Value that the axis includes in any case, as 0. */
  readonly from?: number;
}

/** Points of a line plot from left to right; a value that is not finite leaves a gap. */
export interface Curve {
  readonly label: string;
  readonly tone: Tone;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Curves over a common axis. Omitted in CSV. */
export interface LinePlotBlock {
  readonly kind: 'line plot';
  /** Quantities of both axes. */
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly curves: readonly Curve[];
  /** Height without title, axis and legend; default 8. */
  readonly rows?: number;
}

/** Lines of a short name and its figures: `KV cache   4.1 kB/token · 8.4 MB at 2,048 tokens`. Omitted in CSV. */
export interface FactsBlock {
  readonly kind: 'facts';
  readonly facts: readonly Fact[];
}

export interface Fact {
  readonly name: string;
  readonly text: string;
  readonly tone?: Tone | undefined;
}

export type Block = TableBlock | TextBlock | PlotBlock | LinePlotBlock | FactsBlock;

/** One line with the result of a command and its main figures. */
export interface Verdict {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

export interface Report {
  /** First line. Repeated as the last line when the report is longer than the screen. */
  readonly verdict?: Verdict | undefined;
  /** The answer, within one screen unless flags ask for more. */
  readonly blocks: readonly Block[];
  /** Long form, for `--details`. */
  readonly details?: readonly Block[] | undefined;
  /** Flags other than `--details` that show more: `--explain`. */
  readonly more?: readonly string[] | undefined;
  /** Command for the obvious next step, ready to paste. */
  readonly next?: string | undefined;
  /** The one table of CSV; default: the first table. */
  readonly data?: TableBlock | undefined;
}

export interface RenderOptions {
  /** Columns of the terminal; `Number.POSITIVE_INFINITY` when there is none. */
  readonly width: number;
  /** Lines of the terminal; unlimited by default. */
  readonly height?: number | undefined;
  /** Whether to show the long form. */
  readonly details?: boolean | undefined;
  /** chalk's colour level: 0 none, 1 basic, 2 256 colours, 3 millions. */
  readonly colourLevel: 0 | 1 | 2 | 3;
  /** Whether the terminal shows nothing but ASCII. */
  readonly isAscii?: boolean | undefined;
}

/** The blocks of a report that these options ask for. */
export const shownBlocks = (
  { blocks, details = [] }: Report,
  { details: isLong = false }: Pick<RenderOptions, 'details'>,
): readonly Block[] => (isLong ? [...blocks, ...details] : blocks);

/** How to get more: `Details: --details, --explain`; empty when all is shown. */
export function moreText(
  { details = [], more = [] }: Report,
  { details: isLong = false }: Pick<RenderOptions, 'details'>,
): string {
  const flags = [...(details.length > 0 && !isLong ? ['--details'] : []), ...more];
  return flags.length === 0 ? '' : `Details: ${flags.join(', ')}`;
}

// Layout of text in terminal columns. All of it is `printable` text, without colours.

/** Minimum line width: narrower lines are unreadable, and some terminals report 0. */
const NARROWEST = 20;

/** Columns for the layout. A terminal that reports 0 does not know its width. */
export function usableWidth(width: number): number {
  return width > 0 ? Math.max(NARROWEST, width) : Number.POSITIVE_INFINITY;
}

/**
 * Text whose code units each are one character of one column: ASCII, and the signs, lines and blocks of reports. Nearly
 * all text is; the rest needs tables that take milliseconds to load.
 */
const SIMPLE = /^[ -~×·–—−…→●\u2500-\u259f]*$/;

/** Columns of `text` on a terminal. */
export function textWidth(text: string): number {
  return SIMPLE.test(text) ? text.length : stringWidth(text);
}

let segmenter: Intl.Segmenter | undefined;

/** User-perceived characters, which must not be split. */
export function graphemes(text: string): string[] {
  if (SIMPLE.test(text)) return text.split('');
  segmenter ??= new Intl.Segmenter('en');
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Cuts `text` at `width` columns. */
export function clip(text: string, width: number): string {
  return splitAt(graphemes(text), width)[0];
}

/** `layers.0.mlp…down_proj.weight`: cuts the middle of `text`, so that it takes at most `width` columns. */
export function cutMiddle(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  const characters = graphemes(text);
  const end = Math.max(1, Math.floor((width - 1) / 2));
  const [reversed] = splitAt(characters.toReversed(), end);
  return `${clip(text, Math.max(1, width - 1 - end))}…${graphemes(reversed).reverse().join('')}`;
}

/**
 * Wraps `text` to lines of at most `width` columns, between words; only a word longer than a line is broken. Later
 * lines begin with `hanging`, by default the indentation of the text. No line ends in a space. A word is broken after a
 * dot, slash, underscore or hyphen when that leaves half a line or more.
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

/** `splitAt` for a word: prefers the separators in names of tensors and files. */
function splitWord(characters: readonly string[], width: number): [string, string[]] {
  const [head, tail] = splitAt(characters, width);
  if (tail.length === 0) return [head, tail];
  const fitting = characters.length - tail.length;
  const joint = characters.slice(0, fitting).findLastIndex((character) => JOINTS.has(character));
  if (joint + 1 < fitting / 2) return [head, tail];
  return [characters.slice(0, joint + 1).join(''), characters.slice(joint + 1)];
}

/** The characters that fit, at least one, and the rest. */
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
