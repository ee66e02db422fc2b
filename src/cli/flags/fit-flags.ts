/** The flags of `minimind fit`, and the options that they are. */
import * as Flags from '@oclif/core/flags';
import type { Benchmark } from '../../estimate/fit/calibration/benchmark-runs.js';
import { FIT_DEFAULTS, type FitOptions } from '../../estimate/fit/fit-options.js';
import { USUAL_DRAFT } from '../../estimate/fit/fit-request.js';
import type { Purpose } from '../../estimate/fit/purpose.js';
import { RUNTIME_NAMES } from '../../estimate/fit/serving/throughput/runtimes.js';
import { BATCHINGS } from '../../estimate/fit/serving/throughput/simulation.js';
import { USUAL_SPEED } from '../../estimate/fit/serving/throughput/throughput.js';
import type { WeightDtype } from '../../estimate/fit/serving/weight-types.js';
import { parseWeightDtype, WEIGHT_DTYPE_NAMES } from '../../estimate/fit/serving/weight-types.js';
import type { Convention, Sharding } from '../../estimate/fit/training/training-setting.js';
import { CONVENTIONS, SHARDINGS } from '../../estimate/fit/training/training-setting.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { LOSS_KERNELS } from '../../model/budget/kernel-activations.js';
import { OPTIMIZER_NAMES } from '../../model/budget/optimizers.js';
import type { ParsedFlags } from './flags.js';
import { settingFlags } from './flags.js';
import { placesFlags } from './places-flags.js';
import {
  cacheDtype,
  count,
  countOrAll,
  dtype,
  duration,
  positive,
  share,
  tokenCounts,
  tokens,
  tokenTotal,
  typeSuggestion,
  unreadable,
} from './value-flags.js';

const TRAINING = { helpGroup: 'TRAINING' };
const SERVING = { helpGroup: 'SERVING' };
const SPREAD = { helpGroup: 'HARDWARE' };

export const CONVENTION_NAMES = Object.keys(CONVENTIONS) as Convention[];
const ZERO = Object.keys(SHARDINGS) as Sharding[];

/** `--dtype q4_k_m`, by any usual name of a type. */
const weightDtype = Flags.custom<WeightDtype>({
  helpValue: 'TYPE',
  parse: async (text, _context, { name }) => {
    const parsed = parseWeightDtype(text);
    if (parsed) return parsed;
    const suggestion = typeSuggestion(text, WEIGHT_DTYPE_NAMES, parseWeightDtype);
    return unreadable(name, text, 'a type of weights', suggestion);
  },
});

