/** Report of `minimind compare`: models in columns, or in rows when there are many. */
import type { ColumnValue, Disagreement } from '../../comparison/columns.js';
import type { ComparedRow, ComparisonTable, ShownColumn } from '../../comparison/compare-models.js';
import {
  formatBytes,
  formatChange,
  formatCount,
  formatFlops,
  formatInteger,
} from '../../text/units.js';
import { counted, joined } from '../../text/words.js';
import { heading, inferenceNote, left, note, right, settingNotes } from '../kit/cells.js';
import type { Block, Cell, Column, Report, TableBlock, Tone } from '../kit/report.js';

type Value = ColumnValue | undefined;

/** @param flat Whether to output one table with all values, for programs. */
export function compareReport(
  result: ComparisonTable,
  { flat }: { readonly flat: boolean },
): Report {
  const shown = new Shown(result);
  if (flat) return { blocks: [flatTable(shown)] };
  return {
    blocks: [
      heading(titleOf(shown)),
      ...conditionNotes(shown),
      ...(result.layout === 'rows' ? rowBlocks(shown) : sideBySideBlocks(shown)),
      ...markNotes(shown),
      ...invalidBlocks(shown),
    ],
  };
}

/** A comparison, and the labels of its models. */
class Shown {
  readonly result: ComparisonTable;
  /** The shortest unique name of each file. */
  readonly names: ReadonlyMap<string, string>;
  readonly folder: string;

