/** Horizontal bars with their ranges, and the values that they are compared with. */
import { axisText } from '../../kit/axis-text.js';
import type { BarsPicture, PictureBar } from '../../kit/pictures.js';
import { type Child, element } from '../markup.js';
import {
  colour,
  DIM,
  type Drawing,
  estimatedWidth,
  FONT_SIZE,
  LINE_HEIGHT,
  label,
  legend,
  round,
  WIDTH,
} from './svg.js';
import { linearScale, valueText } from './units.js';

const ROW = 26;
const BAR = 14;
const MOST_TICKS = 6;
const LEVEL_DASH = '3 4';

/** Widest part of the names. */
const LABELS = WIDTH * 0.44;

export function drawBars({ bars, levels, unit }: BarsPicture): Drawing {
  const scale = linearScale(
    [
      0,
      ...bars.flatMap(({ value, range = [] }) => [value, ...range]),
      ...levels.map(({ value }) => value),
    ],
    MOST_TICKS,
  );
  const figures = Math.max(...bars.map((bar) => estimatedWidth(valueText(bar.value, unit)))) + 10;
  const left = Math.min(LABELS, Math.max(...bars.map((bar) => estimatedWidth(bar.label)))) + 10;
  const at = (value: number) => round(left + scale.shareOf(value) * (WIDTH - left - figures));
  const names = legend(
    levels.map(({ label: name, value }) => ({
      label: `${name}: ${valueText(value, unit)}`,
      tone: 'dim',
      swatch: 'dashes',
      dash: LEVEL_DASH,
    })),
  );
  const bottom = names.height + bars.length * ROW + 4;
  const upright = (value: number, end: number) => ({
    x1: at(value),
    x2: at(value),
    y1: names.height,
    y2: end,
    stroke: 'currentColor',
  });
  const rowOf = (bar: PictureBar, index: number): Child => {
    const middle = names.height + index * ROW + ROW / 2;
    const end = Math.max(bar.value, bar.range?.[1] ?? bar.value);
    return [
      label(
        bar.label,
        { x: left - 10, y: middle + FONT_SIZE / 3, 'text-anchor': 'end' },
        left - 10,
      ),
      element(
        'g',
        colour(bar.tone ?? 'hue1'),
        element('rect', {
          x: at(0),
          y: middle - BAR / 2,
          width: round(Math.max(1, at(bar.value) - at(0))),
          height: BAR,
          fill: 'currentColor',
        }),
      ),
      bar.range && rangeMarkup(bar.range.map(at) as [number, number], middle),
      label(valueText(bar.value, unit), { x: at(end) + 6, y: middle + FONT_SIZE / 3 }),
    ];
  };
  const tickText = axisText(scale.ticks, unit);
  return {
    height: bottom + LINE_HEIGHT + 6,
    content: [
      names.content,
      scale.ticks.map((tick, index) => [
        element('line', { ...upright(tick, bottom), 'stroke-opacity': 0.15 }),
        index % 2 === 0 &&
          label(tickText(tick), {
            ...DIM,
            x: at(tick),
            y: bottom + LINE_HEIGHT,
            'text-anchor': 'middle',
          }),
      ]),
      bars.map(rowOf),
      levels.map(({ value }) =>
        element('line', {
          ...colour('dim'),
          ...upright(value, bottom),
          'stroke-width': 1.5,
          'stroke-dasharray': LEVEL_DASH,
        }),
      ),
    ],
  };
}

/** A line between the bounds, with its ends. */
const rangeMarkup = ([low, high]: readonly [number, number], middle: number) =>
  element('path', {
    d: `M${low} ${middle - 5}v10M${low} ${middle}H${high}M${high} ${middle - 5}v10`,
    fill: 'none',
    stroke: 'currentColor',
    'stroke-width': 1.5,
  });
