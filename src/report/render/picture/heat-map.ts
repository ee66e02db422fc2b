/**
 * A shade for each row and column, from none at zero to full at the largest value. Where all values are near the largest,
 * the shades begin at the smallest.
 */
import { type HeatScale, heatScale, heatShare } from '../../kit/heat-scale.js';
import type { HeatMapPicture } from '../../kit/pictures.js';
import { type Child, element } from '../markup.js';
import {
  colour,
  DIM,
  type Drawing,
  estimatedWidth,
  FONT_SIZE,
  LINE_HEIGHT,
  label,
  round,
  WIDTH,
} from './svg.js';
import { valueText } from './units.js';

const ROW = 20;
/** Rows of pictures with many layers are lower. */
const LOWEST_ROW = 6;
const MOST_HEIGHT = 640;
const LABELS = WIDTH * 0.3;
/** Longest name of a column that is not cut, in pixels. */
const LONGEST_NAME = 130;
/** Degrees of names that have no room side by side. */
const SLANT = 45;
const SINE = Math.sin((SLANT * Math.PI) / 180);
const COSINE = Math.cos((SLANT * Math.PI) / 180);
const SCALE_STEPS = 5;
const SCALE_WIDTH = 58;

export function drawHeatMap(map: HeatMapPicture): Drawing {
  const { rows, columns, unit } = map;
  const scale = heatScale(map);
  const row = Math.max(LOWEST_ROW, Math.min(ROW, MOST_HEIGHT / Math.max(1, rows.length)));
  const left =
    Math.min(LABELS, Math.max(0, ...rows.map((each) => estimatedWidth(each.label)))) + 10;
  const widest = Math.min(LONGEST_NAME, Math.max(0, ...columns.map(estimatedWidth)));
  const isSlanted = widest > (WIDTH - left) / Math.max(1, columns.length);
  // A slanted name begins above its column and ends at its right.
  const right = isSlanted ? widest * COSINE : 0;
  const width = (WIDTH - left - right) / Math.max(1, columns.length);
  const names = isSlanted ? widest * SINE + LINE_HEIGHT : LINE_HEIGHT;
  const top = LINE_HEIGHT + 6 + names;
  // Names of rows and columns where they have room.
  const everyRow = Math.ceil(LINE_HEIGHT / row);
  const everyColumn = isSlanted ? Math.ceil(LINE_HEIGHT / width) : 1;
  const rowOf = (each: HeatMapPicture['rows'][number], index: number): Child => {
    const y = top + index * row;
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
            'fill-opacity': shade(value, scale),
          },
          element('title', {}, `${each.label}, ${name}: ${valueText(value, unit)}`),
        );
      }),
    ];
  };
  return {
    height: top + rows.length * row + 6,
    content: [
      Array.from({ length: SCALE_STEPS }, (_, step) => {
        const value = scale.least + ((scale.most - scale.least) * step) / (SCALE_STEPS - 1);
        const x = left + step * (SCALE_WIDTH + 30);
        return [
          element('rect', {
            ...colour('hue2'),
            x: round(x),
            y: 2,
            width: 12,
            height: 12,
            fill: 'currentColor',
            'fill-opacity': shade(value, scale),
          }),
          label(valueText(value, unit), { ...DIM, x: x + 16, y: FONT_SIZE }),
        ];
      }),
      columns.map((name, at) => {
        if (at % everyColumn !== 0) return null;
        const [x, y] = [left + (at + 0.5) * width, top - 6];
        return isSlanted
          ? label(
              name,
              { ...DIM, x, y, transform: `rotate(-${SLANT} ${round(x)} ${round(y)})` },
              LONGEST_NAME,
            )
          : label(name, { ...DIM, x, y, 'text-anchor': 'middle' }, width);
      }),
      element('g', colour('hue2'), rows.map(rowOf)),
    ],
  };
}

const LIGHTEST = 0.06;

const shade = (value: number, scale: HeatScale): number =>
  Math.round((LIGHTEST + (1 - LIGHTEST) * heatShare(value, scale)) * 100) / 100;
