/** Report of `minimind inspect --srte`. */

import { formatBytes, formatInteger, formatShare, percentText } from '../../base/text/units.js';
import { shortened } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type {
  SrteOption,
  SrteSurvey,
  TableSurvey,
} from '../../convert/conversion/srte/survey-srte.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  barCell,
  bytesCell,
  cosineCell,
  headingBlock,
  integerCell,
  leftColumn,
  moreNote,
  NOTHING,
  noteOf,
  paragraph,
  percentCell,
  realCell,
  right,
  shareCell,
  tableOf,
} from '../kit/report.js';

/** Columns of the bar of a table whose distance from the mean equals its norm. */
const BAR_WIDTH = 12;

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 8;

/** Advice, and the options with their errors. */
export function srteSurveyBlocks(survey: SrteSurvey): Block[] {
  const { tables, options, notes } = survey;
  const advice = srteAdvice(survey);
  const more = options.length - ANSWER_ROWS;
  return [
    headingBlock('SRTE'),
    paragraph(storageText(survey)),
    ...notes.map(noteOf),
    ...tables.flatMap(nonFiniteBlocks),
    ...(advice === undefined ? [] : [{ kind: 'note' as const, text: advice }]),
    ...(options.length > 0 ? [optionsTable(survey, ANSWER_ROWS)] : []),
    ...moreNote(more, 'details'),
  ];
}

/** Similarity of the tables, and all options. */
export function srteSurveyDetails(survey: SrteSurvey): Block[] {
  const { tables, cosines, options } = survey;
  return [
    ...(tables.length > 1 ? [...cosineBlocks(cosines), ...tablesBlocks(tables)] : []),
    ...(options.length > 0 ? optionsBlocks(survey) : []),
  ];
}

/** Table for programs: the options. */
export const srteData = (survey: SrteSurvey): TableBlock =>
  optionsTable(survey, Number.POSITIVE_INFINITY);

function storageText({ tables, sharing, positions, hidden, storedRank, ...stored }: SrteSurvey) {
  const which =
    sharing === 'shared'
      ? 'One table for all layers'
      : `${tables.length === 1 ? 'One table' : `${tables.length} tables, one for each layer`}`;
  const size = `${formatInteger(positions)} × ${formatInteger(hidden)}`;
  const rank = storedRank === null ? '' : `, stored as pairs of rank ${formatInteger(storedRank)}`;
  return (
    `${which}, ${size}${rank}: ${formatInteger(stored.parameters)} parameters, ` +
    `${formatBytes(stored.bytes)} in ${stored.dtype}.`
  );
}

function nonFiniteBlocks({ name, nonFinite }: TableSurvey): Block[] {
  if (nonFinite === null) return [];
  const { count, row, column, value } = nonFinite;
  const what = count === 1 ? 'value is' : 'values are';
  return [
    paragraph(
      `${shortened(name)}: ${formatInteger(count)} ${what} not finite; the first is ${value} at row ${row}, column ${column}.`,
      'bad',
    ),
  ];
}

function tablesBlocks(tables: readonly TableSurvey[]): Block[] {
  return [
    headingBlock('Distance of each layer to the mean'),
    tableOf(tables, [
      right('layer', 'layer', (table) => ({ text: String(table.layer), value: table.layer ?? '' })),
      right('norm', 'norm', (table) => realCell(table.norm)),
      right('distance', 'distance_to_mean', (table) => realCell(table.distanceToMean)),
      right('relative', 'relative_distance', (table) => percentCell(table.relativeDistance)),
      leftColumn('', 'bar', (table) => barCell(table.relativeDistance ?? 0, BAR_WIDTH)),
      right('largest', 'largest_difference', (table) => realCell(table.largestDifference)),
      right('cosine', 'cosine_to_mean', (table) => cosineCell(table.cosineToMean)),
    ]),
    noteOf('Distances are Frobenius norms. A full bar is 100%.'),
  ];
}

