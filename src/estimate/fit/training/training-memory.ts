/** Memory of each GPU in training, exact parts and workspace, and the verdict. */

import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { inputWidth, memoized, memoizedBy, outputWidth } from '../../../model/architecture/walk.js';
import type { Exact, Expression, Input } from '../../../model/budget/expression.js';
import { add, div, inputs, max, min, sub, v } from '../../../model/budget/expression.js';
import type { Bounds, Figure, Quantity } from '../../../model/budget/figure.js';
import { figure, quantity, sumFigure } from '../../../model/budget/figure.js';
import type { ActivationSetting } from '../../../model/budget/kernel-activations.js';
import type { Trained } from '../../../model/budget/optimizers.js';
import { bufferBytes, countParameters } from '../../../model/budget/parameters.js';
import { activationsOf, areAlike } from '../../../model/budget/saved-activations.js';
import type { TrainedState, TrainedStateSetting } from '../../../model/budget/training-budget.js';
import { trainedStateOf } from '../../../model/budget/training-budget.js';
import { capacityOf } from '../../hardware/gpu.js';
import { sumBounds } from '../bounds.js';
import type { Parallelism, Stage } from '../parallelism/parallelism.js';
import { expertShards, parallelismOf, pipelineStages } from '../parallelism/parallelism.js';
import { libraryKey } from './gpu-overhead.js';
import { hostStateBytes } from './offload.js';
import type { FitVerdict, HostMemory, StageMemory, TrainingMemoryFit } from './training-fit.js';
import type { TrainingFitSetting } from './training-setting.js';
import {
  activationSetting,
  CONVENTIONS,
  DIVIDED_FROM,
  gradientBytesOf,
} from './training-setting.js';
import type { Workspace, WorkspaceContext } from './training-workspace.js';
import { workspaceOf } from './training-workspace.js';
import { optimizerReplicas, updateTemporary } from './update-memory.js';

interface ReplicatedSetting
  extends Pick<TrainedStateSetting, 'precision' | 'optimizer'>,
    Pick<TrainingFitSetting, 'zero' | 'convention' | 'offload'> {
  readonly shards: number;
  readonly optimizerInBackward?: boolean | undefined;
}

/**
 * Weights, gradients and optimizer state of one of `shards` GPUs with the same tensors (ZeRO, arXiv 1910.02054).
 * @param trained Whole tensors.
 */
export function replicatedState(
  trained: readonly Trained[],
  {
    precision,
    optimizer,
    zero,
    convention,
    shards,
    optimizerInBackward,
    offload,
  }: ReplicatedSetting,
): TrainedState {
  const { gradientBytes, source } = CONVENTIONS[convention];
  const state = trainedStateOf(trained, {
    precision,
    optimizer,
    gradientBytes,
    gradientSource: source,
    // Each gradient goes to system memory as soon as it is there.
    isUpdatedInBackward: optimizerInBackward || offload !== undefined,
    divided: (part) =>
      zero < DIVIDED_FROM[part] || shards === 1
        ? undefined
        : {
            replicas: shards,
            source: `divided with ZeRO-${DIVIDED_FROM[part]} and above (arXiv 1910.02054)`,
          },
  });
  if (offload === undefined) return state;
  return {
    ...state,
    optimizer: inSystemMemory('optimizer'),
    ...(offload.part === 'parameters' && { weights: inSystemMemory('weights') }),
  };
}

/** State of a stage, of which experts have fewer copies than all else. */
function stageState(
  setting: TrainingFitSetting,
  parallelism: Parallelism,
  { trained, experts }: Stage,
): TrainedState {
  const { shards } = parallelism;
  if (experts === undefined) return replicatedState(trained, { ...setting, shards });
  const apart = new Set(experts);
  const others = trained.filter((each) => !apart.has(each));
  const states = {
    others: replicatedState(others, { ...setting, shards }),
    experts: replicatedState(experts, { ...setting, shards: expertShards(parallelism) }),
  };
  const sumOfPart = (part: keyof TrainedState) =>
    sumFigure(
      part,
      'bytes',
      { others: states.others[part], experts: states.experts[part] },
      `experts: on ${parallelism.expert} GPUs each some; ${states.experts[part].source}`,
    );
  return {
    weights: sumOfPart('weights'),
    gradients: sumOfPart('gradients'),
    optimizer: sumOfPart('optimizer'),
  };
}

