/** Plots with plain characters on a logarithmic scale, and line plots with Braille characters or ASCII. */
import { printable } from '../../base/text/escape.js';
import { axisText } from './axis-text.js';
import { wrap } from './layout.js';
import type {
  Curve,
  Level,
  LinePlotBlock,
  PictureUnit,
  PlotAxis,
  PlotBlock,
  Series,
} from './pictures.js';
import type { Tone } from './report.js';

/** A piece of a line with its colour. */
export interface Piece {
  readonly text: string;
  readonly tone: Tone;
}

const USUAL_WIDTH = 80;
/** Maximum columns per value; more would break a line into dots. */
const WIDEST_STEP = 2;
/** Rows per column: terminal characters are about twice as high as wide. */
const ROWS_PER_COLUMN = 0.28;
const [FEWEST_ROWS, MOST_ROWS] = [12, 26];
const NARROWEST = 10;
/** Width that a plot of a few values may always have. */
const USUAL_COLUMNS = 48;
const MARGIN = 7;

/** Mark of several series in one cell. */
const SEVERAL: Piece = { text: '#', tone: 'plain' };
const EMPTY: Piece = { text: ' ', tone: 'plain' };

const widest = (count: number) => Math.max(count * WIDEST_STEP, USUAL_COLUMNS);

/** The lines of a plot, at most `width` columns wide. */
export function drawPlot(plot: PlotBlock, width = Number.POSITIVE_INFINITY): Piece[][] {
  const room = Number.isFinite(width) ? width : USUAL_WIDTH;
  const count = Math.max(1, ...plot.series.map(({ values }) => values.length));
  const columns = Math.max(NARROWEST, Math.min(room - MARGIN - 1, widest(count)));
  const usual = Math.round(Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, columns * ROWS_PER_COLUMN)));
  const rows = Math.max(1, Math.min(usual, plot.mostRows ?? usual));
  const scale = scaleOf(plot, rows);
  const grid = Array.from({ length: rows }, () => new Array<Piece>(columns).fill(EMPTY));
  drawLevels(grid, plot.levels, scale);
  drawSeries(grid, plot.series, scale, count);
  const labels = ticks(scale, rows);
  const lines: Piece[][] = [
    ...titleLines(plot.title, room),
    ...grid
      .map((cells, row) => [
        { text: `${(labels.get(row) ?? '').padStart(MARGIN - 1)} |`, tone: 'dim' } as const,
        ...cells,
      ])
      .reverse(),
    [{ text: `${' '.repeat(MARGIN)}+${'-'.repeat(columns)}`, tone: 'dim' }],
    [{ text: ' '.repeat(MARGIN + 1) + columnLabels(count, columns, plot.first), tone: 'dim' }],
    ...legend(plot, room),
  ];
  return lines.map(trimmed);
}

const titleLines = (text: string, width: number): Piece[][] =>
  wrap(printable(text), width).map((line) => [{ text: line, tone: 'plain' }]);

/** Maps a value to its row, 0 the lowest. */
type Scale = (value: number) => number;

function scaleOf({ series, levels }: PlotBlock, rows: number): Scale {
  const all = [...series.flatMap(({ values }) => values), ...levels.map(({ value }) => value)];
  const logs = all.map(Math.log10);
  const low = logs.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
  const high = logs.reduce((most, each) => Math.max(most, each), low);
  const span = high - low || 1;
  return (value) => Math.round(((Math.log10(value) - low) / span) * (rows - 1));
}

/** Levels in the same row alternate by column. */
function drawLevels(grid: Piece[][], levels: readonly Level[], scale: Scale): void {
  for (const { value } of levels) {
    const row = scale(value);
    const marks = levels.filter((each) => scale(each.value) === row).map(({ mark }) => mark);
    const cells = grid[row] ?? [];
    for (let column = 0; column < cells.length; column++) {
      cells[column] = { text: marks[column % marks.length] ?? '', tone: 'dim' };
    }
  }
}

function drawSeries(grid: Piece[][], series: readonly Series[], scale: Scale, count: number): void {
  const drawn = new Map<string, Series>();
  const inOrder = series.toSorted(
    (a, b) => Number(a.isOnTop ?? false) - Number(b.isOnTop ?? false),
  );
  for (const each of inOrder) {
    for (const [index, value] of each.values.entries()) {
      const row = scale(value);
      const cells = grid[row] ?? [];
      const column = columnOf(index, count, cells.length);
      const place = `${row} ${column}`;
      const { mark: text, tone } = each;
      const isAlone = (drawn.get(place) ?? each) === each;
      cells[column] = isAlone || each.isOnTop ? { text, tone } : SEVERAL;
      if (isAlone) drawn.set(place, each);
    }
  }
}

const columnOf = (index: number, count: number, columns: number): number =>
  count === 1 ? 0 : Math.round((index * (columns - 1)) / (count - 1));

/** Minimum labels to read values from the axis. */
const FEWEST_LABELS = 3;

