import { type NextLine, type SettingName, setting } from '../../base/text/setting.js';
import {
  formatBinaryBytes,
  formatBytes,
  formatFlops,
  formatInteger,
  formatShare,
  percentText,
} from '../../base/text/units.js';
import type {
  DiagramBlock,
  HeatMapPicture,
  LinePlotBlock,
  Picture,
  PlotBlock,
} from './pictures.js';
import type { Tone } from './tones.js';

export type { Tone } from './tones.js';

/** Formats of every command. JSON prints the result object, the others the report. */
export const FORMATS = ['table', 'json', 'csv', 'markdown', 'html'] as const;

/** Formats of commands whose answer has a picture. */
export const PICTURE_FORMATS = [...FORMATS, 'svg'] as const;

/** Formats of commands whose answer is a diagram. */
export const DIAGRAM_FORMATS = [...PICTURE_FORMATS, 'mermaid'] as const;

/** `github` are the annotations of problems, for commands that check files. */
export type Format = (typeof DIAGRAM_FORMATS)[number] | 'github';

/** A cell: text for people and exact value for programs (CSV). */
export interface Cell {
  readonly text: string;
  /** Defaults to the text. */
  readonly value?: string | number | boolean | undefined;
  readonly tone?: Tone;
  /** Length of the bar that the text draws, from 0 to 1. */
  readonly share?: number;
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
  /** Number of last rows that stay below when the others are sorted; default 0. */
  readonly totals?: number;
  /** Replacement on a terminal that is too narrow. */
  readonly narrower?: TableBlock | undefined;
}

