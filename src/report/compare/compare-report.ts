/** Report of `minimind compare`: the main difference, and the models in columns, or in rows when there are many. */

import { setting } from '../../base/text/setting.js';
import { formatSequences } from '../../base/text/units.js';
import { counted, joined, shortened } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { ColumnValue, Disagreement } from '../../estimate/comparison/columns.js';
import type {
  ComparedRow,
  ComparisonTable,
  ShownColumn,
} from '../../estimate/comparison/compare-models.js';
import { fullWindowsText } from '../kit/full-windows.js';
import type { Block, Cell, Column, Report, TableBlock, Tone } from '../kit/report.js';
import {
  headingBlock,
  leftColumn,
  listBlocks,
  moreNote,
  NOTHING,
  noteOf,
  paragraph,
  right,
  tableOf,
  wrapColumn,
} from '../kit/report.js';
import { contextText, precisionText, settingNotes } from '../profile/setting-notes.js';
import { comparePictures } from './compare-pictures.js';
import type { Value } from './shown-comparison.js';
import {
  changeCell,
  columnValueText,
  comparisonVerdict,
  ShownComparison,
  titleOfKey,
  valueIn,
} from './shown-comparison.js';

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
  const shown = new ShownComparison(result);
  const answer = { shown, columns, isChosen };
  const { blocks, details } = result.layout === 'rows' ? inRows(answer) : inColumns(answer);
  return {
    verdict: comparisonVerdict(shown),
    blocks,
    details: [...settingDetails(answer), ...details, ...invalidBlocks(shown)],
    pictures: () => comparePictures(shown, columns),
    data: comparisonFlatTable(shown),
  };
}

/** Columns and names of an answer. */
interface Answer {
  readonly shown: ShownComparison;
  readonly columns: readonly ShownColumn[];
  readonly isChosen: boolean;
}

const hasTraining = (columns: readonly ShownColumn[]) =>
  columns.some(({ name }) => name.startsWith('training-'));

/** The setting that the figures depend on, in a line or two. */
function conditionNotes({ shown, columns }: Answer, more = ''): Block[] {
  const { setting, rows, least } = shown.result;
  const { inference, training, origins } = setting;
  const file = shown.hasSeveralFiles ? 'files' : 'file';
  const parts = present([
    `Inference: ${formatSequences(inference.batch, inference.context)}` +
      `${contextText(origins.context).replace('file', file)}, ${joined([...new Set(rows.flatMap(({ weights }) => weights ?? []))])}.`,
    hasTraining(columns) &&
      `Training: ${formatSequences(training.batch, training.context)}, ` +
        `${precisionText(training.precision)}, ${training.optimizer}, without workspace.`,
  ]);
  const isMarked = columns.some(({ name }) => name in least);
  const marks =
    isMarked && shown.baseline && rows.length > 1
      ? `* lowest. Changes are against ${shown.labelOf(shown.baseline)}.`
      : '';
  return [
    ...[parts.join(' '), [marks, more].filter(Boolean).join(' ')].filter(Boolean).map(noteOf),
    ...windowNotes(shown, columns),
  ];
}

const hasCaches = (columns: readonly ShownColumn[]) =>
  ['kv-per-token', 'kv-cache'].every((each) => columns.some(({ name }) => name === each));

/** Reason for caches that are smaller than the figure per token times the context, if a table has both. */
function windowNotes(shown: ShownComparison, columns: readonly ShownColumn[]): Block[] {
  if (!hasCaches(columns)) return [];
  const { rows, setting } = shown.result;
  const { batch, context } = setting.inference;
  const cut = rows.flatMap((row) => {
    if (row.figures === null) return [];
    const { 'kv-per-token': perToken, 'kv-cache': total } = row.figures;
    const caches = { perToken: Number(perToken), total: Number(total), tokens: batch * context };
    const text = fullWindowsText(caches);
    return text === undefined ? [] : [{ name: shown.labelOf(row), text }];
  });
  const [first, ...others] = cut;
  if (first === undefined) return [];
  const more = others.length > MOST_CUT ? [`${others.length - MOST_CUT} more`] : [];
  const names = [first, ...others.slice(0, MOST_CUT)].map(({ name }) => name);
  return [
    noteOf(
      `KV cache is smaller than KV per token × ${formatSequences(batch, context)}: ${first.text} ` +
        `(${joined([...names, ...more])}).`,
    ),
  ];
}

/** Number of further models that the note on full windows names. */
const MOST_CUT = 3;

/** Settings in which the files disagree. */
const DISAGREEMENTS = {
  batch: 'training batches of',
  context: 'sequences of',
  precision: 'training in',
  recompute: 'recomputation:',
} as const satisfies Record<Disagreement['of'], string>;

/** Sources of the setting. */
function settingDetails({ shown, columns: inAnswer }: Answer): Block[] {
  const { hasSeveralFiles } = shown;
  const { setting, columns } = shown.result;
  return [
    ...settingNotes(setting, hasSeveralFiles ? 'files' : 'file'),
    ...(hasCaches(inAnswer) ? [] : windowNotes(shown, columns)),
    ...setting.disagreements
      .filter(({ of }) => hasTraining(columns) || of === 'context')
      .map(({ of, said }) =>
        noteOf(
          `The files ask for ${DISAGREEMENTS[of]} ${joined(said.map(String))}; all models use the same setting.`,
        ),
      ),
  ];
}

function cellOf(value: Value, unit: ShownColumn['unit'], tone: Tone = 'plain', mark = ''): Cell {
  if (value === null || value === undefined) return NOTHING;
  const exact = typeof value === 'bigint' ? String(value) : value;
  return { text: mark + columnValueText(value, unit), value: exact, tone };
}