/** Powers of ten by row; when there are few, also their double and fivefold. */
function ticks(scale: Scale, rows: number): Map<number, string> {
  const values = new Map<number, number>();
  const add = (digit: number) => {
    for (let power = -6; power < 40; power++) {
      const value = Number(`${digit}e${power}`);
      const row = scale(value);
      if (row >= 0 && row < rows && !values.has(row)) values.set(row, value);
    }
  };
  add(1);
  if (values.size < FEWEST_LABELS) [2, 5].forEach(add);
  const text = axisText([...values.values()]);
  return new Map([...values].map(([row, value]) => [row, text(value)]));
}

/** Numbers of the values below the axis, where they fit. */
function columnLabels(count: number, columns: number, first = 0): string {
  let text = '';
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const index = Math.round(part * (count - 1));
    const at = columnOf(index, count, columns);
    const label = String(index + first);
    // The last label may not pass the end of the axis.
    const start = Math.min(at, columns - label.length);
    if (start >= text.length + (text === '' ? 0 : 1)) text = text.padEnd(start) + label;
  }
  return text;
}

function legend({ series, levels }: PlotBlock, width: number): Piece[][] {
  const entries = [
    ...series.map(({ mark, label, tone }) => ({ text: `${mark} ${printable(label)}`, tone })),
    { ...SEVERAL, text: `${SEVERAL.text} several` },
    ...levels.map(({ mark, label }) => ({
      text: `${mark} ${printable(label)}`,
      tone: 'dim' as const,
    })),
  ];
  const lines: Piece[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const gap = '   ';
    if (used + gap.length + entry.text.length > width) {
      lines.push([entry]);
      used = entry.text.length;
    } else {
      lines.at(-1)?.push({ text: gap, tone: 'plain' }, entry);
      used += gap.length + entry.text.length;
    }
  }
  return lines;
}

/** Removes spaces at the end, and joins pieces of one colour. */
function trimmed(pieces: readonly Piece[]): Piece[] {
  const line: Piece[] = [];
  for (const piece of pieces) {
    const last = line.at(-1);
    // A space has no colour.
    if (last && (last.tone === piece.tone || piece.text.trim() === '')) {
      line[line.length - 1] = { text: last.text + piece.text, tone: last.tone };
    } else line.push(piece);
  }
  const last = line.at(-1);
  if (last) line[line.length - 1] = { ...last, text: last.text.trimEnd() };
  return line;
}

// Line plots, with dots of Braille characters, or with plain ASCII on a terminal that shows nothing else.

const WIDEST = 100;
const USUAL_ROWS = 8;

/** Dots of one character: Braille has 2 × 4. */
interface Resolution {
  readonly across: number;
  readonly down: number;
}

const BRAILLE: Resolution = { across: 2, down: 4 };
const ASCII: Resolution = { across: 1, down: 1 };

/** Marks of the curves in ASCII. */
const MARKS = ['*', 'o', '+', 'x', '#'];

/** A character of the plot: the dots that are set, and the curve that was drawn there last. */
interface CellDots {
  readonly dots: number;
  readonly curve: number;
}

/** The lines of a line plot, at most `width` columns wide. */
export function drawLinePlot(
  block: LinePlotBlock,
  width = Number.POSITIVE_INFINITY,
  isAscii = false,
): Piece[][] {
  const room = Math.min(WIDEST, Number.isFinite(width) ? width : USUAL_WIDTH);
  const rows = Math.max(2, block.rows ?? USUAL_ROWS);
  const [across, up] = [rangeOf(block, 0), rangeOf(block, 1)];
  const labels = yLabels(up, rows, block.y.unit);
  const margin = Math.max(...[...labels.values()].map((label) => label.length));
  const columns = Math.max(NARROWEST, room - margin - 2);
  const resolution = isAscii ? ASCII : BRAILLE;
  const cells = cellsOf(block.curves, { across, up }, columns, rows, resolution);
  const lines: Piece[][] = [
    ...titleLines(block.title, room),
    ...Array.from({ length: rows }, (_, row): Piece[] => [
      { text: `${(labels.get(row) ?? '').padStart(margin)} ${isAscii ? '|' : '│'}`, tone: 'dim' },
      ...(cells[row] ?? []).map((cell) => pieceOf(cell, block.curves, isAscii)),
    ]),
    [
      {
        text: `${' '.repeat(margin + 1)}${isAscii ? '+' : '└'}${(isAscii ? '-' : '─').repeat(columns)}`,
        tone: 'dim',
      },
    ],
    [{ text: ' '.repeat(margin + 2) + xLabels(across, columns, block), tone: 'dim' }],
    ...curveLegend(block.curves, isAscii),
  ];
  return lines.map(trimmed);
}

/** Values of an axis between its ends, as a share from 0 to 1, and back. */
interface Range {
  shareOf(value: number): number;
  valueAt(share: number): number;
}

