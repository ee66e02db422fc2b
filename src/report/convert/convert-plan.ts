/** Report of the planned steps per tensor. */

import { formatInteger, percentText } from '../../base/text/units.js';
import { counted, nameText } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { Extension } from '../../convert/conversion/conversion-choices.js';
import type { ConvertedSrte, ConvertedTable } from '../../convert/conversion/conversion-result.js';
import type { TableError } from '../../convert/conversion/execute/table-rows.js';
import type {
  StepGroup,
  StepKind,
  TensorStep,
} from '../../convert/conversion/plan/conversion-plan.js';
import type { SrteLayout, SrteStorageKind } from '../../model/architecture/srte-layout.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  bytesCell,
  cosineCell,
  drawnBar,
  headingBlock,
  integerCell,
  leftColumn,
  MAX_ROWS,
  moreNote,
  noteOf,
  percentCell,
  realCell,
  right,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';

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
    tableOf(groups.slice(0, most), [
      leftColumn('action', 'action', (group) => ({
        text: STEPS[group.action],
        value: group.action,
      })),
      wrapColumn('tensors', 'tensors', (group) => nameText(group.pattern)),
      right('count', 'count', (group) => integerCell(group.tensors)),
      leftColumn('type', 'dtype', (group) => dtypeText(group)),
      right('size', 'bytes', (group) => bytesCell(group.bytes)),
    ]),
    ...moreRows(groups.length - most, most),
  ];
}

/** Note on the rows that a table of at most `most` rows omits. */
export const moreRows = (more: number, most: number): Block[] =>
  moreNote(more, most >= MAX_ROWS ? 'json' : 'details');

/** `F32 → BF16`, `F32`. */
function dtypeText({ fromDtypes, dtype }: Pick<StepGroup, 'fromDtypes' | 'dtype'>): string {
  const from = fromDtypes.join(', ');
  return from === '' || from === dtype ? dtype : `${from} → ${dtype}`;
}

/** Table for programs: one row per tensor, in the order of the output. */
export const stepsTable = (steps: readonly TensorStep[]): TableBlock =>
  tableOf(steps, [
    wrapColumn('tensor', 'tensor', ({ name }) => name),
    leftColumn('action', 'action', ({ action }) => action),
    wrapColumn('from', 'from', ({ from }) => from.join(' ')),
    leftColumn('from types', 'from_dtypes', ({ fromDtypes }) => fromDtypes.join(' ')),
    leftColumn('type', 'dtype', ({ dtype }) => dtype),
    leftColumn('shape', 'shape', ({ shape }) => shape.join(' ')),
    right('bytes', 'bytes', ({ bytes }) => bytesCell(bytes)),
    leftColumn('role', 'role', ({ role }) => role),
    wrapColumn('further names', 'aliases', ({ aliases }) => aliases.join(' ')),
    wrapColumn('file', 'file', ({ file }) => file),
  ]);

// Report of the converted SRTE.

/** Columns of the bar of a 100% error, which replacing the table by zero would have. */
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
  return present([
    headingBlock('SRTE error by layer'),
    errorTable(srte, runs.slice(0, MAX_ROWS)),
    ...moreRows(runs.length - MAX_ROWS, MAX_ROWS),
    noteOf(
      'Error: relative Frobenius norm of the difference between the written table and the one that it replaces' +
        `${isPartly ? `, over the first ${rows} rows` : ''}. A full bar is 100%. Largest: the largest error of a single value.`,
    ),
    pair &&
      pairs.length === 1 &&
      noteOf(
        `Rank ${formatInteger(pair.rank ?? 0)} keeps ${percentText(pair.energy)} of the energy (squared norm) of its source table.`,
      ),
  ]);
}

function errorTable(
  srte: ConvertedSrte,
  runs: readonly (readonly [TableErrorRow, TableErrorRow])[],
): TableBlock {
  const hasEnergies = srte.tables.filter(({ energy }) => energy !== null).length > 1;
  const nothing: Cell[] = Array(hasEnergies ? 4 : 3).fill({ text: '' });
  return tableOf(
    runs,
    [
      right('layer', 'layer', ([first, last]) => layerRange(first, last)),
      right('error', 'relative_error', ([first]) => errorCell(first.relativeError)),
      leftColumn('', 'bar', ([first]) => drawnBar(first.relativeError ?? 0, BAR_WIDTH)),
      right('largest', 'largest_error', ([first]) => realCell(first.largestError)),
      right('cosine', 'cosine', ([first]) => cosineCell(first.cosine)),
      hasEnergies && right('energy', 'energy', ([first]) => percentCell(first.energy)),
    ],
    [[strongCell('total'), { ...errorCell(srte.relativeError), tone: 'strong' }, ...nothing]],
  );
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
    if (run && line.layer === run[1].layer + 1 && isSameError(line, run[1])) run[1] = line;
    else runs.push([line, line]);
  }
  return runs;
}

const FIGURES = ['relativeError', 'largestError', 'cosine', 'energy'] as const;

const isSameError = (a: TableErrorRow, b: TableErrorRow) =>
  FIGURES.every((figure) => a[figure] === b[figure]);

const layerRange = (first: TableErrorRow, last: TableErrorRow) =>
  first === last ? String(first.layer) : `${first.layer}–${last.layer}`;

/** Relative error above which the weights are no longer those of the model. Types of four bits stay below. */
export const LARGE_ERROR = 0.25;

/** `4.71%`, `∞`, `–` for a zero table, which has no relative error. */
export const relativeErrorText = (error: number | null): string =>
  error === Number.POSITIVE_INFINITY ? '∞' : percentText(error);

const errorCell = (error: number | null): Cell =>
  error === Number.POSITIVE_INFINITY ? { text: '∞', value: 'Infinity' } : percentCell(error);

/** Table for programs: one row per layer with a table. Empty when the SRTE is unchanged. */
export const errorsTable = (srte: ConvertedSrte | null): TableBlock =>
  tableOf(srte ? layerErrors(srte) : [], [
    right('layer', 'layer', (line) => valueCell(line.layer)),
    wrapColumn('had', 'had', (line) => line.name),
    wrapColumn('gets', 'gets', (line) => line.table),
    right('norm', 'norm', (line) => realCell(line.norm)),
    right('error', 'relative_error', (line) => errorCell(line.relativeError)),
    right('largest', 'largest_error', (line) => realCell(line.largestError)),
    right('cosine', 'cosine', (line) => cosineCell(line.cosine)),
    right('energy', 'energy', (line) => percentCell(line.energy)),
  ]);
