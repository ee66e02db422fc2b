/** Report of the planned steps per tensor. */
import type { SrteLayout, SrteStorageKind } from '../../architecture/srte-layout.js';
import type { Extension } from '../../conversion/conversion-choices.js';
import type { ConvertedSrte, ConvertedTable } from '../../conversion/conversion-result.js';
import type { TableError } from '../../conversion/execute/table-rows.js';
import type { StepGroup, StepKind, TensorStep } from '../../conversion/plan/conversion-plan.js';
import { formatInteger, percentText } from '../../text/units.js';
import { counted, nameText } from '../../text/words.js';
import { MAX_ROWS } from '../inspect/inspect-text.js';
import { cosineCell } from '../inspect/srte-survey.js';
import {
  bar,
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  percentCell,
  realCell,
  right,
  strongCell,
} from '../kit/cells.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';

const STEPS = {
  factorised: 'factorised',
  merged: 'merged',
  quantized: 'quantized',
  'multiplied-out': 'multiplied out',
  averaged: 'averaged',
  reordered: 'reordered',
  cut: 'cut',
  extended: 'extended',
  computed: 'computed',
  cast: 'cast',
  copied: 'copied',
} as const satisfies Record<StepKind, string>;

/** @param most Maximum rows. */
export function planBlocks(groups: readonly StepGroup[], most: number): Block[] {
  return [
    headingBlock('Tensors of the output'),
    {
      kind: 'table',
      columns: [
        leftColumn('action', 'action'),
        leftColumn('tensors', 'tensors', true),
        right('count', 'count'),
        leftColumn('type', 'dtype'),
        right('size', 'bytes'),
      ],
      rows: groups
        .slice(0, most)
        .map((group) => [
          { text: STEPS[group.action], value: group.action },
          { text: nameText(group.pattern) },
          integerCell(group.tensors),
          { text: dtypeText(group) },
          bytesCell({ value: group.bytes }),
        ]),
    },
    ...moreRows(groups.length - most, most),
  ];
}

/** `… 14 more: --details`, after a table that was cut at `most` rows. */
const moreRows = (more: number, most: number): Block[] =>
  more <= 0
    ? []
    : [noteOf(`… ${formatInteger(more)} more: ${most >= MAX_ROWS ? '--json' : '--details'}`)];

/** `F32 → BF16`, `F32`. */
function dtypeText({ fromDtypes, dtype }: Pick<StepGroup, 'fromDtypes' | 'dtype'>): string {
  const from = fromDtypes.join(', ');
  return from === '' || from === dtype ? dtype : `${from} → ${dtype}`;
}

/** Table for programs: one row per tensor, in the order of the output. */
export const stepsTable = (steps: readonly TensorStep[]): TableBlock => ({
  kind: 'table',
  columns: [
    leftColumn('tensor', 'tensor', true),
    leftColumn('action', 'action'),
    leftColumn('from', 'from', true),
    leftColumn('from types', 'from_dtypes'),
    leftColumn('type', 'dtype'),
    leftColumn('shape', 'shape'),
    right('bytes', 'bytes'),
    leftColumn('role', 'role'),
    leftColumn('further names', 'aliases', true),
    leftColumn('file', 'file', true),
  ],
  rows: steps.map(({ name, action, from, fromDtypes, dtype, shape, bytes, ...rest }) => [
    { text: name },
    { text: action },
    { text: from.join(' ') },
    { text: fromDtypes.join(' ') },
    { text: dtype },
    { text: shape.join(' ') },
    bytesCell({ value: bytes }),
    { text: rest.role },
    { text: rest.aliases.join(' ') },
    { text: rest.file },
  ]),
});

// Report of the converted SRTE.

/** Columns of the bar of an error of 100 %, as large as replacing the table by zero. */
const BAR_WIDTH = 12;

