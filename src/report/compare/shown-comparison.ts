/** A comparison as people read it: labels of the models, and values as texts. */

import {
  formatBytes,
  formatChange,
  formatCount,
  formatFlops,
  formatInteger,
  percentText,
  shortCount,
} from '../../base/text/units.js';
import { capital, counted, joined, modelName } from '../../base/text/words.js';
import type { ColumnValue } from '../../estimate/comparison/columns.js';
import type {
  ComparedRow,
  ComparisonTable,
  ShownColumn,
} from '../../estimate/comparison/compare-models.js';
import type { Cell, Verdict } from '../kit/report.js';

export type Value = ColumnValue | undefined;

/** A comparison, and the labels of its models. */
export class ShownComparison {
  readonly result: ComparisonTable;
  /** The shortest unique name of each file. */
  readonly names: ReadonlyMap<string, string>;

  constructor(result: ComparisonTable) {
    this.result = result;
    const files = [...new Set(result.rows.map(({ file }) => file))];
    this.names = shortNames(files, commonFolder(files));
  }

  get hasSeveralFiles(): boolean {
    return this.names.size > 1;
  }

  nameOf({ file }: ComparedRow): string {
    return this.names.get(file) ?? file;
  }

  /** Label of a model: its name, and the values of the swept keys. */
  labelOf(row: ComparedRow): string {
    const values = row.chosen.map(
      (value, index) => `${titleOfKey(this.result.swept[index])}=${value}`,
    );
    const name = this.hasSeveralFiles || values.length === 0 ? [this.nameOf(row)] : [];
    return [...name, ...values].join(', ');
  }

  get baseline(): ComparedRow | undefined {
    return this.result.rows[this.result.baseline];
  }
}

function commonFolder(files: readonly string[]): string {
  const [first = ''] = files;
  if (files.length < 2) return '';
  const parts = first.split('/').slice(0, -1);
  const folders = parts.map((_, index) => `${parts.slice(0, index + 1).join('/')}/`);
  return folders.findLast((folder) => files.every((file) => file.startsWith(folder))) ?? '';
}

/** Common suffix of configs; those of Hugging Face are named by their folders. */
const EXTENSION = /(?:\/config)?\.(?:ya?ml|json)$/i;

/** The names that people use, where they differ; else the paths. */
function shortNames(files: readonly string[], folder: string): Map<string, string> {
  const inFolder = files.map((file) => file.slice(folder.length));
  const bare = inFolder.map((name) => name.replace(EXTENSION, ''));
  const choices = [files.map(modelName), bare, inFolder];
  const names = choices.find((each) => new Set(each).size === files.length) ?? inFolder;
  return new Map(files.map((file, index) => [file, names[index] || file]));
}

/** `num_layers` from `model.num_layers`. */
export const titleOfKey = (key: string | undefined) => key?.replace(/^model\./, '') ?? '';

// Values as texts.

const FORMATS = {
  parameters: (value) => formatCount(value),
  bytes: formatBytes,
  FLOP: formatFlops,
  number: formatInteger,
} as const satisfies Partial<Record<ShownColumn['unit'], (value: number | bigint) => string>>;

export function columnValueText(value: ColumnValue, unit: ShownColumn['unit']): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string' || value === null) return String(value);
  if (unit === 'ratio') return Number(value).toFixed(2);
  return unit === 'value' || unit === 'word' ? String(value) : FORMATS[unit](wholeOf(value));
}

/** Rounded, because costs per character are not integers. */
const wholeOf = (value: number | bigint) => (typeof value === 'bigint' ? value : Math.round(value));

/** Value of a model in a column. */
export function valueIn(row: ComparedRow | undefined, { name, unit }: ShownColumn): Value {
  if (unit === 'value') return row?.values?.[name];
  return (row?.figures as Readonly<Record<string, ColumnValue>> | null | undefined)?.[name];
}

export function changeCell(
  { baseline }: ShownComparison,
  row: ComparedRow,
  column: ShownColumn,
): Cell {
  const [value, base] = [valueIn(row, column), valueIn(baseline, column)];
  if (!isNumber(value) || !isNumber(base)) return { text: '' };
  return { text: formatChange(...inWholes(value, base)), tone: 'dim' };
}

const isNumber = (value: Value): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';

/** Scales two values to integers; the error is far below the shown precision. */
function inWholes(...pair: [number | bigint, number | bigint]): [number | bigint, number | bigint] {
  const isWhole = pair.every((each) => typeof each === 'bigint' || Number.isInteger(each));
  if (isWhole) return pair;
  const [a, b] = pair.map((each) => BigInt(Math.round(Number(each) * 1e6)));
  return [a ?? 0n, b ?? 0n];
}

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
      : columnRange(shown, models, other);
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
    : columnValueText(value, column.unit);
};

const amount = (value: Value, column: ShownColumn) =>
  value === null || value === undefined
    ? `no ${nounOf(column)}`
    : column.unit === 'parameters' && isNumber(value)
      ? `${shortCount(value)} ${nounOf(column)}`
      : `${nounOf(column)} ${columnValueText(value, column.unit)}`;

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

function columnRange(
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