/** A part of the state that is not on a GPU. */
const inSystemMemory = (label: string): Figure =>
  figure({ label, unit: 'bytes', formula: v({ on_gpus: 0 }), source: 'in system memory' });

/** Micro-batches in flight: with 1F1B, one per stage from this one on (arXiv 2104.04473). */
const inFlight = ({ stage }: Stage, { pipeline, microBatches }: Parallelism): number =>
  Math.min(pipeline - stage, microBatches);

/** Setting for the saved activations of a stage. */
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
  const state = stageState(setting, parallelism, stage);
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

/** Stage of a setting. */
interface SpreadSetting {
  readonly setting: TrainingFitSetting;
  readonly parallelism: Parallelism;
  readonly stage: Stage;
}

/** Memory of a GPU of a stage, with its workspace. */
export const stageFit = (
  model: LanguageModel,
  setting: TrainingFitSetting,
  parallelism: Parallelism,
  stage: Stage,
) => knownStageFit(model, { setting, parallelism, stage });

/**
 * Inputs of the memory of a stage: of the GPU only its libraries count. A table asks for many GPUs, with the same
 * answer for most.
 */
function stageKey({ setting, parallelism, stage }: SpreadSetting): string {
  const { cluster, ...sizes } = setting;
  const { from, to, frozen, tensors } = stage;
  const isTrained = frozen === undefined;
  return JSON.stringify([
    sizes,
    parallelism,
    libraryKey(cluster.gpu),
    from,
    to,
    isTrained,
    tensors,
  ]);
}

const knownStageFit = memoizedBy(stageKey, stageFitOf);

function stageFitOf(model: LanguageModel, { setting, parallelism, stage }: SpreadSetting) {
  const memory = stageMemory(model, setting, parallelism, stage);
  const kept = keptAt(setting, parallelism, stage);
  const situation = { model, setting, kept, parallelism, stage, memory };
  const workspace = workspaceOf(situation);
  const apart = apartBytes(situation, workspace);
  const parts = { exactly: memory.exactBytes, ...(apart && { apart }), workspace: workspace.total };
  const total = sumBounds('memory of a GPU', parts, 'sum of the parts');
  return { memory, apart, workspace, total };
}

/**
 * Whether the verdict is "fits". Stops at the first stage that is too full.
 * @throws UserError when the model cannot be spread as requested.
 */
export function isFitting(model: LanguageModel, setting: TrainingFitSetting): boolean {
  const parallelism = parallelismOf(model, setting);
  const { value: capacity } = capacityOf(setting.cluster.gpu);
  // Quick check: the average weights, gradients and optimizer state per GPU are usually too large already.
  const { tensor, pipeline, expert } = parallelism;
  const average = { elements: Math.floor(parameterCount(model) / (tensor * pipeline * expert)) };
  if (
    figureTotal(Object.values(replicatedState([average], { ...setting, ...parallelism }))) >
    capacity
  ) {
    return false;
  }
  if ((hostOf(model, setting)?.verdict ?? 'fits') !== 'fits') return false;
  return pipelineStages(model, parallelism)
    .filter((stage, at, all) => !needsNoMore(model, stage, all[at - 1]))
    .every((stage) => stageFit(model, setting, parallelism, stage).total.upper.value <= capacity);
}

/** Whether a stage needs at most the memory of the one before: equal blocks keep fewer micro-batches. */
function needsNoMore(model: LanguageModel, stage: Stage, before: Stage | undefined): boolean {
  if (before === undefined || before.from === 0 || stage.to === model.blocks.length) return false;
  const sizes = ({ parameters, tensors, buffers, largestBlock }: Stage) =>
    [parameters.value, tensors, buffers, largestBlock].join(' ');
  const blocks = ({ from, to }: Stage) => model.blocks.slice(from, to);
  return sizes(stage) === sizes(before) && areAlike(model, blocks(stage), blocks(before));
}