/** `32 tables (16 × 8) → one table for 32 layers, mean of all layers`. */
export function srteText(srte: ConvertedSrte): string {
  const [before, after] = [layoutText(srte.source), layoutText(srte.target)];
  if (before === after) return `${after}, same layout`;
  const how = [mergeText(srte), ...rowsTexts(srte), rankText(srte)].filter(Boolean);
  return `${before} → ${[after, ...how].join(', ')}`;
}

const FORMS = {
  table: (size) => `table (${size})`,
  'low-rank': (size, rank) => `rank-${rank} pair (${size})`,
  sincos: () => 'sines and cosines',
} as const satisfies Record<SrteStorageKind, (size: string, rank: number | string) => string>;

/** `a table (48 × 8) in each of 3 layers`, `one rank-4 pair (48 × 8) for 3 layers`. */
function layoutText({ sharing, form, positions, hidden, rank, layers }: SrteLayout): string {
  const isShared = sharing === 'shared';
  const size = `${formatInteger(positions)} × ${formatInteger(hidden)}`;
  const thing = FORMS[form](size, rank ?? 'r');
  const what = form === 'sincos' ? thing : `${isShared ? 'one' : 'a'} ${thing}`;
  return `${what} ${isShared ? 'for' : 'in each of'} ${counted(layers, 'layer')}`;
}

/** Source of a table: one of the layers' tables, or their merge. */
function mergeText({ merge }: ConvertedSrte): string {
  if (merge === null) return '';
  if (merge === 'mean') return 'mean of all layers';
  return `values of layer ${merge === 'first' ? '0' : merge.replace('layer:', '')}`;
}

const EXTENSIONS = {
  repeat: 'repeat the table from row 0',
  zero: 'are zero',
} as const satisfies Record<Extension, string>;

function rowsTexts({ source, target, extension }: ConvertedSrte): string[] {
  const { positions } = source;
  if (extension !== null) {
    return [`rows from ${formatInteger(positions)} on ${EXTENSIONS[extension]}`];
  }
  if (target.positions >= positions || target.form === 'sincos') return [];
  return [`rows from ${formatInteger(target.positions)} on are cut`];
}

const rankText = ({ maxError }: ConvertedSrte): string =>
  maxError === null ? '' : `smallest rank with an error of at most ${percentText(maxError)}`;

/** The layers with the largest errors, when errors differ. @param most Maximum rows. */
export function worstErrorsBlocks(srte: ConvertedSrte | null, most: number): Block[] {
  const runs = runsOf(srte ? layerErrors(srte) : []);
  if (srte === null || runs.length <= 1) return [];
  const worst = runs.toSorted(([a], [b]) => (b.relativeError ?? -1) - (a.relativeError ?? -1));
  return [
    headingBlock(
      worst.length > most ? `SRTE error of the ${most} worst layers` : 'SRTE error by layer',
    ),
    errorTable(srte, worst.slice(0, most)),
    ...moreRows(runs.length - most, most),
  ];
}

/** Error of each layer in a finished conversion. */
export function errorsBlocks(srte: ConvertedSrte | null): Block[] {
  const lines = srte ? layerErrors(srte) : [];
  if (srte === null || lines.length === 0) return [];
  const { source, target } = srte;
  const pairs = srte.tables.filter(({ energy }) => energy !== null);
  const [pair] = pairs;
  const runs = runsOf(lines);
  const isPartly = source.positions !== target.positions && source.form !== 'sincos';
  const rows = formatInteger(Math.min(source.positions, target.positions));
  return [
    headingBlock('SRTE error by layer'),
    errorTable(srte, runs.slice(0, MAX_ROWS)),
    ...moreRows(runs.length - MAX_ROWS, MAX_ROWS),
    noteOf(
      'Error: relative Frobenius norm of the difference between the written table and the one that it replaces' +
        `${isPartly ? `, over the first ${rows} rows` : ''}. A full bar is 100%. Largest: the largest error of a single value.`,
    ),
    ...(pair && pairs.length === 1
      ? [
          noteOf(
            `Rank ${formatInteger(pair.rank ?? 0)} keeps ${percentText(pair.energy)} of the energy (squared norm) of its source table.`,
          ),
        ]
      : []),
  ];
}

