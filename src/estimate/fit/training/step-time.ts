/** Time of a training step: roofline for the lower bound, published utilisations for the others. */

import { setting } from '../../../base/text/setting.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import {
  expertTensors,
  isRouted,
  memoized,
  walkCounted,
} from '../../../model/architecture/walk.js';
import type { Expression, Input } from '../../../model/budget/expression.js';
import { add, ceil, div, inputs, max, mul, v } from '../../../model/budget/expression.js';
import type { Bounds, ByBound, Figure, Quantity } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import { trainingFlopsOf } from '../../../model/budget/flops.js';
import { uncountedTower } from '../../../model/budget/generation.js';
import { PRECISIONS } from '../../../model/budget/optimizers.js';
import { countParameters } from '../../../model/budget/parameters.js';
import { peakFor, peakIfKnown } from '../../hardware/gpu.js';
import { boundsOf, byBound, eachBound } from '../bounds.js';
import { efficienciesOn } from '../efficiency.js';
import { communicationSeconds, paceOf, withoutLink } from '../parallelism/collectives.js';
import type { Parallelism, Stage } from '../parallelism/parallelism.js';
import { parallelismOf, pipelineStages } from '../parallelism/parallelism.js';
import { type PublishedRange, publishedSpeed, trainingGroup } from '../published-range.js';
import { hostSeconds } from './offload.js';
import type { ComputeInputs } from './step-limits.js';
import { computeSeconds, memorySeconds, plainScoreSeconds } from './step-limits.js';
import type { StageMemory, StepInputs, StepTime, TrainingTime } from './training-fit.js';
import type { TrainingFitSetting } from './training-setting.js';
import { computingSharesOn, EXPERTS_SOURCE, expertShare, hiddenShare } from './training-shares.js';

/**
 * @param memory Memory of each stage.
 * @throws UserError when no peak of the GPU is known.
 */
export function stepTimeOf(
  model: LanguageModel,
  setting: TrainingFitSetting,
  memory: readonly StageMemory[],
): StepTime {
  const parallelism = parallelismOf(model, setting);
  const stages = pipelineStages(model, parallelism);
  return timeOf({ model, setting, parallelism, stages, memory });
}

function timeOf(situation: StepInputs): StepTime {
  const { model, setting, parallelism } = situation;
  const peak = peakFor(setting.cluster.gpu, computedIn(setting));
  const limits = stepLimits(situation, peak);
  const limitedBy = longestOf(limits, 'lower');
  const host = hostOf(situation);
  const roofline = quantity({
    label: 'time of a step, lower bound',
    unit: 'seconds',
    formula: max(
      ...boundSeconds(limits, 'lower'),
      ...(host ? [v({ host: host.lower.value })] : []),
    ),
    source: `everything at peak and overlapped: ${limitedBy.limit} is the limit (${limitedBy.seconds.lower.source})`,
  });
  const computing = limits[0].seconds.expected;
  const assumed = assumedMfu({ situation, peak }, computing);
  const work = { situation, peak, limits, assumed, host };
  const seconds = stepSeconds(work, roofline);
  const tokens = tokensOfStep(setting, parallelism);
  const tokensPerSecond = quantity({
    label: 'tokens per second',
    unit: 'tokens/s',
    formula: div(v({ tokens: tokens.value }), v({ seconds: seconds.expected.value })),
    source: 'all GPUs together, by the estimate',
  });
  const mfu = reachedMfu(work, seconds.expected);
  return {
    seconds,
    mfu,
    assumedMfu: assumed,
    published:
      setting.mfu === undefined && host === undefined
        ? publishedSpeed(
            trainingGroup(setting.precision === 'fp8', Number.isFinite(expertWidth(model))),
            tokensPerSecond.value,
          )
        : null,
    decidedBy:
      host && 2 * host.expected.value > seconds.expected.value
        ? 'host'
        : isLess(mfu, assumed) && !host
          ? slowestOf(limits, setting)
          : 'utilisation',
    roofline,
    ...(host && { host }),
    limits,
    limitedBy: limitedBy.limit,
    withoutLink: withoutLink(setting.cluster, setting.cluster.gpus),
    tokens,
    tokensPerSecond,
  };
}

