/** Table of `minimind attention --chunk`: methods for a text that is longer than the training context. */

import { commandText } from '../base/text/setting.js';
import { formatInteger, percentText, significant } from '../base/text/units.js';
import { modelName } from '../base/text/words.js';
import type { LongTextRow, LongTexts } from '../model/budget/attention/long-texts.js';
import type { Block, Cell, TableBlock, Verdict } from './kit/report.js';
import {
  bytesCell,
  flopsCell,
  integerCell,
  leftColumn,
  noteOf,
  percentCell,
  right,
  strongCell,
  tableOf,
} from './kit/report.js';

const strategyRow = ({ rows }: LongTexts, strategy: LongTextRow['strategy']) =>
  rows.find((row) => row.strategy === strategy);

export function longTextVerdict(file: string, texts: LongTexts): Verdict {
  const windows = strategyRow(texts, 'windows');
  const hierarchical = strategyRow(texts, 'hierarchical');
  if (!windows || !hierarchical) return { text: modelName(file) };
  return {
    text:
      `${modelName(file)}, ${formatInteger(texts.context)} tokens by ${formatInteger(texts.chunk)}: ` +
      `${formatInteger(windows.passes)} windows compute ${significant(windows.tokens / texts.context)} × the tokens and ` +
      `${percentText(windows.ofFull.flops)} of the FLOPs of full attention, chunks with a global model ` +
      percentText(hierarchical.ofFull.flops),
  };
}

/** `490.0 GFLOPs 32.2%`. */
const sharedCell = (cell: Cell, share: number): Cell =>
  share === 1 ? cell : { ...cell, text: `${cell.text} ${percentText(share)}` };

export const longTextTable = ({ rows }: LongTexts): TableBlock => {
  const table = (isWide: boolean): TableBlock =>
    tableOf(rows, [
      leftColumn('strategy', 'strategy', ({ name }) => strongCell(name)),
      right('passes', 'passes', ({ passes }) => integerCell(passes)),
      right('tokens', 'tokens', ({ tokens }) => integerCell(tokens)),
      right('FLOPs', 'flops_flop', ({ flops, ofFull }: LongTextRow) =>
        sharedCell(flopsCell(flops.value), isWide ? ofFull.flops : 1),
      ),
      right('scores', 'scores_bytes', ({ scores }) => bytesCell(scores.value)),
      right('KV cache', 'cache_bytes', ({ cache }) => bytesCell(cache.value)),
      right('read', 'share', ({ share }) => percentCell(share)),
      right('reach', 'reach_tokens', ({ reach }) => integerCell(reach)),
    ]);
  return { ...table(true), narrower: table(false) };
};

export const longTextNotes = ({ rows, globalTokens, window }: LongTexts): Block[] => {
  const truncation = rows.find(({ strategy }) => strategy === 'truncation');
  return [
    `The first tokens alone lose ${percentText(1 - (truncation?.share ?? 0))} of the text. reach: the farthest tokens that are related to each other.`,
    `full attention needs positions beyond the training, as with YaRN: ${commandText('rope')}. Its FLOPs include masked scores.`,
    `global model: the layers of this model over ${formatInteger(globalTokens)} vectors, the means of the chunks. It has to be trained, and sees no single tokens.`,
    `window + global: each token sees ${formatInteger(window)} tokens, and ${formatInteger(globalTokens)} global tokens see all. The model has to be trained with this mask.`,
    'scores: memory of one layer in one pass, as plain attention stores them. KV cache: one pass, all layers.',
  ].map(noteOf);
};
