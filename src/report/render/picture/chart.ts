/** Curves and points over two axes: both kinds of plots of a terminal. */
import { axisText } from '../../kit/axis-text.js';
import type {
  Curve,
  LinePlotBlock,
  PictureLevel,
  PlotAxis,
  PlotBlock,
} from '../../kit/pictures.js';
import { type Child, element, type Markup } from '../markup.js';
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
import { linearScale, logScale, type Scale, tightScale, valueText } from './units.js';

const HEIGHT = 280;
const [MOST_ACROSS, MOST_UP] = [8, 6];

/** Patterns of the lines after the first, so that they differ without colours too. */
const DASHES = [undefined, '7 3', '2 3', '9 3 2 3', '4 2', '12 4'] as const;
const LEVEL_DASHES = ['3 4', '10 5', '1 4'] as const;

const levelDash = (index: number) => LEVEL_DASHES[index % LEVEL_DASHES.length];

/** The logarithmic plot of values side by side as a line plot. */
export const asLinePlot = ({ title, first = 0, series, levels }: PlotBlock): LinePlotBlock => ({
  kind: 'line plot',
  title,
  x: {},
  y: { scale: 'log' },
  curves: series.map(({ label: name, tone, values }) => ({
    label: name,
    tone,
    points: values.map((value, index) => [index + first, value]),
  })),
  levels,
});

export function drawChart({ x, y, curves, levels = [] }: LinePlotBlock): Drawing {
  const isAlone = curves.length < 2 && levels.length === 0;
  const names = legend(isAlone ? [] : legendEntries(curves, levels));
  const across = scaleOf(
    x,
    curves.flatMap(({ points }) => points.map(([value]) => value)),
    hasNames(curves) ? linearScale : tightScale,
    MOST_ACROSS,
  );
  const up = scaleOf(
    y,
    [
      ...curves.flatMap(({ points }) => points.map(([, value]) => value)),
      ...levels.map(({ value }) => value),
    ],
    linearScale,
    MOST_UP,
  );
  const left = Math.max(...up.ticks.map(axisText(up.ticks, y.unit)).map(estimatedWidth)) + 12;
  const top = names.height + (y.title === undefined ? 8 : LINE_HEIGHT + 14);
  const area: Area = {
    x: (value) => round(left + across.shareOf(value) * (WIDTH - left - 12)),
    y: (value) => round(top + (1 - up.shareOf(value)) * HEIGHT),
    left,
    right: WIDTH - 12,
    bottom: top + HEIGHT,
  };
  const inOrder = [...curves.entries()];
  return {
    height: area.bottom + LINE_HEIGHT + 6 + (x.title === undefined ? 0 : LINE_HEIGHT + 2),
    content: [
      names.content,
      y.title !== undefined && label(y.title, { ...DIM, x: 0, y: names.height + FONT_SIZE }, WIDTH),
      grid(area, across, up, x, y),
      x.title !== undefined &&
        label(
          x.title,
          {
            ...DIM,
            x: (left + area.right) / 2,
            y: area.bottom + 2 * LINE_HEIGHT + 4,
            'text-anchor': 'middle',
          },
          WIDTH - left,
        ),
      levels.map((level, index) => levelLine(level, index, area)),
      inOrder.map(([index, curve]) => curveMarkup(curve, index, area, { x, y })),
    ],
  };
}

/** Whether points have names: those at the ends would be cut by the axes. */
const hasNames = (curves: readonly Curve[]) => curves.some(({ names }) => names !== undefined);

/** The part between the axes. */
interface Area {
  x(value: number): number;
  y(value: number): number;
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
}

function scaleOf(
  { scale, from }: PlotAxis,
  values: readonly number[],
  linear: typeof linearScale,
  most: number,
): Scale {
  const all = from === undefined ? values : [...values, from];
  return scale === 'log' ? logScale(all, most) : linear(all, most);
}

const legendEntries = (curves: readonly Curve[], levels: readonly PictureLevel[]) => [
  ...curves.map(({ label: name, tone, names }, index) => ({
    label: name,
    tone,
    swatch: names === undefined ? ('line' as const) : ('dot' as const),
    dash: DASHES[index % DASHES.length],
  })),
  ...levels.map(({ label: name }, index) => ({
    label: name,
    tone: 'dim' as const,
    swatch: 'dashes' as const,
    dash: levelDash(index),
  })),
];

