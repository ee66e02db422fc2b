/** A shade for each row and column, from none at zero to full at the largest value. */
import type { HeatMapPicture } from '../../kit/pictures.js';
import { type Child, element } from '../markup.js';
import {
  colour,
  DIM,
  type Drawing,
  FONT_SIZE,
  LINE_HEIGHT,
  label,
  round,
  WIDTH,
  widthOf,
} from './svg.js';
import { valueText } from './units.js';

const ROW = 20;
/** Rows of pictures with many layers are lower. */
const LOWEST_ROW = 6;
const MOST_HEIGHT = 640;
const LABELS = WIDTH * 0.3;
const SCALE_STEPS = 5;
const SCALE_WIDTH = 58;

export function drawHeatMap({ rows, columns, unit }: HeatMapPicture): Drawing {
  const values = rows
    .flatMap((row) => row.values)
    .filter((value) => value !== null && Number.isFinite(value));
  const most = values.reduce<number>((largest, value) => Math.max(largest, value ?? 0), 0);
  const row = Math.max(LOWEST_ROW, Math.min(ROW, MOST_HEIGHT / Math.max(1, rows.length)));
  const left = Math.min(LABELS, Math.max(0, ...rows.map((each) => widthOf(each.label)))) + 10;
  const width = (WIDTH - left) / Math.max(1, columns.length);
  const top = 2 * LINE_HEIGHT + 6;
  // Names of rows and columns where they have room.
  const everyRow = Math.ceil(LINE_HEIGHT / row);
  const everyColumn =
    Math.ceil(Math.max(0, ...columns.map((name) => Math.min(widthOf(name), 90))) / width) || 1;
  const rowOf = (each: HeatMapPicture['rows'][number], index: number): Child => {
    const y = top + LINE_HEIGHT + index * row;
    return [
      index % everyRow === 0 &&
        label(
          each.label,
          { ...DIM, x: left - 8, y: y + row / 2 + FONT_SIZE / 3, 'text-anchor': 'end' },
          left - 10,
        ),
      columns.map((name, at) => {
        const value = each.values[at] ?? null;
        if (value === null) return null;
        return element(
          'rect',
          {
            x: round(left + at * width),
            y: round(y),
            width: round(Math.max(1, width - 1)),
            height: round(Math.max(1, row - 1)),
            fill: 'currentColor',
            'fill-opacity': shade(value, most),
          },
          element('title', {}, `${each.label}, ${name}: ${valueText(value, unit)}`),
        );
      }),
    ];
  };
  return {
    height: top + LINE_HEIGHT + rows.length * row + 6,
    content: [
      Array.from({ length: SCALE_STEPS }, (_, step) => {
        const value = (most * step) / (SCALE_STEPS - 1);
        const x = left + step * (SCALE_WIDTH + 30);
        return [
          element('rect', {
            ...colour('hue2'),
            x: round(x),
            y: 2,
            width: 12,
            height: 12,
            fill: 'currentColor',
            'fill-opacity': shade(value, most),
          }),
          label(valueText(value, unit), { ...DIM, x: x + 16, y: FONT_SIZE }),
        ];
      }),
      columns.map(
        (name, at) =>
          at % everyColumn === 0 &&
          label(
            name,
            {
              ...DIM,
              x: left + (at + 0.5) * width,
              y: top + FONT_SIZE - 2,
              'text-anchor': 'middle',
            },
            width * everyColumn,
          ),
      ),
      element('g', colour('hue2'), rows.map(rowOf)),
    ],
  };
}

/** A value that is not finite is drawn as the largest. */
const shade = (value: number, most: number): number =>
  most === 0 ? 0.06 : round((Number.isFinite(value) ? 0.06 + (0.94 * value) / most : 1) * 10) / 10;
