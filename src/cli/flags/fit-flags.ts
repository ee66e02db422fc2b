/** The flags of `minimind fit`, and the settings they result in. */
import * as Flags from '@oclif/core/flags';
import { type Problem, usageError } from '../../base/errors.js';
import type { Dtype } from '../../base/tensor/dtype.js';
import { DTYPES } from '../../base/tensor/dtype.js';
import { formatInteger } from '../../base/text/units.js';
import { counted, present } from '../../base/text/words.js';
import { COMMON_HARDWARE } from '../../estimate/fit/common-hardware.js';
import type { TableRequest } from '../../estimate/fit/fit-table.js';
import type { FitRequest, Resolved } from '../../estimate/fit/fits.js';
import { hintsOf } from '../../estimate/fit/fits.js';
import type { StoredWeightFormat } from '../../estimate/fit/model-memory.js';
import { storedWeightFormat } from '../../estimate/fit/model-memory.js';
import { parallelismOf } from '../../estimate/fit/parallelism/parallelism.js';
import type { Purpose } from '../../estimate/fit/purpose.js';
import { weightLayout } from '../../estimate/fit/serving/quantized.js';
import type { ServingFitSetting } from '../../estimate/fit/serving/serving-work.js';
import { RUNTIME_NAMES, runtimeSetting } from '../../estimate/fit/serving/throughput/runtimes.js';
import type { Batching } from '../../estimate/fit/serving/throughput/simulation.js';
import { BATCHINGS } from '../../estimate/fit/serving/throughput/simulation.js';
import { USUAL_SPEED } from '../../estimate/fit/serving/throughput/throughput.js';
import type { WeightDtype } from '../../estimate/fit/serving/weight-types.js';
import {
  parseWeightDtype,
  usualFormat,
  WEIGHT_DTYPE_NAMES,
  WEIGHT_DTYPES,
} from '../../estimate/fit/serving/weight-types.js';
import type {
  Convention,
  Sharding,
  TrainingFitSetting,
} from '../../estimate/fit/training/training-setting.js';
import { CONVENTIONS, SHARDINGS } from '../../estimate/fit/training/training-setting.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import { withMemoryShare } from '../../estimate/hardware/gpu.js';
import type { ModelFile } from '../../input/model-input/model-file.js';
import type { TrainingHints } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { LOSS_KERNELS } from '../../model/budget/kernel-activations.js';
import { OPTIMIZER_NAMES } from '../../model/budget/optimizers.js';
import { resolveSetting } from '../../model/budget/profile-model.js';
import type { ParsedFlags } from './flags.js';
import { settingFlags } from './flags.js';
import {
  isPlaceable,
  PLACED,
  placesFlags,
  placesWish,
  refusePlacesOfTraining,
} from './places-flags.js';
import {
  count,
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

const CONVENTION_NAMES = Object.keys(CONVENTIONS) as Convention[];
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

/** Tokens that a draft model makes for a step (vLLM, speculative decoding: num_speculative_tokens 5). */
const USUAL_DRAFT = 5;

/** Flags of training and of serving. */
export const fitFlags = {
  context: settingFlags.context,
  'tensor-parallel': count({
    ...SPREAD,
    description: 'GPUs that share each layer, as in 2 [default: 1]',
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
    default: 'adamw',
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
    default: 'fused',
    description: 'kernels of attention and scan; fused kernels keep no scores and states',
  } as const)(),
  loss: Flags.option({
    ...TRAINING,
    options: LOSS_KERNELS,
    default: 'full',
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
    default: 'zero',
    description: 'gradients in the type of the weights (zero), or in float32 (megatron)',
  } as const)(),
  'pipeline-parallel': count({ ...TRAINING, description: 'stages of blocks [default: 1]' }),
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
  'cache-dtype': dtype({
    ...SERVING,
    description: 'element type of the KV cache [default: bf16, or f32 with f32 weights]',
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
  'draft-tokens': count({
    ...SERVING,
    description: `tokens that are drafted for a step [default: ${USUAL_DRAFT}]`,
    dependsOn: ['draft'],
  }),
};

export type FitFlags = ParsedFlags<typeof fitFlags> & {
  readonly for: Purpose | undefined;
};

/** The question: `--for`, or training where only its flags are written. */
function purposeOf(flags: FitFlags): Purpose {
  const isWritten = (group: string) => writtenOf(group, flags) !== undefined;
  const isTraining = isWritten(TRAINING.helpGroup) && !isWritten(SERVING.helpGroup);
  return flags.for ?? (isTraining ? 'training' : 'serving');
}

/** First written flag of a help group. */
const writtenOf = (group: string, flags: FitFlags): string | undefined =>
  Object.entries(fitFlags).find(([name, flag]) => {
    const value = flags[name as keyof typeof fitFlags];
    return (
      flag.helpGroup === group && value !== undefined && value !== false && value !== flag.default
    );
  })?.[0];

/**
 * Training settings: a flag takes precedence over the file's value, and this over the default.
 * @param positions The longest input of the model.
 * @throws UserError when the context is longer than that.
 */
function trainingSettingOf(
  flags: FitFlags,
  hints: TrainingHints,
  positions: number,
  cluster: Cluster,
): Resolved<TrainingFitSetting> {
  refuseLoneSequence(flags);
  const { context, precision, optimizer, recompute } = flags;
  const wish = { context, precision, optimizer, recompute, batch: flags['micro-batch'] } as const;
  const resolved = resolveSetting({ ...wish, dtype: 'bf16', causal: false }, hints, positions);
  const { batch: microBatch, ...training } = resolved.training;
  const [tensorParallel, pipelineParallel] = [
    flags['tensor-parallel'] ?? 1,
    flags['pipeline-parallel'] ?? 1,
  ];
  const replicas = Math.max(1, cluster.gpus / (tensorParallel * pipelineParallel));
  const accumulated = flags.accumulation && flags.accumulation * microBatch * training.context;
  return {
    contextOrigin: resolved.origins.context,
    setting: {
      ...training,
      cluster,
      microBatch,
      attention: flags.attention,
      loss: flags.loss,
      // oclif leaves a missing switch undefined, although its type is boolean.
      dropout: Boolean(flags.dropout),
      ...shardingOf(flags, hints),
      convention: flags.convention,
      tensorParallel,
      pipelineParallel,
      sequenceParallel: Boolean(flags['sequence-parallel']),
      globalBatchTokens: accumulated ? accumulated * replicas : flags['global-batch'],
      trainTokens: flags['train-tokens'],
      // A missing setting is left out, so that results show only what was asked for.
      ...(flags['optimizer-in-backward'] && { optimizerInBackward: true }),
      ...(flags.rank !== undefined && { rank: flags.rank }),
      ...(flags.targets !== undefined &&
        flags.targets !== 'all' && {
          targets: flags.targets.split(',').map((each) => each.trim()),
        }),
      ...(flags['base-dtype'] !== undefined && { frozen: usualFormat(flags['base-dtype']) }),
      mfu: flags.mfu,
    },
  };
}

/** Division of the state: `--zero`, else the file's stage. */
export const shardingOf = (
  { zero }: Pick<FitFlags, 'zero'>,
  { zeroStage = 0 }: TrainingHints,
): Pick<TrainingFitSetting, 'zero' | 'hybrid'> => SHARDINGS[zero ?? (`${zeroStage}` as Sharding)];

/**
 * Warnings about flags of training without an effect on these GPUs. They are not errors, because scripts write the same
 * flags for any number of GPUs.
 * @param file The model.
 */
export function idleTrainingFlags(
  model: LanguageModel,
  { microBatch, context, ...setting }: TrainingFitSetting,
  { 'global-batch': asked }: Partial<FitFlags>,
  file: string,
): Problem[] {
  const { replicas } = parallelismOf(model, { ...setting, microBatch, context });
  const least = microBatch * context * replicas;
  return present([
    asked !== undefined &&
      asked < least && {
        severity: 'warning',
        file,
        message: `--global-batch: a step has at least ${formatInteger(least)} tokens (${formatInteger(microBatch)} × ${formatInteger(context)} × ${counted(replicas, 'replica')}), found ${formatInteger(asked)}`,
        suggestion: `write --global-batch ${least}, or use fewer GPUs, sequences or tokens`,
      },
  ]);
}

/** Note on `--zero` with a single replica: nothing can be divided, and every figure still holds. */
export function idleZero(zero: FitFlags['zero'], replicas: number): string | undefined {
  if (zero === undefined || zero === '0' || replicas > 1) return undefined;
  return `--zero ${zero} is not used: the training has 1 replica; it divides memory from --gpus 2 on`;
}

/** Warning about unused GPUs, when the GPUs of a replica do not divide all of them. @param file The model. */
export function idleGpus(
  { cluster: { gpus }, tensorParallel }: ServingFitSetting,
  file: string,
): Problem[] {
  const idle = gpus % tensorParallel;
  if (idle === 0) return [];
  return [
    {
      severity: 'warning',
      file,
      message: `${idle} of ${gpus} GPUs ${idle === 1 ? 'serves' : 'serve'} nothing: ${tensorParallel} share each layer of a replica`,
      suggestion: `write --gpus ${gpus - idle}, or a --tensor-parallel that divides ${gpus}`,
    },
  ];
}

/** Sequence parallelism needs GPUs that share the layers. */
function refuseLoneSequence(flags: FitFlags): void {
  if (!flags['sequence-parallel'] || flags['tensor-parallel'] !== 1) return;
  throw usageError(
    '--sequence-parallel requires GPUs that share layers',
    'write --tensor-parallel 2 or more',
  );
}

/** Default output tokens of a request. */
const USUAL_OUTPUT = 128;

/**
 * Serving settings: the context is a request's prompt plus output, unless given.
 * @throws UserError when they are inconsistent, or exceed the model's positions.
 */
function servingSettingOf(
  flags: FitFlags,
  hints: TrainingHints,
  positions: number,
  cluster: Cluster,
  stored: StoredWeightFormat | undefined,
): Resolved<ServingFitSetting> {
  const { 'prompt-tokens': prompt, 'output-tokens': output } = flags;
  const dtype = flags.dtype ?? stored?.dtype ?? 'bf16';
  const both = prompt !== undefined && output !== undefined ? prompt + output : undefined;
  const wish = {
    context: flags.context ?? both,
    dtype: 'bf16',
    causal: true,
    optimizer: 'adamw',
  } as const;
  const { inference, origins } = resolveSetting(wish, hints, positions);
  const { context } = inference;
  const gets = output ?? Math.min(USUAL_OUTPUT, Math.ceil(context / 2));
  const brings = prompt ?? context - gets;
  refuseTooLong(brings, gets, context);
  const usual = usualFormat(dtype);
  const storedGroup = flags.dtype === undefined ? stored?.group : undefined;
  const cacheDtype = flags['cache-dtype'] ?? usualCache(dtype);
  const isAsStored = [flags.dtype, flags['group-size'], flags['scale-dtype']].every(
    (each) => each === undefined,
  );
  refuseGroups(flags, dtype);
  return {
    contextOrigin: both !== undefined && flags.context === undefined ? 'flag' : origins.context,
    setting: {
      cluster: limitedMemory(cluster, flags['gpu-memory-utilization']),
      weights: {
        ...usual,
        groupSize: flags['group-size'] ?? storedGroup ?? usual.groupSize,
        scaleDtype: flags['scale-dtype'] ?? usual.scaleDtype,
        ...(isAsStored && stored?.label && { stored: stored.label }),
      },
      cacheDtype,
      // States keep the type of the model.
      stateDtype: DTYPES[cacheDtype].bits < 16 ? 'bf16' : cacheDtype,
      context,
      batch: flags.batch ?? 1,
      prompt: brings,
      output: gets,
      load:
        flags.qps === undefined
          ? undefined
          : {
              requestsPerSecond: flags.qps,
              p95Seconds: flags.p95 ?? gets / (flags['min-speed'] ?? USUAL_SPEED),
            },
      measured: measuredOf(flags),
      tensorParallel: flags['tensor-parallel'] ?? 1,
      ...serverSettings(flags, cluster, dtype),
    },
  };
}

/** Settings of the program that serves, and of its requests. */
function serverSettings(flags: FitFlags, { gpu }: Cluster, dtype: WeightDtype) {
  const { draft, acceptance } = flags;
  return {
    runtime: runtimeSetting(
      {
        name: flags.runtime,
        launching: flags.eager ? 'eager' : undefined,
        batching: batchingWish(flags),
        memoryShare: flags['gpu-memory-utilization'],
      },
      gpu,
      dtype,
    ),
    minSpeed: flags['min-speed'] ?? USUAL_SPEED,
    prefixCache: flags['prefix-cache'] ?? 0,
    ...(flags['output-mix'] && { outputMix: flags['output-mix'] }),
    ...(draft !== undefined &&
      acceptance !== undefined && {
        draft: { name: draft, acceptance, tokens: flags['draft-tokens'] ?? USUAL_DRAFT },
      }),
  };
}

function batchingWish({ batching, 'chunked-prefill': chunked }: FitFlags): Batching | undefined {
  if (batching !== undefined || chunked === undefined) return batching;
  return chunked ? 'chunked' : 'whole';
}

/** Type of the cache for weights of a type: 16 bits or more. */
const usualCache = (dtype: WeightDtype): Dtype =>
  dtype === 'f32' || dtype === 'f16' ? dtype : 'bf16';

/** GPUs of which serving may use a share of the memory. */
function limitedMemory(cluster: Cluster, memoryShare: number | undefined): Cluster {
  if (memoryShare === undefined) return cluster;
  return { ...cluster, gpu: withMemoryShare(cluster.gpu, memoryShare) };
}

function measuredOf(flags: FitFlags): ServingFitSetting['measured'] {
  const { 'token-time': tokenSeconds, 'prefill-time': prefillSeconds } = flags;
  const isMeasured = tokenSeconds !== undefined || prefillSeconds !== undefined;
  return isMeasured ? { tokenSeconds, prefillSeconds } : undefined;
}

/** @throws UserError for groups or a scale type with a type that has no scales of its own. */
function refuseGroups(flags: FitFlags, dtype: WeightDtype): void {
  const flag = (['group-size', 'scale-dtype'] as const).find((each) => flags[each] !== undefined);
  if (flag === undefined || WEIGHT_DTYPES[dtype].usual) return;
  const why = WEIGHT_DTYPES[dtype].blocks ? 'have the scales of their blocks' : 'have no scales';
  throw usageError(
    `--${flag}: weights in ${dtype} ${why}`,
    'leave it out, or ask for --dtype int4, int8 or f8',
  );
}

/** @throws UserError for groups longer than every row: their scales would be those of the rows. */
export function refuseLongGroups(model: LanguageModel, flags: FitFlags): void {
  const size = flags['group-size'];
  if (size === undefined) return;
  const most = Math.max(...[...weightLayout(model).quantised.values()].map(({ length }) => length));
  if (size <= most) return;
  throw usageError(
    `--group-size: expected at most ${formatInteger(most)}, the longest row of a matrix, found ${formatInteger(size)}`,
    `for one scale per row, write --group-size ${most}`,
  );
}

function refuseTooLong(prompt: number, output: number, context: number): void {
  if (prompt > 0 && prompt + output <= context) return;
  throw usageError(
    `expected prompt and output within the context of ${formatInteger(context)} tokens, found ${formatInteger(prompt)} + ${formatInteger(output)}`,
    `write --context ${Math.max(1, prompt) + output}, or fewer tokens`,
  );
}

/** Columns of the table of common hardware without `--dtype`. */
const USUAL_DTYPES = ['bf16', 'int8', 'int4'] as const satisfies readonly WeightDtype[];

/** Flags whose figures depend on the hardware. */
const OF_HARDWARE = [
  'gpus',
  'tensor-parallel',
  'pipeline-parallel',
  'sequence-parallel',
  'zero',
  'global-batch',
  'accumulation',
  'train-tokens',
  'mfu',
  'price',
  'prompt-tokens',
  'output-tokens',
  'output-mix',
  'token-time',
  'prefill-time',
  'qps',
  ...PLACED,
  'min-speed',
  'calibrate',
  'runtime',
  'eager',
  'gpu-memory-utilization',
  'chunked-prefill',
  'batching',
  'prefix-cache',
  'draft',
  'check',
  'explain',
] as const;

/** @throws UserError when a flag applies only to named hardware. */
export function refuseWithoutHardware(flags: Readonly<Record<string, unknown>>): void {
  const flag = OF_HARDWARE.find((name) => flags[name] !== undefined && flags[name] !== false);
  if (flag === undefined) return;
  throw usageError(
    `--${flag} requires hardware`,
    'name a GPU, as in --gpu h100-80gb, or measure this machine with --this-machine',
  );
}

/**
 * Settings of the table of common hardware: those of one GPU.
 * @throws UserError as `fitRequestOf`.
 */
export function tableRequestOf(
  loaded: Pick<ModelFile, 'family' | 'document' | 'model' | 'quantization' | 'storedType'>,
  flags: FitFlags,
  reservedBytes?: number,
): TableRequest {
  const [gpu] = COMMON_HARDWARE;
  if (gpu === undefined) throw new Error('a table without rows');
  const cluster = { gpu: gpu.gpu, gpus: 1, network: null };
  const stored = storedWeightFormat(loaded)?.dtype;
  const dtypes: readonly WeightDtype[] = flags.dtype
    ? [flags.dtype]
    : [...new Set([...(stored ? [stored] : []), ...USUAL_DTYPES])];
  const { training, serving: first } = fitRequestOf(loaded, cluster, flags);
  const serving = (first ? dtypes : []).flatMap((dtype) => {
    const isStored = flags.dtype === undefined && dtype === stored;
    const wish = isStored ? flags : { ...flags, dtype };
    return fitRequestOf(loaded, cluster, wish).serving ?? [];
  });
  return {
    serving: serving.map(({ setting }) => setting),
    users: flags.users,
    training:
      flags.for === undefined || flags.for === 'training' ? (training?.setting ?? null) : null,
    lora: training?.loraSetting ?? null,
    reservedBytes,
    adapters:
      flags.for === undefined
        ? ['lora', 'qlora']
        : flags.for === 'lora' || flags.for === 'qlora'
          ? [flags.for]
          : [],
    contextOrigin: (training ?? serving[0])?.contextOrigin ?? 'flag',
  };
}

/** @throws UserError for flags that contradict each other for any model. */
export function refuseContradictions(flags: FitFlags): void {
  refuseForeign(flags);
  refuseLonePrice(flags);
  if (purposeOf(flags) !== 'serving') refusePlacesOfTraining(flags);
}

/** @throws UserError for a price of a training without its tokens; a server has its own time. */
function refuseLonePrice(flags: FitFlags): void {
  const { price, 'train-tokens': trainTokens } = flags;
  if (price === undefined || trainTokens !== undefined || purposeOf(flags) === 'serving') return;
  throw usageError(
    '--price requires the tokens of a training',
    'add --train-tokens 300e9, or write --for serving',
  );
}

/** Purpose whose flags do not apply to each purpose, and their help group. */
const FOREIGN = {
  training: ['serving', SERVING.helpGroup],
  serving: ['training', TRAINING.helpGroup],
  lora: ['serving', SERVING.helpGroup],
  qlora: ['serving', SERVING.helpGroup],
} as const satisfies Record<Purpose, readonly [Purpose, string]>;

/** @throws UserError when a flag does not apply to the requested purpose. */
function refuseForeign(flags: FitFlags): void {
  const { for: purpose } = flags;
  if (purpose === undefined) return;
  const [other, group] = FOREIGN[purpose];
  const foreign = writtenOf(group, flags);
  if (foreign === undefined) return;
  throw usageError(
    `--${foreign} is a flag of ${other}, and --for ${purpose} excludes it`,
    `write --for ${other}, or leave --for out for both`,
  );
}

/**
 * The requested settings: flags, else the config's values, else defaults.
 * @throws UserError when the flags contradict each other, the model, or `--for`.
 */
export function fitRequestOf(
  loaded: Pick<ModelFile, 'family' | 'document' | 'model' | 'quantization' | 'storedType'>,
  cluster: Cluster,
  flags: FitFlags,
  draft?: LanguageModel | undefined,
): FitRequest {
  refuseContradictions(flags);
  const hints = hintsOf(loaded);
  const { positions } = loaded.model;
  const training =
    flags.for === 'serving' ? null : trainingSettingOf(flags, hints, positions, cluster);
  return {
    price: flags.price,
    purpose: purposeOf(flags),
    training: training && {
      ...training,
      loraSetting: { ...training.setting, recompute: flags.recompute ?? 'full' },
    },
    serving:
      flags.for !== undefined && flags.for !== 'serving'
        ? null
        : {
            ...servingSettingOf(flags, hints, positions, cluster, storedWeightFormat(loaded)),
            isSharingChosen: flags['tensor-parallel'] !== undefined,
            users: flags.users,
            draft,
            places: placesWish(loaded.model, flags, cluster),
            isPlaceable: isPlaceable(flags),
          },
  };
}

/** @throws UserError for `--output-mix` with a training. */
export function refuseMixOfTraining(flags: Pick<FitFlags, 'for' | 'output-mix'>): void {
  if (flags['output-mix'] === undefined || flags.for === undefined || flags.for === 'serving')
    return;
  throw usageError(
    `--output-mix does not apply to --for ${flags.for}`,
    'leave --for out, or write --for serving',
  );
}
