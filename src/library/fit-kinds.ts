/** Kinds of the options of `fit`, as the library checks them. */
import { CACHE_DTYPE_NAMES, DTYPE_NAMES } from '../base/tensor/dtype.js';
import { type FitOptions, OFFLOADS } from '../estimate/fit/fit-options.js';
import { PURPOSES } from '../estimate/fit/purpose.js';
import { RUNTIME_NAMES } from '../estimate/fit/serving/throughput/runtimes.js';
import { BATCHINGS } from '../estimate/fit/serving/throughput/simulation.js';
import { WEIGHT_DTYPE_NAMES } from '../estimate/fit/serving/weight-types.js';
import { CONVENTIONS } from '../estimate/fit/training/training-setting.js';
import { RECOMPUTES } from '../model/budget/flops.js';
import { LOSS_KERNELS } from '../model/budget/kernel-activations.js';
import { OPTIMIZER_NAMES, PRECISION_NAMES } from '../model/budget/optimizers.js';
import type { OptionKinds } from './arguments.js';

/** Kinds of the values of `fit`. */
export const FIT_KINDS: OptionKinds<
  FitOptions & { readonly gpu?: string | undefined; gpus?: number; reserveBytes?: number }
> = {
  gpu: 'text',
  gpus: 'count',
  reserveBytes: 'amount',
  for: PURPOSES,
  microBatch: 'count',
  precision: PRECISION_NAMES,
  optimizer: OPTIMIZER_NAMES,
  recompute: Object.keys(RECOMPUTES),
  optimizerInBackward: 'flag',
  rank: 'count',
  targets: 'list',
  baseDtype: WEIGHT_DTYPE_NAMES,
  attention: ['fused', 'plain'],
  loss: LOSS_KERNELS,
  dropout: 'flag',
  zero: 'text',
  convention: Object.keys(CONVENTIONS),
  expertTensorParallel: 'count',
  sequenceParallel: 'flag',
  globalBatchTokens: 'count',
  accumulation: 'count',
  trainTokens: 'count',
  mfu: 'amount',
  dtype: WEIGHT_DTYPE_NAMES,
  groupSize: 'count',
  scaleDtype: DTYPE_NAMES,
  cacheDtype: CACHE_DTYPE_NAMES,
  batch: 'count',
  users: 'count',
  promptTokens: 'count',
  outputTokens: 'count',
  outputMix: 'list',
  tokenSeconds: 'amount',
  prefillSeconds: 'amount',
  requestsPerSecond: 'amount',
  p95Seconds: 'amount',
  minTokensPerSecond: 'amount',
  calibrate: 'other',
  runtime: RUNTIME_NAMES,
  eager: 'flag',
  gpuMemoryUtilization: 'amount',
  chunkedPrefill: 'flag',
  batching: BATCHINGS,
  prefixCache: 'amount',
  draft: 'other',
  acceptance: 'amount',
  dataParallelAttention: 'count',
  draftTokens: 'count',
  prefillGpus: 'count',
  ramBytes: 'amount',
  ramSpeed: 'text',
  cpu: 'text',
  gpuLayers: 'amount',
  cpuExperts: 'amount',
  offload: OFFLOADS,
  tensorSplit: 'list',
  context: 'count',
  tensorParallel: 'count',
  pipelineParallel: 'count',
  contextParallel: 'count',
  expertParallel: 'other',
  isDetected: 'flag',
  pricePerHour: 'amount',
};
