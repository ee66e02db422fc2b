/** Setting of a training on GPUs. */
import type {
  ActivationSetting,
  AttentionKernel,
  LossKernel,
} from '../../../model/budget/kernel-activations.js';
import {
  type TrainedState,
  type TrainingSetting,
  trainingBytes,
} from '../../../model/budget/training-budget.js';
import type { Cluster } from '../../hardware/gpu.js';
import type { SystemMemory } from '../../hardware/system-memory.js';
import type { WeightFormat } from '../serving/weight-types.js';

/** ZeRO stage: replicas split nothing, the optimizer, also gradients, or also weights. */
export type ZeroStage = 0 | 1 | 2 | 3;

/**
 * Names of the ways to divide the state of a training. FSDP and FSDP2 divide what ZeRO-3 divides; HSDP does so within each
 * machine (PyTorch, FullyShardedDataParallel: ShardingStrategy; fully_shard: a mesh of two dimensions).
 */
export const SHARDINGS = {
  0: { zero: 0 },
  1: { zero: 1 },
  2: { zero: 2 },
  3: { zero: 3 },
  fsdp: { zero: 3 },
  fsdp2: { zero: 3 },
  hsdp: { zero: 3, hybrid: true },
} as const satisfies Record<string, Pick<TrainingFitSetting, 'zero' | 'hybrid'>>;

export type Sharding = `${keyof typeof SHARDINGS}`;

/** First ZeRO stage that divides each part among the replicas. */
export const DIVIDED_FROM = { optimizer: 1, gradients: 2, weights: 3 } as const satisfies Record<
  keyof TrainedState,
  number
>;

/** Conventions of training memory: they differ in the type of gradients. */
export const CONVENTIONS = {
  zero: {
    gradientBytes: undefined,
    source: 'gradients in the type of the weights: 2 + 2 + 12 bytes (ZeRO, arXiv 1910.02054)',
  },
  megatron: {
    gradientBytes: 4,
    source: 'gradients in float32: 2 + 4 + 12 bytes (Megatron-LM, distributed optimizer)',
  },
} as const satisfies Record<string, { gradientBytes: number | undefined; source: string }>;

export type Convention = keyof typeof CONVENTIONS;

/** Parts of a training that can be in system memory: the optimizer with its update, or also the weights. */
export const TRAINING_OFFLOADS = ['optimizer', 'parameters'] as const;

export type TrainingOffloadPart = (typeof TRAINING_OFFLOADS)[number];

/** Part of a training in system memory, and that memory. */
export interface TrainingOffload {
  /** The part. */
  readonly part: TrainingOffloadPart;
  /** The system memory. */
  readonly memory: SystemMemory;
}

/** Training setting with parallelism. `microBatch` replaces `batch` of `TrainingSetting`. */
export interface TrainingFitSetting extends Omit<TrainingSetting, 'batch'> {
  readonly cluster: Cluster;
  /** Sequences per replica at a time. @integer @minimum 1 */
  readonly microBatch: number;
  /** Attention kernel; fused kernels keep neither scores nor scan states. */
  readonly attention: AttentionKernel;
  /** Loss kernel; in chunks, or fused with the head, the loss needs few logits at a time. */
  readonly loss: LossKernel;
  /** Whether to count the saved values of dropout. */
  readonly dropout?: boolean | undefined;
  readonly zero: ZeroStage;
  /** Whether the GPUs of each machine divide the state among them, and machines hold copies (HSDP). */
  readonly hybrid?: boolean | undefined;
  /** Type of the gradients: that of the weights, or float32. */
  readonly convention: Convention;
  /** GPUs that share each layer. @integer @minimum 1 */
  readonly tensorParallel: number;
  /** Stages of consecutive blocks. @integer @minimum 1 */
  readonly pipelineParallel: number;
  /** GPUs that each hold a part of every sequence (context parallelism); undefined: 1. @integer @minimum 1 */
  readonly contextParallel?: number | undefined;
  /** GPUs that each hold some of the experts whole (expert parallelism); undefined: 1. @integer @minimum 1 */
  readonly expertParallel?: number | undefined;
  /** GPUs that share each expert; undefined: those that share a layer. @integer @minimum 1 */
  readonly expertTensorParallel?: number | undefined;
  /** Split the residual stream by tokens among the GPUs that share a layer. */
  readonly sequenceParallel: boolean;
  /** Tokens of an optimizer step; undefined: one micro-batch per pipeline stage. @real */
  readonly globalBatchTokens?: number | undefined;
  /** Tokens of the whole training; undefined: no training time. @real */
  readonly trainTokens?: number | undefined;
  /** Whether the optimizer updates each tensor within the backward pass, so that one gradient exists at a time. */
  readonly optimizerInBackward?: boolean | undefined;
  /** Rank of adapters; undefined: that of most recipes. @integer @minimum 1 */
  readonly rank?: number | undefined;
  /** Products with adapters: `attention`, `mlp`, or ends of names as `q_proj`; undefined: all of the blocks. */
  readonly targets?: readonly string[] | undefined;
  /** Format of frozen weights; undefined: that of the question. */
  readonly frozen?: WeightFormat | undefined;
  /** Whether the inputs of recomputed blocks wait in memory of the host. */
  readonly offloaded?: boolean | undefined;
  /** Part of the state in system memory, and that memory. */
  readonly offload?: TrainingOffload | undefined;
  /** System memory that the user named, for proposals that use it; undefined: that of a usual desktop. */
  readonly systemMemory?: SystemMemory | undefined;
  /** Expected model FLOPs utilisation, from 0 to 1. @real */
  readonly mfu?: number | undefined;
}

/** Bytes per gradient value. */
export const gradientBytesOf = ({
  precision,
  convention,
}: Pick<TrainingFitSetting, 'precision' | 'convention'>): number =>
  CONVENTIONS[convention].gradientBytes ?? trainingBytes(precision);

/** Tokens of a sequence on a GPU. */
export const tokensOfGpu = ({
  context,
  contextParallel = 1,
}: Pick<TrainingFitSetting, 'context' | 'contextParallel'>): number =>
  Math.ceil(context / contextParallel);

/** Activations of one micro-batch of the whole model, on a GPU that has its part of each sequence. */
export const activationSetting = (setting: TrainingFitSetting): ActivationSetting => ({
  batch: setting.microBatch,
  context: tokensOfGpu(setting),
  bytesPerValue: trainingBytes(setting.precision),
  recompute: setting.recompute,
  attention: setting.attention,
  loss: setting.loss,
  dropout: setting.dropout,
  tensor: setting.tensorParallel,
  sequence: setting.sequenceParallel,
  offloaded: setting.offloaded,
});
