/** Report of `minimind kv-projector verify`: loss curves of the two adapters and their crossover. */

import { setting } from '../../base/text/setting.js';
import {
  formatDuration,
  formatInteger,
  formatSeconds,
  formatSequences,
  shortCount,
} from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import type { Spread, VariantResult } from '../../convert/kv-projector/ablations.js';
import type { LossTarget } from '../../convert/kv-projector/convergence.js';
import type { AdapterKind } from '../../convert/kv-projector/projector.js';
import type { DataKind, Step, Verification } from '../../convert/kv-projector/verify-adapters.js';
import type {
  AblationsResult,
  VerifyProjectorsResult,
} from '../../convert/kv-projector/verify-projectors.js';
import { ENGINE_TITLES } from '../doctor-report.js';
import type { PlotBlock, Series } from '../kit/pictures.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  strongCell,
  tableOf,
  valueCell,
} from '../kit/report.js';

const MARKS = {
  linear: { mark: 'x', tone: 'hue1' },
  elastic: { mark: 'o', tone: 'hue2' },
} as const satisfies Record<AdapterKind, Pick<Series, 'mark' | 'tone'>>;

const KINDS = Object.keys(MARKS) as AdapterKind[];

/** @param about Description of the data. */
export function verifyProjectorsReport(result: VerifyProjectorsResult, about: string): Report {
  const plot = lossPlot(result.steps);
  return {
    verdict: projectorVerdict(result),
    blocks: [
      { kind: 'facts', facts: projectorFacts(result, about) },
      stepTable(result, ANSWER_ROWS),
    ],
    details: [
      ...(plot ? [plot] : []),
      ...(result.steps.length > ANSWER_ROWS
        ? [headingBlock('Losses'), stepTable(result, MOST_ROWS)]
        : []),
      headingBlock('Adapters'),
      adapterTable(result),
      headingBlock('Steps to a loss'),
      targetTable(result),
      ...notes(result),
    ],
    data: everyStep(result),
  };
}

function projectorVerdict({ winner, steps }: Verification): Verdict {
  const last = steps.at(-1);
  if (!last || winner === null) return { text: 'No winner: a loss is not a number', tone: 'bad' };
  const loser = winner === 'linear' ? 'elastic' : 'linear';
  return {
    text: `${winner} wins after ${counted(last.step, 'step')}: loss ${lossText(last[winner])}, ${loser} ${lossText(last[loser])}`,
  };
}

function projectorFacts(result: VerifyProjectorsResult, about: string): Fact[] {
  const { size, parameters, engine, seconds, published, reduced } = result;
  const { teacherWidth, studentWidth, hidden, batch, context } = size;
  const widths = `${formatInteger(teacherWidth)} → ${formatInteger(studentWidth)}`;
  return [
    { name: 'linear', text: `${widths}, ${shortCount(parameters.linear)} parameters` },
    {
      name: 'elastic',
      text: `${formatInteger(teacherWidth)} → ${formatInteger(hidden)} → ${formatInteger(studentWidth)}, ${shortCount(parameters.elastic)} parameters`,
    },
    { name: 'data', text: `${about}, ${formatSequences(batch, context)}` },
    {
      name: 'engine',
      text: `${ENGINE_TITLES[engine.name]} ${engine.version}, ${formatDuration(seconds)}`,
    },
    ...targetFacts(result),
    { name: 'time', text: timeText(result) },
    ...(published ? [{ name: 'published', text: bandsText(published) }] : []),
    ...(reduced ? [{ name: 'reduced', text: reducedText(reduced) }] : []),
  ];
}

/** Facts about a target loss that both adapters reach: the given loss, or the higher one of the last losses. */
function targetFacts({ targets, winner }: Verification): Fact[] {
  const shown =
    targets.find(({ from }) => from === 'given') ??
    targets.find(({ from, fewerSteps }) => from !== winner && fewerSteps !== null);
  return shown ? [{ name: 'steps', text: targetText(shown) }] : [];
}