const parameterCount = memoized((model: LanguageModel) => countParameters(model).parameters);

const figureTotal = (figures: readonly Figure[]) => sumOf(figures, ({ value }) => Number(value));

/**
 * Memory of the fullest GPU.
 * @throws UserError when the model cannot be spread as requested.
 */
export function fitTrainingMemory(
  model: LanguageModel,
  setting: TrainingFitSetting,
): TrainingMemoryFit {
  const parallelism = parallelismOf(model, setting);
  const fits = pipelineStages(model, parallelism).map((stage) =>
    stageFit(model, setting, parallelism, stage),
  );
  const fullestBy = (which: keyof Bounds) =>
    fits.reduce((best, each) => (each.total[which].value > best.total[which].value ? each : best));
  const fullest = fullestBy('expected');
  // The fullest stage can differ between bounds, so take the largest value of each bound.
  const total = {
    lower: fullestBy('lower').total.lower,
    expected: fullest.total.expected,
    upper: fullestBy('upper').total.upper,
  };
  const capacity = capacityOf(setting.cluster.gpu);
  const host = hostOf(model, setting);
  const verdict = memoryVerdict(total, capacity);
  return {
    ...(host && { host }),
    stages: fits.map((each) => ({ ...each.memory, total: each.total })),
    fullest: fullest.memory.stage,
    apart: fullest.apart ?? null,
    workspace: fullest.workspace.total,
    workspaceParts: fullest.workspace.parts,
    total,
    capacity,
    verdict: host === undefined ? verdict : worse(verdict, host.verdict),
  };
}

const ORDER_OF_VERDICTS = ['does not fit', 'may fit', 'fits'] as const;

const worse = (a: FitVerdict, b: FitVerdict): FitVerdict =>
  ORDER_OF_VERDICTS.find((each) => each === a || each === b) ?? a;

/** The state in system memory, where a part of it is. */
function hostOf(model: LanguageModel, setting: TrainingFitSetting): HostMemory | undefined {
  const { offload } = setting;
  if (offload === undefined) return undefined;
  const bytes = hostStateBytes([{ elements: parameterCount(model) }], setting, offload.part);
  const { bytes: installed } = offload.memory;
  const verdict =
    installed === null
      ? 'fits'
      : bytes.upper.value <= installed
        ? 'fits'
        : bytes.expected.value <= installed
          ? 'may fit'
          : 'does not fit';
  return { part: offload.part, memory: offload.memory, bytes, verdict };
}

/** Verdict: fits if the upper bound fits, does not fit if the estimate does not. */
export function memoryVerdict({ expected, upper }: Bounds, capacity: Quantity): FitVerdict {
  if (upper.value <= capacity.value) return 'fits';
  return expected.value <= capacity.value ? 'may fit' : 'does not fit';
}

// Correction for parts that are never in memory at the same time, from the peak over the moments of a step.

/**
 * Peak of a step over its moments, minus the sum of all parts. The moments follow the order of a backward pass. With a
 * single micro-batch, gradients appear as activations are freed, and a block is recomputed after the logits are freed.
 * With several, gradients stay.
 */
function fullest(of: Readonly<Record<CountedName | TemporaryName | 'staying', Input>>): Expression {
  const kept = add(of.activations, of.unfused);
  const moments = {
    loss: add(of.staying, sub(kept, of.one_block), of.gathered, of.loss),
    head: add(
      of.staying,
      of.head,
      sub(kept, of.one_block, of.logits),
      of.gathered,
      div(of.loss, 2),
    ),
    lastBlock: add(max(of.staying, of.head), sub(kept, of.logits), of.gathered, of.block),
    firstBlock: add(
      of.gradients,
      div(sub(kept, of.logits, of.one_block), of.blocks),
      of.one_block,
      of.gathered,
      of.block,
    ),
    embedding: add(of.gradients, of.added),
    update: add(of.gradients, of.update),
  };
  const counted = add(of.gradients, kept, of.gathered, of.loss, of.block, of.added, of.beyond);
  return sub(max(...Object.values(moments)), counted);
}

