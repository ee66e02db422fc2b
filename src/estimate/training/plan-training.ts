/** The plan of a training: size, learning rate, optimizer groups, checkpoints, memory, time, and its mistakes. */

import type { Problem, PropertyPath } from '../../base/errors.js';
import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Bounds, ByBound } from '../../model/budget/figure.js';
import type { Recompute } from '../../model/budget/flops.js';
import { countParameters } from '../../model/budget/parameters.js';
import { resolveSetting } from '../../model/budget/profile-model.js';
import type { Emitted } from '../emit/emitted.js';
import { byBound } from '../fit/bounds.js';
import { type Parallelism, parallelismOf } from '../fit/parallelism/parallelism.js';
import { type TrainingAxes, trainingAxesOf } from '../fit/parallelism/training-axes.js';
import { trainingCost, trainingTimeOf } from '../fit/training/step-time.js';
import type { FitVerdict } from '../fit/training/training-fit.js';
import type { Convention, TrainingFitSetting } from '../fit/training/training-setting.js';
import type { Cluster } from '../hardware/gpu.js';
import { usualGpu } from '../hardware/nvidia.js';
import type { MeasuredGradients } from './count-gradients.js';
import type { Mistake } from './mistakes/find-mistakes.js';
import { findMistakes } from './mistakes/find-mistakes.js';
import type { GroupedKind, GroupRuleName, OptimizerGroup } from './optimizer-groups.js';
import { GROUP_RULES, optimizerGroups, parseGroupRule } from './optimizer-groups.js';
import { parseOptimizer } from './optimizers.js';
import type { AskedAdapters, FitOf, PlannedAdapters } from './planned-fit.js';
import { adapterFitOf, plannedAdapters, trainingFitOf } from './planned-fit.js';
import type { RunSize } from './run-size.js';
import { accumulationChoices, OVER_TRAINED, runSizeOf } from './run-size.js';
import type { DecayType, LearningRate, Origin, Schedule, ScheduleSetting } from './schedules.js';
import {
  decayStepsOf,
  learningRateAt,
  learningRateOf,
  parseSchedule,
  SCHEDULES,
  scheduleTitle,
} from './schedules.js';
import type { TrainingSettings } from './training-settings.js';
import { trainingSettings } from './training-settings.js';
import type { Underflow } from './underflow.js';
import { assumedUnderflow, FIRST_SCALE } from './underflow.js';
import { type UndividedLoss, undividedLossOf } from './undivided-loss.js';

export interface TrainPlanRequest {
  readonly settings: TrainingSettings;
  /** Tokens of a sequence; undefined: the file's, else 2,048 or the model's positions. */
  readonly context?: number | undefined;
  /** Hardware of the training; undefined: memory only. */
  readonly cluster?: Cluster | undefined;
  /** Price of a GPU for an hour. */
  readonly price?: number | undefined;
  readonly mfu?: number | undefined;
  readonly recompute?: Recompute | undefined;
  /** How replicas divide the state; undefined: not at all. */
  readonly sharding?: Pick<TrainingFitSetting, 'zero' | 'hybrid'> | undefined;
  /** Degrees of parallelism; undefined: a copy of the model on each GPU. */
  readonly axes?: TrainingAxes | undefined;
  /** Type of the gradients; undefined: that of the weights. */
  readonly convention?: Convention | undefined;
  /** Adapters that are trained instead of all weights. */
  readonly adapters?: AskedAdapters | undefined;
  /** The data as counted; its tokens and longest sample are among the settings. */
  readonly data?: CountedData | undefined;
  /** Gradients of a file, counted at the scale of the loss. */
  readonly gradients?: MeasuredGradients | undefined;
}

