/** Pictures as data. Pages and SVG draw all of them, a terminal the plots. */
import type { Diagram } from '../../model/diagram/diagram.js';
import type { Tone } from './tones.js';

/** Unit of the values of a picture, which says how they are written; default: a plain number. */
export type PictureUnit = 'bytes' | 'count' | 'share' | 'FLOPs';

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
export interface PlotAxis {
  /** Default: linear. A logarithmic axis shows positive values only. */
  readonly scale?: 'linear' | 'log';
  /** Value that the axis includes in any case, as 0. */
  readonly from?: number;
  /** Quantity, where the title of the plot does not name it. */
  readonly title?: string;
  readonly unit?: PictureUnit;
}

/** Points of a line plot from left to right; a value that is not finite leaves a gap. */
export interface Curve {
  readonly label: string;
  readonly tone: Tone;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Names of the points, which then have no line between them. */
  readonly names?: readonly string[];
}

/** Curves over a common axis. Omitted in CSV. */
export interface LinePlotBlock {
  readonly kind: 'line plot';
  /** Quantities of both axes. */
  readonly title: string;
  readonly x: PlotAxis;
  readonly y: PlotAxis;
  readonly curves: readonly Curve[];
  /** Values of the y-axis that curves are compared with. A terminal does not draw them. */
  readonly levels?: readonly PictureLevel[];
  /** Height without title, axis and legend; default 8. */
  readonly rows?: number;
}

/** Horizontal bars on a common scale, each with its range where it is an estimate. */
export interface BarsPicture {
  readonly kind: 'bars';
  readonly title: string;
  readonly unit?: PictureUnit;
  readonly bars: readonly PictureBar[];
  /** Values that bars are compared with, such as the memory of a GPU. */
  readonly levels: readonly PictureLevel[];
}

export interface PictureBar {
  readonly label: string;
  readonly value: number;
  /** Lower and upper bound. */
  readonly range?: readonly [low: number, high: number] | undefined;
  readonly tone?: Tone | undefined;
}

export interface PictureLevel {
  readonly label: string;
  readonly value: number;
}

/** Areas in proportion to values. */
export interface TreemapPicture {
  readonly kind: 'treemap';
  readonly title: string;
  readonly unit?: PictureUnit;
  readonly root: TreemapNode;
}

/** A part of a whole. A part with parts of its own has the sum of their values. */
export interface TreemapNode {
  readonly label: string;
  readonly value?: number;
  readonly children?: readonly TreemapNode[];
}

/** A value for each row and column as a shade. */
export interface HeatMapPicture {
  readonly kind: 'heat map';
  readonly title: string;
  readonly unit?: PictureUnit;
  readonly columns: readonly string[];
  /** A value for each column; null where there is none. */
  readonly rows: readonly { readonly label: string; readonly values: readonly (number | null)[] }[];
}

/** The block diagram of a model, or of a part of it. */
export interface DiagramBlock {
  readonly kind: 'diagram';
  readonly title: string;
  readonly diagram: Diagram;
  /** Whether boxes list their tensors. */
  readonly hasTensors?: boolean;
  /** Whether it is a part of a model, which has neither ids nor logits. */
  readonly isPart?: boolean;
}

export type Picture =
  | PlotBlock
  | LinePlotBlock
  | BarsPicture
  | TreemapPicture
  | HeatMapPicture
  | DiagramBlock;
