/** Report of the ablations of `minimind kv-projector verify`: the final loss of each variant, and its ratio to the base. */
import type { Spread, VariantResult } from '../../kv-projector/ablations.js';
import type { AblationsResult } from '../../kv-projector/verify-projectors.js';
import { formatDuration, formatInteger, shortCount } from '../../text/units.js';
import { counted } from '../../text/words.js';
import { ENGINE_TITLES } from '../doctor-report.js';
import { integerCell, leftColumn, noteOf, right, strongCell, tableOf } from '../kit/cells.js';
import type { Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import { lossCell, lossText } from './kv-projector-verify.js';

/** @param about Description of the data. */
export function ablationsReport(result: AblationsResult, about: string): Report {
  const { optimizer, variants, seeds } = result;
  const [beta1, beta2] = optimizer.betas;
  return {
    verdict: verdictOf(result),
    blocks: [{ kind: 'facts', facts: factsOf(result, about) }, variantTable(variants)],
    details: [
      noteOf(
        'Each row changes one part of the base. A ratio compares final losses of the same seed, and a range has the ' +
          'lowest and the highest of the seeds.',
      ),
      noteOf(
        'Losses are those of the training, with dropout active: without dropout they are lower for that reason alone. ' +
          'All rows train on the same data, and no row is tested on other data.',
      ),
      noteOf(
        `AdamW: learning rate ${optimizer.learningRate}, betas ${beta1} and ${beta2}, epsilon ${optimizer.epsilon}, weight ` +
          `decay ${optimizer.weightDecay}. Only the adapter of K is trained.`,
      ),
    ],
    data: tableOf(
      variants.flatMap(({ name, parameters, losses }) =>
        losses.map((loss, at) => ({ name, parameters, loss, seed: seeds[at] ?? 0 })),
      ),
      [
        leftColumn('variant', 'variant', ({ name }) => name),
        right('parameters', 'parameters', ({ parameters }) => integerCell(parameters)),
        right('seed', 'seed', ({ seed }) => integerCell(seed)),
        right('loss', 'loss', ({ loss }) => lossCell(loss)),
      ],
    ),
  };
}

function verdictOf({ withoutNorm, variants, seeds, steps }: AblationsResult): Verdict {
  const after = `after ${counted(steps, 'step')}`;
  if (withoutNorm !== null && !Number.isFinite(withoutNorm.mean)) {
    return { text: `Without the norm, a loss ${after} is not a number`, tone: 'bad' };
  }
  if (withoutNorm !== null) {
    return {
      text: `Without the norm, the loss ${after} is ${timesText(withoutNorm, seeds.length)} that of the base`,
    };
  }
  const ranked = variants.slice(1).toSorted((a, b) => a.timesBase.mean - b.timesBase.mean);
  const [best, worst] = [ranked[0], ranked.at(-1)];
  if (!best || !worst) return { text: 'Only the base was trained: no value differs from it' };
  const text = (variant: VariantResult) =>
    `${variant.name} ${timesText(variant.timesBase, seeds.length)}`;
  return {
    text: `Loss ${after}, relative to the base: ${text(best)}${best === worst ? '' : `, ${text(worst)}`}`,
  };
}

/** `9.6 times (9.5–9.7 over 3 seeds)` */
const timesText = ({ mean, lowest, highest }: Spread, seeds: number): string =>
  `${two(mean)} times${seeds === 1 ? '' : ` (${two(lowest)}–${two(highest)} over ${counted(seeds, 'seed')})`}`;

function factsOf(result: AblationsResult, about: string): Fact[] {
  const { size, variants, engine, seconds, seeds, withoutNorm, teacher } = result;
  const { teacherWidth, studentWidth, hidden, batch, context } = size;
  const [base] = variants;
  const widths = [teacherWidth, hidden, studentWidth].map(formatInteger).join(' → ');
  return [
    {
      name: 'base',
      text: `norm, ratio 1, SiLU, dropout 0.1: ${widths}, ${shortCount(base?.parameters ?? 0)} parameters`,
    },
    {
      name: 'data',
      text: `${teacher?.tensor ? `X = ${teacher.tensor} of ${teacher.text}` : about}, ${formatInteger(batch)} × ${formatInteger(context)} tokens`,
    },
    ...(withoutNorm ? [{ name: 'published', text: 'ten times the loss without the norm' }] : []),
    {
      name: 'engine',
      text: `${ENGINE_TITLES[engine.name]} ${engine.version}, ${counted(seeds.length * variants.length, 'training')} in ${formatDuration(seconds)}`,
    },
  ];
}

const variantTable = (variants: readonly VariantResult[]): TableBlock =>
  tableOf(variants, [
    leftColumn('variant', 'variant', ({ name }) => strongCell(name)),
    right('parameters', 'parameters', ({ parameters }) => ({
      text: shortCount(parameters),
      value: parameters,
    })),
    right('final loss', 'loss', ({ loss }) => lossCell(loss.mean)),
    right(
      'range',
      'loss_range',
      ({ loss }) => `${lossText(loss.lowest)}–${lossText(loss.highest)}`,
    ),
    right('÷ base', 'times_base', ({ timesBase: { mean } }) => ({ text: two(mean), value: mean })),
    right('range', 'times_base_range', ({ timesBase: { lowest, highest } }, at) =>
      at === 0 ? '' : `${two(lowest)}–${two(highest)}`,
    ),
  ]);

/** Two digits after the point below 10, one above. */
const two = (value: number): string => value.toFixed(value < 10 ? 2 : 1);
