/** Plots with plain characters, on a logarithmic scale. */
import { printable } from '../../text/escape.js';
import { wrap } from './layout.js';
import type { Level, PlotBlock, Series, Tone } from './report.js';

/** A piece of a line with its colour. */
export interface Piece {
  readonly text: string;
  readonly tone: Tone;
}

const USUAL_WIDTH = 80;
/** Most columns per value: more would break a line into dots. */
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
    ...texts(plot.title, room, 'plain'),
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

const texts = (text: string, width: number, tone: Tone): Piece[][] =>
  wrap(printable(text), width).map((line) => [{ text: line, tone }]);

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
  const labels = new Map<number, string>();
  const add = (digit: number) => {
    for (let power = -6; power < 40; power++) {
      const row = scale(digit * 10 ** power);
      if (row >= 0 && row < rows && !labels.has(row)) labels.set(row, roundNumber(digit, power));
    }
  };
  add(1);
  if (labels.size < FEWEST_LABELS) [2, 5].forEach(add);
  return labels;
}

const THOUSANDS = ['', 'k', 'M', 'G', 'T'];

/** A digit times a power of ten: `0.05`, `1`, `20`, `100k`, `1e15` */
function roundNumber(digit: number, power: number): string {
  if (power < 0 && power >= -3) return (digit * 10 ** power).toFixed(-power);
  const unit = THOUSANDS[Math.floor(power / 3)];
  return unit === undefined ? `${digit}e${power}` : `${digit * 10 ** (power % 3)}${unit}`;
}

/** Numbers of the values below the axis, where they fit. */
function columnLabels(count: number, columns: number, first = 0): string {
  let text = '';
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const index = Math.round(part * (count - 1));
    const at = columnOf(index, count, columns);
    const label = String(index + first);
    // The last label ends with the axis.
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
export function trimmed(pieces: readonly Piece[]): Piece[] {
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