function grid(area: Area, across: Scale, up: Scale, x: PlotAxis, y: PlotAxis): Child {
  const { left, right, bottom } = area;
  let end = Number.NEGATIVE_INFINITY;
  const [textUp, textAcross] = [axisText(up.ticks, y.unit), axisText(across.ticks, x.unit)];
  return [
    up.ticks.map((tick) => [
      element('line', { ...line(left, right, area.y(tick), area.y(tick)), 'stroke-opacity': 0.15 }),
      label(textUp(tick), {
        ...DIM,
        x: left - 6,
        y: area.y(tick) + FONT_SIZE / 3,
        'text-anchor': 'end',
      }),
    ]),
    element('line', { ...line(left, right, bottom, bottom), 'stroke-opacity': 0.5 }),
    across.ticks.map((tick) => {
      const text = textAcross(tick);
      const at = area.x(tick);
      const half = estimatedWidth(text) / 2;
      // Labels that would touch are left out; the last may not pass the end.
      const isLast = at + half > WIDTH;
      if ((isLast ? at - 2 * half : at - half) < end) return null;
      end = at + half + 8;
      return [
        element('line', { ...line(at, at, bottom, bottom + 4), 'stroke-opacity': 0.5 }),
        label(text, {
          ...DIM,
          x: isLast ? WIDTH : at,
          y: bottom + LINE_HEIGHT + 2,
          'text-anchor': isLast ? 'end' : 'middle',
        }),
      ];
    }),
  ];
}

const line = (x1: number, x2: number, y1: number, y2: number) => ({
  x1: round(x1),
  x2: round(x2),
  y1: round(y1),
  y2: round(y2),
  stroke: 'currentColor',
});

const levelLine = ({ value }: PictureLevel, index: number, area: Area): Markup =>
  element('line', {
    ...colour('dim'),
    ...line(area.left, area.right, area.y(value), area.y(value)),
    'stroke-width': 1.5,
    'stroke-dasharray': levelDash(index),
  });

function curveMarkup(
  { label: name, tone, points, names }: Curve,
  index: number,
  area: Area,
  { x, y }: Pick<LinePlotBlock, 'x' | 'y'>,
): Markup {
  const isDrawn = ([across, up]: readonly [number, number]) => isOn(across, x) && isOn(up, y);
  const parts =
    names === undefined
      ? linePaths(points, isDrawn, area).map((path) =>
          element('path', {
            d: path,
            fill: 'none',
            stroke: 'currentColor',
            'stroke-width': 2,
            'stroke-linejoin': 'round',
            'stroke-linecap': 'round',
            'stroke-dasharray': DASHES[index % DASHES.length],
          }),
        )
      : points.map(
          (point, at) =>
            isDrawn(point) &&
            element(
              'circle',
              {
                cx: area.x(point[0]),
                cy: area.y(point[1]),
                r: 4,
                fill: 'currentColor',
                'fill-opacity': 0.8,
              },
              element(
                'title',
                {},
                `${names[at] ?? name}: ${valueText(point[0], x.unit)}, ${valueText(point[1], y.unit)}`,
              ),
            ),
        );
  return element('g', colour(tone), parts);
}

const isOn = (value: number, { scale }: PlotAxis): boolean =>
  Number.isFinite(value) && (scale !== 'log' || value > 0);

type Point = readonly [number, number];

/** Paths between gaps. A point alone is a dot. */
function linePaths(
  points: readonly Point[],
  isDrawn: (point: Point) => boolean,
  area: Area,
): string[] {
  const runs: Point[][] = [[]];
  for (const point of points) {
    if (isDrawn(point)) runs.at(-1)?.push([area.x(point[0]), area.y(point[1])]);
    else if (runs.at(-1)?.length !== 0) runs.push([]);
  }
  return runs
    .filter((run) => run.length > 0)
    .map((run) => {
      const [first = [0, 0], ...others] = thinned(run);
      const rest =
        others.length === 0 ? 'h0' : others.map(([across, up]) => `L${across} ${up}`).join('');
      return `M${first[0]} ${first[1]}${rest}`;
    });
}

/** First, lowest, highest and last point of each column of pixels: all that can be seen of a long curve. */
function thinned(run: readonly Point[]): Point[] {
  if (run.length <= 2 * WIDTH) return [...run];
  const columns = new Map<number, Point[]>();
  for (const point of run) {
    const column = Math.round(point[0]);
    columns.set(column, [...(columns.get(column) ?? []), point]);
  }
  return [...columns.values()].flatMap((column) => {
    const [first] = column;
    const last = column.at(-1);
    const extremes = column.toSorted(([, a], [, b]) => a - b);
    const kept = new Set([first, extremes[0], extremes.at(-1), last]);
    return column.filter((point) => kept.has(point));
  });
}
