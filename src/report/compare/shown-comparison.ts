/** A comparison as people read it: labels of the models, and values as texts. */
import type { ColumnValue } from '../../comparison/columns.js';
import type { ComparedRow, ComparisonTable, ShownColumn } from '../../comparison/compare-models.js';
import {
  formatBytes,
  formatChange,
  formatCount,
  formatFlops,
  formatInteger,
} from '../../text/units.js';
import { modelName } from '../../text/words.js';
import type { Cell } from '../kit/report.js';

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

  /** The name, and the values of the swept keys. */
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

export function valueText(value: ColumnValue, unit: ShownColumn['unit']): string {
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

export const isNumber = (value: Value): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';

/** Scales two values to integers; the error is far below the shown precision. */
export function inWholes(
  ...pair: [number | bigint, number | bigint]
): [number | bigint, number | bigint] {
  const isWhole = pair.every((each) => typeof each === 'bigint' || Number.isInteger(each));
  if (isWhole) return pair;
  const [a, b] = pair.map((each) => BigInt(Math.round(Number(each) * 1e6)));
  return [a ?? 0n, b ?? 0n];
}