/** Copies to system memory and the update there; undefined where all of the state is on GPUs. */
function hostOf({ model, setting, parallelism }: StepInputs): Bounds | undefined {
  const { offload } = setting;
  if (offload === undefined) return undefined;
  const { parameters } = countParameters(model);
  return hostSeconds({
    ...{ setting, offload, microBatches: parallelism.microBatches },
    parameters: Number(parameters),
  });
}

/**
 * Step time; undefined where no speed can be computed: without a peak, or without a link between the GPUs. A measured
 * utilisation includes the communication.
 * @throws UserError when the peak is unknown, and a utilisation or a time was asked for.
 */
export function stepTimeIfKnown(
  model: LanguageModel,
  setting: TrainingFitSetting,
  memory: readonly StageMemory[],
  { isPeakRequired = false } = {},
): StepTime | undefined {
  const { cluster, mfu } = setting;
  if (uncountedTower(model) !== undefined) return undefined;
  if (mfu === undefined && withoutLink(cluster, cluster.gpus) !== null) return undefined;
  const isKnown = peakIfKnown(cluster.gpu, computedIn(setting)) !== null;
  const isRequired = isPeakRequired || mfu !== undefined;
  return isKnown || isRequired ? stepTimeOf(model, setting, memory) : undefined;
}

/** Adapters on a GPU that holds the whole model. */
interface AdapterStep extends Pick<StepInputs, 'setting' | 'parallelism'> {
  /** The model with the adapters as its trained parameters. */
  readonly stage: Stage;
  readonly whole: Stage;
  readonly memory: StageMemory;
}

/** Step time of adapters: products of the model pass no gradient to its weights. */
export function adapterStepIfKnown(
  model: LanguageModel,
  { setting, parallelism, stage, whole, memory }: AdapterStep,
): StepTime | undefined {
  const { cluster, mfu } = setting;
  if (uncountedTower(model) !== undefined) return undefined;
  if (mfu === undefined && withoutLink(cluster, cluster.gpus) !== null) return undefined;
  if (peakIfKnown(cluster.gpu, computedIn(setting)) === null) return undefined;
  return timeOf({
    ...{ model, setting, parallelism, stages: [whole], memory: [memory], isFrozen: true },
    reduced: setting.zero === 3 ? undefined : [stage],
  });
}

/** Reason why a training has no speed; null if it has one. */
export function withoutSpeedText(model: LanguageModel, setting: TrainingFitSetting): string | null {
  const tower = uncountedTower(model);
  if (tower !== undefined) return `FLOPs of the ${tower} are not counted`;
  const { cluster, mfu } = setting;
  if (peakIfKnown(cluster.gpu, computedIn(setting)) === null) {
    return 'no published peak for this GPU';
  }
  return mfu === undefined ? withoutLink(cluster, cluster.gpus) : null;
}

/** Type of the products. */
const computedIn = ({ precision }: Pick<TrainingFitSetting, 'precision'>) =>
  PRECISIONS[precision].products;

/** Whether `a` is less than `b` by more than rounding errors. */
const isLess = (a: Quantity, b: Quantity): boolean => a.value < b.value * (1 - 1e-12);

/** Work of a step, and the speed of its GPUs. */
interface StepWork {
  readonly situation: StepInputs;
  readonly peak: Quantity;
  readonly limits: StepTime['limits'];
  readonly assumed: Quantity;
  /** Copies to system memory and the update there. */
  readonly host: Bounds | undefined;
}

function stepLimits(situation: StepInputs, peak: Quantity) {
  const { parallelism, setting } = situation;
  const efficiencies = efficienciesOn(setting.cluster.gpu);
  const reduced = { ...situation, stages: situation.reduced ?? situation.stages };
  const paces = {
    lower: paceOf(efficiencies.lower, parallelism, true),
    expected: paceOf(efficiencies.expected, parallelism, false),
    upper: paceOf(efficiencies.upper, parallelism, false),
  };
  const communication = eachBound(paces, (pace) => communicationSeconds(reduced, pace));
  return [
    { limit: 'compute', seconds: computeSeconds(situation, peak, computingOf(situation)) },
    { limit: 'memory', seconds: memorySeconds(situation, paces) },
    { limit: 'communication', seconds: communication },
  ] as const satisfies StepTime['limits'];
}

/** Share of the peak while computing, recomputation included. */
const computingOf = ({ model, setting }: StepInputs): ByBound<ComputeInputs> => {
  const { mfu } = setting;
  const best = { utilisation: 1, source: 'at the peak' };
  return {
    lower: best,
    expected: mfu === undefined ? usualComputing(model, setting) : best,
    upper: POOR.busy,
  };
};

