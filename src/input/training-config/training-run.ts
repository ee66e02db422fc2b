/** The settings of a training, under the same names for all programs. */
import type { PropertyPath } from '../../base/errors.js';
import type { Recompute } from '../../model/budget/flops.js';
import type { Optimizer } from '../../model/budget/optimizers.js';

/** Trained parameters: all weights, adapters, or adapters next to weights in 4 bits. */
export type TrainingKind = 'training' | 'lora' | 'qlora';

/** Division of the state among the replicas: a stage of ZeRO, or a kind of FSDP. */
export type StateDivision = '0' | '1' | '2' | '3' | 'fsdp' | 'fsdp2' | 'hsdp';

/** A training as its config describes it. A missing setting is not in the config. */
export interface TrainingRun {
  /** Model as the config names it: a repository of the hub or a path. */
  readonly model?: string;
  /** Sizes of the model, as a `config.json` has them. */
  readonly sizes?: Readonly<Record<string, unknown>>;
  readonly kind?: TrainingKind;
  /** Whether it continues the training of a model: then its tokens are few. */
  readonly isFineTuning?: boolean;

  readonly bf16?: boolean;
  readonly fp16?: boolean;
  readonly fp8?: boolean;
  /** Whether weights and optimizer are in bf16, without a copy in float32. */
  readonly pureBf16?: boolean;
  /** Whether gradients are in float32. */
  readonly float32Gradients?: boolean;

  /** Sequences of a GPU at a time. */
  readonly microBatch?: number;
  /** Micro-batches of a replica in an optimizer step. */
  readonly accumulation?: number;
  /** Sequences of an optimizer step on all GPUs. */
  readonly globalBatch?: number;
  /** Tokens of a sequence. */
  readonly context?: number;
  /** Whether several samples share a sequence. */
  readonly packing?: boolean;

  readonly gpus?: number;
  readonly dataParallel?: number;
  readonly tensorParallel?: number;
  readonly pipelineParallel?: number;
  readonly contextParallel?: number;
  readonly expertParallel?: number;
  /** GPUs that share each expert. */
  readonly expertTensorParallel?: number;
  readonly sequenceParallel?: boolean;
  readonly division?: StateDivision;
  readonly offloadOptimizer?: boolean;
  readonly offloadParameters?: boolean;
  readonly recompute?: Recompute;
  /** File of DeepSpeed that the config names. */
  readonly deepspeedFile?: string;

  readonly optimizer?: Optimizer;
  readonly learningRate?: number;
  readonly minLearningRate?: number;
  /** The same as a share of the learning rate. */
  readonly minLearningRateRatio?: number;
  readonly schedule?: string;
  readonly warmupSteps?: number;
  readonly warmupRatio?: number;
  /** Steps of the last decay, or of the whole schedule where it has one decay. */
  readonly decaySteps?: number;
  readonly decayRatio?: number;
  readonly decayType?: string;
  readonly scheduleSteps?: number;
  readonly steps?: number;
  readonly epochs?: number;
  /** Tokens of the whole training. */
  readonly tokens?: number;
  /** Sequences of the whole training. */
  readonly samples?: number;
  readonly weightDecay?: number;
  readonly beta1?: number;
  readonly beta2?: number;
  readonly epsilon?: number;
  readonly gradientClip?: number;

  /** Rank of adapters. */
  readonly rank?: number;
  /** Products with adapters, by the ends of their names; `all` for all. */
  readonly targets?: readonly string[];
}

export type RunField = keyof TrainingRun;

/** Name of each setting in messages. */
export const FIELD_TITLES = {
  model: 'model',
  sizes: 'sizes of the model',
  kind: 'kind of training',
  isFineTuning: 'fine-tuning',
  bf16: 'bf16',
  fp16: 'fp16',
  fp8: 'FP8 products',
  pureBf16: 'bf16 without a float32 copy',
  float32Gradients: 'gradients in float32',
  microBatch: 'micro-batch',
  accumulation: 'accumulation',
  globalBatch: 'global batch',
  context: 'sequence length',
  packing: 'packing',
  gpus: 'GPUs',
  dataParallel: 'data parallelism',
  tensorParallel: 'tensor parallelism',
  pipelineParallel: 'pipeline parallelism',
  contextParallel: 'context parallelism',
  expertParallel: 'expert parallelism',
  expertTensorParallel: 'tensor parallelism of experts',
  sequenceParallel: 'sequence parallelism',
  division: 'division of the state',
  offloadOptimizer: 'optimizer in system memory',
  offloadParameters: 'parameters in system memory',
  recompute: 'recomputed activations',
  deepspeedFile: 'file of DeepSpeed',
  optimizer: 'optimizer',
  learningRate: 'learning rate',
  minLearningRate: 'learning rate at the end',
  minLearningRateRatio: 'learning rate at the end, as a share',
  schedule: 'schedule',
  warmupSteps: 'warm-up',
  warmupRatio: 'warm-up, as a share',
  decaySteps: 'decay',
  decayRatio: 'decay, as a share',
  decayType: 'curve of the decay',
  scheduleSteps: 'steps of the schedule',
  steps: 'steps',
  epochs: 'epochs',
  tokens: 'tokens',
  samples: 'samples',
  weightDecay: 'weight decay',
  beta1: 'beta1',
  beta2: 'beta2',
  epsilon: 'epsilon',
  gradientClip: 'gradient clipping',
  rank: 'rank of adapters',
  targets: 'products with adapters',
} as const satisfies Record<RunField, string>;

/** A value of a config that became a setting. */
export interface ReadValue {
  /** Its key in the config. */
  readonly key: PropertyPath;
  readonly field: RunField;
}
