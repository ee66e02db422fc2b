/** Limits of a training step: compute and memory traffic. */
import type { LanguageModel, Layer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { countedTensors, memoizedBy, type OwnedTensor } from '../../../model/architecture/walk.js';
import {
  add,
  div,
  type Expression,
  type Input,
  inputs,
  inputsOf,
  max,
  mul,
  sub,
  v,
} from '../../../model/budget/expression.js';
import type { Bounds, ByBound, Quantity } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import type { ComponentFlops, Operation, Recompute } from '../../../model/budget/flops.js';
import { RECOMPUTES, trainingFlopsOf } from '../../../model/budget/flops.js';
import { activationsOf } from '../../../model/budget/saved-activations.js';
import { trainingBytes } from '../../../model/budget/training-budget.js';
import { bandwidthOf } from '../../hardware/gpu.js';
import { byBound, eachBound } from '../bounds.js';
import { kernelLaunchesOf } from '../efficiency.js';
import type { CommunicationPace } from '../parallelism/collectives.js';
import { expertsIn } from '../parallelism/model-axes.js';
import type { TensorParallelCuts } from '../parallelism/parallelism.js';
import {
  cutAmong,
  distinctTensors,
  elementsPerGpu,
  operationsOfRank,
  ranksThatDiffer,
  type Sharing,
  type Stage,
  tensorCuts,
} from '../parallelism/parallelism.js';
import type { ExpertGroup } from '../serving/roofline.js';
import { weightsTerm } from '../serving/roofline.js';
import { expertGroupsOf } from '../serving/serving-work.js';
import { scoreBytes, scoreSeconds } from './attention-time.js';
import type { StepInputs } from './training-fit.js';
import { activationSetting, gradientBytesOf, tokensOfGpu } from './training-setting.js';

/** Utilisation of the peak while a GPU computes, with its source. */
export interface ComputeInputs {
  readonly utilisation: number;
  readonly source: string;
  /** Time of FLOPs of a kind, as a multiple of those at the utilisation; default: once. */
  readonly times?: WorkTimes;
}

/** Multiple of the time of a part's FLOPs. */
export type WorkTimes = (part: Pick<ComponentFlops, 'component' | 'kind'>) => number;

const ONCE: WorkTimes = () => 1;

/**
 * Compute time with one forward and one backward pass per micro-batch. The pipeline fills and empties (arXiv
 * 2104.04473), except in the lower bound.
 * @param peak Peak of one GPU.
 */
export function computeSeconds(
  situation: StepInputs,
  peak: Quantity,
  computing: ByBound<ComputeInputs>,
): Bounds {
  const { microBatches: micro_batches } = situation.parallelism;
  const bounds = eachBound(computing, ({ utilisation, source, times = ONCE }, bound) => {
    const ofStages = flopsOfStages(situation, times);
    const work = inputs({
      micro_batches,
      slowest: Math.max(...ofStages),
      stages: totalSeconds(ofStages),
    });
    const { flops, schedule } = SCHEDULES[bound];
    return quantity({
      label: 'compute',
      unit: 'seconds',
      formula: div(flops(work), mul(v({ peak: peak.value }), v({ utilisation }))),
      source: `FLOPs of a micro-batch on a GPU of the slowest stage, and of each; ${schedule}; ${peak.source}; ${source}`,
    });
  });
  // Narrow layers can be slower than the poor share of large ones.
  const { expected, upper } = bounds;
  return upper.value < expected.value ? { ...bounds, upper: expected } : bounds;
}

/** Time of the scores of plain attention in a step, on the slowest stage; 0 with a fused kernel. */
export function plainScoreSeconds({ model, setting, stages, parallelism }: StepInputs): number {
  if (setting.attention !== 'plain') return 0;
  const again = RECOMPUTES[setting.recompute].again('scores');
  const seconds = stages.map(({ from, to }) => {
    const bytes = scoreBytes(model.blocks.slice(from, to), activationSetting(setting));
    return scoreSeconds(bytes, again, setting.cluster.gpu).value;
  });
  return parallelism.microBatches * Math.max(...seconds);
}

/** Pipeline schedule. */
interface Schedule {
  /** Sequential FLOPs of a step. */
  readonly flops: (
    work: Readonly<Record<'micro_batches' | 'slowest' | 'stages', Input>>,
  ) => Expression;
  readonly schedule: string;
}

const ONE_FORWARD_ONE_BACKWARD: Schedule = {
  flops: ({ micro_batches, slowest, stages }) => add(mul(sub(micro_batches, 1), slowest), stages),
  schedule: '1F1B (arXiv 2104.04473)',
};

const SCHEDULES: ByBound<Schedule> = {
  lower: {
    flops: ({ micro_batches, slowest, stages }) => max(mul(micro_batches, slowest), stages),
    schedule: 'no stage waits for another (zero bubble, arXiv 2401.10241)',
  },
  expected: ONE_FORWARD_ONE_BACKWARD,
  upper: ONE_FORWARD_ONE_BACKWARD,
};

/** FLOPs of a micro-batch per stage, on the GPU with the most work. */
function flopsOfStages(
  { model, setting, stages, parallelism, isFrozen = false }: StepInputs,
  times: WorkTimes,
): number[] {
  const { microBatch: batch, context, recompute, attention, sequenceParallel } = setting;
  const pass = { batch, context, causal: attention === 'fused' };
  const sharing = { cuts: tensorCuts(model), gpus: parallelism.tensor, byTokens: sequenceParallel };
  // Most blocks are equal, so compute each kind once.
  const known = new Map<string, number>();
  const flops = (layer: Layer, again: Recompute, rank: number) => {
    const { operations, key } = sharedOperations(layer, { ...sharing, rank });
    const name = `${again} ${key}`;
    const value =
      known.get(name) ??
      totalSeconds(
        trainingFlopsOf(operations, { ...pass, recompute: again }).parts.map(
          (part) =>
            Number(part.flops.value) *
            times(part) *
            (isFrozen && part.kind === 'projection' ? frozenShare(again) : 1),
        ),
      );
    known.set(name, value);
    return value;
  };
  const ofRank = ({ from, to }: Stage, rank: number) =>
    totalSeconds([
      ...model.blocks.slice(from, to).map((block) => flops(block, recompute, rank)),
      // The head is never recomputed.
      ...(to === model.blocks.length ? [flops(model.head, 'none', rank)] : []),
    ]);
  const ranks = ranksThatDiffer(model.blocks, sharing.gpus);
  // Parts of a sequence are the same work.
  return stages.map(
    (stage) => Math.max(...ranks.map((rank) => ofRank(stage, rank))) / parallelism.context,
  );
}

/** Passes through a frozen product, as a share of those through a trained one: no gradients of its weight. */
const frozenShare = (recompute: Recompute): number => {
  const again = RECOMPUTES[recompute].again('projection');
  return (2 + again) / (3 + again);
};

interface SharedOperations {
  readonly operations: readonly Operation[];
  /** Equal for layers with the same work. */
  readonly key: string;
}

const sharedOperations = memoizedBy(
  ({ gpus, byTokens, rank }: TensorParallelCuts & { readonly rank: number }) =>
    `${gpus} ${byTokens} ${rank}`,
  (layer: Layer, sharing): SharedOperations => {
    const operations = operationsOfRank(layer, sharing, sharing.rank);
    // Names do not affect the work.
    const sizes = operations.map(({ layer: _, params: __, saved: ___, cuts: ____, ...each }) => ({
      ...each,
      tensor: undefined,
    }));
    return { operations, key: JSON.stringify(sizes) };
  },
);

const totalSeconds = (values: readonly number[]) =>
  values.reduce((total, value) => total + value, 0);

/** Least memory traffic of a GPU, and the launch overhead of its layers. */
export function memorySeconds(situation: StepInputs, paces: ByBound<CommunicationPace>): Bounds {
  const ofStages = situation.stages.map((stage) => memoryOfStage(situation, stage, paces));
  return byBound((bound) =>
    ofStages.map((each) => each[bound]).reduce((a, b) => (b.value > a.value ? b : a)),
  );
}

function memoryOfStage(
  { model, setting, parallelism, memory }: StepInputs,
  stage: Stage,
  paces: ByBound<CommunicationPace>,
): Bounds {
  const { from, to, parameters } = stage;
  const bandwidth = bandwidthOf(setting.cluster.gpu);
  const bytes = trainingBytes(setting.precision);
  const gradientBytes = gradientBytesOf(setting);
  const optimizer = memory[stage.stage]?.parts.find(({ part }) => part === 'optimizer');
  const kept = activationsOf(model, {
    ...activationSetting(setting),
    stage: { from, to, microBatches: 1 },
  });
  const { computed, lookups, expertGroups } = valuesRead(model, stage, parallelism);
  const read = weightsTerm(
    {
      weightBytes: bytes * computed,
      expertGroups: expertGroups.map((group) => ({ ...group, bytes: bytes * group.bytes })),
    },
    // With expert parallelism, tokens of other GPUs reach its experts.
    setting.microBatch * tokensOfGpu(setting) * parallelism.expert,
  );
  const of = inputs({
    gradient_bytes: gradientBytes,
    bytes,
    activations: kept.total.value,
    lookups,
    optimizer: optimizer?.bytes.value ?? 0,
    parameters: parameters.value,
    bandwidth: bandwidth.value,
    launches: launchesOfStage(model, stage, setting.recompute),
    tensors: stage.tensors,
  });
  const inMicroBatch = add(
    mul(add(2, div(of.gradient_bytes, of.bytes)), read),
    mul(2, of.activations),
  );
  return eachBound(paces, ({ efficiency, turns }) =>
    quantity({
      label: 'memory',
      unit: 'seconds',
      formula: add(
        div(
          add(
            mul(v({ turns }), inMicroBatch),
            mul(of.gradient_bytes, of.lookups),
            mul(2, of.optimizer),
            mul(of.bytes, of.parameters),
          ),
          mul(of.bandwidth, v({ memory_utilisation: efficiency.memoryUtilisation })),
        ),
        mul(
          add(mul(v({ turns }), of.launches), of.tensors),
          v({ launch_seconds: efficiency.launchSeconds }),
        ),
      ),
      inputs: { ...inputsOf(read), ...of },
      source:
        'per micro-batch, weights read twice and gradients written; only experts that its tokens reach, each ' +
        'choosing at random; activations written and read; gradients of looked-up tables written once; in the update ' +
        `optimizer read and written, all weights written; ${bandwidth.source}; each layer started once forwards and, as its FLOPs are, twice backwards, again what is ` +
        `recomputed, and the update once for each tensor; ${efficiency.source}`,
    }),
  );
}

/** Weight values on a GPU, by their readers in a micro-batch. */
interface ValuesRead {
  /** Values read for every token. */
  readonly computed: number;
  /** Values of lookup tables; the looked-up rows are not counted. */
  readonly lookups: number;
  /** Values of routed experts, in place of bytes. */
  readonly expertGroups: readonly ExpertGroup[];
}

/** Cache by stage: a stage belongs to one model and one sharing. */
const known = new WeakMap<Stage, ValuesRead>();

function valuesRead(model: LanguageModel, stage: Stage, sharing: Sharing): ValuesRead {
  const found = known.get(stage) ?? readIn(model, stage, sharing);
  known.set(stage, found);
  return found;
}

function readIn(
  model: LanguageModel,
  { from, to, parameters }: Stage,
  { tensor: gpus, expert, expertTensor }: Sharing,
): ValuesRead {
  const experts = expertsIn(model);
  const isApart = expert > 1;
  const elementsOn = (tensor: Param, among: number) =>
    elementsPerGpu(tensor.elements, cutAmong(model, tensor, among), among);
  const valuesOn = ({ tensor, count }: OwnedTensor) =>
    isApart && experts.has(tensor)
      ? (count * elementsOn(tensor, expertTensor)) / expert
      : count * elementsOn(tensor, gpus);
  const valuesOf = (tensors: readonly OwnedTensor[]) => totalSeconds(tensors.map(valuesOn));
  const lookups = valuesOf(lookedUp(model, from === 0, to === model.blocks.length));
  const blocks = model.blocks.slice(from, to);
  const tensors = distinctTensors(blocks);
  const expertGroups = expertGroupsOf(blocks, (which) =>
    valuesOf(tensors.filter(({ tensor }) => which(tensor))),
  );
  const routed = totalSeconds(expertGroups.map(({ bytes }) => bytes));
  return { computed: Number(parameters.value) - lookups - routed, lookups, expertGroups };
}

/** Tensors read by lookup. A tied embedding is read whole by a head of the same stage. */
function lookedUp(
  { embedding, embeddingSteps, head }: LanguageModel,
  isFirst: boolean,
  isLast: boolean,
): OwnedTensor[] {
  if (!isFirst) return [];
  const isTied = isLast && embedding.weight === head.weight;
  const positions = embeddingSteps.filter(({ kind }) => kind === 'learnedPositions');
  return [...(isTied ? [] : [embedding]), ...positions].flatMap(countedTensors);
}

/** Launches of one micro-batch. */
function launchesOfStage(
  { embedding, embeddingSteps, blocks, norm, head, logitSteps }: StepInputs['model'],
  { from, to }: Stage,
  recompute: Recompute,
): number {
  const inside = kernelLaunchesOf(blocks.slice(from, to));
  const around = kernelLaunchesOf([
    ...(from === 0 ? [embedding, ...embeddingSteps] : []),
    ...(to === blocks.length ? [norm, head, ...logitSteps] : []),
  ]);
  return 3 * (inside.layers + around.layers) + AGAIN[recompute](inside);
}

/** Launches that recomputation repeats. */
const AGAIN: Readonly<Record<Recompute, (inside: ReturnType<typeof kernelLaunchesOf>) => number>> =
  {
    none: () => 0,
    selective: ({ kernels }) => kernels,
    operations: ({ layers }) => layers,
    compiled: () => 0,
    full: ({ layers }) => layers,
  };
