/** Pictures of `minimind compare`: a bar for each model, or the lines of a sweep. */
import type { ComparedRow, ShownColumn } from '../../estimate/comparison/compare-models.js';
import type { Curve, Picture, PictureUnit } from '../kit/pictures.js';
import { hueOf } from '../kit/tones.js';
import { type ShownComparison, titleOfKey, valueIn } from './shown-comparison.js';

/** Figures with a picture of their own. */
const MOST_PICTURES = 4;

const UNITS: Readonly<Partial<Record<ShownColumn['unit'], PictureUnit>>> = {
  parameters: 'count',
  bytes: 'bytes',
  FLOP: 'FLOPs',
};

export function comparePictures(
  shown: ShownComparison,
  columns: readonly ShownColumn[],
): Picture[] {
  const models = shown.result.rows.filter(({ valid }) => valid);
  const differs = (column: ShownColumn) =>
    new Set(models.map((row) => valueIn(row, column))).size > 1;
  const isDrawn = (column: ShownColumn) =>
    models.some((row) => Number.isFinite(numberIn(row, column))) && column.unit !== 'value';
  const drawn = columns.filter(isDrawn);
  const chosen = drawn.filter(differs);
  const isLine = models.every(
    ({ chosen: [first = ''] }) => first !== '' && Number.isFinite(Number(first)),
  );
  return (chosen.length > 0 ? chosen : drawn)
    .slice(0, MOST_PICTURES)
    .map((column) =>
      isLine ? sweepLines(shown, models, column) : modelBars(shown, models, column),
    );
}

function numberIn(row: ComparedRow, column: ShownColumn): number {
  const value = valueIn(row, column);
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : Number.NaN;
}

const modelBars = (
  shown: ShownComparison,
  models: readonly ComparedRow[],
  column: ShownColumn,
): Picture => ({
  kind: 'bars',
  title: titleOfKey(column.title),
  ...unitOf(column),
  bars: models
    .filter((row) => Number.isFinite(numberIn(row, column)))
    .slice(0, MOST_BARS)
    .map((row) => ({
      label: shown.labelOf(row),
      value: numberIn(row, column),
      tone: row === shown.baseline ? 'hue2' : 'hue1',
    })),
  levels: [],
});

/** Bars that are still legible on a page. */
const MOST_BARS = 40;

const unitOf = ({ unit }: ShownColumn) => {
  const known = UNITS[unit];
  return known === undefined ? {} : { unit: known };
};

/** A figure over the first swept key, with a line for each combination of the others. */
function sweepLines(
  shown: ShownComparison,
  models: readonly ComparedRow[],
  column: ShownColumn,
): Picture {
  const { swept } = shown.result;
  const lines = new Map<string, [number, number][]>();
  for (const row of models) {
    const [x = '', ...others] = row.chosen;
    const label = [
      ...(shown.hasSeveralFiles ? [shown.nameOf(row)] : []),
      ...others.map((value, index) => `${titleOfKey(swept[index + 1])}=${value}`),
    ].join(', ');
    const points = lines.get(label) ?? [];
    points.push([Number(x), numberIn(row, column)]);
    lines.set(label, points);
  }
  const curves = [...lines].slice(0, MOST_LINES).map(
    ([label, points], index): Curve => ({
      label: label || titleOfKey(column.title),
      tone: hueOf(index),
      points: points.toSorted(([a], [b]) => a - b),
    }),
  );
  return {
    kind: 'line plot',
    title: `${titleOfKey(column.title)} over ${titleOfKey(swept[0])}`,
    x: { title: titleOfKey(swept[0]) },
    y: { title: titleOfKey(column.title), from: 0, ...unitOf(column) },
    curves,
  };
}

/** Lines that can be told apart. */
const MOST_LINES = 8;
