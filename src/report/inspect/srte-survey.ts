/** What `minimind inspect --srte` prints. */
import type { SrteOption } from '../../conversion/srte-options.js';
import type { SrteSurvey, TableSurvey } from '../../conversion/srte-survey.js';
import { bar } from '../kit/bar.js';
import { bytesCell, heading, integerCell, left, note, right, shareCell } from '../kit/cells.js';
import { percentCell, realCell } from '../kit/percent.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import { formatBytes, formatInteger } from '../kit/units.js';
import { shortened } from './inspect-text.js';
import { srteAdvice } from './srte-advice.js';
import { cosineBlocks, cosineCell } from './srte-cosines.js';

/** The bar of a table that is as far from the mean as it is from zero, in columns. */
const BAR_WIDTH = 12;

const NOTHING: Cell = { text: '–', value: '' };

export function srteSurveyBlocks(survey: SrteSurvey): Block[] {
  const { tables, cosines, options, notes } = survey;
  const advice = srteAdvice(survey);
  return [
    heading('SRTE tables'),
    note(storageText(survey)),
    ...notes.map(note),
    ...tables.flatMap(nonFiniteBlocks),
    ...(tables.length > 1 ? [...cosineBlocks(cosines), ...tablesBlocks(tables)] : []),
    ...(options.length > 0 ? optionsBlocks(survey) : []),
    ...(advice === undefined ? [] : [{ kind: 'note' as const, text: advice }]),
  ];
}

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
    {
      kind: 'note',
      text: `${shortened(name)}: ${formatInteger(count)} ${what} not finite, the first ${value} at row ${row}, column ${column}.`,
      tone: 'bad',
    },
  ];
}

function tablesBlocks(tables: readonly TableSurvey[]): Block[] {
  return [
    heading('Each layer beside the mean of all'),
    {
      kind: 'table',
      columns: [
        right('layer', 'layer'),
        right('norm', 'norm'),
        right('distance', 'distance_to_mean'),
        right('relative', 'relative_distance'),
        left('', 'bar'),
        right('largest', 'largest_difference'),
        right('cosine', 'cosine_to_mean'),
      ],
      rows: tables.map((table): Cell[] => [
        { text: String(table.layer), value: table.layer ?? '' },
        realCell(table.norm),
        realCell(table.distanceToMean),
        percentCell(table.relativeDistance),
        { text: bar(table.relativeDistance ?? 0, BAR_WIDTH), value: '' },
        realCell(table.largestDifference),
        cosineCell(table.cosineToMean),
      ]),
    },
    note('Distances are Frobenius norms; a full bar is as far from the mean as from zero.'),
  ];
}

function optionsBlocks(survey: SrteSurvey): Block[] {
  const { tables, options } = survey;
  return [
    heading(tables.length > 1 ? 'What sharing would cost' : 'What a lower rank would cost'),
    optionsTable(survey),
    note(
      'Error: of what each layer gets to what it had, over all layers (relative Frobenius norm), before it ' +
        'is rounded to a dtype. ' +
        (options.some(({ rank }) => rank !== null)
          ? 'Energy: the share of the squared norm of the mean that the rank keeps.'
          : ''),
    ),
  ];
}

function optionsTable({ parameters, bytes, options, dtype }: SrteSurvey): TableBlock {
  return {
    kind: 'table',
    columns: [
      left('', 'option'),
      right('parameters', 'parameters'),
      right(dtype, 'bytes'),
      right('saved', 'saved_bytes'),
      right('share', 'saved_share'),
      right('error', 'relative_error'),
      right('energy', 'energy'),
    ],
    rows: [
      [
        { text: 'as it is', value: 'stored' },
        integerCell(parameters),
        bytesCell({ value: bytes }),
        { ...NOTHING, value: 0 },
        { ...NOTHING, value: 0 },
        { ...NOTHING, value: 0 },
        NOTHING,
      ],
      ...options.map((option) => optionCells(option, parameters)),
    ],
  };
}

function optionCells(option: SrteOption, parameters: number): Cell[] {
  const { rank, savedParameters, savedBytes, relativeError, energy } = option;
  const tone = savedParameters >= 0 ? 'good' : 'bad';
  return [
    rank === null
      ? { text: 'one shared table', value: 'shared' }
      : { text: `shared, rank ${rank}`, value: `shared-rank-${rank}` },
    integerCell(option.parameters),
    bytesCell({ value: option.bytes }),
    { ...bytesCell({ value: savedBytes }), tone },
    { ...shareCell(savedParameters, parameters), tone },
    percentCell(relativeError),
    percentCell(energy),
  ];
}
