/** Comparison of two models on the same tokens: report of `quick-test --against`, and check of a conversion. */

import { formatInteger, percentText } from '../../base/text/units.js';
import { counted, modelName } from '../../base/text/words.js';
import type { ComparedRun, TwoModelComparison } from '../../engine/compare/compare-outputs.js';
import { engineText } from '../doctor-report.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  barCell,
  headingBlock,
  leftColumn,
  noteOf,
  percentCell,
  right,
  tableOf,
  valueCell,
} from '../kit/report.js';

/** @param flat Whether to output one table, for programs. */
export function againstReport(
  against: TwoModelComparison,
  { flat }: { readonly flat: boolean },
): Report {
  const { blocks } = against;
  return {
    verdict: againstVerdict(against),
    blocks: [
      { kind: 'facts', facts: sidesFacts(against) },
      logitsTable(against),
      ...(blocks === null ? [noteOf(`Only logits are compared: ${against.blocksDiffer}.`)] : []),
    ],
    details: blocks === null ? [] : blocksDetails(against),
    ...(flat && { data: againstTable(against) }),
  };
}

function againstVerdict({
  own,
  other,
  partsAt,
  threshold,
  blocks,
  logits,
}: TwoModelComparison): Verdict {
  const [a, b] = [own, other].map(({ file }) => modelName(file));
  const sides = a === b ? `${a}:` : `${a} and ${b}:`;
  const measured = `KL ${measurementText(logits.klDivergence)} nats, same top token ${percentText(logits.topAgreement)}`;
  return partsAt === null
    ? {
        text: `${sides} equal within rounding (no difference above ${percentText(threshold)})`,
        tone: 'good',
      }
    : {
        text: `${sides} ${blocks === null ? 'the logits differ' : `different from ${partsAt} on`} (${measured})`,
      };
}

/** All blocks of a comparison below its verdict, for the report of a conversion. */
export const againstBlocks = (against: TwoModelComparison): Block[] => [
  { kind: 'facts', facts: sidesFacts(against) },
  logitsTable(against),
  ...(against.blocks === null
    ? [noteOf(`Only logits are compared: ${against.blocksDiffer}.`)]
    : blocksDetails(against)),
];

function sidesFacts(against: TwoModelComparison): Fact[] {
  const { own, other } = against;
  const isSameEngine = engineOf(own) === engineOf(other);
  const isSameModel = sideText(own) === sideText(other);
  const engine = (name: string, side: ComparedRun) => ({ name, text: engineOf(side) });
  return [
    { name: 'model', text: sideText(own) },
    ...(isSameEngine ? [] : [engine('engine', own)]),
    ...(isSameModel ? [] : [{ name: 'against', text: sideText(other) }]),
    ...(isSameEngine ? [] : [engine(isSameModel ? 'against' : 'engine', other)]),
    { name: 'input', text: comparedTokensText(against) },
    ...(isSameEngine ? [engine('engine', own)] : []),
  ];
}

const blocksDetails = (against: TwoModelComparison): Block[] => [
  headingBlock('Difference by block'),
  noteOf(thresholdText(against)),
  blocksTable(against),
];

const engineOf = ({ engine, selfCheck }: ComparedRun) => engineText(engine, selfCheck);

function sideText({ file, family, parameters, checkpoint, weights, mode }: ComparedRun): string {
  const from = weights === 'checkpoint' ? `weights of ${checkpoint}` : 'random weights';
  const how = mode === 'streamed' ? ', one layer in memory at a time' : '';
  return `${file} (${family}, ${counted(parameters, 'parameter')}), ${from}${how}`;
}

function comparedTokensText({ batch, context, ids, seed, own, other }: TwoModelComparison): string {
  const isRandom = ids === 'random' || own.weights === 'random' || other.weights === 'random';
  const chance = isRandom ? `, seed ${seed}` : '';
  return `${formatInteger(batch)} × ${formatInteger(context)} ${ids} tokens${chance}, the same for both`;
}

const thresholdText = ({ partsAt, threshold }: TwoModelComparison) =>
  `Relative difference of each block's output, ‖own − other‖ / ‖own‖. ${
    partsAt === null ? 'None is' : `It is`
  } above ${percentText(threshold)}${partsAt === null ? '' : ` from ${partsAt} on`}; rounding usually stays below.`;

const MEASURES = [
  { key: 'largestDifference', title: 'largest difference' },
  { key: 'meanDifference', title: 'mean difference' },
  { key: 'relativeDifference', title: 'relative difference' },
  { key: 'klDivergence', title: 'KL divergence, nats' },
  { key: 'topAgreement', title: 'same top token' },
] as const satisfies readonly { key: keyof TwoModelComparison['logits']; title: string }[];

const SHARES: readonly string[] = ['relativeDifference', 'topAgreement'];

export function logitsTable({ logits }: Pick<TwoModelComparison, 'logits'>): TableBlock {
  return tableOf(MEASURES, [
    leftColumn('logits', 'measure', ({ title }) => title),
    right('value', 'value', ({ key }) =>
      SHARES.includes(key) ? shareCell(logits[key]) : differenceCell(logits[key]),
    ),
  ]);
}

const differenceCell = (value: number): Cell => valueCell(value, measurementText);

/** `0`, `2.41e-7`, `0.0727`, `3.13`. */
export function measurementText(value: number): string {
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return 'infinite';
  return value < 1e-3 ? value.toExponential(2) : value.toPrecision(3);
}

const shareCell = (value: number): Cell =>
  Number.isFinite(value) ? percentCell(value) : differenceCell(value);

/** Columns of the bar of the largest difference. */
const BAR_WIDTH = 16;

function blocksTable({ blocks, logits, threshold }: TwoModelComparison): TableBlock {
  const rows = [...(blocks ?? []), { block: 'logits', ...logits }];
  // Differences below the threshold have a short bar, even when none is above.
  const most = rows.reduce((max, each) => Math.max(max, each.relativeDifference), threshold);
  return tableOf(rows, [
    leftColumn('block', 'block', ({ block }) => block),
    right('relative', 'relative_difference', ({ relativeDifference }) =>
      shareCell(relativeDifference),
    ),
    leftColumn('', 'bar', ({ relativeDifference }) =>
      barCell(barShare(relativeDifference, most), BAR_WIDTH),
    ),
    right('largest', 'largest_difference', ({ largestDifference }) =>
      differenceCell(largestDifference),
    ),
  ]);
}

/** Finite values have no bar when the maximum is infinite. */
const barShare = (value: number, most: number) => (Number.isFinite(value) ? value / most : 1);

/** One number per row. */
function againstTable({ logits, blocks }: TwoModelComparison): TableBlock {
  const figures = [
    ...MEASURES.map(({ key, title }) => ['logits', title, logits[key]] as const),
    ...(blocks ?? []).flatMap(({ block, relativeDifference, largestDifference }) => [
      [block, 'relative difference', relativeDifference] as const,
      [block, 'largest difference', largestDifference] as const,
    ]),
  ];
  return tableOf(figures, [
    leftColumn('where', 'where', ([where]) => where),
    leftColumn('measure', 'measure', ([, measure]) => measure),
    right('value', 'value', ([, , value]) => valueCell(value)),
  ]);
}