/** Training data as counted. */
export interface CountedData {
  /** Number of samples. @integer */
  readonly samples: number;
  /** Tokens without padding; where samples are packed, also those that a cut would lose. @integer */
  readonly tokens: number;
  /** Targets that count in the loss. @integer */
  readonly counted: number;
  /** Positions of the sequences, with padding. @integer */
  readonly positions: number;
  /** Tokens of the longest sample, before it is cut. @integer */
  readonly longest: number;
  /** Highest token id; null without tokens. @integer */
  readonly highestId: number | null;
  /** Whether sequences are filled, so that nothing is padded. */
  readonly isPacked: boolean;
}

export type Precision = 'bf16' | 'fp16' | 'float32';

/** Sizes of checkpoints, in bytes. */
export interface CheckpointSizes {
  /** Weights in 16 bits, as they are published. @integer */
  readonly weights16: number;
  /** Bytes of the weights in float32. @integer */
  readonly weights32: number;
  /** Weights in float32 with both moments of AdamW, to resume from. @integer */
  readonly resumable: number;
  /** Steps between two; undefined: only at the end. */
  readonly every: number | undefined;
  /** Checkpoints of the run, the last one included. @integer */
  readonly written: number;
  /** Checkpoints on the disk at the end. @integer */
  readonly kept: number;
  /** Bytes of all checkpoints. @integer */
  readonly diskBytes: number;
}

export interface AccumulationRow {
  /** Sequences of a replica at a time. @integer */
  readonly microBatch: number;
  /** Micro-batches of a step. @integer */
  readonly accumulation: number;
  /** Number of GPUs. @integer */
  readonly gpus: number;
  /** Memory of a GPU. */
  readonly memory: PlainBounds;
  /** Whether it fits; null without a GPU. */
  readonly verdict: FitVerdict | null;
  /** Whether it is the micro-batch of the plan. */
  readonly isPlanned: boolean;
}

/** Bounds of a value and its estimate, without their derivation. */
export type PlainBounds = ByBound<number>;

export interface TrainingOnHardware {
  /** GPU for people. */
  readonly gpu: string;
  /** Number of GPUs. @integer */
  readonly gpus: number;
  /** Bytes on a GPU. */
  readonly memory: PlainBounds;
  /** Usable memory of a GPU. */
  readonly capacity: number;
  /** Whether it fits. */
  readonly verdict: FitVerdict;
  /** Time of a step; null where no peak of the GPU is known, or no link. */
  readonly stepSeconds: PlainBounds | null;
  /** Speed by the estimate; null where no peak of the GPU is known, or no link. */
  readonly tokensPerSecond: number | null;
  /** Time of all steps; null where no peak of the GPU is known, or no link. */
  readonly totalSeconds: PlainBounds | null;
  /** Time of all steps at the speeds of nine of ten published runs; null where no run is comparable. */
  readonly publishedSeconds: Pick<PlainBounds, 'lower' | 'upper'> | null;
  /** Cost in the currency of --price; null without it. */
  readonly cost: PlainBounds | null;
}

export interface TrainPlan {
  /** Adapters that are trained instead of all weights; absent for a training of those. */
  readonly adapters?: PlannedAdapters;
  /** Parameters of the model. @integer */
  readonly parameters: number;
  /** Width of the model. @integer */
  readonly width: number;
  /** Size of the vocabulary. @integer */
  readonly vocabulary: number;
  /** Precision of the training. */
  readonly precision: Precision;
  /** Size of the run. */
  readonly size: RunSize;
  readonly rate: LearningRate;
  readonly weightDecay: number;
  readonly rule: GroupRuleName;
  readonly groups: readonly OptimizerGroup[];
  readonly checkpoints: CheckpointSizes;
  /** Ways to reach the batch. */
  readonly accumulation: readonly AccumulationRow[];
  /** Gradients of micro-steps that add up, because the loss is not divided; null where it is. */
  readonly undivided: UndividedLoss | null;
  /** Memory, time and cost; null without a GPU. */
  readonly hardware: TrainingOnHardware | null;
  /** Null in other types than fp16, unless gradients were measured. */
  readonly underflow:
    | (Underflow & {
        /** Whether gradients were measured. */
        readonly isMeasured: boolean;
      })
    | null;
  /** Measured gradients; null without `--gradients`. */
  readonly gradients: MeasuredGradients | null;
  /** Null where no data was read. */
  readonly data: CountedData | null;
  /** Mistakes of the settings, errors first. */
  readonly mistakes: readonly Mistake[];
}