  constructor(result: ComparisonTable) {
    this.result = result;
    const files = [...new Set(result.rows.map(({ file }) => file))];
    this.folder = commonFolder(files);
    this.names = shortNames(files, this.folder);
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

function shortNames(files: readonly string[], folder: string): Map<string, string> {
  const inFolder = files.map((file) => file.slice(folder.length));
  const bare = inFolder.map((name) => name.replace(EXTENSION, ''));
  const names = new Set(bare).size === files.length ? bare : inFolder;
  return new Map(files.map((file, index) => [file, names[index] || file]));
}

/** `num_layers` from `model.num_layers`. */
const titleOfKey = (key: string | undefined) => key?.replace(/^model\./, '') ?? '';

function titleOf({ result, names, folder }: Shown): string {
  const many = counted(result.rows.length, 'model');
  if (names.size === 1) return `${many} of ${[...names.keys()][0]}`;
  return folder === '' ? many : `${many} in ${folder}`;
}

/** Notes on the setting that the shown figures depend on. */
function conditionNotes({ result, hasSeveralFiles }: Shown): Block[] {
  const { setting, columns } = result;
  const isTraining = columns.some(({ name }) => name.startsWith('training-'));
  const file = hasSeveralFiles ? 'files' : 'file';
  return [
    ...(isTraining ? settingNotes(setting, file) : [inferenceNote(setting, file)]),
    ...setting.disagreements
      .filter(({ of }) => isTraining || of === 'context')
      .map(disagreementNote),
  ];
}

/** Settings in which the files disagree. */
const DISAGREEMENTS = {
  batch: 'batches of the training of',
  context: 'sequences of',
  precision: 'training in',
  recompute: 'recomputation:',
} as const satisfies Record<Disagreement['of'], string>;

const disagreementNote = ({ of, said }: Disagreement): Block =>
  note(
    `The files ask for ${DISAGREEMENTS[of]} ${joined(said.map(String))}; all models are counted alike.`,
  );

// ── Cells ────────────────────────────────────────────────────────────────────────────────────────

const NOTHING: Cell = { text: '–', value: '' };

const FORMATS = {
  parameters: (value) => formatCount(value),
  bytes: formatBytes,
  FLOP: formatFlops,
  number: formatInteger,
} as const satisfies Partial<Record<ShownColumn['unit'], (value: number | bigint) => string>>;

function textOf(value: ColumnValue, unit: ShownColumn['unit']): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string' || value === null) return String(value);
  if (unit === 'ratio') return Number(value).toFixed(2);
  return unit === 'value' || unit === 'word' ? String(value) : FORMATS[unit](wholeOf(value));
}

/** Rounded, because costs per character are not integers. */
const wholeOf = (value: number | bigint) => (typeof value === 'bigint' ? value : Math.round(value));

function cellOf(value: Value, unit: ShownColumn['unit'], tone: Tone = 'plain', mark = ''): Cell {
  if (value === null || value === undefined) return NOTHING;
  const exact = typeof value === 'bigint' ? String(value) : value;
  return { text: mark + textOf(value, unit), value: exact, tone };
}

/** Value of a model in a column. */
function valueIn(row: ComparedRow | undefined, { name, unit }: ShownColumn): Value {
  if (unit === 'value') return row?.values?.[name];
  return (row?.figures as Readonly<Record<string, ColumnValue>> | null | undefined)?.[name];
}

/** The minimum of a column has a mark that is visible without colours too. */
function markedCell({ result }: Shown, row: ComparedRow, column: ShownColumn): Cell {
  const value = valueIn(row, column);
  const least = (result.least as Readonly<Record<string, ColumnValue>>)[column.name];
  const isLeast = least !== undefined && value === least;
  return cellOf(value, column.unit, isLeast ? 'good' : 'plain', isLeast ? '*' : '');
}

function changeCell({ baseline }: Shown, row: ComparedRow, column: ShownColumn): Cell {
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

const keyCell = (row: ComparedRow, baseline: ComparedRow | undefined, key: string): Cell => {
  const value = row.values?.[key];
  return cellOf(value, 'value', value === baseline?.values?.[key] ? 'plain' : 'strong');
};

const align = ({ unit }: ShownColumn): Column['align'] => (unit === 'word' ? 'left' : 'right');

/** Key in CSV, with the unit: `kv_cache_bytes`. */
function csvKey({ name, unit }: ShownColumn): string {
  if (unit === 'value') return name;
  const suffix = unit === 'bytes' && !name.endsWith('bytes') ? '_bytes' : '';
  return name.replaceAll('-', '_') + suffix;
}

// ── Models in rows ───────────────────────────────────────────────────────────────────────────────

function flatTable(shown: Shown): TableBlock {
  const { result } = shown;
  const keys = result.differing.filter((key) => !result.columns.some(({ name }) => name === key));
  return {
    kind: 'table',
    columns: [
      left('model', 'model'),
      ...result.swept.map((key) => right(titleOfKey(key), key)),
      left('valid', 'valid'),
      ...result.columns
        .filter(({ name }) => !result.swept.includes(name))
        .map((column) => right(column.title, csvKey(column))),
      ...keys.map((key) => right(titleOfKey(key), key)),
    ],
    rows: result.rows.map((row) => [
      { text: row.file },
      ...row.chosen.map((text) => ({ text })),
      { text: row.valid ? 'yes' : 'no', value: row.valid },
      ...result.columns
        .filter(({ name }) => !result.swept.includes(name))
        .map((column) => cellOf(valueIn(row, column), column.unit)),
      ...keys.map((key) => cellOf(row.values?.[key], 'value')),
    ]),
  };
}

function rowBlocks(shown: Shown): Block[] {
  const { result, hasSeveralFiles } = shown;
  return [
    { ...rowTable(shown, true), narrower: rowTable(shown, false) },
    ...(hasSeveralFiles && result.differing.length > 0
      ? [heading('In what their configs differ'), differenceTable(shown)]
      : []),
  ];
}

/** @param hasChanges Whether each cost has a column for its change from the first model. */
function rowTable(shown: Shown, hasChanges: boolean): TableBlock {
  const { result, hasSeveralFiles } = shown;
  const columns = result.columns.filter(({ name }) => !result.swept.includes(name));
  const isChanging = (column: ShownColumn) =>
    hasChanges && result.rows.some((row) => changeCell(shown, row, column).text !== '');
  const names = hasSeveralFiles || result.swept.length === 0;
  return {
    kind: 'table',
    columns: [
      ...(names ? [left('model', 'model', true)] : []),
      ...result.swept.map((key) => right(titleOfKey(key), key)),
      ...columns.flatMap((column) => [
        { title: titleOfKey(column.title), key: csvKey(column), align: align(column) ?? 'left' },
        ...(column.isCost && isChanging(column) ? [right('', `${csvKey(column)}_change`)] : []),
      ]),
    ],
    rows: result.rows.map((row) => [
      ...(names ? [{ text: shown.nameOf(row) }] : []),
      ...row.chosen.map((text) => ({ text })),
      ...columns.flatMap((column, index) => [
        row.valid || index > 0
          ? row.valid
            ? markedCell(shown, row, column)
            : { text: '' }
          : ({ text: 'not valid', tone: 'bad' } as const),
        ...(column.isCost && isChanging(column) ? [changeCell(shown, row, column)] : []),
      ]),
    ]),
  };
}

/** One row per file, with the values of the keys that differ. */
function differenceTable(shown: Shown): TableBlock {
  const { result, baseline } = shown;
  const rows = [...shown.names.keys()].flatMap(
    (file) => result.rows.find((row) => row.file === file && row.valid) ?? [],
  );
  const text = (row: ComparedRow) =>
    result.differing
      .filter((key) => row === baseline || row.values?.[key] !== baseline?.values?.[key])
      .map((key) => `${titleOfKey(key)}=${row.values?.[key] ?? '–'}`)
      .join(', ');
  return {
    kind: 'table',
    columns: [
      left('model', 'model', true),
      ...result.differing.map((key) => right(titleOfKey(key), key)),
    ],
    rows: rows.map((row) => [
      { text: shown.nameOf(row) },
      ...result.differing.map((key) => keyCell(row, baseline, key)),
    ]),
    narrower: {
      kind: 'table',
      columns: [left('model', 'model', true), left('values', 'values', true)],
      rows: rows.map((row) => [{ text: shown.nameOf(row) }, { text: text(row) || 'the same' }]),
    },
  };
}

// ── Models in columns ────────────────────────────────────────────────────────────────────────────

function sideBySideBlocks(shown: Shown): Block[] {
  const { result, baseline } = shown;
  const models = result.rows.filter(({ valid }) => valid);
  const titles = models.map((row) => right(shown.labelOf(row), shown.labelOf(row)));
  const differences: TableBlock = {
    kind: 'table',
    columns: [left('in the config', 'key', true), ...titles],
    rows: result.differing.map((key) => [
      { text: titleOfKey(key) },
      ...models.map((row) => keyCell(row, baseline, key)),
    ]),
  };
  const figures = (hasChanges: boolean): TableBlock => {
    const isChanged = (row: ComparedRow) =>
      hasChanges && result.columns.some((column) => changeCell(shown, row, column).text !== '');
    return {
      kind: 'table',
      columns: [
        left('figure', 'figure', true),
        ...models.flatMap((row) => [
          right(shown.labelOf(row), shown.labelOf(row)),
          ...(isChanged(row) ? [right('', 'change')] : []),
        ]),
      ],
      rows: result.columns.map((column) => [
        { text: titleOfKey(column.title) },
        ...models.flatMap((row) => [
          markedCell(shown, row, column),
          ...(isChanged(row)
            ? [column.isCost ? changeCell(shown, row, column) : { text: '' }]
            : []),
        ]),
      ]),
    };
  };
  const isSeveral = models.length > 1;
  return [
    ...(isSeveral && result.differing.length > 0 ? [differences] : []),
    { ...figures(true), narrower: { ...figures(false), narrower: rowTable(shown, false) } },
  ];
}

// ── Notes ────────────────────────────────────────────────────────────────────────────────────────

function markNotes(shown: Shown): Block[] {
  const { result, baseline } = shown;
  if (!baseline || result.rows.length < 2) return [];
  const isMarked = result.columns.some(({ name }) => name in result.least);
  return isMarked
    ? [note(`* the least of all. Changes are against ${shown.labelOf(baseline)}.`)]
    : [];
}

function invalidBlocks(shown: Shown): Block[] {
  const invalid = shown.result.rows.filter(({ valid }) => !valid);
  if (invalid.length === 0) return [];
  return [
    heading(`Not valid: ${invalid.length} of ${shown.result.rows.length}`),
    {
      kind: 'table',
      columns: [left('model', 'model', true), left('why', 'why', true)],
      rows: invalid.map((row) => [
        { text: shown.labelOf(row) },
        {
          text: row.problems
            .filter(({ severity }) => severity === 'error')
            .map(({ path, message }) => (path ? `${path}: ${message}` : message))
            .join('; '),
        },
      ]),
    },
  ];
}
