/** How long a step takes: at best by the roofline, as expected by what others reached. */
import type { LanguageModel, Layer } from '../architecture/layer.js';
import { activationsOf } from '../budget/activations.js';
import { type Recompute, trainingFlopsOf } from '../budget/flops.js';
import { type Bounds, type Quantity, quantity } from '../budget/quantity.js';
import { bytesIn } from '../budget/training.js';
import type { Link } from '../hardware/gpu.js';
import { bandwidthOf, peakFor } from '../hardware/peak.js';
import { boundsOf } from './bounds.js';
import { type Parallelism, parallelismOf, type Stage, stagesOf } from './parallelism.js';
import { exchangeOf, headExchange } from './tensor-parallel.js';
import type { StageMemory, StepTime, TrainingTime } from './training.js';
import {
  activationSetting,
  CONVENTIONS,
  type TrainingFitSetting,
  type ZeroStage,
} from './training-setting.js';

/** Model FLOPs utilisation where nobody says: what large trainings reached, and a poor one. */
const REACHED = {
  expected: {
    mfu: 0.4,
    source: '38 to 43 % on up to 16,384 H100 (Llama 3, arXiv 2407.21783, table 4)',
  },
  poor: { mfu: 0.213, source: '21.3 % of GPT-3 (PaLM, arXiv 2204.02311, table 3)' },
} as const;

interface Situation {
  readonly model: LanguageModel;
  readonly setting: TrainingFitSetting;
  readonly parallelism: Parallelism;
  readonly stages: readonly Stage[];
  readonly memory: readonly StageMemory[];
}

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
  const peak = peakFor(setting.cluster.gpu, setting.precision === 'mixed' ? 'bf16' : 'f32');
  const limits = [
    { limit: 'compute' as const, seconds: computeSeconds(situation, peak) },
    { limit: 'memory' as const, seconds: memorySeconds(situation) },
    { limit: 'communication' as const, seconds: communicationSeconds(situation) },
  ];
  const { limit: limitedBy, seconds: longest } = limits.reduce((a, b) =>
    b.seconds.value > a.seconds.value ? b : a,
  );
  const roofline = quantity({
    label: 'the best case of a step',
    unit: 'seconds',
    formula: 'max(compute, memory, communication)',
    inputs: Object.fromEntries(limits.map(({ limit, seconds }) => [limit, seconds.value])),
    source: `all at peak and at the same time: ${limitedBy} decides (${longest.source})`,
  });
  const mfu = expectedMfu(setting);
  const seconds = stepSeconds({ situation, peak, roofline, mfu });
  const tokens = tokensOfStep(setting, parallelism);
  const tokensPerSecond = quantity({
    label: 'tokens per second',
    unit: 'tokens/s',
    formula: 'tokens / seconds',
    inputs: { tokens: tokens.value, seconds: seconds.expected.value },
    source: 'of all GPUs together, as expected',
  });
  return { seconds, mfu, roofline, limits, limitedBy, tokens, tokensPerSecond };
}

function tokensOfStep(setting: TrainingFitSetting, parallelism: Parallelism): Quantity {
  const { globalBatchTokens: asked, microBatch: micro_batch, context } = setting;
  const { replicas, microBatches: micro_batches } = parallelism;
  return quantity({
    label: 'tokens of a step',
    unit: 'tokens',
    formula: 'micro_batch * micro_batches * replicas * context',
    inputs: { micro_batch, micro_batches, replicas, context },
    source:
      asked === undefined
        ? 'as many micro-batches as there are pipeline stages'
        : `as many whole micro-batches as come nearest to ${asked} tokens`,
  });
}

function expectedMfu({ mfu }: TrainingFitSetting): Quantity {
  const { expected } = REACHED;
  return quantity({
    label: 'model FLOPs utilisation',
    unit: 'ratio',
    formula: 'mfu',
    inputs: { mfu: mfu ?? expected.mfu },
    source: mfu === undefined ? expected.source : 'as stated',
  });
}

/** The FLOPs that utilisations are published for: no recomputation, attention in full (arXiv 2204.02311). */
function modelFlops({ model, setting }: Pick<Situation, 'model' | 'setting'>) {
  const { microBatch: batch, context } = setting;
  return trainingFlopsOf(model, { batch, context, causal: false, recompute: 'none' }).total;
}

