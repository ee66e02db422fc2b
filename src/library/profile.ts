/** `profile` as a function: parameters, memory and FLOPs of a model. */
import {
  CACHE_DTYPE_NAMES,
  type CacheDtype,
  DTYPE_NAMES,
  type Dtype,
} from '../base/tensor/dtype.js';
import type { AdapterDescription } from '../checkpoint/adapter/adapter.js';
import { memoryOnGpu } from '../estimate/fit/memory-on-gpu.js';
import { inferenceIn, servedFormat, storedWeightFormat } from '../estimate/fit/model-memory.js';
import { servedParameters } from '../estimate/fit/serving/quantized.js';
import { usualFormat } from '../estimate/fit/serving/weight-types.js';
import { hintsOf } from '../model/architecture/training-hints.js';
import type { Exact } from '../model/budget/figure.js';
import { lastTokensFlopsOf, RECOMPUTES, type Recompute } from '../model/budget/flops.js';
import { generationOf, uncountedTower } from '../model/budget/generation.js';
import {
  DEFAULT_OPTIMIZER,
  OPTIMIZER_NAMES,
  type Optimizer,
  PRECISION_NAMES,
  type Precision,
} from '../model/budget/optimizers.js';
import {
  blocksOf,
  checkLimits,
  profileModel,
  resolveSetting,
  tensorInventory,
} from '../model/budget/profile-model.js';
import type { PublishedReport } from '../model/budget/published/explanations.js';
import { storedWeights } from '../model/quantization/stored-weights.js';
import type { ProfileResult } from '../report/command-results.js';
import { type AnswerNotes, type Model, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireModel } from './arguments.js';

/** Sizes and types that a profile is counted for. A missing one is as in the config, or has its usual value. */
export interface SettingOptions {
  /** Sequences per batch. Default: 1, in training as in the config. */
  readonly batch?: number | undefined;
  /** Tokens per sequence. Default: as in the config, or 2048. */
  readonly context?: number | undefined;
  /** Type of the weights in inference. Default: as stored, or `bf16`. */
  readonly dtype?: Dtype | undefined;
  /** Type of keys, values and states. Default: that of the weights, with 16 bits or more. */
  readonly cacheDtype?: CacheDtype | undefined;
  /** Whether only unmasked attention scores count. */
  readonly causal?: boolean | undefined;
  /** Precision of the training. Default: as in the config, or `mixed`. */
  readonly precision?: Precision | undefined;
  /** Optimizer of the training. Default: `adamw`. */
  readonly optimizer?: Optimizer | undefined;
  /** Activations of the training that are computed again. Default: as in the config, or `none`. */
  readonly recompute?: Recompute | undefined;
}

export interface ProfileOptions extends SettingOptions {
  /** Whether each block has a row. */
  readonly layers?: boolean | undefined;
  /** Whether all tensors are listed. */
  readonly tensors?: boolean | undefined;
  /** Limits; `checks` of the result says which of them hold. */
  readonly maxParameters?: Exact | undefined;
  readonly maxMemoryBytes?: Exact | undefined;
  readonly maxKvCacheBytes?: Exact | undefined;
  readonly maxTrainingMemoryBytes?: Exact | undefined;
  readonly maxFlops?: Exact | undefined;
  /** A LoRA adapter of the model. */
  readonly adapter?: AdapterDescription | undefined;
  /** Explanations of a published number, from `explainPublished`. */
  readonly published?: PublishedReport | undefined;
}

/** Kinds of the values of a setting. */
export const SETTING_KINDS: OptionKinds<SettingOptions> = {
  batch: 'count',
  context: 'count',
  dtype: DTYPE_NAMES,
  cacheDtype: CACHE_DTYPE_NAMES,
  causal: 'flag',
  precision: PRECISION_NAMES,
  optimizer: OPTIMIZER_NAMES,
  recompute: Object.keys(RECOMPUTES),
};

const PROFILE_KINDS: OptionKinds<ProfileOptions> = {
  ...SETTING_KINDS,
  layers: 'flag',
  tensors: 'flag',
  maxParameters: 'amount',
  maxMemoryBytes: 'amount',
  maxKvCacheBytes: 'amount',
  maxTrainingMemoryBytes: 'amount',
  maxFlops: 'amount',
  adapter: 'other',
  published: 'other',
};

/** Quantized types that are usually compared with bf16. */
const SERVED = ['int8', 'int4'] as const;

/** The setting that options and the config result in. @throws UserError for a context beyond the positions. */
export const settingOf = (loaded: Model, options: SettingOptions) =>
  resolveSetting(
    {
      ...options,
      dtype: options.dtype ?? 'bf16',
      causal: options.causal ?? false,
      optimizer: options.optimizer ?? DEFAULT_OPTIMIZER,
    },
    hintsOf(loaded),
    loaded.model.positions,
  );

/**
 * Parameters, memory and FLOPs of a model.
 * @example
 * const model = await loadModel('hybrid/original', { set: { 'model.num_layers': 24 } });
 * profile(model, { context: 8192 }).parameters.total.value;
 * @throws UserError for a context beyond the positions of the model.
 */
export function profile(model: Model, options: ProfileOptions = {}): ProfileResult & AnswerNotes {
  requireModel(model, 'profile');
  checkOptions('profile', options, PROFILE_KINDS);
  return profileOf(model, options);
}

/** `profile` for options that were checked, with others beside them. */
export function profileOf(model: Model, options: ProfileOptions): ProfileResult & AnswerNotes {
  const { file, family, checkpoint, quantization } = model;
  const { adapter, published } = options;
  const description = model.model;
  const setting = settingOf(model, options);
  const format = servedFormat(options.dtype, storedWeightFormat(model));
  const counted = profileModel(description, setting);
  const inference = inferenceIn(description, format, counted.inference);
  const kind = generationOf(description);
  const generation =
    kind === 'tokens' ? lastTokensFlopsOf(description, setting.inference.context) : undefined;
  const result: ProfileResult = {
    schema: 'minimind/profile@1',
    file,
    family: family.name,
    setting,
    layerCount: description.blocks.length,
    ...counted,
    inference,
    ...(format && { weights: format, onGpu: memoryOnGpu(description, setting, format) }),
    ...(generation && { generation }),
    ...(kind !== 'tokens' && {
      encoder: { isAlone: kind === 'none', uncounted: uncountedTower(description) ?? null },
    }),
    served: SERVED.map((dtype) => ({
      dtype,
      bytes: servedParameters(description, usualFormat(dtype)),
    })),
    ...(quantization && { stored: storedWeights(description, quantization) }),
    ...(checkpoint && { checkpoint }),
    ...(adapter && { adapter }),
    ...(options.layers && { layers: blocksOf(description, setting) }),
    ...(options.tensors && { tensors: tensorInventory(description) }),
    ...(published && { published }),
    checks: checkLimits(
      { ...counted, inference },
      {
        'max-params': options.maxParameters,
        'max-memory': options.maxMemoryBytes,
        'max-kv-cache': options.maxKvCacheBytes,
        'max-training-memory': options.maxTrainingMemoryBytes,
        'max-flops': options.maxFlops,
      },
    ),
  };
  return withNotes(result, model);
}
