/** Report of `minimind compare`: the main difference, and the models in columns, or in rows when there are many. */
import type { ColumnValue, Disagreement } from '../../comparison/columns.js';
import type { ComparedRow, ComparisonTable, ShownColumn } from '../../comparison/compare-models.js';
import {
  formatBytes,
  formatChange,
  formatCount,
  formatFlops,
  formatInteger,
  percentText,
  shortCount,
} from '../../text/units.js';
import { counted, joined, modelName, shortened } from '../../text/words.js';
import { contextText, heading, left, note, right, settingNotes } from '../kit/cells.js';
import type { Block, Cell, Column, Report, TableBlock, Tone, Verdict } from '../kit/report.js';

type Value = ColumnValue | undefined;

/**
 * @param columns Columns of the answer; --details has all.
 * @param isChosen Whether the user chose the columns, which are then all shown.
 */
export function compareReport(
  result: ComparisonTable,
  {
    columns = result.columns,
    isChosen = false,
  }: { readonly columns?: readonly ShownColumn[]; readonly isChosen?: boolean } = {},
): Report {
  const shown = new Shown(result);
  const answer = { shown, columns, isChosen };
  const { blocks, details } = result.layout === 'rows' ? inRows(answer) : inColumns(answer);
  return {
    verdict: verdictOf(shown),
    blocks,
    details: [...settingDetails(shown), ...details, ...invalidBlocks(shown)],
    data: flatTable(shown),
  };
}

/** Columns and names of an answer. */
interface Answer {
  readonly shown: Shown;
  readonly columns: readonly ShownColumn[];
  readonly isChosen: boolean;
}

