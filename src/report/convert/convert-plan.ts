/** Report of the planned steps per tensor. */
import type { SrteForm, SrteLayout } from '../../architecture/srte-layout.js';
import type { Extension } from '../../conversion/choices.js';
import type { ConvertedSrte, ConvertedTable } from '../../conversion/conversion.js';
import type { TableError } from '../../conversion/execute/table-rows.js';
import type { StepGroup, StepKind, TensorStep } from '../../conversion/plan/conversion-plan.js';
import { formatInteger, percentText } from '../../text/units.js';
import { counted, nameText } from '../../text/words.js';
import { MAX_ROWS } from '../inspect/inspect-text.js';
import { cosineCell } from '../inspect/srte-survey.js';
import {
  bar,
  bytesCell,
  heading,
  integerCell,
  left,
  note,
  percentCell,
  realCell,
  right,
  strong,
} from '../kit/cells.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';

const STEPS = {
  factorised: 'factorised',
  merged: 'merged',
  'multiplied-out': 'multiplied out',
  averaged: 'averaged',
  reordered: 'reordered',
  cut: 'cut',
  extended: 'extended',
  computed: 'computed',
  cast: 'cast',
  copied: 'copied',
} as const satisfies Record<StepKind, string>;

/** Longer lists are only for programs. */
const MOST_LINES = 100;

export function planBlocks(groups: readonly StepGroup[]): Block[] {
  const more = groups.length - MOST_LINES;
  return [
    heading('Tensors of the output'),
    {
      kind: 'table',
      columns: [
        left('', 'action'),
        left('tensors', 'tensors', true),
        right('count', 'count'),
        left('type', 'dtype'),
        right('bytes', 'bytes'),
      ],
      rows: groups
        .slice(0, MOST_LINES)
        .map((group) => [
          { text: STEPS[group.action], value: group.action },
          { text: nameText(group.pattern) },
          integerCell(group.tensors),
          { text: dtypeText(group) },
          bytesCell({ value: group.bytes }),
        ]),
    },
    ...(more > 0 ? [note(`And ${counted(more, 'more line')}; --json has them all.`)] : []),
  ];
}

/** `F32 → BF16`, `F32`. */
function dtypeText({ fromDtypes, dtype }: Pick<StepGroup, 'fromDtypes' | 'dtype'>): string {
  const from = fromDtypes.join(', ');
  return from === '' || from === dtype ? dtype : `${from} → ${dtype}`;
}