function errorTable(
  srte: ConvertedSrte,
  runs: readonly (readonly [TableErrorRow, TableErrorRow])[],
): TableBlock {
  const hasEnergies = srte.tables.filter(({ energy }) => energy !== null).length > 1;
  const nothing: Cell[] = Array(hasEnergies ? 4 : 3).fill({ text: '' });
  return {
    kind: 'table',
    columns: [
      right('layer', 'layer'),
      right('error', 'relative_error'),
      leftColumn('', 'bar'),
      right('largest', 'largest_error'),
      right('cosine', 'cosine'),
      ...(hasEnergies ? [right('energy', 'energy')] : []),
    ],
    rows: [
      ...runs.map(([first, last]): Cell[] => [
        { text: rangeText(first, last) },
        errorCell(first.relativeError),
        { text: bar(first.relativeError ?? 0, BAR_WIDTH) },
        realCell(first.largestError),
        cosineCell(first.cosine),
        ...(hasEnergies ? [percentCell(first.energy)] : []),
      ]),
      [strongCell('total'), { ...errorCell(srte.relativeError), tone: 'strong' }, ...nothing],
    ],
  };
}

/** Old and new table of one layer. */
export interface TableErrorRow extends TableError {
  readonly layer: number;
  readonly table: string;
  readonly energy: number | null;
}

/** Errors of all layers, in order. */
export const layerErrors = ({ tables }: ConvertedSrte): TableErrorRow[] =>
  tables.flatMap(linesOfTable);

const linesOfTable = ({ name: table, energy, errors }: ConvertedTable): TableErrorRow[] =>
  errors.flatMap((error) => error.layers.map((layer) => ({ ...error, layer, table, energy })));

/** First and last of consecutive layers with the same figures. */
function runsOf(lines: readonly TableErrorRow[]): [TableErrorRow, TableErrorRow][] {
  const runs: [TableErrorRow, TableErrorRow][] = [];
  for (const line of lines) {
    const run = runs.at(-1);
    if (run && line.layer === run[1].layer + 1 && isSame(line, run[1])) run[1] = line;
    else runs.push([line, line]);
  }
  return runs;
}

const FIGURES = ['relativeError', 'largestError', 'cosine', 'energy'] as const;

const isSame = (a: TableErrorRow, b: TableErrorRow) =>
  FIGURES.every((figure) => a[figure] === b[figure]);

const rangeText = (first: TableErrorRow, last: TableErrorRow) =>
  first === last ? String(first.layer) : `${first.layer}–${last.layer}`;

/** `4.71%`, `∞`, `–` for a zero table, which has no relative error. */
export const relativeErrorText = (error: number | null): string =>
  error === Number.POSITIVE_INFINITY ? '∞' : percentText(error);

const errorCell = (error: number | null): Cell =>
  error === Number.POSITIVE_INFINITY ? { text: '∞', value: 'Infinity' } : percentCell(error);

/** Table for programs: one row per layer with a table. Empty when the SRTE is unchanged. */
export const errorsTable = (srte: ConvertedSrte | null): TableBlock => ({
  kind: 'table',
  columns: [
    right('layer', 'layer'),
    leftColumn('had', 'had', true),
    leftColumn('gets', 'gets', true),
    right('norm', 'norm'),
    right('error', 'relative_error'),
    right('largest', 'largest_error'),
    right('cosine', 'cosine'),
    right('energy', 'energy'),
  ],
  rows: (srte ? layerErrors(srte) : []).map((line) => [
    { text: String(line.layer), value: line.layer },
    { text: line.name },
    { text: line.table },
    realCell(line.norm),
    errorCell(line.relativeError),
    realCell(line.largestError),
    cosineCell(line.cosine),
    percentCell(line.energy),
  ]),
});