/** A cell of a figure. The minimum of a column has a mark that is visible without colours. */
function markedCell({ result }: ShownComparison, row: ComparedRow, column: ShownColumn): Cell {
  const value = valueIn(row, column);
  const least = (result.least as Readonly<Record<string, ColumnValue>>)[column.name];
  const isLeast = least !== undefined && value === least;
  return cellOf(value, column.unit, isLeast ? 'good' : 'plain', isLeast ? '*' : '');
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

function comparisonFlatTable(shown: ShownComparison): TableBlock {
  const { result } = shown;
  const keys = result.differing.filter((key) => !result.columns.some(({ name }) => name === key));
  return {
    kind: 'table',
    columns: [
      leftColumn('model', 'model'),
      ...result.swept.map((key) => right(titleOfKey(key), key)),
      leftColumn('valid', 'valid'),
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

/** Maximum models of an answer with all rows; a longer answer has the first ten. */
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
      ...moreNote(hidden, 'details'),
    ],
    details: [
      ...(isCut || shown.result.columns.length > columns.length
        ? [headingBlock('All models'), rowLadder(shown, rows, shown.result.columns, true)]
        : []),
      ...(shown.hasSeveralFiles && differing.length > 0
        ? [headingBlock('Differing settings'), differenceTable(shown)]
        : []),
    ],
  };
}

/** A table with changes, without them, and with fewer columns unless the user chose them. */
function rowLadder(
  shown: ShownComparison,
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
  shown: ShownComparison,
  rows: readonly ComparedRow[],
  from: readonly ShownColumn[],
  hasChanges: boolean,
): TableBlock {
  const { result, hasSeveralFiles } = shown;
  const columns = from.filter(({ name }) => !result.swept.includes(name));
  const changing = new Set(
    columns.filter(
      (column) =>
        hasChanges &&
        column.isCost &&
        rows.some((row) => changeCell(shown, row, column).text !== ''),
    ),
  );
  const names = hasSeveralFiles || result.swept.length === 0;
  return {
    kind: 'table',
    columns: [
      ...(names ? [wrapColumn('model', 'model')] : []),
      ...result.swept.map((key) => right(titleOfKey(key), key)),
      ...columns.flatMap((column) => [
        { title: titleOfKey(column.title), key: csvKey(column), align: align(column) ?? 'left' },
        ...(changing.has(column) ? [right('', `${csvKey(column)}_change`)] : []),
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
        ...(changing.has(column) ? [changeCell(shown, row, column)] : []),
      ]),
    ]),
  };
}

/** One row per file, with the values of the keys that differ. */
function differenceTable(shown: ShownComparison): TableBlock {
  const { result, baseline } = shown;
  const first = new Map<string, ComparedRow>();
  for (const row of result.rows) {
    if (row.valid && !first.has(row.file)) first.set(row.file, row);
  }
  const rows = [...shown.names.keys()].flatMap((file) => first.get(file) ?? []);
  const text = (row: ComparedRow) =>
    result.differing
      .filter((key) => row === baseline || row.values?.[key] !== baseline?.values?.[key])
      .map((key) => `${titleOfKey(key)}=${row.values?.[key] ?? '–'}`)
      .join(', ');
  return {
    kind: 'table',
    columns: [
      wrapColumn('model', 'model'),
      ...result.differing.map((key) => right(titleOfKey(key), key)),
    ],
    rows: rows.map((row) => [
      { text: shown.nameOf(row) },
      ...result.differing.map((key) => keyCell(row, baseline, key)),
    ]),
    narrower: tableOf(rows, [
      wrapColumn('model', 'model', (row) => shown.nameOf(row)),
      wrapColumn('values', 'values', (row) => text(row) || 'as the baseline'),
    ]),
  };
}

/** Rows of an answer with models in columns; names wrap if there are three models or more. */
const MOST_SIDE_ROWS = 12;
const MOST_WRAPPED_ROWS = 10;
/** Characters of a setting's name in an answer. */
const LONGEST_NAME = 28;
/** Settings that are always shown next to the figures. */
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
      ? `${counted(hidden, 'more setting')} differ${hidden === 1 ? 's' : ''}: ${setting('details')}.`
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
            headingBlock('All settings and figures'),
            table(differing, result.columns, Number.POSITIVE_INFINITY),
          ]
        : [],
  };
}

/** Characters of a setting in an answer; lists can be long. */
const LONGEST_VALUE = 20;

/** The settings that differ, then the figures; a column for each model. */
function sideTable(
  shown: ShownComparison,
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
  // Next to many models, names would wrap over several lines; the answer then has models in rows.
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
      (!hasChanges && canWrap ? wrapColumn : leftColumn)(
        isOfSettings ? 'setting or figure' : 'figure',
        'figure',
      ),
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

const invalidRows = ({ result }: ShownComparison) => result.rows.filter(({ valid }) => !valid);

function invalidNotes(shown: ShownComparison): Block[] {
  const names = invalidRows(shown).map((row) => shown.labelOf(row));
  return names.length === 0 ? [] : [paragraph(`Not valid: ${joined(names)}.`, 'bad')];
}

function invalidBlocks(shown: ShownComparison): Block[] {
  const invalid = invalidRows(shown);
  return listBlocks(`Not valid: ${invalid.length} of ${shown.result.rows.length}`, invalid, [
    wrapColumn('model', 'model', (row) => shown.labelOf(row)),
    wrapColumn('reason', 'reason', (row) =>
      row.problems
        .filter(({ severity }) => severity === 'error')
        .map(({ path, message }) => (path ? `${path}: ${message}` : message))
        .join('; '),
    ),
  ]);
}