/** Flags of training and of serving. */
export const fitFlags = {
  context: settingFlags.context,
  'tensor-parallel': count({
    ...SPREAD,
    description: 'GPUs that share each layer, as in 2 [default: 1]',
  }),
  'pipeline-parallel': count({
    ...SPREAD,
    description: 'stages of consecutive blocks, each on GPUs of its own [default: 1]',
  }),
  'expert-parallel': countOrAll({
    ...SPREAD,
    description: 'GPUs that each have some of the experts, as in 8, or all [default: 1]',
  }),
  'context-parallel': count({
    ...SPREAD,
    description:
      'GPUs that each have a part of every sequence, in serving of its cache [default: 1]',
  }),
  ...placesFlags,
  price: positive({
    ...SPREAD,
    helpValue: 'N',
    description:
      'price of a GPU for an hour, as in 2.50; shows the cost of tokens, of --qps or of --train-tokens',
  }),

  'micro-batch': count({
    ...TRAINING,
    description: 'sequences per replica and micro-batch [default: as in the file, or 1]',
  }),
  precision: { ...settingFlags.precision, ...TRAINING },
  optimizer: Flags.option({
    ...TRAINING,
    options: OPTIMIZER_NAMES,
    default: FIT_DEFAULTS.optimizer,
    description: 'optimizer of the training',
  } as const)(),
  recompute: { ...settingFlags.recompute, ...TRAINING },
  'optimizer-in-backward': Flags.boolean({
    ...TRAINING,
    description: 'update each tensor within the backward pass: one gradient at a time',
  }),
  rank: count({ ...TRAINING, description: 'rank of adapters (LoRA, QLoRA) [default: 16]' }),
  targets: Flags.string({
    ...TRAINING,
    helpValue: 'NAMES',
    description:
      'products with adapters: all, attention, mlp, or ends of names, as in q_proj,v_proj [default: all]',
  }),
  'base-dtype': weightDtype({
    ...TRAINING,
    description: 'type of the frozen weights under adapters [default: bf16, or NF4 for qlora]',
  }),
  attention: Flags.option({
    ...TRAINING,
    options: ['fused', 'plain'],
    default: FIT_DEFAULTS.attention,
    description: 'kernels of attention and scan; fused kernels keep no scores and states',
  } as const)(),
  loss: Flags.option({
    ...TRAINING,
    options: LOSS_KERNELS,
    default: FIT_DEFAULTS.loss,
    description:
      'logits and log-softmax of all tokens (full), logits alone (fused), or those of one chunk at a time (chunked)',
  } as const)(),
  dropout: Flags.boolean({ ...TRAINING, description: 'count the masks of dropout' }),
  zero: Flags.option({
    ...TRAINING,
    options: ZERO,
    description:
      'ZeRO stage, or fsdp and fsdp2 (as 3), or hsdp (3 within each machine) [default: as in the file, or 0]',
  } as const)(),
  convention: Flags.option({
    ...TRAINING,
    options: CONVENTION_NAMES,
    default: FIT_DEFAULTS.convention,
    description: 'gradients in the type of the weights (zero), or in float32 (megatron)',
  } as const)(),
  'expert-tensor-parallel': count({
    ...TRAINING,
    description: 'GPUs that share each expert: 1, or those of --tensor-parallel [default: those]',
  }),
  'sequence-parallel': Flags.boolean({
    ...TRAINING,
    description: 'split the residual stream among the GPUs that share a layer',
    dependsOn: ['tensor-parallel'],
  }),
  'global-batch': tokenTotal({
    ...TRAINING,
    description: 'tokens per optimizer step, as in 4M [default: one micro-batch per stage]',
  }),
  accumulation: count({
    ...TRAINING,
    description: 'micro-batches per replica and optimizer step, instead of --global-batch',
    exclusive: ['global-batch'],
  }),
  'train-tokens': tokenTotal({
    ...TRAINING,
    description: 'tokens of the whole training, as in 300e9; shows its steps and time',
  }),
  mfu: share({
    ...TRAINING,
    helpValue: 'SHARE',
    description: 'expected model FLOPs utilisation, as in 0.4',
  }),

  dtype: weightDtype({
    ...SERVING,
    description:
      'element type of the weights: f32, bf16, f16, f8, int8, int4, mxfp4, nvfp4, or a type of GGUF files, as q4_k_m [default: that of quantization_config, or bf16]',
  }),
  'group-size': count({
    ...SERVING,
    description: 'values per scale [default: 128 for int4, else a row]',
  }),
  'scale-dtype': dtype({
    ...SERVING,
    description: 'element type of the scales [default: f16 for int4, else f32]',
  }),
  'cache-dtype': cacheDtype({
    ...SERVING,
    description:
      'element type of the KV cache, also q8_0 or q4_0 [default: bf16, or f32 with f32 weights]',
  }),
  batch: count({
    ...SERVING,
    description: 'sequences per replica at the same time [default: 1]',
    exclusive: ['users'],
  }),
  users: count({ ...SERVING, description: 'users at the same time, on all GPUs, as in 50' }),
  'prompt-tokens': tokens({ ...SERVING, description: 'prompt tokens per request' }),
  'output-tokens': tokens({ ...SERVING, description: 'output tokens per request' }),
  'output-mix': tokenCounts({
    ...SERVING,
    description:
      'output tokens of requests in equal shares, as in 100,10: compare static with continuous batching, for --batch or 32 requests',
  }),
  'token-time': duration({
    ...SERVING,
    description:
      'measured time per token of a sequence with --batch sequences at a time, as in 12ms',
  }),
  'prefill-time': duration({
    ...SERVING,
    description: 'measured time from one prompt to its first token, as in 80ms',
  }),
  qps: positive({
    ...SERVING,
    helpValue: 'N',
    description: 'requests per second: shows the GPUs that they need',
  }),
  p95: duration({
    ...SERVING,
    description:
      'time limit for the last token of 95% of the requests, as in 500ms [default: the output at --min-speed]',
    dependsOn: ['qps'],
  }),
  'min-speed': positive({
    ...SERVING,
    helpValue: 'N',
    description: `tokens per second that each user of a server needs [default: ${USUAL_SPEED}]`,
  }),
  calibrate: Flags.string({
    ...SERVING,
    helpValue: 'FILE',
    description:
      'results of llama-bench (json, csv, md) or of vllm bench on this hardware, whose shares of the peaks replace the usual ones',
    exclusive: ['this-machine'],
  }),
  runtime: Flags.option({
    ...SERVING,
    options: RUNTIME_NAMES,
    description:
      'program that serves [default: llama.cpp for types of GGUF files and on Apple chips, else vllm]',
  } as const)(),
  eager: Flags.boolean({
    ...SERVING,
    description: 'launch each kernel by itself, without CUDA graphs [default: as the program does]',
  }),
  'gpu-memory-utilization': share({
    ...SERVING,
    helpValue: 'SHARE',
    description: 'share of the memory for serving, as in 0.9 [default: that of the program]',
  }),
  'chunked-prefill': Flags.boolean({
    ...SERVING,
    allowNo: true,
    description: 'prompts in chunks beside decoding, or whole prompts in steps of their own',
    exclusive: ['batching'],
  }),
  batching: Flags.option({
    ...SERVING,
    options: BATCHINGS,
    description:
      'prompts in chunks (chunked), whole prompts in steps of their own (whole), or batches that end before the next begins (static)',
  } as const)(),
  'prefix-cache': share({
    ...SERVING,
    helpValue: 'SHARE',
    description: 'share of each prompt that a prefix cache holds, as in 0.5',
  }),
  draft: Flags.string({
    ...SERVING,
    helpValue: 'MODEL',
    description: 'model that drafts tokens for speculative decoding',
    dependsOn: ['acceptance'],
  }),
  acceptance: share({
    ...SERVING,
    helpValue: 'SHARE',
    description: 'probability that a drafted token is accepted, as in 0.7',
    dependsOn: ['draft'],
  }),
  'dp-attention': count({
    ...SERVING,
    description:
      'groups of GPUs that each have a copy of the attention and sequences of their own, and share the experts, as in 8 [default: 1]',
  }),
  'prefill-gpus': count({
    ...SERVING,
    description:
      'number of the --gpus that only read prompts, and send the caches to the others (disaggregated prefill)',
  }),
  'draft-tokens': count({
    ...SERVING,
    description: `tokens that are drafted for a step [default: ${USUAL_DRAFT}]`,
    dependsOn: ['draft'],
  }),
};

