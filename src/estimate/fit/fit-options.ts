/** Options of a fit, as a user gives them. A missing one is as in the config, or has its usual value. */
import type { CacheDtype, Dtype } from '../../base/tensor/dtype.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Recompute } from '../../model/budget/flops.js';
import type { LossKernel } from '../../model/budget/kernel-activations.js';
import type { Optimizer, Precision } from '../../model/budget/optimizers.js';
import type { Benchmark } from './calibration/benchmark-runs.js';
import type { Purpose } from './purpose.js';
import type { RuntimeName } from './serving/throughput/runtimes.js';
import type { Batching } from './serving/throughput/simulation.js';
import type { WeightDtype } from './serving/weight-types.js';
import { type Convention, type Sharding, TRAINING_OFFLOADS } from './training/training-setting.js';

/** Options with a value of their own when they are left out. */
export const FIT_DEFAULTS = {
  optimizer: 'adamw',
  attention: 'fused',
  loss: 'full',
  convention: 'zero',
} as const satisfies Partial<Record<keyof FitOptions, string>>;

/** Options of training and of adapters. */
export interface FitTrainingOptions {
  /** Sequences per replica and micro-batch. Default: as in the config, or 1. */
  readonly microBatch?: number | undefined;
  /** Default: as in the config, or `mixed`. */
  readonly precision?: Precision | undefined;
  /** Default: `adamw`. */
  readonly optimizer?: Optimizer | undefined;
  /** Activations that are computed again. Default: as in the config, or `none`. */
  readonly recompute?: Recompute | undefined;
  /** Whether each tensor is updated within the backward pass. */
  readonly optimizerInBackward?: boolean | undefined;
  /** Rank of adapters. Default: 16. */
  readonly rank?: number | undefined;
  /** Products with adapters: `attention`, `mlp`, or ends of names. Default: all. */
  readonly targets?: readonly string[] | undefined;
  /** Type of the frozen weights under adapters. Default: `bf16`, or NF4 for QLoRA. */
  readonly baseDtype?: WeightDtype | undefined;
  /** Kernels of attention and scan. Default: `fused`. */
  readonly attention?: 'fused' | 'plain' | undefined;
  /** Kernel of the loss. Default: `full`. */
  readonly loss?: LossKernel | undefined;
  /** Whether the masks of dropout count. */
  readonly dropout?: boolean | undefined;
  /** Stage of ZeRO, or a kind of FSDP. Default: as in the config, or `0`. */
  readonly zero?: Sharding | undefined;
  /** Type of the gradients. Default: `zero`, that of the weights. */
  readonly convention?: Convention | undefined;
  /** GPUs that share each expert: 1, or those that share a layer. Default: those. */
  readonly expertTensorParallel?: number | undefined;
  /** Whether GPUs that share a layer split the residual stream. */
  readonly sequenceParallel?: boolean | undefined;
  /** Tokens per optimizer step. Default: those of one micro-batch per stage. */
  readonly globalBatchTokens?: number | undefined;
  /** Micro-batches per replica and optimizer step, in place of `globalBatchTokens`. */
  readonly accumulation?: number | undefined;
  /** Tokens of the whole training. */
  readonly trainTokens?: number | undefined;
  /** Expected model FLOPs utilisation, from 0 to 1. */
  readonly mfu?: number | undefined;
}

/** Options of serving. */
export interface FitServingOptions {
  /** Type of the weights. Default: that of the checkpoint, or `bf16`. */
  readonly dtype?: WeightDtype | undefined;
  /** Values per scale. Default: 128 for `int4`, else a row. */
  readonly groupSize?: number | undefined;
  /** Default: `f16` for `int4`, else `f32`. */
  readonly scaleDtype?: Dtype | undefined;
  /** Default: `bf16`, or `f32` with `f32` weights. */
  readonly cacheDtype?: CacheDtype | undefined;
  /** Sequences per replica at the same time. Default: 1. */
  readonly batch?: number | undefined;
  /** Users at the same time on all GPUs, in place of `batch`. */
  readonly users?: number | undefined;
  readonly promptTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** Output tokens of requests in equal shares, to compare static with continuous batching. */
  readonly outputMix?: readonly number[] | undefined;
  /** Measured seconds per token of a sequence, with `batch` sequences at a time. */
  readonly tokenSeconds?: number | undefined;
  /** Measured seconds from one prompt to its first token. */
  readonly prefillSeconds?: number | undefined;
  /** Load of the server, which shows the GPUs that it needs. */
  readonly requestsPerSecond?: number | undefined;
  /** Time limit for the last token of 95% of the requests. */
  readonly p95Seconds?: number | undefined;
  /** Tokens per second that each user needs. */
  readonly minTokensPerSecond?: number | undefined;
  /** Results of a benchmark on this hardware, whose shares of the peaks replace the usual ones. */
  readonly calibrate?:
    | { readonly file: string; readonly benchmark: Benchmark | undefined }
    | undefined;
  /** Program that serves. Default: llama.cpp for types of GGUF files and on Apple chips, else vLLM. */
  readonly runtime?: RuntimeName | undefined;
  /** Whether each kernel is launched by itself. */
  readonly eager?: boolean | undefined;
  /** Share of the memory for serving, from 0 to 1. Default: that of the program. */
  readonly gpuMemoryUtilization?: number | undefined;
  /** Whether prompts are read in chunks beside decoding. */
  readonly chunkedPrefill?: boolean | undefined;
  readonly batching?: Batching | undefined;
  /** Share of each prompt that a prefix cache holds, from 0 to 1. */
  readonly prefixCache?: number | undefined;
  /** Model that drafts tokens. It requires `acceptance`. */
  readonly draft?: { readonly file: string; readonly model: LanguageModel | undefined } | undefined;
  /** Probability that a drafted token is accepted, from 0 to 1. */
  readonly acceptance?: number | undefined;
  /** Groups of GPUs that each have a copy of the attention. Default: 1. */
  readonly dataParallelAttention?: number | undefined;
  /** Tokens that are drafted for a step. Default: 5. */
  readonly draftTokens?: number | undefined;
  /** GPUs of those of the cluster that only read prompts. Default: those that decode read them. */
  readonly prefillGpus?: number | undefined;
}