/** Rule of each project's optimizer. */
const RULE_OF = {
  minimind: 'all',
  nanogpt: 'nanogpt',
  huggingface: 'huggingface',
  torchtitan: 'all',
} as const satisfies Record<Origin, GroupRuleName>;

/** Weight decay without a setting: nanoGPT's train.py, TrainingArguments, and torch.optim.AdamW. */
const USUAL_DECAY = { nanogpt: 0.1, huggingface: 0, all: 0.01 } as const satisfies Record<
  GroupRuleName,
  number
>;

/**
 * Plans a training.
 * @throws UserError when the context is longer than the model's positions.
 */
export function planTraining(model: LanguageModel, request: TrainPlanRequest): TrainPlan {
  const { cluster } = request;
  const basis = basisOf(model, request);
  const { size } = basis;
  const setting: TrainingFitSetting = {
    ...fitSettingOf(model, request),
    globalBatchTokens: size.tokensPerStep,
    trainTokens: size.steps * size.tokensPerStep,
  };
  const fitOf = request.adapters ? adapterFitOf(model, request.adapters) : trainingFitOf(model);
  return {
    ...basis,
    ...(request.adapters && { adapters: plannedAdapters(model, setting, request.adapters) }),
    gradients: request.gradients ?? null,
    data: request.data ?? null,
    checkpoints: checkpointSizes(basis.parameters, size, request.settings),
    accumulation: accumulationRows(fitOf, size, setting, cluster !== undefined),
    undivided: undividedLossOf(
      size,
      basis.rate.setting.peak,
      request.settings.values.max_grad_norm,
    ),
    hardware: cluster === undefined ? null : onHardware(fitOf, setting, request.price),
  };
}

/**
 * Replicas of a training, and the GPUs that divide its state, as `fit` counts them.
 * @throws UserError when the GPUs, blocks or layers cannot be divided.
 */
export const planParallelism = (model: LanguageModel, request: TrainPlanRequest): Parallelism =>
  parallelismOf(model, fitSettingOf(model, request));

/** The mistakes of a training, without its memory and time. */
export const trainingMistakes = (
  model: LanguageModel,
  request: TrainPlanRequest,
): readonly Mistake[] => basisOf(model, request).mistakes;

type Basis = Omit<
  TrainPlan,
  'gradients' | 'data' | 'checkpoints' | 'accumulation' | 'undivided' | 'hardware'
>;

function basisOf(model: LanguageModel, request: TrainPlanRequest): Basis {
  const { settings, gradients, cluster, data } = request;
  const { values } = settings;
  const { parameters } = countParameters(model);
  const [vocabulary = 0, width = 0] = model.embedding.weight.shape;
  const context = contextOf(model, request);
  const filled = data ? data.tokens / data.positions : undefined;
  const isBatchInFile = settings.isInFile('batch_size');
  const size = runSizeOf(values, {
    parameters,
    context,
    gpus: cluster?.gpus,
    replicas: planParallelism(model, request).replicas,
    filled,
    isBatchInFile,
  });
  const rate = learningRateOf(values, size.steps, width, settings.isInFile('learning_rate'));
  const rule = ruleOf(settings);
  const weightDecay = values.weight_decay ?? USUAL_DECAY[rule];
  const groups = optimizerGroups(model, rule);
  const precision = precisionOf(values);
  const scale = lossScaleOf(values);
  const measured = gradients?.scales.find((each) => each.scale === scale);
  const assumed = () => assumedUnderflow(parameters, values.max_grad_norm || 1, scale);
  const underflow = measured
    ? { ...measured, isMeasured: true }
    : precision === 'fp16'
      ? { ...assumed(), isMeasured: false }
      : null;
  const facts = { parameters, width, vocabulary, size, rate, rule, weightDecay, groups };
  const mistakes = findMistakes({
    ...facts,
    settings,
    highestId: data?.highestId ?? undefined,
    underflow: underflow ?? undefined,
  });
  return { ...facts, precision, underflow, mistakes };
}