/** `to loss 0.63 (last of linear): linear 40, elastic 7. Elastic needs 5.71 times fewer steps, 1.20 times more time`. */
function targetText({ loss, from, steps, fewerSteps, lessTime }: LossTarget): string {
  const source = from === 'given' ? '' : ` (last of ${from})`;
  const counts = KINDS.map((kind) => `${kind} ${steps[kind] ?? 'not reached'}`).join(', ');
  const text = `to loss ${lossText(loss)}${source}: ${counts}`;
  if (fewerSteps === null || lessTime === null) return text;
  const [first, fewer, less] =
    fewerSteps < 1 ? ['Linear', 1 / fewerSteps, 1 / lessTime] : ['Elastic', fewerSteps, lessTime];
  const time = less < 1 ? `${two(1 / less)} times more time` : `${two(less)} times less time`;
  return `${text}. ${first} needs ${two(fewer)} times fewer steps, ${time}`;
}

function timeText({ secondsPerStep: { linear, elastic } }: Verification): string {
  return `${formatSeconds(linear)} a step of linear, ${formatSeconds(elastic)} of elastic: ${two(elastic / linear)} times as long`;
}

/** Four digits: `22.02`, `0.02638`. */
const lossText = (loss: number): string => String(Number(loss.toPrecision(4)));

const lossCell = (loss: number): Cell => valueCell(loss, lossText);

const everyStep = ({ steps }: Verification): TableBlock =>
  tableOf(steps, [
    right('step', 'step', ({ step }) => integerCell(step)),
    ...KINDS.map((kind) => right(kind, `${kind}_loss`, (each: Step) => lossCell(each[kind]))),
  ]);

/** Maximum rows of steps in the answer, and in its details. */
const ANSWER_ROWS = 8;
const MOST_ROWS = 24;

/** A sample of the steps, with the published losses. */
function stepTable({ steps, published }: Verification, most: number): TableBlock {
  const period = Math.max(1, Math.ceil(steps.length / (most - 2) / 5) * 5);
  const shown = steps.filter(
    ({ step }) =>
      steps.length <= most || step === 1 || step % period === 0 || step === steps.length,
  );
  return tableOf(shown, [
    right('step', 'step', ({ step }) => integerCell(step)),
    ...KINDS.flatMap((kind) => [
      right(kind, `${kind}_loss`, (each: Step) => lossCell(each[kind])),
      published !== null &&
        leftColumn('published', `${kind}_published`, ({ step }: Step) =>
          bandCell(published, step, kind),
        ),
    ]),
  ]);
}

function bandCell(
  published: NonNullable<Verification['published']>,
  step: number,
  kind: AdapterKind,
): Cell {
  const band = published.find((each) => each.step === step && each.adapter === kind);
  if (!band) return { text: '' };
  const { lowest, highest, within } = band;
  const range = lowest === highest ? String(lowest) : `${lowest}–${highest}`;
  return within ? { text: `${range} ✓`, tone: 'good' } : { text: `${range} ✗`, tone: 'bad' };
}

/** Null when there is nothing to draw. */
export function lossPlot(steps: readonly Step[]): PlotBlock | null {
  const series = KINDS.map((kind) => {
    const losses = steps.map((step) => step[kind]);
    // A logarithmic scale needs positive finite losses; after the first other loss, the training has failed.
    const end = losses.findIndex((loss) => !(loss > 0 && Number.isFinite(loss)));
    return { ...MARKS[kind], label: kind, values: end < 0 ? losses : losses.slice(0, end) };
  });
  if (series.every(({ values }) => values.length === 0)) return null;
  return {
    kind: 'plot',
    title: 'Loss (mean squared error) by step',
    first: 1,
    series,
    levels: [],
  };
}

const adapterTable = ({ parameters, steps }: Verification): TableBlock => {
  const lossesOf = (kind: AdapterKind) => steps.map((each) => each[kind]);
  return tableOf(KINDS, [
    leftColumn('adapter', 'adapter', (kind) => kind),
    right('parameters', 'parameters', (kind) => integerCell(parameters[kind])),
    right('first loss', 'first_loss', (kind) => lossCell(lossesOf(kind)[0] ?? Number.NaN)),
    right('lowest', 'lowest_loss', (kind) =>
      lossCell(
        lossesOf(kind).reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY),
      ),
    ),
    right('last', 'last_loss', (kind) => lossCell(lossesOf(kind).at(-1) ?? Number.NaN)),
  ]);
};

