import type { AdapterDescription } from '../checkpoint/adapter/adapter.js';
import { memoryOnGpu } from '../estimate/fit/memory-on-gpu.js';
import { inferenceIn, servedFormat, storedWeightFormat } from '../estimate/fit/model-memory.js';
import { servedParameters } from '../estimate/fit/serving/quantized.js';
import { usualFormat } from '../estimate/fit/serving/weight-types.js';
import { hintsOf } from '../model/architecture/training-hints.js';
import type { Exact } from '../model/budget/figure.js';
import { lastTokensFlopsOf } from '../model/budget/flops.js';
import { generationOf, uncountedTower } from '../model/budget/generation.js';
import { DEFAULT_OPTIMIZER } from '../model/budget/optimizers.js';
import {
  blockBudgets,
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
import { SETTING_KINDS, type SettingOptions } from './setting-options.js';

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
    ...(options.layers && { layers: blockBudgets(description, setting) }),
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