export type FitFlags = ParsedFlags<typeof fitFlags> & {
  readonly for: Purpose | undefined;
};

/** Models and results in the files of other flags, which the options have instead of the names. */
export interface FurtherFiles {
  readonly draft?: LanguageModel | undefined;
  readonly benchmark?: Benchmark | undefined;
}

/** The options that the flags give. */
export function fitOptions(flags: FitFlags, { draft, benchmark }: FurtherFiles = {}): FitOptions {
  const { calibrate, targets } = flags;
  return {
    for: flags.for,
    context: flags.context,
    tensorParallel: flags['tensor-parallel'],
    pipelineParallel: flags['pipeline-parallel'],
    expertParallel: flags['expert-parallel'],
    contextParallel: flags['context-parallel'],
    pricePerHour: flags.price,
    ...trainingOptions(flags),
    targets: targets === 'all' ? undefined : targets?.split(',').map((each) => each.trim()),
    ...servingOptions(flags),
    calibrate: calibrate === undefined ? undefined : { file: calibrate, benchmark },
    draft: flags.draft === undefined ? undefined : { file: flags.draft, model: draft },
    ramBytes: flags.ram === undefined ? undefined : Number(flags.ram),
    ramSpeed: flags['ram-speed'],
    cpu: flags.cpu,
    gpuLayers: flags['gpu-layers'],
    cpuExperts: flags['cpu-experts'],
    tensorSplit: flags['tensor-split'],
    offload: flags.offload,
  };
}

const trainingOptions = (flags: FitFlags) => ({
  microBatch: flags['micro-batch'],
  precision: flags.precision,
  optimizer: flags.optimizer,
  recompute: flags.recompute,
  optimizerInBackward: flags['optimizer-in-backward'],
  rank: flags.rank,
  baseDtype: flags['base-dtype'],
  attention: flags.attention,
  loss: flags.loss,
  dropout: flags.dropout,
  zero: flags.zero,
  convention: flags.convention,
  expertTensorParallel: flags['expert-tensor-parallel'],
  sequenceParallel: flags['sequence-parallel'],
  globalBatchTokens: flags['global-batch'],
  accumulation: flags.accumulation,
  trainTokens: flags['train-tokens'],
  mfu: flags.mfu,
});

const servingOptions = (flags: FitFlags) => ({
  dtype: flags.dtype,
  groupSize: flags['group-size'],
  scaleDtype: flags['scale-dtype'],
  cacheDtype: flags['cache-dtype'],
  batch: flags.batch,
  users: flags.users,
  promptTokens: flags['prompt-tokens'],
  outputTokens: flags['output-tokens'],
  outputMix: flags['output-mix'],
  tokenSeconds: flags['token-time'],
  prefillSeconds: flags['prefill-time'],
  requestsPerSecond: flags.qps,
  p95Seconds: flags.p95,
  minTokensPerSecond: flags['min-speed'],
  runtime: flags.runtime,
  eager: flags.eager,
  gpuMemoryUtilization: flags['gpu-memory-utilization'],
  chunkedPrefill: flags['chunked-prefill'],
  batching: flags.batching,
  prefixCache: flags['prefix-cache'],
  acceptance: flags.acceptance,
  dataParallelAttention: flags['dp-attention'],
  draftTokens: flags['draft-tokens'],
  prefillGpus: flags['prefill-gpus'],
});
