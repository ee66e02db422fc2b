/**
 * A report: what a command has to say, apart from how it looks. Commands build one; `render.ts` turns
 * it into a table, CSV or Markdown. JSON does not come from here but from the result object itself.
 */

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