/** Tokens of a sequence. */
export function contextOf(
  { positions }: LanguageModel,
  { settings, context }: Pick<TrainPlanRequest, 'settings' | 'context'>,
): number {
  const wish = { context, ...COUNTED };
  const hints = { context: settings.values.max_seq_length };
  return resolveSetting(wish, hints, positions).training.context;
}

const COUNTED = { dtype: 'bf16', causal: false, optimizer: 'adamw' } as const;

/** The rule that was asked for, else that of the schedule in the file: a flag for the schedule keeps the usual rule. */
function ruleOf({ values, isInFile }: TrainingSettings): GroupRuleName {
  const { optimizer_groups, lr_scheduler = '' } = values;
  const asked = optimizer_groups === undefined ? undefined : parseGroupRule(optimizer_groups);
  const schedule = isInFile('lr_scheduler') ? parseSchedule(lr_scheduler) : undefined;
  return asked ?? (schedule ? RULE_OF[SCHEDULES[schedule].origin] : 'nanogpt');
}

function precisionOf({ fp16, bf16 }: TrainingSettings['values']): Precision {
  if (fp16) return 'fp16';
  return bf16 === false || (fp16 === false && bf16 === undefined) ? 'float32' : 'bf16';
}

/** Scale of the loss: fixed, the first one of GradScaler, or none. */
export const lossScaleOf = ({
  loss_scale,
  init_scale,
  grad_scaler,
}: TrainingSettings['values']): number =>
  grad_scaler === false ? 1 : (loss_scale ?? (grad_scaler ? (init_scale ?? FIRST_SCALE) : 1));

/** Bytes of a parameter in each checkpoint. */
const [BYTES_16, BYTES_32, BYTES_MOMENTS] = [2, 4, 8];

function checkpointSizes(
  parameters: number,
  { steps }: RunSize,
  { values: { save_steps: every, save_total_limit: limit } }: TrainingSettings,
): CheckpointSizes {
  const resumable = (BYTES_32 + BYTES_MOMENTS) * parameters;
  const written = every === undefined ? 1 : Math.max(1, Math.ceil(steps / every));
  const kept = Math.min(written, limit ?? written);
  return {
    weights16: BYTES_16 * parameters,
    weights32: BYTES_32 * parameters,
    resumable,
    every,
    written,
    kept,
    diskBytes: kept * resumable,
  };
}

/** The setting of a fit, without the size of a step: the number of replicas is part of that. */
function fitSettingOf(model: LanguageModel, request: TrainPlanRequest): TrainingFitSetting {
  const { cluster, mfu, recompute, sharding, axes, convention = 'zero', adapters } = request;
  const { values } = request.settings;
  const isRecomputed = values.gradient_checkpointing === true;
  return {
    // The workspace of kernels hardly differs between GPUs.
    cluster: cluster ?? { gpu: usualGpu, gpus: values.gpus ?? 1, network: null },
    microBatch: values.batch_size ?? 1,
    context: contextOf(model, request),
    precision: precisionOf(values) === 'float32' ? 'float32' : 'mixed',
    optimizer: parseOptimizer(values.optimizer ?? 'adamw') ?? 'adamw',
    recompute: recompute ?? (isRecomputed ? 'full' : 'none'),
    attention: 'fused',
    loss: 'full',
    ...(sharding ?? { zero: 0 }),
    convention,
    ...(axes ?? trainingAxesOf({}, 1)),
    ...(adapters?.rank !== undefined && { rank: adapters.rank }),
    ...(adapters?.targets !== undefined && { targets: [...new Set(adapters.targets)] }),
    mfu,
  };
}

