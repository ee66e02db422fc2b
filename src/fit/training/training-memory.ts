/** What each GPU holds in training: exactly, and with its workspace; and whether that fits. */
import type { LanguageModel } from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import type { ActivationSetting } from '../../budget/activation-setting.js';
import { activationsOf, areAlike } from '../../budget/activations.js';
import { type Figure, sumFigure } from '../../budget/figure.js';
import { bufferBytes, countParameters } from '../../budget/parameters.js';
import type { Bounds, Quantity } from '../../budget/quantity.js';
import {
  type Trained,
  type TrainedState,
  type TrainedStateSetting,
  trainedStateOf,
} from '../../budget/training.js';
import { capacityOf } from '../../hardware/gpu.js';
import { sumBounds } from '../bounds.js';
import {
  type Parallelism,
  parallelismOf,
  type Stage,
  stagesOf,
} from '../parallelism/parallelism.js';
import { apartBytes } from './moments.js';
import type { StageMemory, TrainingMemoryFit, Verdict } from './training.js';
import {
  activationSetting,
  CONVENTIONS,
  DIVIDED_FROM,
  type TrainingFitSetting,
} from './training-setting.js';
import { workspaceOf } from './training-workspace.js';

interface ReplicatedSetting
  extends Pick<TrainedStateSetting, 'precision' | 'optimizer'>,
    Pick<TrainingFitSetting, 'zero' | 'convention'> {
  readonly replicas: number;
}

/**
 * Weights, gradients and optimizer of one of `replicas` GPUs with the same tensors (ZeRO, arXiv 1910.02054).
 * @param trained Those tensors, whole.
 */
export function replicatedState(
  trained: readonly Trained[],
  { precision, optimizer, zero, convention, replicas }: ReplicatedSetting,
): TrainedState {
  const { gradientBytes, source } = CONVENTIONS[convention];
  return trainedStateOf(trained, {
    precision,
    optimizer,
    gradientBytes,
    gradientSource: source,
    divided: (part) =>
      zero < DIVIDED_FROM[part] || replicas === 1
        ? undefined
        : { replicas, source: `divided from ZeRO-${DIVIDED_FROM[part]} on (arXiv 1910.02054)` },
  });
}

/** With 1F1B, a stage has started as many micro-batches as there are stages from it on (arXiv 2104.04473). */
const inFlight = ({ stage }: Stage, { pipeline, microBatches }: Parallelism): number =>
  Math.min(pipeline - stage, microBatches);

/** At what the activations of a stage are counted. */
const keptAt = (
  setting: TrainingFitSetting,
  parallelism: Parallelism,
  stage: Stage,
): ActivationSetting => ({
  ...activationSetting(setting),
  stage: { from: stage.from, to: stage.to, microBatches: inFlight(stage, parallelism) },
});

function stageMemory(
  model: LanguageModel,
  setting: TrainingFitSetting,
  parallelism: Parallelism,
  stage: Stage,
): StageMemory {
  const { from, to } = stage;
  const state = replicatedState(stage.trained, { ...setting, ...parallelism });
  const activations = activationsOf(model, keptAt(setting, parallelism, stage));
  const parts = {
    ...state,
    buffers: bufferBytes(stage.buffers),
    activations: activations.total,
  };
  const names = ['weights', 'gradients', 'optimizer', 'buffers', 'activations'] as const;
  return {
    stage: stage.stage,
    blocks: [from, to],
    parameters: stage.parameters,
    parts: names.map((part) => ({ part, bytes: parts[part] })),
    activations,
    exactBytes: sumFigure('exactly', 'bytes', parts, 'sum of the parts, on one GPU'),
  };
}

/** What a GPU of a stage holds, with its workspace. */
function stageFit(
  model: LanguageModel,
  setting: TrainingFitSetting,
  parallelism: Parallelism,
  stage: Stage,
) {
  const memory = stageMemory(model, setting, parallelism, stage);
  const kept = keptAt(setting, parallelism, stage);
  const situation = { model, setting, kept, parallelism, stage, memory };
  const workspace = workspaceOf(situation);
  const apart = apartBytes(situation, workspace);
  const parts = { exactly: memory.exactBytes, ...(apart && { apart }), workspace: workspace.total };
  const total = sumBounds('memory of a GPU', 'bytes', parts, 'sum of the parts');
  return { memory, apart, workspace, total };
}

/**
 * Whether the verdict is that it fits, without looking further than to the first stage that is too full.
 * @throws UserError when the model cannot be spread so.
 */
export function isFitting(model: LanguageModel, setting: TrainingFitSetting): boolean {
  const parallelism = parallelismOf(model, setting);
  const { value: capacity } = capacityOf(setting.cluster.gpu);
  // Weights, gradients and optimizer of a GPU on average are mostly too much already.
  const { tensor, pipeline } = parallelism;
  const average = { elements: Math.floor(parametersOf(model) / (tensor * pipeline)) };
  if (sum(Object.values(replicatedState([average], { ...setting, ...parallelism }))) > capacity) {
    return false;
  }
  return stagesOf(model, parallelism)
    .filter((stage, at, all) => !needsNoMore(model, stage, all[at - 1]))
    .every((stage) => stageFit(model, setting, parallelism, stage).total.upper.value <= capacity);
}

/** A stage like the one before, and neither the first nor the last, keeps fewer micro-batches, and else the same. */
function needsNoMore(model: LanguageModel, stage: Stage, before: Stage | undefined): boolean {
  if (before === undefined || before.from === 0 || stage.to === model.blocks.length) return false;
  const sizes = ({ parameters, trained, buffers, largestBlock }: Stage) =>
    [parameters.value, trained.length, buffers, largestBlock].join(' ');
  const blocks = ({ from, to }: Stage) => model.blocks.slice(from, to);
  return sizes(stage) === sizes(before) && areAlike(model, blocks(stage), blocks(before));
}

const parametersOf = remembered((model: LanguageModel) => countParameters(model).parameters);

const sum = (figures: readonly Figure[]) =>
  figures.reduce((total, { value }) => total + Number(value), 0);

/**
 * The memory of the fullest GPU.
 * @throws UserError when the model cannot be spread so.
 */
export function fitTrainingMemory(
  model: LanguageModel,
  setting: TrainingFitSetting,
): TrainingMemoryFit {
  const parallelism = parallelismOf(model, setting);
  const fits = stagesOf(model, parallelism).map((stage) =>
    stageFit(model, setting, parallelism, stage),
  );
  const fullestBy = (which: keyof Bounds) =>
    fits.reduce((best, each) => (each.total[which].value > best.total[which].value ? each : best));
  const fullest = fullestBy('expected');
  // A stage can be the fullest by one bound and not by another: what all of them need is the largest of each.
  const total = {
    lower: fullestBy('lower').total.lower,
    expected: fullest.total.expected,
    upper: fullestBy('upper').total.upper,
  };
  const capacity = capacityOf(setting.cluster.gpu);
  return {
    stages: fits.map((each) => ({ ...each.memory, total: each.total })),
    fullest: fullest.memory.stage,
    apart: fullest.apart ?? null,
    workspace: fullest.workspace.total,
    workspaceParts: fullest.workspace.parts,
    total,
    capacity,
    verdict: verdictOf(total, capacity),
  };
}

/** It fits when even the upper bound does, and does not when the lower bound does not. */
export function verdictOf({ lower, upper }: Bounds, capacity: Quantity): Verdict {
  if (upper.value <= capacity.value) return 'fits';
  return lower.value <= capacity.value ? 'may fit' : 'does not fit';
}