export interface TextBlock {
  readonly kind: 'heading' | 'note';
  readonly text: string;
  readonly tone?: Tone;
  /** Whether a note is a line of code, whose spaces count. */
  readonly isCode?: boolean;
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

export type Block =
  | TableBlock
  | TextBlock
  | PlotBlock
  | LinePlotBlock
  | HeatMapPicture
  | DiagramBlock
  | FactsBlock;

/** One line with the result of a command and its main figures. */
export interface Verdict {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

/**
 * A report: the content of a command's output without its format. Commands build one; `render.ts` turns it into a
 * table, CSV or Markdown. JSON is made from the result object itself.
 */
export interface Report {
  /** First line. Repeated as the last line when the report is longer than the screen. */
  readonly verdict?: Verdict | undefined;
  /** The answer, within one screen unless flags ask for more. */
  readonly blocks: readonly Block[];
  /** Long form, for `--details`. */
  readonly details?: readonly Block[] | undefined;
  /** Pictures of the answer for pages and SVG, the main one first. Plots among the blocks are pictures too. */
  readonly pictures?: (() => readonly Picture[]) | undefined;
  /** How the figures follow, for pages. */
  readonly derivations?: (() => readonly Block[]) | undefined;
  /** Settings other than `details` that show more. */
  readonly more?: readonly SettingName[] | undefined;
  /** Command for the obvious next step, ready to paste. */
  readonly next?: NextLine | undefined;
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
  /** How the report was made, for pages. */
  readonly source?: ReportSource | undefined;
}

/** How a report was made. */
export interface ReportSource {
  /** The command line, ready to paste. */
  readonly command: string;
  /** Version of the program. */
  readonly version: string;
  /** Result of the command as JSON, in pieces. */
  readonly json: Iterable<string>;
}

/** The blocks of a report that the options select. */
export const shownBlocks = (
  { blocks, details = [] }: Report,
  { details: isLong = false }: Pick<RenderOptions, 'details'>,
): readonly Block[] => (isLong ? [...blocks, ...details] : blocks);

/** Pictures of an answer, the main one first: those of its own, or the first plot. */
export function mainPictures(report: Report): readonly Picture[] {
  const pictures = report.pictures?.() ?? [];
  if (pictures.length > 0) return pictures;
  const isPlot = (block: Block) => block.kind === 'plot' || block.kind === 'line plot';
  return shownBlocks(report, { details: true }).filter(isPlot).slice(0, 1);
}

/** How to show more: `Details: --details, --explain`; empty when all is shown. */
export function moreText(
  { details = [], more = [] }: Report,
  { details: isLong = false }: Pick<RenderOptions, 'details'>,
): string {
  const names = [...(details.length > 0 && !isLong ? (['details'] as const) : []), ...more];
  return names.length === 0 ? '' : `Details: ${names.map((name) => setting(name)).join(', ')}`;
}

export const headingBlock = (text: string): Block => ({ kind: 'heading', text });
export const noteOf = (text: string): Block => ({ kind: 'note', text, tone: 'dim' });

/** A note that is part of the answer. */
export const paragraph = (text: string, tone: Tone = 'plain'): Block => ({
  kind: 'note',
  text,
  tone,
});

/** A line of code that is part of the answer. */
export const codeLine = (text: string): Block => ({ kind: 'note', text, isCode: true });

/** `… 14 more: --details`, below a shortened list; nothing below a complete one. */
export const moreNote = (more: number, shownBy: 'details' | 'json'): Block[] =>
  more > 0 ? [noteOf(`… ${formatInteger(more)} more: ${setting(shownBy)}`)] : [];

/** A cell, or its text, of a row. */
type CellOf<Row> = (row: Row, index: number) => Cell | string;

/** A column, and its cell in each row. */
export interface Field<Row> extends Column {
  readonly cell: CellOf<Row>;
}

/** Builds a column, with its cells if the rows of the table have one type. */
function columnBuilder(format: Pick<Column, 'align' | 'wrap' | 'cut'>) {
  function build(title: string, key: string): Column;
  function build<Row>(title: string, key: string, cell: CellOf<Row>): Field<Row>;
  function build<Row>(title: string, key: string, cell?: CellOf<Row>) {
    return { title, key, ...format, ...(cell && { cell }) };
  }
  return build;
}

export const leftColumn = columnBuilder({});
export const wrapColumn = columnBuilder({ wrap: true });
/** For names, which differ at their ends. */
export const cutColumn = columnBuilder({ cut: true });
export const right = columnBuilder({ align: 'right' });

/** A table with one row for each of `rows`, and further rows at the end, such as totals. */
export function tableOf<Row>(
  rows: readonly Row[],
  fields: readonly (Field<Row> | false)[],
  last: TableBlock['rows'] = [],
): TableBlock {
  const shown = fields.filter((field) => field !== false);
  const cellsOf = (row: Row, index: number) =>
    shown.map(({ cell }) => {
      const content = cell(row, index);
      return typeof content === 'string' ? { text: content } : content;
    });
  return {
    kind: 'table',
    columns: shown.map(({ cell: _, ...column }) => column),
    rows: [...rows.map(cellsOf), ...last],
    ...(last.length > 0 && { totals: last.length }),
  };
}

/** Maximum rows of a long list for people; programs get all. */
export const MAX_ROWS = 1000;

/** A heading and a table of the first rows, with a note about the others; nothing without rows. */
export const listBlocks = <Row>(
  title: string,
  rows: readonly Row[],
  fields: readonly (Field<Row> | false)[],
  most = MAX_ROWS,
): Block[] =>
  rows.length === 0
    ? []
    : [
        headingBlock(title),
        tableOf(rows.slice(0, most), fields),
        ...moreNote(rows.length - most, 'json'),
      ];

/** `[512, 64]` */
export const shapeText = (shape: readonly (number | string)[]): string => `[${shape.join(', ')}]`;

/** Mark of a file's current state. */
export const CURRENT_MARK = '●';

export const strongCell = (text: string): Cell => ({ text, tone: 'strong' });

/** A value that does not exist. */
export const NOTHING: Cell = { text: '–', value: '' };

/** CSV stores integers beyond 2^53 − 1 as text with every digit. */
const exactValue = (value: number | bigint) => (typeof value === 'bigint' ? String(value) : value);

export const bytesCell = (value: number | bigint): Cell => ({
  text: formatBytes(value),
  value: exactValue(value),
});
export const binaryCell = (value: number | bigint): Cell => ({
  text: formatBinaryBytes(value),
  value: Number(value) / 2 ** 30,
});
/** `1,234`; `–` for null. */
export const integerCell = (value: number | bigint | null): Cell =>
  value === null ? NOTHING : { text: formatInteger(value), value: exactValue(value) };
export const flopsCell = (value: number | bigint): Cell => ({
  text: formatFlops(value),
  value: exactValue(value),
});
export const shareCell = (part: number | bigint, whole: number | bigint): Cell => ({
  text: formatShare(part, whole),
  value: Number(part) / Number(whole),
});

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/**
 * A horizontal bar, `share` (clamped to 0 to 1) of `width` terminal columns long, to the nearest eighth of a column.
 */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share || 0)) * width * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

/** `bar` in a table. */
export const drawnBar = (share: number, width: number): Cell => ({
  text: bar(share, width),
  share: share || 0,
});

/** `drawnBar`; programs get no value. */
export const barCell = (share: number, width: number): Cell => ({
  ...drawnBar(share, width),
  value: '',
});

/** A value in `format`; `–` for null. */
export const valueCell = <Value extends number | string | boolean>(
  value: Value | null,
  format: (value: Value) => string = String,
): Cell => (value === null ? NOTHING : { text: format(value), value });

export const percentCell = (share: number | null): Cell => valueCell(share, percentText);

/** `2.5587`; `–` for null. */
export const realCell = (value: number | null): Cell =>
  valueCell(value, (real) => (real === 0 ? '0' : real.toPrecision(5)));

/** `0.9633`; `–` for null. */
export const cosineCell = (cosine: number | null): Cell =>
  valueCell(cosine, (value) => value.toFixed(4));