/** @param axis 0 for across, 1 for up. */
function rangeOf({ x, y, curves }: LinePlotBlock, axis: 0 | 1): Range {
  const { scale = 'linear', from }: PlotAxis = axis === 0 ? x : y;
  let low = from ?? Number.POSITIVE_INFINITY;
  let high = from ?? Number.NEGATIVE_INFINITY;
  for (const { points } of curves) {
    for (const point of points) {
      const value = point[axis];
      if (!Number.isFinite(value) || (scale === 'log' && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) [low, high] = scale === 'log' ? [1, 10] : [0, 1];
  const [into, back] = scale === 'log' ? [Math.log10, exponential] : [identity, identity];
  const [first, span] = [into(low), into(high) - into(low) || 1];
  return {
    shareOf: (value) => (into(value) - first) / span,
    valueAt: (share) =>
      share === 1 ? Math.max(high, back(first + span)) : back(first + share * span),
  };
}

const identity = (value: number) => value;
const exponential = (value: number) => 10 ** value;

function cellsOf(
  curves: readonly Curve[],
  { across, up }: { readonly across: Range; readonly up: Range },
  columns: number,
  rows: number,
  resolution: Resolution,
): (CellDots | undefined)[][] {
  const cells = Array.from({ length: rows }, () => new Array<CellDots | undefined>(columns));
  const [right, bottom] = [columns * resolution.across - 1, rows * resolution.down - 1];
  for (const [curve, { points }] of curves.entries()) {
    const set = (x: number, y: number) => {
      const row = cells[Math.floor(y / resolution.down)];
      const column = Math.floor(x / resolution.across);
      if (row === undefined || column < 0 || column >= columns) return;
      const bit = dotBit(x % resolution.across, y % resolution.down);
      row[column] = { dots: (row[column]?.dots ?? 0) | bit, curve };
    };
    let last: readonly [number, number] | undefined;
    for (const [x, y] of points) {
      const place = [
        Math.round(across.shareOf(x) * right),
        Math.round((1 - up.shareOf(y)) * bottom),
      ] as const;
      // A value that is not finite leaves a gap.
      const isDrawn = place.every((each) => Number.isFinite(each));
      if (isDrawn) drawLine(last ?? place, place, set);
      last = isDrawn ? place : undefined;
    }
  }
  return cells.map((row) => Array.from(row));
}

/** Bits of the dots of a Braille character (Unicode, block 2800), by column and row. */
const BITS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;

const dotBit = (x: number, y: number): number => BITS[x]?.[y] ?? 0;

/** Sets all dots between two, ends included. */
function drawLine(
  [fromX, fromY]: readonly [number, number],
  [toX, toY]: readonly [number, number],
  set: (x: number, y: number) => void,
): void {
  const steps = Math.max(Math.abs(toX - fromX), Math.abs(toY - fromY), 1);
  for (let step = 0; step <= steps; step++) {
    const share = step / steps;
    set(Math.round(fromX + (toX - fromX) * share), Math.round(fromY + (toY - fromY) * share));
  }
}

const markOf = (curve: number) => MARKS[curve % MARKS.length] ?? '*';

function pieceOf(cell: CellDots | undefined, curves: readonly Curve[], isAscii: boolean): Piece {
  if (cell === undefined) return { text: ' ', tone: 'plain' };
  const text = isAscii ? markOf(cell.curve) : String.fromCodePoint(0x2800 + cell.dots);
  return { text, tone: curves[cell.curve]?.tone ?? 'plain' };
}

/** Values of the lowest, the middle and the highest row. */
function yLabels(up: Range, rows: number, unit?: PictureUnit): Map<number, string> {
  const middle = Math.round((rows - 1) / 2);
  const values = [0, middle, rows - 1].map(
    (row) => [row, up.valueAt(1 - row / (rows - 1))] as const,
  );
  const text = axisText(
    values.map(([, value]) => value),
    unit,
  );
  return new Map(values.map(([row, value]) => [row, text(value)]));
}

const QUARTERS = [0, 0.25, 0.5, 0.75, 1];

/** Values at the quarters of the axis, where they fit. */
function xLabels(across: Range, columns: number, { curves, x: axis }: LinePlotBlock): string {
  let [text, last] = ['', ''];
  // Steps are whole numbers, and so are their labels.
  const isWhole = curves.every(({ points }) => points.every(([x]) => Number.isInteger(x)));
  const valueAt = (part: number) => {
    const value = across.valueAt(part);
    return isWhole ? Math.round(value) : value;
  };
  // Numbers of steps have four digits more often than rates do.
  const textOf = axisText(QUARTERS.map(valueAt), axis.unit, 4);
  for (const part of QUARTERS) {
    const label = textOf(valueAt(part));
    // The last label may not pass the end of the axis.
    const start = Math.min(Math.round(part * (columns - 1)), columns - label.length);
    // A short axis of whole numbers has fewer of them than quarters.
    if (label === last || start < text.length + (text === '' ? 0 : 1)) continue;
    text = text.padEnd(start) + label;
    last = label;
  }
  return text;
}

/** Names of several curves; the title identifies a single one. */
function curveLegend(curves: readonly Curve[], isAscii: boolean): Piece[][] {
  if (curves.length < 2) return [];
  return [
    curves.flatMap(({ label, tone }, index): Piece[] => [
      ...(index === 0 ? [] : [{ text: '   ', tone: 'plain' } as const]),
      { text: `${isAscii ? markOf(index) : '⠶⠶'} ${printable(label)}`, tone },
    ]),
  ];
}