function accumulationRows(
  fitOf: FitOf,
  size: RunSize,
  setting: TrainingFitSetting,
  isKnown: boolean,
): AccumulationRow[] {
  return accumulationChoices(size).map(({ microBatch, accumulation, gpus }) => {
    const { total, verdict } = fitOf({ ...setting, microBatch });
    return {
      microBatch,
      accumulation,
      gpus,
      memory: plainBounds(total),
      verdict: isKnown ? verdict : null,
      isPlanned: microBatch === size.microBatch,
    };
  });
}

function onHardware(
  fitOf: FitOf,
  setting: TrainingFitSetting,
  price: number | undefined,
): TrainingOnHardware {
  const { gpu, gpus } = setting.cluster;
  const { total, verdict, capacity, step: stepOf } = fitOf(setting);
  const step = stepOf();
  const time = step && trainingTimeOf(step, setting.trainTokens ?? 0);
  return {
    gpu: gpu.title,
    gpus,
    memory: plainBounds(total),
    capacity: capacity.value,
    verdict,
    stepSeconds: step ? plainBounds(step.seconds) : null,
    tokensPerSecond: step?.tokensPerSecond.value ?? null,
    totalSeconds: time ? plainBounds(time.totalSeconds) : null,
    publishedSeconds: time?.published
      ? { lower: time.published.lower, upper: time.published.upper }
      : null,
    cost:
      time && price !== undefined
        ? plainBounds(trainingCost(time.totalSeconds, gpus, price))
        : null,
  };
}

const plainBounds = (bounds: Bounds): PlainBounds => byBound((bound) => bounds[bound].value);

/** Points of the learning rate, at most `most`, with the first and the last step. */
export function ratePoints(
  { rate, size }: Pick<TrainPlan, 'rate' | 'size'>,
  most: number,
): (readonly [step: number, rate: number])[] {
  const last = Math.max(1, size.steps) - 1;
  const count = Math.min(most, last + 1);
  const every = count > 1 ? last / (count - 1) : 1;
  return Array.from({ length: count }, (_, index) => {
    const step = Math.round(index * every);
    return [step, learningRateAt(rate, step)] as const;
  });
}

/** Points of the learning rate in a result. */
const SHOWN_POINTS = 200;

/** The learning rate of a plan. */
interface ShownLearningRate
  extends Omit<ScheduleSetting, 'decay' | 'decayType'>,
    Omit<LearningRate, 'setting'> {
  /** Description of the schedule for people. */
  readonly title: string;
  /** Function that computes the schedule in the original. */
  readonly source: string;
  /** Steps of the last decay; null where the schedule has none. @integer */
  readonly decay: number | null;
  /** Shape of the last decay; null where the schedule has none. */
  readonly decayType: DecayType | null;
  /** Learning rate at a step, at most 200 points. */
  readonly points: readonly (readonly [
    /** Step, from 0. @integer */
    step: number,
    /** Learning rate of the step. */
    rate: number,
  ])[];
}

/** A group of tensors with one weight decay. */
interface ShownGroup extends Omit<OptimizerGroup, 'tensors'> {
  /** Weight decay of the group. */
  readonly weightDecay: number;
  /** Tensors of the group. */
  readonly tensors: readonly {
    /** Name of the tensor. */
    readonly name: string;
    /** Kind of the tensor. */
    readonly kind: GroupedKind['kind'];
    /** Parameters of the tensor. @integer */
    readonly parameters: number;
  }[];
}