/** Shares that published trainings reach: of products, in experts, in attention, and in the head. */
function usualComputing(model: LanguageModel, setting: TrainingFitSetting): ComputeInputs {
  const { gpu } = setting.cluster;
  const dtype = computedIn(setting);
  const { products, narrow = products, attention, source } = computingSharesOn(gpu.architecture);
  const peak = peakFor(gpu, dtype).value;
  const wide = peakFor(gpu, dtype === 'f8' ? 'bf16' : dtype).value;
  const isNarrow = peak > wide;
  const ratio = isNarrow ? peak / wide : 1;
  const dense = products * hiddenShare(model.hidden, 1);
  const utilisation = isNarrow ? narrow * hiddenShare(model.hidden, ratio) : dense;
  const experts = expertShare(expertWidth(model), ratio);
  const inWide = (share: number) => (peak * utilisation) / (wide * share);
  const isFused = setting.attention === 'fused';
  return {
    utilisation,
    source:
      expertWidth(model) === Number.POSITIVE_INFINITY ? source : `${source}; ${EXPERTS_SOURCE}`,
    times: ({ component, kind }) => {
      if (kind === 'scores') return inWide(isFused ? attention : dense);
      if (component === 'head') return inWide(dense);
      return component === 'experts' ? 1 / experts : 1;
    },
  };
}

/** Shortest side of an expert's matrices; infinity without experts. */
const expertWidth = memoized((model: LanguageModel): number =>
  Math.min(
    Number.POSITIVE_INFINITY,
    ...walkCounted(model).flatMap(({ layer }) =>
      isRouted(layer)
        ? Math.max(
            ...expertTensors(layer).map(({ tensor: { shape } }) => Math.min(...shape.slice(-2))),
          )
        : [],
    ),
  ),
);

/** Limit that decides; scores of plain attention are memory traffic. */
function slowestOf(limits: StepTime['limits'], { attention }: TrainingFitSetting) {
  const { limit } = longestOf(limits, 'expected');
  return attention === 'plain' && limit === 'compute' ? 'memory' : limit;
}

const longestOf = (limits: StepTime['limits'], bound: keyof Bounds) =>
  limits.reduce((a, b) => (b.seconds[bound].value > a.seconds[bound].value ? b : a));

const boundSeconds = (limits: StepTime['limits'], bound: keyof Bounds) =>
  limits.map(({ limit, seconds }) => v({ [limit]: seconds[bound].value }));

function stepSeconds(
  { situation, peak, limits, assumed, host }: StepWork,
  lower: Quantity,
): Bounds {
  const scores = plainScoreSeconds(situation);
  const at = (bound: 'expected' | 'upper', mfu: number, source: string) => {
    const atMfu = flopsAtPeak(situation, peak, v({ mfu }));
    const [compute] = limits;
    // Kernels of plain attention move their scores while nothing is computed.
    const withScores = add(
      v({ compute: compute?.seconds[bound].value ?? 0 }),
      v({ plain_scores: scores }),
    );
    return quantity({
      label: 'time of a step',
      unit: 'seconds',
      formula: host
        ? add(
            max(...boundSeconds(limits, bound), atMfu, ...(scores > 0 ? [withScores] : [])),
            v({ host: host[bound].value }),
          )
        : max(...boundSeconds(limits, bound), atMfu, ...(scores > 0 ? [withScores] : [])),
      source:
        'the longest of compute, memory with launches, communication, and all FLOPs without recomputation ' +
        `and with attention in full (arXiv 2204.02311, appendix B), at a utilisation: ${source}`,
    });
  };
  return {
    lower: lower.reworded({ label: 'time of a step' }),
    expected: at('expected', assumed.value, assumed.source),
    upper: at(
      'upper',
      Math.min(assumed.value, POOR.mfu),
      `${POOR.source}, or as stated where that is less`,
    ),
  };
}

