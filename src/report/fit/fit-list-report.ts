/** Report of `minimind fit` for lists of GPUs, batches or contexts. */
import { formatBytes, formatInteger, shortCount, significant } from '../../base/text/units.js';
import { counted, modelName } from '../../base/text/words.js';
import type { FitListResult, FitListRow } from '../../estimate/fit/fit-list.js';
import type { Cell, Report, TableBlock } from '../kit/report.js';
import { integerCell, leftColumn, NOTHING, right, strongCell, valueCell } from '../kit/report.js';
import { TONES } from './fit-bounds.js';

export function fitListReport(result: FitListResult): Report {
  const { file, parameters, rows } = result;
  const fitting = rows.filter(({ verdict }) => verdict === 'fits').length;
  const text = `${modelName(file)} (${shortCount(parameters)} parameters): ${fitting} of ${counted(rows.length, 'setup')} ${fitting === 1 ? 'fits' : 'fit'}`;
  const table = tableBlock(result);
  return { verdict: { text }, blocks: [table], data: table };
}

function tableBlock({ purpose, minSpeed, rows }: FitListResult): TableBlock {
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
  const rate = (value: number | null): Cell =>
    value === null ? NOTHING : valueCell(value, significant);
  return [
    strongCell(row.gpu),
    integerCell(row.gpus),
    integerCell(row.context),
    integerCell(row.batch),
    valueCell(row.memoryBytes, (value) => formatBytes(Math.round(value))),
    valueCell(row.capacityBytes, (value) => formatBytes(Math.round(value))),
    { text: row.verdict, tone: TONES[row.verdict] },
    rate(row.tokensPerSecond),
    ...(isServing
      ? [
          rate(row.serverTokensPerSecond),
          row.users === null ? NOTHING : valueCell(row.users, formatInteger),
        ]
      : []),
  ];
}