interface Expectation {
  readonly situation: Situation;
  readonly peak: Quantity;
  readonly roofline: Quantity;
  readonly mfu: Quantity;
}

function stepSeconds({ situation, peak, roofline, mfu }: Expectation): Bounds {
  const { setting, parallelism } = situation;
  const formula = (utilisation: string) =>
    `max(best, micro_batches * replicas * flops / (gpus * peak * ${utilisation}))`;
  const { poor } = REACHED;
  const convention =
    'FLOPs without recomputation, attention in full (arXiv 2204.02311, appendix B)';
  return boundsOf(
    {
      label: 'seconds of a step',
      unit: 'seconds',
      inputs: {
        best: roofline.value,
        micro_batches: parallelism.microBatches,
        replicas: parallelism.replicas,
        flops: modelFlops(situation).value,
        gpus: setting.cluster.gpus,
        peak: peak.value,
        mfu: mfu.value,
        poor: poor.mfu,
      },
    },
    {
      lower: { formula: 'best', source: roofline.source },
      expected: { formula: formula('mfu'), source: `${convention}; utilisation: ${mfu.source}` },
      upper: {
        formula: formula('min(mfu, poor)'),
        source: `${convention}; utilisation: ${poor.source}, or as stated where that is less`,
      },
    },
  );
}