const targetTable = ({ targets }: Verification): TableBlock =>
  tableOf(targets, [
    right('loss', 'loss', ({ loss }) => lossCell(loss)),
    leftColumn('of', 'from', ({ from }) => (from === 'given' ? from : `${from}, last step`)),
    ...KINDS.flatMap((kind) => [
      right(`${kind} steps`, `${kind}_steps`, ({ steps }: LossTarget) => integerCell(steps[kind])),
      right('time', `${kind}_seconds`, ({ seconds }: LossTarget) =>
        valueCell(seconds[kind], formatSeconds),
      ),
    ]),
  ]);

const PUBLISHED_SPEED =
  'Published: elastic converges in 15 steps in place of 40 (2.7 times faster), or 3 to 5 times faster, and a step takes 1.5 ' +
  'times as long. The loss that is meant is not published.';

interface Advice {
  readonly expected: AdapterKind;
  readonly asExpected: () => string;
  readonly otherwise: () => string;
}

const ADVICE = {
  published: {
    expected: 'elastic',
    asExpected: () =>
      'Elastic starts with a norm, so the mean of X hardly affects it. This does not make it the better projector: ' +
      `linear wins where the relation is linear. Try ${setting('data', 'linear')}.`,
    otherwise: () => 'At the published widths and within 40 steps, elastic wins on this data.',
  },
  linear: {
    expected: 'linear',
    asExpected: () =>
      'Where the relation is linear and X is centred, linear reaches a lower loss with fewer parameters. Try linear ' +
      'first on your own keys and values.',
    otherwise: () =>
      'The relation is linear, but linear needs more steps at these widths. It wins at the published widths and at a ' +
      `quarter of them: leave the widths out, or use more ${setting('steps')}.`,
  },
  shifted: {
    expected: 'elastic',
    asExpected: () =>
      'The norm of elastic removes scale and shift of X, so it learns as on the published data. Linear starts with ' +
      `losses about four times as high. Linear wins with ${setting('data', 'linear')}.`,
    otherwise: () => 'At the published widths and within 40 steps, elastic wins on this data.',
  },
} as const satisfies Record<DataKind, Advice>;

function adviceOn({ data, winner }: Verification): string {
  const { expected, asExpected, otherwise } = ADVICE[data];
  return winner === expected ? asExpected() : otherwise();
}

function notes(result: VerifyProjectorsResult): Block[] {
  const { optimizer, dropout, seed, learningRates } = result;
  const [beta1, beta2] = optimizer.betas;
  const { linear, elastic } = learningRates;
  const rates =
    linear === elastic
      ? `learning rate ${linear}`
      : `learning rates ${linear} of linear, ${elastic} of elastic`;
  return [
    noteOf(adviceOn(result)),
    noteOf(PUBLISHED_SPEED),
    noteOf(
      `Only the adapter of K is trained, seed ${seed}. Linear: one layer with bias. Elastic: norm, linear, SiLU, ` +
        `dropout ${dropout}, linear.`,
    ),
    noteOf(
      `AdamW: ${rates}, betas ${beta1} and ${beta2}, epsilon ${optimizer.epsilon}, weight ` +
        `decay ${optimizer.weightDecay}. The loss of a step is measured before its update; steps count from 1.`,
    ),
  ];
}

function bandsText(published: NonNullable<Verification['published']>): string {
  const outside = published.filter(({ within }) => !within).length;
  return outside === 0
    ? 'all losses are in the range of three PyTorch runs without a seed'
    : `${outside} of ${published.length} losses are outside the range of three PyTorch runs without a seed`;
}

const reducedText = ({
  fromTeacherWidth,
  fromStudentWidth,
  estimatedSeconds,
}: NonNullable<VerifyProjectorsResult['reduced']>): string =>
  `a quarter of the published widths or less; ${setting('full')} runs ${formatInteger(fromTeacherWidth)} → ` +
  `${formatInteger(fromStudentWidth)} (about ${formatDuration(estimatedSeconds)})`;

