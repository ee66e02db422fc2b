/** Report of `minimind fit` for lists of GPUs, batches or contexts. */
import { formatInteger, shortCount, significant } from '../../base/text/units.js';
import { counted, modelName } from '../../base/text/words.js';
import type { FitListResult, FitListRow } from '../../estimate/fit/fit-list.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';
import {
  integerCell,
  leftColumn,
  NOTHING,
  noteOf,
  right,
  strongCell,
  tableOf,
  valueCell,
} from '../kit/report.js';
import { bytesText, TONES } from './fit-bounds.js';

export function fitListReport(result: FitListResult): Report {
  const { file, parameters, rows } = result;
  const fitting = rows.filter(({ verdict }) => verdict === 'fits').length;
  const text = `${modelName(file)} (${shortCount(parameters)} parameters): ${fitting} of ${counted(rows.length, 'setup')} ${fitting === 1 ? 'fits' : 'fit'}`;
  return {
    verdict: { text },
    blocks: [shownTable(result), ...serverNote(result)],
    data: dataTable(result),
  };
}

/** Verdicts as short as in the table of hardware, so that the columns fit on a screen. */
const VERDICTS = {
  fits: 'fits',
  'may fit': 'may fit',
  'does not fit': 'no',
} as const satisfies Record<FitListRow['verdict'], string>;

/** Columns that fit into 80 characters. */
const shownTable = ({ purpose, rows }: FitListResult): TableBlock =>
  tableOf(rows, [
    leftColumn('GPU', 'gpu', ({ gpu, gpus }) =>
      strongCell(gpus === 1 || gpu.includes('+') ? gpu : `${formatInteger(gpus)} × ${gpu}`),
    ),
    right('context', 'context', ({ context }) => integerCell(context)),
    right('batch', 'batch', ({ batch }) => integerCell(batch)),
    right('memory', 'memory_bytes', ({ memoryBytes }) => valueCell(memoryBytes, bytesText)),
    leftColumn('', 'verdict', ({ verdict }) => ({
      text: VERDICTS[verdict],
      tone: TONES[verdict],
    })),
    right('tokens/s', 'tokens_per_second', ({ tokensPerSecond }) => rateCell(tokensPerSecond)),
    purpose === 'serving' &&
      right('server', 'server_tokens_per_second', ({ serverTokensPerSecond }: FitListRow) =>
        rateCell(serverTokensPerSecond),
      ),
    purpose === 'serving' && right('users', 'users', ({ users }: FitListRow) => usersCell(users)),
  ]);

const serverNote = ({ purpose, minSpeed }: FitListResult): Block[] =>
  purpose === 'serving'
    ? [
        noteOf(
          `tokens/s: the batch alone. server: tokens/s with all users that it takes. users: with ${significant(minSpeed ?? 0)} tokens/s or more each.`,
        ),
      ]
    : [];

const rateCell = (value: number | null): Cell =>
  value === null ? NOTHING : valueCell(value, significant);

const usersCell = (users: number | null): Cell =>
  users === null ? NOTHING : valueCell(users, formatInteger);

/** All columns, for programs. */
function dataTable({ purpose, minSpeed, rows }: FitListResult): TableBlock {
  const isServing = purpose === 'serving';
  return {
    kind: 'table',
    columns: [
      leftColumn('GPU', 'gpu'),
      right('GPUs', 'gpus'),
      right('context', 'context'),
      right('batch', 'batch'),
      right('memory', 'memory_bytes'),
      right('of', 'capacity_bytes'),
      leftColumn('', 'verdict'),
      right('tokens/s', 'tokens_per_second'),
      ...(isServing
        ? [
            right('server tokens/s', 'server_tokens_per_second'),
            right(`users at ${significant(minSpeed ?? 0)}/s`, 'users'),
          ]
        : []),
    ],
    rows: rows.map((row) => cellsOf(row, isServing)),
  };
}

function cellsOf(row: FitListRow, isServing: boolean): Cell[] {
  return [
    strongCell(row.gpu),
    integerCell(row.gpus),
    integerCell(row.context),
    integerCell(row.batch),
    valueCell(row.memoryBytes, bytesText),
    valueCell(row.capacityBytes, bytesText),
    { text: row.verdict, tone: TONES[row.verdict] },
    rateCell(row.tokensPerSecond),
    ...(isServing ? [rateCell(row.serverTokensPerSecond), usersCell(row.users)] : []),
  ];
}
