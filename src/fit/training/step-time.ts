/** How long a step takes: at best by the roofline, as expected and at worst by what others reached. */
import type { LanguageModel } from '../../architecture/layer.js';
import {
  ceil,
  div,
  type Expression,
  type Input,
  inputs,
  max,
  mul,
  v,
} from '../../budget/expression.js';
import { type Bounds, type Quantity, quantity } from '../../budget/quantity.js';
import { peakFor } from '../../hardware/gpu.js';
import { boundsOf, eachBound } from '../bounds.js';
import { efficienciesOn } from '../efficiency.js';
import { communicationSeconds, paceOf, withoutLink } from '../parallelism/collectives.js';
import { type Parallelism, parallelismOf, stagesOf } from '../parallelism/parallelism.js';
import { assumedMfu, modelFlops, POOR, reachedOn } from './mfu.js';
import { type Computing, computeSeconds, memorySeconds } from './step-limits.js';
import type { StageMemory, StepSituation, StepTime, TrainingTime } from './training.js';
import type { TrainingFitSetting } from './training-setting.js';

/**
 * @param memory What each stage holds.
 * @throws UserError when no peak of the GPU is known.
 */
export function stepTimeOf(
  model: LanguageModel,
  setting: TrainingFitSetting,
  memory: readonly StageMemory[],
): StepTime {
  const parallelism = parallelismOf(model, setting);
  const stages = stagesOf(model, parallelism);
  const situation = { model, setting, parallelism, stages, memory };
  const peak = peakFor(setting.cluster.gpu, computedIn(setting));
  const limits = limitsOf(situation, peak);
  const limitedBy = longestOf(limits, 'lower');
  const roofline = quantity({
    label: 'the best case of a step',
    unit: 'seconds',
    formula: max(...secondsOf(limits, 'lower')),
    source: `all at peak and at the same time: ${limitedBy.limit} decides (${limitedBy.seconds.lower.source})`,
  });
  const assumed = assumedMfu(setting);
  const work = { situation, peak, limits, assumed };
  const seconds = stepSeconds(work, roofline);
  const tokens = tokensOfStep(setting, parallelism);
  const tokensPerSecond = quantity({
    label: 'tokens per second',
    unit: 'tokens/s',
    formula: div(v({ tokens: tokens.value }), v({ seconds: seconds.expected.value })),
    source: 'of all GPUs together, as expected',
  });
  const mfu = reachedMfu(work, seconds.expected);
  return {
    seconds,
    mfu,
    assumedMfu: assumed,
    decidedBy: isLess(mfu, assumed) ? longestOf(limits, 'expected').limit : 'utilisation',
    roofline,
    limits,
    limitedBy: limitedBy.limit,
    withoutLink: withoutLink(setting.cluster, setting.cluster.gpus),
    tokens,
    tokensPerSecond,
  };
}

/** Of the products. */
export const computedIn = ({ precision }: Pick<TrainingFitSetting, 'precision'>) =>
  precision === 'mixed' ? 'bf16' : 'f32';

/** By more than what rounding makes of a quotient. */
const isLess = (a: Quantity, b: Quantity): boolean => a.value < b.value * (1 - 1e-12);

/** What a step does, and how fast its GPUs are. */
interface StepWork {
  readonly situation: StepSituation;
  readonly peak: Quantity;
  readonly limits: StepTime['limits'];
  readonly assumed: Quantity;
}

function limitsOf(situation: StepSituation, peak: Quantity): StepTime['limits'] {
  const { parallelism, setting } = situation;
  const efficiencies = efficienciesOn(setting.cluster.gpu);
  const paces = {
    lower: paceOf(efficiencies.lower, parallelism, true),
    expected: paceOf(efficiencies.expected, parallelism, false),
    upper: paceOf(efficiencies.upper, parallelism, false),
  };
  const communication = eachBound(paces, (pace) => communicationSeconds(situation, pace));
  return [
    { limit: 'compute', seconds: computeSeconds(situation, peak, computingOf(setting)) },
    { limit: 'memory', seconds: memorySeconds(situation, paces) },
    { limit: 'communication', seconds: communication },
  ];
}