/** Model FLOPs of a step divided by the peak of all GPUs and by another divisor. */
function flopsAtPeak(
  { model, setting, parallelism }: StepInputs,
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

/** MFU that follows from the expected time. */
const reachedMfu = ({ situation, peak }: StepWork, seconds: Quantity): Quantity =>
  quantity({
    label: 'model FLOPs utilisation',
    unit: 'ratio',
    formula: flopsAtPeak(situation, peak, v({ seconds: seconds.value })),
    source: 'FLOPs of the model in the estimated time (arXiv 2204.02311, appendix B)',
  });

/** Tokens of a step over all replicas. */
export function tokensOfStep(setting: TrainingFitSetting, parallelism: Parallelism): Quantity {
  const { globalBatchTokens: asked, microBatch: micro_batch, context } = setting;
  const { replicas, microBatches: micro_batches } = parallelism;
  return quantity({
    label: 'tokens of a step',
    unit: 'tokens',
    formula: mul(v({ micro_batch }), v({ micro_batches }), v({ replicas }), v({ context })),
    source:
      asked === undefined
        ? 'one micro-batch per pipeline stage'
        : `the number of micro-batches nearest to ${asked} tokens`,
  });
}

/** Time of a training on a number of tokens. */
export function trainingTimeOf(step: StepTime, trainTokens: number): TrainingTime {
  const { seconds, mfu, roofline, limitedBy, tokens } = step;
  const steps = quantity({
    label: 'steps',
    unit: 'steps',
    formula: ceil(div(v({ train_tokens: trainTokens }), v({ tokens: tokens.value }))),
    source: 'the last step may have fewer tokens',
  });
  const of = inputs({
    steps: steps.value,
    lower: seconds.lower.value,
    expected: seconds.expected.value,
    upper: seconds.upper.value,
  });
  const totalSeconds = boundsOf(
    { label: 'time of the training', unit: 'seconds', inputs: of },
    byBound((which) => ({ formula: mul(of.steps, of[which]), source: seconds[which].source })),
  );
  const best = quantity({
    label: 'time of the training, lower bound',
    unit: 'seconds',
    formula: mul(v({ steps: steps.value }), v({ step: roofline.value })),
    source: roofline.source,
  });
  const published = publishedTime(step, totalSeconds.expected.value);
  return { steps, stepSeconds: seconds, totalSeconds, published, mfu, roofline: best, limitedBy };
}

/** The range of published speeds, as times of all steps. */
function publishedTime(
  { published, tokensPerSecond }: StepTime,
  seconds: number,
): PublishedRange | null {
  if (published === null) return null;
  const tokens = seconds * tokensPerSecond.value;
  return { ...published, lower: tokens / published.upper, upper: tokens / published.lower };
}

/** Cost of all GPUs for the time of a training. */
export const trainingCost = (seconds: Bounds, gpus: number, price: number): Bounds =>
  eachBound(seconds, ({ value }) => {
    const one = inputs({ gpus, price, seconds: value });
    return quantity({
      label: 'cost of the training',
      unit: 'currency',
      formula: div(mul(one.gpus, one.price, one.seconds), 3600),
      source: 'all GPUs for the time of all steps',
    });
  });

// Model FLOPs utilisation (MFU): model FLOPs without recomputation, as a share of the peak.

/** Utilisation of a poor implementation, for the upper bound. */
const POOR = {
  mfu: 0.213,
  source: '21.3% of GPT-3 (PaLM, arXiv 2204.02311, table 3)',
  busy: {
    utilisation: 0.43,
    source:
      '43% of the peak, the least of ten sizes, with recomputation (arXiv 2104.04473, table 1)',
  },
};

/** MFU from the user, or the one that follows from the published shares of the peak. */
function assumedMfu(
  { situation, peak }: Pick<StepWork, 'situation' | 'peak'>,
  computing: Quantity,
): Quantity {
  const { mfu } = situation.setting;
  const shared = { label: 'assumed model FLOPs utilisation', unit: 'ratio' } as const;
  if (mfu !== undefined) {
    return quantity({ ...shared, formula: v({ mfu }), source: `from ${setting('mfu')}` });
  }
  return quantity({
    ...shared,
    formula: flopsAtPeak(situation, peak, v({ seconds: computing.value })),
    source: `assumed: ${usualComputing(situation.model, situation.setting).source}`,
  });
}

/** Model FLOPs as in published utilisations: no recomputation, full attention (arXiv 2204.02311). */
function modelFlops(
  model: LanguageModel,
  { microBatch: batch, context }: Pick<TrainingFitSetting, 'microBatch' | 'context'>,
): Figure {
  return trainingFlopsOf(model, { batch, context, causal: false, recompute: 'none' }).total;
}