/** Correction to the sum of all parts; undefined if all can be in memory at once. */
function apartBytes(situation: WorkspaceContext, workspace: Workspace): Bounds | undefined {
  const { parallelism } = situation;
  const isLone = parallelism.microBatches === 1;
  const shared = { label: 'parts outside the peak', unit: 'bytes' } as const;
  const counted = inputs(exactInputs(situation));
  const { gradients, activations, logits, one_block } = counted;
  const again = min(one_block, logits);
  const bound = (which: 'expected' | 'upper', staying: Exact, source: string) => {
    const all = {
      ...counted,
      ...inputs({ staying }),
      ...inputs(temporaryInputs(situation, workspace, which)),
    };
    return quantity({ ...shared, formula: fullest(all), inputs: all, source });
  };
  const bounds: Bounds = {
    lower: quantity({
      ...shared,
      formula: isLone ? sub(0, again, min(gradients, sub(activations, again))) : sub(0, again),
      inputs: counted,
      source:
        'gradients of the only micro-batch replace its activations (PyTorch, zero_grad sets them to None); a block ' +
        'is recomputed after the logits are freed',
    }),
    expected: bound(
      'expected',
      isLone ? 0 : gradients.value,
      `${ORDER}; gradients of a lone micro-batch come one by one`,
    ),
    upper: bound(
      'upper',
      gradients.value,
      `${ORDER}; gradients are there from the start, set to zero`,
    ),
  };
  return Object.values(bounds).every(({ value }) => value === 0) ? undefined : bounds;
}

type CountedName = keyof ReturnType<typeof exactInputs>;
type TemporaryName = keyof ReturnType<typeof temporaryInputs>;

const ORDER =
  'peak of a step instead of the sum of all parts: loss, head, last block, first block, embedding, ' +
  'update (the order of a backward pass in PyTorch)';

/** Exactly counted parts that are temporary. */
function exactInputs(situation: WorkspaceContext) {
  const { stage, memory } = situation;
  const exactly = (name: 'gradients' | 'activations') =>
    Number(memory.parts.find(({ part }) => part === name)?.bytes.value ?? 0);
  const kept = (name: 'oneBlock' | 'logits') =>
    Number(memory.activations.parts.find(({ part }) => part === name)?.bytes.value ?? 0);
  return {
    gradients: exactly('gradients'),
    activations: exactly('activations'),
    logits: kept('logits'),
    one_block: kept('oneBlock'),
    blocks: stage.to - stage.from,
    // With ZeRO, a whole gradient of the head is part of the gathered blocks.
    head: Math.min(headGradient(situation), exactly('gradients')),
  };
}

/** Parts of the workspace, for one bound. */
function temporaryInputs(
  { setting, parallelism, memory }: WorkspaceContext,
  workspace: Workspace,
  which: 'expected' | 'upper',
) {
  const of = (name: string) =>
    workspace.parts.find(({ part }) => part === name)?.bytes[which].value ?? 0;
  return {
    unfused: of('unfused'),
    gathered: of('gathered'),
    loss: of('loss'),
    block: of('blockGradients'),
    added: of('added'),
    beyond: of('update'),
    update: updateTemporary(which, {
      optimizer: setting.optimizer,
      gradientBytes: gradientBytesOf(setting),
      parameters: setting.offload === undefined ? memory.parameters.value : 0,
      replicas: optimizerReplicas(setting, parallelism),
    }),
  };
}

/** Gradient bytes of the whole head weight, on a stage with the head. */
function headGradient({ model, setting, parallelism, stage }: WorkspaceContext): number {
  if (stage.frozen || stage.to < model.blocks.length) return 0;
  const rows = Math.ceil(outputWidth(model.head) / parallelism.tensor);
  return gradientBytesOf(setting) * rows * inputWidth(model.head);
}
