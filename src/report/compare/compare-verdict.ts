/** Verdict of `minimind compare`. */
import type { ComparedRow, ComparisonTable, ShownColumn } from '../../comparison/compare-models.js';
import { formatChange, formatInteger, percentText, shortCount } from '../../text/units.js';
import { capital, counted, joined } from '../../text/words.js';
import type { Verdict } from '../kit/report.js';
import {
  changeCell,
  inWholes,
  isNumber,
  type ShownComparison,
  type Value,
  valueIn,
  valueText,
} from './shown-comparison.js';

/** The difference that matters most: of two models, or between the smallest and the largest. */
export function comparisonVerdict(shown: ShownComparison): Verdict {
  const { result, baseline } = shown;
  const models = result.rows.filter(({ valid }) => valid);
  const column = mainColumn(result);
  const [first] = models;
  if (!first || !baseline || !column) return { text: counted(models.length, 'model') };
  if (models.length === 1) {
    return { text: `${shown.labelOf(first)}: ${amount(valueIn(first, column), column)}` };
  }
  const isSame = models.every((row) => valueIn(row, column) === valueIn(first, column));
  const other = isSame ? mostDifferent(result, models) : column;
  const [all, both] = [`All ${models.length} models`, models.map((row) => shown.labelOf(row))];
  const who = models.length === 2 ? joined(both) : all;
  const same = isSame
    ? `${who} have the same ${nounOf(column)} (${textIn(first, column)}).`
    : undefined;
  if (!other) return { text: same?.replace(/\.$/, ', and no other figure differs') ?? '' };
  const difference =
    models.length === 2
      ? pairText(shown, models.find((row) => row !== baseline) ?? first, baseline, other)
      : rangeText(shown, models, other);
  return { text: [same, difference].filter(Boolean).join(' ') };
}

/** Parameters, or the first cost that is shown in their place. */
function mainColumn({ columns }: ComparisonTable): ShownColumn | undefined {
  const costs = columns.filter(({ isCost }) => isCost);
  return costs.find(({ name }) => name === 'parameters') ?? costs[0] ?? PARAMETERS;
}

const PARAMETERS: ShownColumn = {
  name: 'parameters',
  title: 'parameters',
  unit: 'parameters',
  isCost: true,
};

/** The cost with the largest ratio between two models; undefined when all are the same. */
function mostDifferent({ columns }: ComparisonTable, models: readonly ComparedRow[]) {
  const spread = (column: ShownColumn) => {
    const values = models.map((row) => Number(valueIn(row, column) ?? Number.NaN));
    return Math.max(...values) / Math.min(...values);
  };
  return columns
    .filter((column) => column.isCost && spread(column) > 1)
    .reduce<ShownColumn | undefined>(
      (most, column) => (most && spread(most) >= spread(column) ? most : column),
      undefined,
    );
}

/** `parameters`, `active parameters`, `KV cache`. */
const nounOf = ({ name, title, unit }: ShownColumn) =>
  unit === 'parameters' && name !== 'parameters' ? `${title} parameters` : title;

const textIn = (row: ComparedRow, column: ShownColumn) => {
  const value = valueIn(row, column);
  if (value === null || value === undefined) return '–';
  return column.unit === 'parameters' && isNumber(value)
    ? shortCount(value)
    : valueText(value, column.unit);
};

const amount = (value: Value, column: ShownColumn) =>
  value === null || value === undefined
    ? `no ${nounOf(column)}`
    : column.unit === 'parameters' && isNumber(value)
      ? `${shortCount(value)} ${nounOf(column)}`
      : `${nounOf(column)} ${valueText(value, column.unit)}`;

/** `4.0`, `1,234`. */
const ratioText = (ratio: number) =>
  ratio < 100 ? ratio.toFixed(1) : formatInteger(Math.round(ratio));

/** Ratio from which a multiple is easier to read than a percentage. */
const MULTIPLE = 2;

function pairText(
  shown: ShownComparison,
  row: ComparedRow,
  baseline: ComparedRow,
  column: ShownColumn,
): string {
  const [name, other] = [shown.labelOf(row), shown.labelOf(baseline)];
  const [text, base] = [textIn(row, column), textIn(baseline, column)];
  const ratio = Number(valueIn(row, column) ?? 0) / Number(valueIn(baseline, column) ?? 0);
  if (!(ratio > 0) || !Number.isFinite(ratio)) {
    return `${name} has ${text} ${nounOf(column)}, ${other} ${base}`;
  }
  const change = changeCell(shown, row, column).text.replace(/[+−]/, '');
  const share = change.includes('%') ? change : percentText(1 - ratio);
  if (column.unit === 'parameters') {
    const noun = nounOf(column);
    const how =
      ratio >= MULTIPLE
        ? `${ratioText(ratio)} × the ${noun} of`
        : `${share} ${ratio > 1 ? 'more' : 'fewer'} ${noun} than`;
    return `${name} has ${how} ${other} (${text} vs ${base})`;
  }
  const how =
    ratio >= MULTIPLE
      ? `${ratioText(ratio)} × that of`
      : `${share} ${ratio > 1 ? 'more' : 'less'} than`;
  return `${capital(nounOf(column))} of ${name}: ${text}, ${how} ${other} (${base})`;
}

function rangeText(
  shown: ShownComparison,
  models: readonly ComparedRow[],
  column: ShownColumn,
): string {
  const values = models.flatMap((row) => {
    const value = valueIn(row, column);
    return isNumber(value) ? [{ row, value: Number(value) }] : [];
  });
  const [least, most] = [
    values.reduce((a, b) => (b.value < a.value ? b : a)),
    values.reduce((a, b) => (b.value > a.value ? b : a)),
  ];
  const factor = most.value / least.value;
  const ratio =
    factor >= MULTIPLE
      ? ` (×${ratioText(factor)})`
      : ` (${formatChange(...inWholes(most.value, least.value))})`;
  const [low, high] = [least.row, most.row].map((row) => textIn(row, column));
  const [smallest, largest] = [least.row, most.row].map((row) => shown.labelOf(row));
  return column.unit === 'parameters'
    ? `Smallest: ${smallest}, ${low} ${nounOf(column)}. Largest: ${largest}, ${high}${ratio}`
    : `Lowest ${nounOf(column)}: ${smallest}, ${low}. Highest: ${largest}, ${high}${ratio}`;
}
