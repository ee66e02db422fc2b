/** Line plots with dots of Braille characters, or with plain ASCII where a terminal has no others. */
import { printable } from '../../text/escape.js';
import { shortNumber } from '../../text/units.js';
import { wrap } from './layout.js';
import { type Piece, trimmed } from './plot.js';
import type { Curve, LinePlotBlock, PlotAxis } from './report.js';

const USUAL_WIDTH = 80;
const WIDEST = 100;
const NARROWEST = 10;
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
  const labels = yLabels(up, rows);
  const margin = Math.max(...[...labels.values()].map((label) => label.length));
  const columns = Math.max(NARROWEST, room - margin - 2);
  const resolution = isAscii ? ASCII : BRAILLE;
  const cells = cellsOf(block.curves, { across, up }, columns, rows, resolution);
  const lines: Piece[][] = [
    ...texts(block.title, room),
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
    ...legend(block.curves, isAscii),
  ];
  return lines.map(trimmed);
}

const texts = (text: string, width: number): Piece[][] =>
  wrap(printable(text), width).map((line) => [{ text: line, tone: 'plain' }]);

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
function yLabels(up: Range, rows: number): Map<number, string> {
  const middle = Math.round((rows - 1) / 2);
  return new Map(
    [0, middle, rows - 1].map((row) => [row, shortNumber(up.valueAt(1 - row / (rows - 1)))]),
  );
}

/** Values at the quarters of the axis, where they fit. */
function xLabels(across: Range, columns: number, { curves }: LinePlotBlock): string {
  let [text, last] = ['', ''];
  // Steps are whole numbers, and so are their labels.
  const isWhole = curves.every(({ points }) => points.every(([x]) => Number.isInteger(x)));
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    // Steps have four digits more often than rates do.
    const value = across.valueAt(part);
    const label = shortNumber(isWhole ? Math.round(value) : value, 4);
    // The last label ends with the axis.
    const start = Math.min(Math.round(part * (columns - 1)), columns - label.length);
    // A short axis of whole numbers has fewer of them than quarters.
    if (label === last || start < text.length + (text === '' ? 0 : 1)) continue;
    text = text.padEnd(start) + label;
    last = label;
  }
  return text;
}

/** Names of several curves; the title says what a single one is. */
function legend(curves: readonly Curve[], isAscii: boolean): Piece[][] {
  if (curves.length < 2) return [];
  return [
    curves.flatMap(({ label, tone }, index): Piece[] => [
      ...(index === 0 ? [] : [{ text: '   ', tone: 'plain' } as const]),
      { text: `${isAscii ? markOf(index) : '⠶⠶'} ${printable(label)}`, tone },
    ]),
  ];
}