/** The share of the peak while there is something to compute, what is recomputed included. */
const computingOf = ({
  mfu,
  cluster,
}: TrainingFitSetting): Readonly<Record<keyof Bounds, Computing>> => {
  const best = { utilisation: 1, source: 'at the peak' };
  return {
    lower: best,
    expected: mfu === undefined ? reachedOn(cluster.gpu).busy : best,
    upper: POOR.busy,
  };
};

const longestOf = (limits: StepTime['limits'], bound: keyof Bounds) =>
  limits.reduce((a, b) => (b.seconds[bound].value > a.seconds[bound].value ? b : a));

const secondsOf = (limits: StepTime['limits'], bound: keyof Bounds) =>
  limits.map(({ limit, seconds }) => v({ [limit]: seconds[bound].value }));

function stepSeconds({ situation, peak, limits, assumed }: StepWork, lower: Quantity): Bounds {
  const at = (bound: 'expected' | 'upper', mfu: number, source: string) =>
    quantity({
      label: 'seconds of a step',
      unit: 'seconds',
      formula: max(...secondsOf(limits, bound), flopsAtPeak(situation, peak, v({ mfu }))),
      source:
        'the longest of computing, of memory and launches, of communication, and of all FLOPs, without recomputation ' +
        `and with attention in full (arXiv 2204.02311, appendix B), at a utilisation: ${source}`,
    });
  return {
    lower: { ...lower, label: 'seconds of a step' },
    expected: at('expected', assumed.value, assumed.source),
    upper: at(
      'upper',
      Math.min(assumed.value, POOR.mfu),
      `${POOR.source}, or as stated where that is less`,
    ),
  };
}

/** FLOPs of the model in a step, by what all GPUs compute at their peak, times another divisor. */
function flopsAtPeak(
  { model, setting, parallelism }: StepSituation,
  { value: peak }: Quantity,
  divisor: Input,
): Expression {
  const flops = mul(
    v({ micro_batches: parallelism.microBatches }),
    v({ replicas: parallelism.replicas }),
    v({ flops: modelFlops(model, setting).value }),
  );
  return div(flops, mul(v({ gpus: setting.cluster.gpus }), v({ peak }), divisor));
}

/** What comes of the time that is expected, whatever decides it. */
const reachedMfu = ({ situation, peak }: StepWork, seconds: Quantity): Quantity =>
  quantity({
    label: 'model FLOPs utilisation',
    unit: 'ratio',
    formula: flopsAtPeak(situation, peak, v({ seconds: seconds.value })),
    source: 'FLOPs of the model in the time that is expected (arXiv 2204.02311, appendix B)',
  });

/** Of all replicas together. */
export function tokensOfStep(setting: TrainingFitSetting, parallelism: Parallelism): Quantity {
  const { globalBatchTokens: asked, microBatch: micro_batch, context } = setting;
  const { replicas, microBatches: micro_batches } = parallelism;
  return quantity({
    label: 'tokens of a step',
    unit: 'tokens',
    formula: mul(v({ micro_batch }), v({ micro_batches }), v({ replicas }), v({ context })),
    source:
      asked === undefined
        ? 'as many micro-batches as there are pipeline stages'
        : `as many whole micro-batches as come nearest to ${asked} tokens`,
  });
}

/** The time of a whole training of so many tokens. */
export function trainingTimeOf(step: StepTime, trainTokens: number): TrainingTime {
  const { seconds, mfu, roofline, limitedBy, tokens } = step;
  const steps = quantity({
    label: 'steps',
    unit: 'steps',
    formula: ceil(div(v({ train_tokens: trainTokens }), v({ tokens: tokens.value }))),
    source: 'the last may have fewer tokens',
  });
  const of = inputs({
    steps: steps.value,
    lower: seconds.lower.value,
    expected: seconds.expected.value,
    upper: seconds.upper.value,
  });
  const total = (which: keyof Bounds) => ({
    formula: mul(of.steps, of[which]),
    source: seconds[which].source,
  });
  const totalSeconds = boundsOf(
    { label: 'seconds of the training', unit: 'seconds', inputs: of },
    { lower: total('lower'), expected: total('expected'), upper: total('upper') },
  );
  const best = quantity({
    label: 'the best case of the training',
    unit: 'seconds',
    formula: mul(v({ steps: steps.value }), v({ step: roofline.value })),
    source: roofline.source,
  });
  return { steps, stepSeconds: seconds, totalSeconds, mfu, roofline: best, limitedBy };
}