/** Parts of serving that can be in system memory. */
const SERVING_OFFLOADS = ['experts', 'layers', 'cache'] as const;

/** Parts that can be in system memory. */
export const OFFLOADS = [...TRAINING_OFFLOADS, ...SERVING_OFFLOADS] as const;

export type Offload = (typeof OFFLOADS)[number];

/** The part of a training in system memory; undefined for a part of serving. */
export const trainingOffload = ({ offload }: Pick<FitPlacesOptions, 'offload'>) =>
  TRAINING_OFFLOADS.find((each) => each === offload);

/** Options of weights in system memory. */
export interface FitPlacesOptions {
  /** System memory for what the GPUs do not hold. */
  readonly ramBytes?: number | undefined;
  /** Type or bandwidth of the system memory: `ddr5-5600`, `4xddr4-3200`, `90GB/s`. */
  readonly ramSpeed?: string | undefined;
  /** Processor, whose channels and memory give the bandwidth without `ramSpeed`. */
  readonly cpu?: string | undefined;
  /** Layers on the GPUs, counted from the output. */
  readonly gpuLayers?: number | undefined;
  /** First layers whose routed experts are in system memory. */
  readonly cpuExperts?: number | undefined;
  /** Part in system memory: of a training its optimizer or parameters, of serving experts, layers or cache. */
  readonly offload?: Offload | undefined;
  /** Proportions in which several GPUs share the layers. Default: the fastest that fit. */
  readonly tensorSplit?: readonly number[] | undefined;
}

/** Options of a model on hardware. */
export interface FitOptions extends FitTrainingOptions, FitServingOptions, FitPlacesOptions {
  /** The question. Default: serving, or training where only its options are given. */
  readonly for?: Purpose | undefined;
  /** Tokens per sequence. Default: as in the config, or 2048. */
  readonly context?: number | undefined;
  /** GPUs that share each layer. Default: 1. */
  readonly tensorParallel?: number | undefined;
  /** Stages of blocks. Default: 1. */
  readonly pipelineParallel?: number | undefined;
  /** GPUs that each have a part of every sequence. Default: 1. */
  readonly contextParallel?: number | undefined;
  /** GPUs that each have some of the experts, or all that can. Default: 1. */
  readonly expertParallel?: number | 'all' | undefined;
  /** Whether the system memory was found on this machine, so that it may be idle. */
  readonly isDetected?: boolean | undefined;
  /** Price of a GPU for an hour, which shows costs. */
  readonly pricePerHour?: number | undefined;
}

/** Names of the options of a training, in the order in which messages name the first one. */
export const TRAINING_OPTIONS = Object.keys({
  microBatch: true,
  precision: true,
  optimizer: true,
  recompute: true,
  optimizerInBackward: true,
  rank: true,
  targets: true,
  baseDtype: true,
  attention: true,
  loss: true,
  dropout: true,
  zero: true,
  convention: true,
  expertTensorParallel: true,
  sequenceParallel: true,
  globalBatchTokens: true,
  accumulation: true,
  trainTokens: true,
  mfu: true,
} satisfies Record<keyof FitTrainingOptions, true>) as (keyof FitTrainingOptions)[];

/** Names of the options of serving, in the same order. */
export const SERVING_OPTIONS = Object.keys({
  dtype: true,
  groupSize: true,
  scaleDtype: true,
  cacheDtype: true,
  batch: true,
  users: true,
  promptTokens: true,
  outputTokens: true,
  outputMix: true,
  tokenSeconds: true,
  prefillSeconds: true,
  requestsPerSecond: true,
  p95Seconds: true,
  minTokensPerSecond: true,
  calibrate: true,
  runtime: true,
  eager: true,
  gpuMemoryUtilization: true,
  chunkedPrefill: true,
  batching: true,
  prefixCache: true,
  draft: true,
  acceptance: true,
  dataParallelAttention: true,
  draftTokens: true,
  prefillGpus: true,
} satisfies Record<keyof FitServingOptions, true>) as (keyof FitServingOptions)[];

/** Names of the options of system memory. */
export const PLACES_OPTIONS = Object.keys({
  ramBytes: true,
  ramSpeed: true,
  cpu: true,
  gpuLayers: true,
  cpuExperts: true,
  offload: true,
  tensorSplit: true,
} satisfies Record<keyof FitPlacesOptions, true>) as (keyof FitPlacesOptions)[];

/** Whether an option has a value that changes something. */
export const isChosen = (options: FitOptions, name: keyof FitOptions): boolean => {
  const value = options[name];
  const usual = (FIT_DEFAULTS as Partial<Record<keyof FitOptions, unknown>>)[name];
  return value !== undefined && value !== false && value !== usual;
};