function optionsBlocks(survey: SrteSurvey): Block[] {
  const { tables, options } = survey;
  return [
    ...(options.length > ANSWER_ROWS
      ? [
          headingBlock(tables.length > 1 ? 'Options for sharing' : 'Options for a lower rank'),
          optionsTable(survey, Number.POSITIVE_INFINITY),
        ]
      : []),
    noteOf(
      'Error: relative Frobenius norm of the difference to the stored tables, over all layers, before rounding to a ' +
        'type.' +
        (options.some(({ rank }) => rank !== null)
          ? ' Energy: share of the squared norm of the mean that the rank keeps.'
          : ''),
    ),
  ];
}

/** @param most Maximum number of options. */
function optionsTable({ parameters, bytes, options, dtype }: SrteSurvey, most: number): TableBlock {
  const zero: Cell = { ...NOTHING, value: 0 };
  const toneOf = ({ savedParameters }: SrteOption) => (savedParameters >= 0 ? 'good' : 'bad');
  const table = tableOf(options.slice(0, most), [
    leftColumn('option', 'option', ({ rank }) =>
      rank === null
        ? { text: 'one shared table', value: 'shared' }
        : { text: `shared, rank ${rank}`, value: `shared-rank-${rank}` },
    ),
    right('parameters', 'parameters', (option) => integerCell(option.parameters)),
    right(dtype, 'bytes', (option) => bytesCell(option.bytes)),
    right('saved', 'saved_bytes', (option) => ({
      ...bytesCell(option.savedBytes),
      tone: toneOf(option),
    })),
    right('share', 'saved_share', (option) => ({
      ...shareCell(option.savedParameters, parameters),
      tone: toneOf(option),
    })),
    right('error', 'relative_error', ({ relativeError }) => percentCell(relativeError)),
    right('energy', 'energy', ({ energy }) => percentCell(energy)),
  ]);
  const stored = [
    { text: 'as stored', value: 'stored' },
    integerCell(parameters),
    bytesCell(bytes),
    ...[zero, zero, zero, NOTHING],
  ];
  return { ...table, rows: [stored, ...table.rows] };
}

// Summary of a survey of SRTE tables, in a sentence or two.

/** Relative error up to which a table can replace another. */
const CLOSE = 0.05;
/** Relative error above which the tables have little in common. */
const FAR = 0.5;
/** Factor of the error up to which a rank adds little. */
const LITTLE_MORE = 1.1;

/** Advice; undefined when the data suggests none. */
function srteAdvice(survey: SrteSurvey): string | undefined {
  const { sharing, tables } = survey;
  if (tables.some(({ nonFinite }) => nonFinite !== null)) {
    return 'Replace the values that are not finite first: they have no mean.';
  }
  if (tables.every(({ norm }) => norm === 0))
    return 'Every value is zero: sharing the tables loses nothing.';
  if (sharing === 'shared') return rankAdvice(survey);
  if (tables.length === 1) {
    return ['The model has one layer, so there is nothing to share.', rankAdvice(survey)]
      .join(' ')
      .trim();
  }
  return sharingAdvice(survey);
}

function sharingAdvice({ options, parameters }: SrteSurvey): string | undefined {
  const mean = options.find(({ rank }) => rank === null);
  const error = mean?.relativeError ?? null;
  if (mean === undefined || error === null) return undefined;
  const isCheap = (option: SrteOption) =>
    option.rank !== null && isWithin(option, Math.max(CLOSE, error * LITTLE_MORE));
  const rank = options.find(isCheap);
  return present([
    `One shared table has an error of ${percentText(error)} and saves ${saved(mean, parameters)} of the SRTE parameters. ${verdict(error)}.`,
    rank &&
      `Rank ${rank.rank} has an error of ${percentText(rank.relativeError)} and saves ${saved(rank, parameters)}.`,
  ]).join(' ');
}

function verdict(error: number): string {
  if (error <= CLOSE) return 'The tables are nearly equal: share one';
  if (error <= FAR) return 'The tables are similar: share one and continue training';
  return 'The tables differ: share one only if training continues';
}