/** A comparison, and the labels of its models. */
class Shown {
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
const titleOfKey = (key: string | undefined) => key?.replace(/^model\./, '') ?? '';

// The main difference

function verdictOf(shown: Shown): Verdict {
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
    : textOf(value, column.unit);
};

const amount = (value: Value, column: ShownColumn) =>
  value === null || value === undefined
    ? `no ${nounOf(column)}`
    : column.unit === 'parameters' && isNumber(value)
      ? `${shortCount(value)} ${nounOf(column)}`
      : `${nounOf(column)} ${textOf(value, column.unit)}`;

/** `4.0`, `1,234`. */
const ratioText = (ratio: number) =>
  ratio < 100 ? ratio.toFixed(1) : formatInteger(Math.round(ratio));

/** Ratio from which a multiple is easier to read than a percentage. */
const MULTIPLE = 2;

function pairText(
  shown: Shown,
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

function rangeText(shown: Shown, models: readonly ComparedRow[], column: ShownColumn): string {
  const values = models.flatMap((row) => {
    const value = valueIn(row, column);
    return isNumber(value) ? [{ row, value: Number(value) }] : [];
  });
  const [least, most] = [
    values.reduce((a, b) => (b.value < a.value ? b : a)),
    values.reduce((a, b) => (b.value > a.value ? b : a)),
  ];
  const ratio = least.value > 0 ? ` (×${ratioText(most.value / least.value)})` : '';
  const [low, high] = [least.row, most.row].map((row) => textIn(row, column));
  const [smallest, largest] = [least.row, most.row].map((row) => shown.labelOf(row));
  return column.unit === 'parameters'
    ? `Smallest: ${smallest}, ${low} ${nounOf(column)}. Largest: ${largest}, ${high}${ratio}`
    : `Lowest ${nounOf(column)}: ${smallest}, ${low}. Highest: ${largest}, ${high}${ratio}`;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

// Conditions

const hasTraining = (columns: readonly ShownColumn[]) =>
  columns.some(({ name }) => name.startsWith('training-'));

/** The setting that the figures depend on, in a line or two. */
function conditionNotes({ shown, columns }: Answer, more = ''): Block[] {
  const { setting, rows, least } = shown.result;
  const { inference, training, origins } = setting;
  const file = shown.hasSeveralFiles ? 'files' : 'file';
  const parts = [
    `Inference: ${formatInteger(inference.batch)} × ${formatInteger(inference.context)} tokens` +
      `${contextText(origins.context).replace('file', file)}, ${inference.dtype}.`,
    ...(hasTraining(columns)
      ? [
          `Training: ${formatInteger(training.batch)} × ${formatInteger(training.context)} tokens, ` +
            `${training.precision === 'mixed' ? 'mixed precision' : 'float32'}, ${training.optimizer}.`,
        ]
      : []),
  ];
  const isMarked = columns.some(({ name }) => name in least);
  const marks =
    isMarked && shown.baseline && rows.length > 1
      ? `* lowest. Changes are against ${shown.labelOf(shown.baseline)}.`
      : '';
  return [parts.join(' '), [marks, more].filter(Boolean).join(' ')].filter(Boolean).map(note);
}

/** Settings in which the files disagree. */
const DISAGREEMENTS = {
  batch: 'training batches of',
  context: 'sequences of',
  precision: 'training in',
  recompute: 'recomputation:',
} as const satisfies Record<Disagreement['of'], string>;

/** Where the setting is from. */
function settingDetails({ result: { setting, columns }, hasSeveralFiles }: Shown): Block[] {
  return [
    ...settingNotes(setting, hasSeveralFiles ? 'files' : 'file'),
    ...setting.disagreements
      .filter(({ of }) => hasTraining(columns) || of === 'context')
      .map(({ of, said }) =>
        note(
          `The files ask for ${DISAGREEMENTS[of]} ${joined(said.map(String))}; all models use the same setting.`,
        ),
      ),
  ];
}

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

/** Rows of an answer: all of them, or the first ten. */
const MOST_ROWS = 12;
const FIRST_ROWS = 10;

function inRows(answer: Answer): Pick<Report, 'blocks'> & { readonly details: readonly Block[] } {
  const { shown, columns, isChosen } = answer;
  const { rows, differing } = shown.result;
  const isCut = rows.length > MOST_ROWS;
  const first = isCut ? rows.slice(0, FIRST_ROWS) : rows;
  const hidden = rows.length - first.length;
  return {
    blocks: [
      ...conditionNotes(answer),
      rowLadder(shown, first, columns, isChosen),
      ...(isCut ? [note(`… ${formatInteger(hidden)} more: --details`)] : []),
    ],
    details: [
      ...(isCut || shown.result.columns.length > columns.length
        ? [heading('All models'), rowLadder(shown, rows, shown.result.columns, true)]
        : []),
      ...(shown.hasSeveralFiles && differing.length > 0
        ? [heading('Differing settings'), differenceTable(shown)]
        : []),
    ],
  };
}

/** A table with changes, without them, and with fewer columns unless the user chose them. */
function rowLadder(
  shown: Shown,
  rows: readonly ComparedRow[],
  columns: readonly ShownColumn[],
  isWhole: boolean,
): TableBlock {
  const fewer = (count: number): TableBlock => ({
    ...rowTable(shown, rows, columns.slice(0, count), false),
    narrower: count > 1 && !isWhole ? fewer(count - 1) : undefined,
  });
  return { ...rowTable(shown, rows, columns, true), narrower: fewer(columns.length) };
}

/** @param hasChanges Whether each cost has a column for its change from the baseline. */
function rowTable(
  shown: Shown,
  rows: readonly ComparedRow[],
  from: readonly ShownColumn[],
  hasChanges: boolean,
): TableBlock {
  const { result, hasSeveralFiles } = shown;
  const columns = from.filter(({ name }) => !result.swept.includes(name));
  const isChanging = (column: ShownColumn) =>
    hasChanges && rows.some((row) => changeCell(shown, row, column).text !== '');
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
    rows: rows.map((row) => [
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
      rows: rows.map((row) => [
        { text: shown.nameOf(row) },
        { text: text(row) || 'as the baseline' },
      ]),
    },
  };
}

// ── Models in columns ────────────────────────────────────────────────────────────────────────────

/** Rows of an answer with models in columns; names wrap where there are three models or more. */
const MOST_SIDE_ROWS = 12;
const MOST_WRAPPED_ROWS = 10;
/** Characters of a setting's name in an answer. */
const LONGEST_NAME = 28;
/** Settings that are shown beside the figures, at least. */
const LEAST_SETTINGS = 4;

function inColumns(
  answer: Answer,
): Pick<Report, 'blocks'> & { readonly details: readonly Block[] } {
  const { shown, columns } = answer;
  const { result } = shown;
  const { differing } = result;
  const models = result.rows.filter(({ valid }) => valid);
  const room = Math.max(
    LEAST_SETTINGS,
    (models.length > 2 ? MOST_WRAPPED_ROWS : MOST_SIDE_ROWS) - columns.length,
  );
  const settings = models.length < 2 ? [] : differing.slice(0, room);
  const hidden = models.length < 2 ? 0 : differing.length - settings.length;
  const more =
    hidden > 0
      ? `${counted(hidden, 'more setting')} differ${hidden === 1 ? 's' : ''}: --details.`
      : '';
  const table = (
    keys: readonly string[],
    figures: readonly ShownColumn[],
    limit: number,
  ): TableBlock => ({
    ...sideTable(shown, models, { keys, figures, limit, hasChanges: true }),
    narrower: {
      ...sideTable(shown, models, { keys, figures, limit, hasChanges: false }),
      narrower: rowLadder(shown, models, figures, answer.isChosen),
    },
  });
  return {
    blocks: [
      ...conditionNotes(answer, more),
      table(settings, columns, LONGEST_VALUE),
      ...invalidNotes(shown),
    ],
    details:
      hidden > 0 || models.length > 2 || result.columns.length > columns.length
        ? [
            heading('All settings and figures'),
            table(differing, result.columns, Number.POSITIVE_INFINITY),
          ]
        : [],
  };
}

/** Characters of a setting in an answer; lists can be long. */
const LONGEST_VALUE = 20;

/** The settings that differ, then the figures; a column for each model. */
function sideTable(
  shown: Shown,
  models: readonly ComparedRow[],
  {
    keys,
    figures,
    limit,
    hasChanges,
  }: {
    readonly keys: readonly string[];
    readonly figures: readonly ShownColumn[];
    readonly limit: number;
    readonly hasChanges: boolean;
  },
): TableBlock {
  const isChanged = (row: ComparedRow) =>
    hasChanges && figures.some((column) => changeCell(shown, row, column).text !== '');
  // Names next to many models would wrap over several lines; the answer then has models in rows.
  const canWrap = models.length <= 2 || limit > LONGEST_VALUE;
  const isOfSettings = keys.some((key) => key !== 'model.family');
  const line = (
    title: string,
    cell: (row: ComparedRow) => Cell,
    change: (row: ComparedRow) => Cell,
  ): Cell[] => [
    { text: title },
    ...models.flatMap((row) => [cell(row), ...(isChanged(row) ? [change(row)] : [])]),
  ];
  return {
    kind: 'table',
    columns: [
      left(isOfSettings ? 'setting or figure' : 'figure', 'figure', !hasChanges && canWrap),
      ...models.flatMap((row) => [
        right(shown.labelOf(row), shown.labelOf(row)),
        ...(isChanged(row) ? [right('change', 'change')] : []),
      ]),
    ],
    rows: [
      ...keys.map((key) =>
        line(
          shortened(titleOfKey(key), limit === LONGEST_VALUE ? LONGEST_NAME : limit),
          (row) => {
            const cell = keyCell(row, shown.baseline, key);
            return { ...cell, text: shortened(cell.text, limit) };
          },
          () => ({ text: '' }),
        ),
      ),
      ...figures.map((column) =>
        line(
          titleOfKey(column.title),
          (row) => markedCell(shown, row, column),
          (row) => (column.isCost ? changeCell(shown, row, column) : { text: '' }),
        ),
      ),
    ],
  };
}

// ── Notes ────────────────────────────────────────────────────────────────────────────────────────

const invalidRows = ({ result }: Shown) => result.rows.filter(({ valid }) => !valid);

function invalidNotes(shown: Shown): Block[] {
  const names = invalidRows(shown).map((row) => shown.labelOf(row));
  return names.length === 0
    ? []
    : [{ kind: 'note', tone: 'bad', text: `Not valid: ${joined(names)}.` }];
}

function invalidBlocks(shown: Shown): Block[] {
  const invalid = invalidRows(shown);
  if (invalid.length === 0) return [];
  return [
    heading(`Not valid: ${invalid.length} of ${shown.result.rows.length}`),
    {
      kind: 'table',
      columns: [left('model', 'model', true), left('reason', 'reason', true)],
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