/** Table for programs: one row per tensor, in the order of the output. */
export const stepsTable = (steps: readonly TensorStep[]): TableBlock => ({
  kind: 'table',
  columns: [
    left('tensor', 'tensor', true),
    left('action', 'action'),
    left('from', 'from', true),
    left('from types', 'from_dtypes'),
    left('type', 'dtype'),
    left('shape', 'shape'),
    right('bytes', 'bytes'),
    left('role', 'role'),
    left('further names', 'aliases', true),
    left('file', 'file', true),
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

export function srteText(srte: ConvertedSrte): string {
  const [before, after] = [layoutText(srte.source), layoutText(srte.target)];
  if (before === after) return `SRTE: ${after}, as before.`;
  const how = [mergeText(srte), ...rowsTexts(srte), rankText(srte)].filter(Boolean);
  return `SRTE: ${before} → ${[after, ...how].join(', ')}.`;
}

const FORMS = {
  table: (size) => `table (${size})`,
  'low-rank': (size, rank) => `low-rank pair (rank ${formatInteger(rank)}, ${size})`,
  sincos: () => undefined,
} as const satisfies Record<SrteForm, (size: string, rank: number) => string | undefined>;

/** `a table (48 × 8) for each of 3 layers`, `one low-rank pair (rank 4, 48 × 8) for all 3 layers`. */
function layoutText({ sharing, form, positions, hidden, rank, layers }: SrteLayout): string {
  const isShared = sharing === 'shared';
  const thing = FORMS[form](`${formatInteger(positions)} × ${formatInteger(hidden)}`, rank ?? 0);
  const what = thing === undefined ? 'sines and cosines' : `${isShared ? 'one' : 'a'} ${thing}`;
  const whose = layers === 1 ? 'the only' : isShared ? 'all' : 'each of';
  const number = layers === 1 ? 'layer' : counted(layers, 'layer');
  return `${what} for ${whose} ${number}`;
}

/** Source of a table: one of the layers' tables, or their merge. */
function mergeText({ merge, source, target, tables }: ConvertedSrte): string {
  if (merge === null) return '';
  const which =
    merge === 'mean'
      ? 'the mean of theirs'
      : `that of layer ${merge === 'first' ? '0' : merge.replace('layer:', '')}`;
  const isKept = tables[0]?.sources.length === 1 && source.rank === target.rank;
  return target.form === 'low-rank' && !isKept ? `made from ${which}` : which;
}

const EXTENSIONS = {
  repeat: 'the table again from its first row on',
  zero: 'zeros',
} as const satisfies Record<Extension, string>;

function rowsTexts({ source, target, extension }: ConvertedSrte): string[] {
  const { positions } = source;
  if (extension !== null)
    return [`beyond row ${formatInteger(positions)}: ${EXTENSIONS[extension]}`];
  if (target.positions >= positions || target.form === 'sincos') return [];
  return [`rows beyond ${formatInteger(target.positions)} are cut off`];
}

const rankText = ({ maxError }: ConvertedSrte): string =>
  maxError === null ? '' : `the smallest rank with an error of at most ${percentText(maxError)}`;

/** Error of each layer in a finished conversion. */
export function srteBlocks(srte: ConvertedSrte): Block[] {
  const lines = linesOf(srte);
  if (lines.length === 0) return [];
  const { tables, source, target, relativeError } = srte;
  const pairs = tables.filter(({ energy }) => energy !== null);
  const hasEnergies = pairs.length > 1;
  const runs = runsOf(lines);
  const shown = runs.slice(0, MAX_ROWS);
  const more = runs.length - shown.length;
  const [pair] = pairs;
  const nothing: Cell[] = Array(hasEnergies ? 4 : 3).fill({ text: '' });
  const isPartly = source.positions !== target.positions && source.form !== 'sincos';
  const rows = formatInteger(Math.min(source.positions, target.positions));
  return [
    heading('What each layer gets beside what it had'),
    {
      kind: 'table',
      columns: [
        right('layer', 'layer'),
        right('error', 'relative_error'),
        left('', 'bar'),
        right('largest', 'largest_error'),
        right('cosine', 'cosine'),
        ...(hasEnergies ? [right('energy', 'energy')] : []),
      ],
      rows: [
        ...shown.map(([first, last]): Cell[] => [
          { text: rangeText(first, last) },
          errorCell(first.relativeError),
          { text: bar(first.relativeError ?? 0, BAR_WIDTH) },
          realCell(first.largestError),
          cosineCell(first.cosine),
          ...(hasEnergies ? [percentCell(first.energy)] : []),
        ]),
        [strong('all'), { ...errorCell(relativeError), tone: 'strong' }, ...nothing],
      ],
    },
    ...(more > 0 ? [note(`And ${counted(more, 'more line')}; --json has them all.`)] : []),
    note(
      'Error: of the table as it was written to the one that it takes the place of, relative Frobenius norm' +
        `${isPartly ? ` of the first ${rows} rows` : ''}; a full bar is as far from it as zero is. ` +
        'Largest: of the errors of single values.',
    ),
    ...(pair && !hasEnergies
      ? [
          note(
            `Rank ${formatInteger(pair.rank ?? 0)} keeps ${percentText(pair.energy)} of the energy (squared norm) of the table that it was made from.`,
          ),
        ]
      : []),
  ];
}

/** Old and new table of one layer. */
interface Line extends TableError {
  readonly layer: number;
  readonly table: string;
  readonly energy: number | null;
}

const linesOf = ({ tables }: ConvertedSrte): Line[] => tables.flatMap(linesOfTable);

const linesOfTable = ({ name: table, energy, errors }: ConvertedTable): Line[] =>
  errors.flatMap((error) => error.layers.map((layer) => ({ ...error, layer, table, energy })));

/** First and last of consecutive layers with the same figures. */
function runsOf(lines: readonly Line[]): [Line, Line][] {
  const runs: [Line, Line][] = [];
  for (const line of lines) {
    const run = runs.at(-1);
    if (run && line.layer === run[1].layer + 1 && isSame(line, run[1])) run[1] = line;
    else runs.push([line, line]);
  }
  return runs;
}

const FIGURES = ['relativeError', 'largestError', 'cosine', 'energy'] as const;

const isSame = (a: Line, b: Line) => FIGURES.every((figure) => a[figure] === b[figure]);

const rangeText = (first: Line, last: Line) =>
  first === last ? String(first.layer) : `${first.layer}–${last.layer}`;

/** A zero table has no relative error. */
const errorCell = (error: number | null): Cell =>
  error === Number.POSITIVE_INFINITY ? { text: '∞', value: 'Infinity' } : percentCell(error);

/** Table for programs: one row per layer with a table. Empty when the SRTE is unchanged. */
export const errorsTable = (srte: ConvertedSrte | null): TableBlock => ({
  kind: 'table',
  columns: [
    right('layer', 'layer'),
    left('had', 'had', true),
    left('gets', 'gets', true),
    right('norm', 'norm'),
    right('error', 'relative_error'),
    right('largest', 'largest_error'),
    right('cosine', 'cosine'),
    right('energy', 'energy'),
  ],
  rows: (srte ? linesOf(srte) : []).map((line) => [
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