/** Advice for a single table. */
function rankAdvice({ options, parameters }: SrteSurvey): string | undefined {
  const ranks = options.filter(({ rank }) => rank !== null);
  if (ranks.length === 0) return undefined;
  const close = ranks.find((option) => isWithin(option, CLOSE));
  return close
    ? `Rank ${close.rank} has an error of ${percentText(close.relativeError)} and saves ${saved(close, parameters)} of the SRTE parameters.`
    : `Every tested rank has an error above ${CLOSE * 100}%: keep the full table.`;
}

const isWithin = ({ relativeError }: SrteOption, most: number) =>
  relativeError !== null && relativeError <= most;

const saved = ({ savedParameters }: SrteOption, parameters: number) =>
  formatShare(savedParameters, parameters);

// Similarity of tables: numbers for a few, a picture for many.

/** Cosines between all tables; null where undefined. */
type Cosines = readonly (readonly (number | null)[])[];

/** Maximum columns of numbers that are still readable. */
const MOST_NUMBERS = 8;
/** Columns of a picture, which fits a terminal of 80 columns with its labels. */
const PICTURE_WIDTH = 68;

/** Cell characters by minimum cosine. */
const SHADES = [
  { from: 0.99, sign: '█' },
  { from: 0.9, sign: '▓' },
  { from: 0.5, sign: '▒' },
  { from: 0.1, sign: '░' },
  { from: -0.1, sign: '·' },
  { from: -1, sign: '-' },
] as const;
const NO_COSINE = '?';

const LEGEND = '█ from 0.99, ▓ from 0.9, ▒ from 0.5, ░ from 0.1, · around 0, - below −0.1';

function cosineBlocks(cosines: Cosines): Block[] {
  const isFew = cosines.length <= MOST_NUMBERS;
  return [
    headingBlock('Cosine similarity between layers'),
    isFew ? numbers(cosines) : picture(cosines),
    ...(isFew ? [] : [noteOf(LEGEND)]),
  ];
}

function numbers(cosines: Cosines): TableBlock {
  const fields = cosines.map((_, layer) =>
    right(String(layer), `cosine_to_layer_${layer}`, (row: Cosines[number]) =>
      cosineCell(row[layer] ?? null),
    ),
  );
  return tableOf(cosines, [right('layer', 'layer', (_, layer) => String(layer)), ...fields]);
}

/** One line per layer, or per group of layers when there are too many. */
function picture(cosines: Cosines): TableBlock {
  const groupSize = Math.ceil(cosines.length / PICTURE_WIDTH);
  const groups = cosineGroups(cosines, groupSize);
  const width = Math.max(1, Math.min(2, Math.floor(PICTURE_WIDTH / groups.length)));
  const rows = groups.map((members): Cell[] => {
    const means = groups.map((others) =>
      mean(members.flatMap(({ row }) => others.map(({ index }) => row[index] ?? null))),
    );
    return [
      { text: indexRange(members.map(({ index }) => index)) },
      {
        text: means.map((cosine) => shade(cosine).repeat(width)).join(''),
        value: means.map((cosine) => cosine ?? '').join(' '),
      },
    ];
  });
  return { kind: 'table', columns: [right('layer', 'layer'), leftColumn('', 'cosines')], rows };
}

/** Groups of `size` rows with their positions. */
function cosineGroups(cosines: Cosines, size: number) {
  const members = cosines.map((row, index) => ({ row, index }));
  return Array.from({ length: Math.ceil(members.length / size) }, (_, group) =>
    members.slice(group * size, (group + 1) * size),
  );
}

function mean(cosines: readonly (number | null)[]): number | null {
  const known = cosines.filter((cosine) => cosine !== null);
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length;
}

const indexRange = (indices: readonly number[]) =>
  indices.length === 1 ? String(indices[0]) : `${indices[0]}–${indices.at(-1)}`;

function shade(cosine: number | null): string {
  if (cosine === null) return NO_COSINE;
  return SHADES.find(({ from }) => cosine >= from)?.sign ?? NO_COSINE;
}
