/** Comparison of two models on the same tokens: report of `quick-test --against`, and check of a conversion. */
import type { Against, AgainstSide } from '../../quicktest/sides.js';
import { formatInteger, percentText } from '../../text/units.js';
import { counted } from '../../text/words.js';
import { engineText } from '../doctor.js';
import { bar, heading, left, note, right } from '../kit/cells.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';

/** @param flat Whether to output one table, for programs. */
export function againstReport(against: Against, { flat }: { readonly flat: boolean }): Report {
  if (flat) return { blocks: [flatTable(against)] };
  return { blocks: [verdict(against), ...againstBlocks(against)] };
}

function verdict({ partsAt, threshold, blocks }: Against): Block {
  return partsAt === null
    ? {
        kind: 'heading',
        text: `the same within rounding: nothing differs by more than ${percentText(threshold)}`,
        tone: 'good',
      }
    : heading(blocks === null ? 'their logits differ' : `they part at ${partsAt}`);
}

/** All blocks except the verdict. */
export function againstBlocks(against: Against): Block[] {
  const { own, other, blocks, blocksDiffer } = against;
  const isSameEngine = engineOf(own) === engineOf(other);
  return [
    note(`${sideText(own)}${isSameEngine ? '' : `, on ${engineOf(own)}`}.`),
    note(`Against ${sideText(other)}${isSameEngine ? '' : `, on ${engineOf(other)}`}.`),
    note(`${tokensText(against)}${isSameEngine ? ` Engine: ${engineOf(own)}.` : ''}`),
    logitsTable(against),
    ...(blocks
      ? [heading('Where they part'), note(thresholdText(against)), blocksTable(against)]
      : [note(`Only logits are compared: ${blocksDiffer}.`)]),
  ];
}

const engineOf = ({ engine, selfCheck }: AgainstSide) => engineText(engine, selfCheck);

function sideText({ file, family, parameters, checkpoint, weights, mode }: AgainstSide): string {
  const from = weights === 'checkpoint' ? `weights of ${checkpoint}` : 'random weights';
  const how = mode === 'streamed' ? ', one layer in memory at a time' : '';
  return `${file} (${family}, ${counted(parameters, 'parameter')}), ${from}${how}`;
}

function tokensText({ batch, context, ids, seed, own, other }: Against): string {
  const isRandom = ids === 'random' || own.weights === 'random' || other.weights === 'random';
  const chance = isRandom ? `, seed ${seed}` : '';
  return `Both on ${formatInteger(batch)} × ${formatInteger(context)} ${ids} tokens${chance}.`;
}

const thresholdText = ({ partsAt, threshold }: Against) =>
  `Relative difference of the output of each block, ‖own − other‖ / ‖own‖. ${
    partsAt === null ? 'None is' : `From ${partsAt} on it is`
  } above ${percentText(threshold)}, below which rounding usually stays.`;

const MEASURES = [
  { key: 'largestDifference', title: 'largest difference' },
  { key: 'meanDifference', title: 'mean difference' },
  { key: 'relativeDifference', title: 'relative difference' },
  { key: 'klDivergence', title: 'KL divergence, nats' },
  { key: 'topAgreement', title: 'same top token' },
] as const satisfies readonly { key: keyof Against['logits']; title: string }[];

const SHARES: readonly string[] = ['relativeDifference', 'topAgreement'];

export function logitsTable({ logits }: Pick<Against, 'logits'>): TableBlock {
  return {
    kind: 'table',
    columns: [left('logits', 'measure'), right('value', 'value')],
    rows: MEASURES.map(({ key, title }) => [
      { text: title },
      SHARES.includes(key) ? shareCell(logits[key]) : differenceCell(logits[key]),
    ]),
  };
}

const differenceCell = (value: number): Cell => ({ text: differenceText(value), value });

/** `0`, `2.41e-7`, `0.0727`, `3.13`. */
export function differenceText(value: number): string {
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return 'infinite';
  return value < 1e-3 ? value.toExponential(2) : value.toPrecision(3);
}

const shareCell = (value: number): Cell =>
  Number.isFinite(value) ? { text: percentText(value), value } : differenceCell(value);

/** Columns of the bar of the largest difference. */
const BAR_WIDTH = 16;

function blocksTable({ blocks, logits, threshold }: Against): TableBlock {
  const rows = [...(blocks ?? []), { block: 'logits', ...logits }];
  // Differences below the threshold have a short bar, even when none is above.
  const most = rows.reduce((max, each) => Math.max(max, each.relativeDifference), threshold);
  return {
    kind: 'table',
    columns: [
      left('block', 'block'),
      right('relative', 'relative_difference'),
      left('', 'bar'),
      right('largest', 'largest_difference'),
    ],
    rows: rows.map(({ block, relativeDifference, largestDifference }) => [
      { text: block },
      shareCell(relativeDifference),
      { text: bar(shareOf(relativeDifference, most), BAR_WIDTH), value: '' },
      differenceCell(largestDifference),
    ]),
  };
}

/** Finite values have no bar when the maximum is infinite. */
const shareOf = (value: number, most: number) => (Number.isFinite(value) ? value / most : 1);

/** One number per row. */
function flatTable({ logits, blocks }: Against): TableBlock {
  const row = (where: string, measure: string, value: number): Cell[] => [
    { text: where },
    { text: measure },
    { text: String(value), value },
  ];
  return {
    kind: 'table',
    columns: [left('where', 'where'), left('measure', 'measure'), right('value', 'value')],
    rows: [
      ...MEASURES.map(({ key, title }) => row('logits', title, logits[key])),
      ...(blocks ?? []).flatMap(({ block, relativeDifference, largestDifference }) => [
        row(block, 'relative difference', relativeDifference),
        row(block, 'largest difference', largestDifference),
      ]),
    ],
  };
}