// Ablations: the final loss of each variant, and its ratio to the base.

/** @param about Description of the data. */
export function ablationsReport(result: AblationsResult, about: string): Report {
  const { optimizer, variants, seeds } = result;
  const [beta1, beta2] = optimizer.betas;
  return {
    verdict: ablationsVerdict(result),
    blocks: [{ kind: 'facts', facts: ablationsFacts(result, about) }, variantTable(variants)],
    details: [
      headingBlock('Steps to a loss'),
      speedTable(variants),
      noteOf(
        'Steps to a loss: those to the higher last loss of a variant and the base with the same seed, which both reach, or ' +
          `to ${setting('targetLoss')}. The mean over the seeds.`,
      ),
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

function ablationsVerdict({ withoutNorm, variants, seeds, steps }: AblationsResult): Verdict {
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

function ablationsFacts(result: AblationsResult, about: string): Fact[] {
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
      text: `${teacher?.tensor ? `X = ${teacher.tensor} of ${teacher.text}` : about}, ${formatSequences(batch, context)}`,
    },
    ...speedFacts(variants),
    ...(withoutNorm ? [{ name: 'published', text: 'ten times the loss without the norm' }] : []),
    {
      name: 'engine',
      text: `${ENGINE_TITLES[engine.name]} ${engine.version}, ${counted(seeds.length * variants.length, 'training')} in ${formatDuration(seconds)}`,
    },
  ];
}

const meanSteps = (steps: readonly (number | null)[]): number | null =>
  steps.reduce<number | null>(
    (sum, each) => (sum === null || each === null ? null : sum + each / steps.length),
    0,
  );

const speedTable = (variants: readonly VariantResult[]): TableBlock =>
  tableOf(variants, [
    leftColumn('variant', 'variant', ({ name }) => strongCell(name)),
    right('steps', 'steps_to_loss', ({ stepsToLoss }) => valueCell(meanSteps(stepsToLoss), one)),
    right('base', 'base_steps_to_loss', ({ baseStepsToLoss }) =>
      valueCell(meanSteps(baseStepsToLoss), one),
    ),
    right('÷ base', 'times_steps', ({ timesSteps }) => valueCell(timesSteps?.mean ?? null, two)),
    right('range', 'times_steps_range', ({ timesSteps }, at) =>
      at === 0 || timesSteps === null ? '' : `${two(timesSteps.lowest)}–${two(timesSteps.highest)}`,
    ),
    right('time per step', 'seconds_per_step', ({ secondsPerStep }) =>
      valueCell(secondsPerStep, formatSeconds),
    ),
  ]);

/** `relu 1.21 times, gelu 1.03 times`: steps compared with the base, to a loss that both reach. */
function speedFacts(variants: readonly VariantResult[]): Fact[] {
  const known = variants
    .slice(1)
    .flatMap(({ name, timesSteps }) =>
      timesSteps === null ? [] : [`${name} ${two(timesSteps.mean)}`],
    );
  if (known.length === 0) return [];
  return [{ name: 'steps', text: `to the same loss, ÷ those of the base: ${known.join(', ')}` }];
}

const one = (value: number): string => value.toFixed(1);

const variantTable = (variants: readonly VariantResult[]): TableBlock =>
  tableOf(variants, [
    leftColumn('variant', 'variant', ({ name }) => strongCell(name)),
    right('parameters', 'parameters', ({ parameters }) => valueCell(parameters, shortCount)),
    right('final loss', 'loss', ({ loss }) => lossCell(loss.mean)),
    right(
      'range',
      'loss_range',
      ({ loss }) => `${lossText(loss.lowest)}–${lossText(loss.highest)}`,
    ),
    right('÷ base', 'times_base', ({ timesBase: { mean } }) => valueCell(mean, two)),
    right('range', 'times_base_range', ({ timesBase: { lowest, highest } }, at) =>
      at === 0 ? '' : `${two(lowest)}–${two(highest)}`,
    ),
  ]);

/** Two decimals below 10, one above. */
const two = (value: number): string => value.toFixed(value < 10 ? 2 : 1);