/** One forward and one backward for each micro-batch; a pipeline fills and empties (arXiv 2104.04473). */
function computeSeconds({ model, setting, parallelism, stages }: Situation, peak: Quantity) {
  const { microBatch: batch, context, recompute, attention } = setting;
  const pass = { batch, context, causal: attention === 'fused' };
  const flops = (layer: Layer, again: Recompute) =>
    Number(trainingFlopsOf(layer, { ...pass, recompute: again }).total.value);
  const ofStages = stages.map(({ from, to }) => {
    const blocks = model.blocks.slice(from, to).map((block) => flops(block, recompute));
    // Nothing of the head is computed again.
    return sum([...blocks, ...(to === model.blocks.length ? [flops(model.head, 'none')] : [])]);
  });
  return quantity({
    label: 'compute',
    unit: 'seconds',
    formula: '((micro_batches - 1) * slowest + stages) / (tensor * peak)',
    inputs: {
      micro_batches: parallelism.microBatches,
      slowest: Math.max(...ofStages),
      stages: sum(ofStages),
      tensor: parallelism.tensor,
      peak: peak.value,
    },
    source: `FLOPs of a micro-batch in the slowest stage, and in all; 1F1B (arXiv 2104.04473); ${peak.source}`,
  });
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Bytes that go through the memory of the GPU at least. */
function memorySeconds({ model, setting, parallelism, stages, memory }: Situation): Quantity {
  const bandwidth = bandwidthOf(setting.cluster.gpu);
  const bytes = bytesIn(setting.precision);
  const ofStages = stages.map(({ stage, from, to, parameters }) => {
    const optimizer = memory[stage]?.parts.find(({ part }) => part === 'optimizer');
    const kept = activationsOf(model, {
      ...activationSetting(setting),
      stage: { from, to, microBatches: 1 },
    });
    return quantity({
      label: 'memory',
      unit: 'seconds',
      formula:
        '(micro_batches * (2 * weights + gradients + 2 * activations) + 2 * optimizer + weights) / bandwidth',
      inputs: {
        micro_batches: parallelism.microBatches,
        weights: bytes * Number(parameters.value),
        gradients:
          (CONVENTIONS[setting.convention].gradientBytes ?? bytes) * Number(parameters.value),
        activations: kept.total.value,
        optimizer: optimizer?.bytes.value ?? 0,
        bandwidth: bandwidth.value,
      },
      source: `of each micro-batch weights read twice, gradients written, activations written and read; optimizer read and written; ${bandwidth.source}`,
    });
  });
  return ofStages.reduce((a, b) => (b.value > a.value ? b : a));
}

/** Times the parameters, in bytes of weights and of gradients: what replicas exchange (arXiv 1910.02054, 7). */
const REPLICA_TRAFFIC: Readonly<Record<ZeroStage, string>> = {
  0: '2 * gradients',
  1: 'gradients + weights',
  2: 'micro_batches * gradients + weights',
  3: 'micro_batches * (2 * weights + gradients)',
};

interface Traffic {
  readonly seconds: Quantity;
  readonly link: Link;
}

function communicationSeconds(situation: Situation): Quantity {
  const traffic = situation.stages.flatMap((stage) => {
    const all = [
      tensorTraffic(situation, stage),
      replicaTraffic(situation, stage),
      pipelineTraffic(situation),
    ];
    return [...sumByLink(all.flatMap((each) => (each ? [each] : [])))];
  });
  const nothing = quantity({
    label: 'communication',
    unit: 'seconds',
    formula: '0',
    inputs: {},
    source:
      situation.setting.cluster.gpus === 1
        ? 'one GPU has nobody to talk to'
        : 'no link of the GPU is known: nothing can be said of it',
  });
  return traffic.reduce((a, b) => (b.value > a.value ? b : a), nothing);
}

/** What shares a link takes turns; different links work at the same time. */
function sumByLink(traffic: readonly Traffic[]): Quantity[] {
  // By name: how many of its ways a group has differs from exchange to exchange.
  const names = [...new Set(traffic.map(({ link }) => link.name))];
  return names.map((name) => {
    const sharing = traffic.filter(({ link }) => link.name === name);
    return quantity({
      label: 'communication',
      unit: 'seconds',
      formula: sharing.map(({ seconds }) => seconds.label).join(' + '),
      inputs: Object.fromEntries(sharing.map(({ seconds }) => [seconds.label, seconds.value])),
      source: `${name}: ${sharing.map(({ seconds: { label, formula, inputs, source } }) => `${label} = ${formula} with ${JSON.stringify(inputs)} (${source})`).join('; ')}`,
    });
  });
}

/**
 * What joins so many GPUs for an exchange that all of them take part in; nothing where nobody knows. Between machines
 * each of a group's GPUs in a machine has its own way to the network, so they send together as fast as so many, or as
 * the link within lets them (rings of NCCL).
 * @param apart GPUs that stand between two of the group: with tensor parallelism of 8, every eighth belongs to it.
 */
export function linkFor(
  { cluster: { gpu, network } }: Pick<TrainingFitSetting, 'cluster'>,
  gpus: number,
  apart = 1,
): Link | undefined {
  const joining = gpu.links.find((link) => link.gpus >= gpus);
  if (joining) return joining;
  const within = gpu.links[0];
  if (!network || !within) return network ?? gpu.links.at(-1);
  const ways = Math.max(1, Math.floor(within.gpus / apart));
  return { ...network, bandwidth: Math.min(within.bandwidth, ways * network.bandwidth) };
}

function tensorTraffic(
  { model, setting, parallelism: { tensor, microBatches } }: Situation,
  { from, to }: Stage,
): Traffic | undefined {
  const link = linkFor(setting, tensor);
  if (tensor === 1 || link === undefined) return undefined;
  const blocks = exchangeOf(model.blocks.slice(from, to));
  const ends = [
    ...(from === 0 ? [exchangeOf([model.embedding])] : []),
    ...(to === model.blocks.length ? [headExchange(model.head)] : []),
  ];
  const passes = setting.recompute === 'full' ? 2 : 1;
  const values = ends.reduce(
    (sum, { forward, backward }) => sum + forward + backward,
    passes * blocks.forward + blocks.backward,
  );
  const seconds = quantity({
    label: 'tensor_parallel',
    unit: 'seconds',
    formula: 'micro_batches * batch * context * bytes * values * (tensor - 1) / tensor / bandwidth',
    inputs: {
      micro_batches: microBatches,
      batch: setting.microBatch,
      context: setting.context,
      bytes: bytesIn(setting.precision),
      values,
      tensor,
      bandwidth: link.bandwidth,
    },
    source: 'per token, an all-reduce for each product by rows and its way back (arXiv 2104.04473)',
  });
  return { seconds, link };
}

function replicaTraffic(
  { setting, parallelism: { tensor, replicas, microBatches } }: Situation,
  { parameters: { value } }: Stage,
): Traffic | undefined {
  const link = linkFor(setting, tensor * replicas, tensor);
  if (replicas === 1 || link === undefined) return undefined;
  const bytes = bytesIn(setting.precision);
  const seconds = quantity({
    label: 'replicas',
    unit: 'seconds',
    formula: `(${REPLICA_TRAFFIC[setting.zero]}) * (replicas - 1) / replicas / bandwidth`,
    inputs: {
      weights: bytes * Number(value),
      gradients: (CONVENTIONS[setting.convention].gradientBytes ?? bytes) * Number(value),
      micro_batches: microBatches,
      replicas,
      bandwidth: link.bandwidth,
    },
    source: 'gradients are reduced, and weights gathered (arXiv 1910.02054, section 7)',
  });
  return { seconds, link };
}

function pipelineTraffic({
  model,
  setting,
  parallelism: { tensor, pipeline, replicas, microBatches },
}: Situation): Traffic | undefined {
  // From one GPU to one other, each by its own way.
  const gpusInAll = tensor * pipeline * replicas;
  const link = linkFor(setting, gpusInAll, gpusInAll);
  if (pipeline === 1 || link === undefined) return undefined;
  const seconds = quantity({
    label: 'pipeline',
    unit: 'seconds',
    formula: 'sends * micro_batches * batch * context * bytes * hidden / parts / bandwidth',
    inputs: {
      // Those at an end send in one direction only.
      sends: pipeline > 2 ? 2 : 1,
      micro_batches: microBatches,
      batch: setting.microBatch,
      context: setting.context,
      bytes: bytesIn(setting.precision),
      hidden: model.norm.weight.elements,
      parts: setting.sequenceParallel ? tensor : 1,
      bandwidth: link.bandwidth,
    },
    source: 'the residual stream forwards, its gradient backwards (arXiv 2104.04473)',
  });
  return { seconds, link };
}

/** The time of a whole training of so many tokens. */
export function trainingTimeOf(step: StepTime, trainTokens: number): TrainingTime {
  const { seconds, mfu, roofline, limitedBy, tokens } = step;
  const steps = quantity({
    label: 'steps',
    unit: 'steps',
    formula: 'ceil(train_tokens / tokens)',
    inputs: { train_tokens: trainTokens, tokens: tokens.value },
    source: 'the last may have fewer tokens',
  });
  const total = (which: keyof Bounds) => ({
    formula: `steps * ${which}`,
    source: seconds[which].source,
  });
  const totalSeconds = boundsOf(
    {
      label: 'seconds of the training',
      unit: 'seconds',
      inputs: {
        steps: steps.value,
        lower: seconds.lower.value,
        expected: seconds.expected.value,
        upper: seconds.upper.value,
      },
    },
    { lower: total('lower'), expected: total('expected'), upper: total('upper') },
  );
  const best = quantity({
    label: 'the best case of the training',
    unit: 'seconds',
    formula: 'steps * step',
    inputs: { steps: steps.value, step: roofline.value },
    source: roofline.source,
  });
  return { steps, stepSeconds: seconds, totalSeconds, mfu, roofline: best, limitedBy };
}

interface Throughput {
  readonly tokensPerSecond: number;
  /** Of a training step, without recomputation. */
  readonly flopsPerToken: number;
  readonly gpus: number;
  readonly peakFlops: number;
}

/** The share of the peak that a throughput makes use of (PaLM, arXiv 2204.02311, appendix B). */
export const mfuOf = (throughput: Throughput): Quantity =>
  quantity({
    label: 'model FLOPs utilisation',
    unit: 'ratio',
    formula: 'tokensPerSecond * flopsPerToken / (gpus * peakFlops)',
    inputs: { ...throughput },
    source: 'tokens/s × FLOPs of a token / peak (PaLM, arXiv 2204.02311, appendix B)',
  });

interface PublishedModel {
  readonly parameters: number;
  readonly layers: number;
  readonly heads: number;
  readonly headDim: number;
  readonly context: number;
}

/** FLOPs of a token, for models of which no more is published than this. */
export const publishedFlopsPerToken = (published: PublishedModel): Quantity =>
  quantity({
    label: 'FLOPs of a token in training',
    unit: 'FLOP',
    formula: '6 * parameters + 12 * layers * heads * headDim * context',
    inputs: { ...published },
    source: 'PaLM, arXiv 2204.02311, appendix B',
  });