/** The optimizer of a plan, and its groups. */
interface ShownOptimizer {
  /** Name of the optimizer. */
  readonly name: string;
  /** Rule that divides the tensors. */
  readonly rule: GroupRuleName;
  /** Description of the rule for people. */
  readonly title: string;
  /** Source of the rule. */
  readonly source: string;
  /** Weight decay of the decayed tensors. */
  readonly weightDecay: number;
  /** Tensors with one weight decay. */
  readonly groups: readonly ShownGroup[];
}

/** A published model with many tokens per parameter. */
interface OverTrainedModel {
  /** Name of the model. */
  readonly model: string;
  /** Tokens of its training ÷ parameters. */
  readonly tokensPerParameter: number;
  /** Source of the numbers. */
  readonly source: string;
}

/** A plan as plain data for JSON and reports: groups with names of tensors, and points of the learning rate. */
export interface ShownPlan extends Omit<TrainPlan, 'rate' | 'groups' | 'rule' | 'weightDecay'> {
  /** Published models with many tokens per parameter. */
  readonly overTrained: readonly OverTrainedModel[];
  /** Learning rate over the steps. */
  readonly learningRate: ShownLearningRate;
  /** Optimizer and its groups. */
  readonly optimizer: ShownOptimizer;
}

export function shownPlan(plan: TrainPlan): ShownPlan {
  const { rate, groups, rule, weightDecay, ...rest } = plan;
  const { schedule, setting, ...usual } = rate;
  const definition: Schedule = SCHEDULES[schedule];
  return {
    ...rest,
    overTrained: OVER_TRAINED.map(({ model, parameters, tokens, source }) => ({
      model,
      tokensPerParameter: tokens / parameters,
      source,
    })),
    learningRate: {
      schedule,
      title: scheduleTitle(schedule, setting),
      source: definition.source,
      ...setting,
      decay: definition.reads.includes('decay') ? decayStepsOf(setting) : null,
      decayType: definition.reads.includes('decayType') ? setting.decayType : null,
      ...usual,
      points: ratePoints(plan, SHOWN_POINTS),
    },
    optimizer: {
      name: 'AdamW',
      rule,
      title: GROUP_RULES[rule].title,
      source: GROUP_RULES[rule].source,
      weightDecay,
      groups: groups.map(({ isDecayed, parameters, kinds, tensors }) => ({
        isDecayed,
        weightDecay: isDecayed ? weightDecay : 0,
        parameters,
        kinds,
        tensors: tensors.map(({ tensor, kind }) => ({
          name: tensor.name,
          kind,
          parameters: tensor.elements,
        })),
      })),
    },
  };
}

/**
 * The plan of a training, with its mistakes.
 * @answer minimind train-plan --json
 */
export interface TrainPlanResult extends ShownPlan {
  readonly schema: 'minimind/train-plan@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Values read from a training config; absent without one. */
  readonly trainingConfig?: TrainingConfigAnswer;
  /** The plan as the command or config of a program; absent without `--emit`. */
  readonly emitted?: Emitted;
}

interface LocatedDocument {
  readonly document: unknown;
  readonly model: LanguageModel;
  locate(path: PropertyPath): Pick<Problem, 'file' | 'line' | 'column' | 'excerpt'>;
}

/** Warnings about the training of a document that has one. */
export function mistakeProblems({ document, model, locate }: LocatedDocument): Problem[] {
  const settings = trainingSettings(document);
  if (Object.keys(settings.values).length === 0) return [];
  // A context beyond the model's positions is an error of its own.
  const context = Math.min(
    settings.values.max_seq_length ?? Number.POSITIVE_INFINITY,
    model.positions,
  );
  return trainingMistakes(model, {
    settings,
    ...(Number.isFinite(context) && settings.values.max_seq_length !== undefined && { context }),
  }).map(({ place, title, reason, fix }) => ({
    severity: 'warning',
    ...locate(place.split('.')),
    path: place,
    message: `${title}: ${reason}`,
    suggestion: `write ${fix}`,
  }));
}
