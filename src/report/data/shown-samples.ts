/** Samples as the model sees them: input, target and mask of each position. */

import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { DataReading } from '../../language/data/read-data.js';
import type { ShownSample } from '../../language/data/recipes.js';
import type { Block, Cell, Column, TableBlock } from '../kit/report.js';
import { cutColumn, headingBlock, leftColumn, noteOf, right, valueCell } from '../kit/report.js';

/** Positions of padding shown after a sample, which show where the padding begins. */
const SHOWN_PADDING = 1;

export const shownSampleBlocks = ({ shown, files }: DataReading): Block[] =>
  shown.flatMap((sample) => sampleBlocks(sample, files.length === 1));

function sampleBlocks(sample: ShownSample, isOnlyFile: boolean): Block[] {
  const { file, line, side, tokens, uncut, mask } = sample;
  const masked = mask.reduce<number>((sum, each) => sum + each, 0);
  const cut = uncut > tokens ? `, ${counted(uncut - tokens, 'token')} cut off` : '';
  const positions = shownPositions(sample);
  const hidden = mask.length - positions;
  const countedHidden = mask.slice(positions).filter((each) => each === 1).length;
  return present([
    headingBlock(
      `${isOnlyFile ? '' : `${file} `}line ${formatInteger(line)}${side === null ? '' : `, ${side}`}: ` +
        `${counted(tokens, 'token')}${cut}, ${counted(masked, 'target')} counted`,
    ),
    {
      kind: 'table',
      columns: [right('#', 'position'), ...PAIR_COLUMNS],
      rows: Array.from({ length: positions }, (_, at) => [valueCell(at), ...pairCells(sample, at)]),
    },
    hidden !== 0 &&
      noteOf(
        `… ${counted(hidden, 'more position')} of padding, ${countedHidden === 0 ? 'none' : formatInteger(countedHidden)} counted`,
      ),
  ]);
}

const shownPositions = ({ mask, tokens }: ShownSample) =>
  Math.min(mask.length, tokens - 1 + SHOWN_PADDING < 0 ? 0 : tokens - 1 + SHOWN_PADDING);

const PAIR_COLUMNS: readonly Column[] = [
  right('X', 'x'),
  cutColumn('text', 'x_text'),
  right('Y', 'y'),
  cutColumn('text', 'y_text'),
  right('mask', 'mask'),
];

function pairCells({ x, y, mask, texts, tokens }: ShownSample, at: number): Cell[] {
  const isCounted = mask[at] === 1;
  const word = (position: number): Cell => {
    if (position >= tokens) return { text: 'padding', value: '', tone: 'dim' };
    const value = texts?.[position] ?? '';
    return { text: texts === null ? '' : JSON.stringify(value), value };
  };
  const id = (value: number | undefined): Cell => valueCell(value ?? '');
  return [
    id(x[at]),
    word(at),
    { ...id(y[at]), tone: isCounted ? 'good' : 'dim' },
    { ...word(at + 1), tone: isCounted ? 'good' : 'dim' },
    { text: isCounted ? '1' : '0', value: mask[at] ?? 0, tone: isCounted ? 'good' : 'dim' },
  ];
}

/** Positions of all samples, padding included. */
export const positionsTable = ({ shown }: DataReading): TableBlock => ({
  kind: 'table',
  columns: [
    leftColumn('file', 'file'),
    right('line', 'line'),
    leftColumn('side', 'side'),
    right('#', 'position'),
    ...PAIR_COLUMNS,
  ],
  rows: shown.flatMap((sample) =>
    sample.mask.map((_, at) => [
      { text: sample.file },
      valueCell(sample.line),
      { text: sample.side ?? '', value: sample.side ?? '' },
      valueCell(at),
      ...pairCells(sample, at),
    ]),
  ),
});
