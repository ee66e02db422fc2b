/** Profile of a model: all budgets of one description, for a batch, context and precision. */

import { usageError } from '../../base/errors.js';
import type { CacheDtype, Dtype } from '../../base/tensor/dtype.js';
import { DTYPE_NAMES, DTYPES } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { dtypeWord, formatInteger } from '../../base/text/units.js';
import type { TrainingHints } from '../architecture/family.js';
import type { Component, LanguageModel, Layer, Window } from '../architecture/layer.js';
import {
  countedTensors,
  isAttention,
  ownedTensors,
  queryHeads,
  tensorsOf,
  walkCounted,
} from '../architecture/walk.js';
import { refuseCacheWidths } from './cache-widths.js';
import { ceildiv, mul, v } from './expression.js';
import type { Exact, Figure } from './figure.js';
import { figure, sumFigure } from './figure.js';
import type { ForwardBudget, Recompute, TrainingFlopsBudget } from './flops.js';
import { forwardFlopsOf, trainingFlopsOf } from './flops.js';
import type { Optimizer, Precision } from './optimizers.js';
import type { ParameterFigures, ParameterSums } from './parameters.js';
import {
  bufferBytes,
  countParameters,
  elementsFigure,
  parameterFigures,
  parameterSums,
} from './parameters.js';
import type { StateBudget, StateSetting } from './state.js';
import { stateOf } from './state.js';
import type { TrainingBudget, TrainingSetting } from './training-budget.js';
import { trainingMemoryOf } from './training-budget.js';

export interface ProfileSetting {
  /** Sizes of inference. */
  readonly inference: StateSetting & {
    /** Count only unmasked pairs of query and key. */
    readonly causal: boolean;
  };
  /** Sizes and settings of training. */
  readonly training: TrainingSetting;
}

export interface InferenceBudget {
  readonly weights: Figure;
  readonly buffers: Figure;
  /** State that grows with a sequence, such as the KV cache. */
  readonly state: StateBudget;
  /** Weights, buffers and state; activations of the current step are extra. */
  readonly total: Figure;
}

export interface ModelProfile {
  readonly parameters: ParameterFigures;
  /** Bytes of all parameters in every element type. */
  readonly bytes: readonly {
    /** Element type of the weights. */
    readonly dtype: Dtype;
    readonly bytes: Figure;
  }[];
  /** Memory and FLOPs of inference. */
  readonly inference: InferenceBudget;
  /** Memory of training with fused attention, without the workspace of kernels. */
  readonly training: TrainingBudget;
  /** A forward pass with the inference setting. */
  readonly forwardFlops: ForwardBudget;
  /** A training step with the training setting. */
  readonly trainingFlops: TrainingFlopsBudget;
}

/**
 * All budgets of a model. Only descriptions are counted; no weights are allocated.
 * @throws UserError for a type of the cache whose blocks do not divide the heads.
 */
export function profileModel(model: LanguageModel, setting: ProfileSetting): ModelProfile {
  const parameters = parameterFigures(model);
  return {
    parameters,
    bytes: DTYPE_NAMES.map((dtype) => ({ dtype, bytes: weightBytes(parameters.total, dtype) })),
    ...budgetsOf(model, parameters, setting),
  };
}

const weightBytes = ({ value }: Pick<Figure, 'value'>, dtype: Dtype) =>
  figure({
    label: `weights in ${dtypeWord(dtype)}`,
    unit: 'bytes',
    formula: ceildiv(mul(v({ parameters: value }), v({ bits: DTYPES[dtype].bits })), 8),
    source: 'packed without gaps',
  });

/** Figures of a profile that a table of many models has. */
export interface ModelBudgets
  extends Pick<ModelProfile, 'inference' | 'training' | 'forwardFlops' | 'trainingFlops'> {
  readonly parameters: ParameterSums;
}

/**
 * Budgets of a model without the bytes in other types and the tensors of each component.
 * @throws UserError for a type of the cache whose blocks do not divide the heads.
 */
export function modelBudgets(model: LanguageModel, setting: ProfileSetting): ModelBudgets {
  const parameters = parameterSums(model);
  const buffers = { value: countParameters(model).buffers };
  return { parameters, ...budgetsOf(model, { total: parameters.total, buffers }, setting) };
}

function budgetsOf(
  model: LanguageModel,
  parameters: Parameters<typeof inferenceMemoryOf>[1],
  { inference, training }: ProfileSetting,
): Omit<ModelBudgets, 'parameters'> {
  if (inference.cacheDtype) refuseCacheWidths(model, inference.cacheDtype);
  return {
    inference: inferenceMemoryOf(model, parameters, inference),
    training: trainingMemoryOf(model, training, 'fused'),
    forwardFlops: forwardFlopsOf(model, inference),
    trainingFlops: trainingFlopsOf(model, { ...training, causal: inference.causal }),
  };
}

/** Memory of inference only. @param parameters Parameters of the model. */
export function inferenceMemoryOf(
  model: LanguageModel,
  parameters: {
    readonly [Name in 'total' | 'buffers']: Pick<ParameterFigures[Name], 'value'>;
  },
  setting: StateSetting,
): InferenceBudget {
  const weights = weightBytes(parameters.total, setting.dtype);
  const state = stateOf(model, setting);
  const buffers = bufferBytes(parameters.buffers.value);
  const parts = { weights, buffers, state: state.total };
  const total = sumFigure('inference memory', 'bytes', parts, 'sum of the parts');
  return { weights, buffers, state, total };
}

/** Total bytes from counts that add up over layers. @param counts `state` is in bytes. */
export const inferenceBytes = (counts: {
  readonly parameters: number;
  readonly buffers: number;
  readonly state: number;
  readonly dtype: Dtype;
}): number =>
  Number(weightBytes({ value: counts.parameters }, counts.dtype).value) +
  Number(bufferBytes(counts.buffers).value) +
  counts.state;

// Batch, length and precision of a profile, and their origins

/** User settings; undefined falls back to the file, then to the default. */
export interface ProfileRequest {
  readonly batch?: number | undefined;
  readonly context?: number | undefined;
  readonly dtype: Dtype;
  readonly cacheDtype?: CacheDtype | undefined;
  readonly causal: boolean;
  readonly precision?: Precision | undefined;
  readonly optimizer: Optimizer;
  readonly recompute?: Recompute | undefined;
}

/**
 * `flag`: the command line; `file`: the document; `default`: neither; `longest`: neither, and the default is the
 * model's longest input.
 */
export type SettingOrigin = 'flag' | 'file' | 'default' | 'longest';

export interface ResolvedSetting extends ProfileSetting {
  /** Sizes of inference. */
  readonly inference: ProfileSetting['inference'] & {
    /** Element type of caches and states. */
    readonly cacheDtype: CacheDtype;
  };
  /** Origin of each value: a flag, the file, or the default. */
  readonly origins: {
    readonly inferenceBatch: SettingOrigin;
    readonly trainingBatch: SettingOrigin;
    readonly context: SettingOrigin;
    readonly precision: SettingOrigin;
    readonly recompute: SettingOrigin;
  };
  /** Settings of the file that a one-device budget does not count. */
  readonly beyondOneDevice: readonly string[];
}

/** Default tokens, limited by the model's positions. */
const DEFAULT_CONTEXT = 2048;

/**
 * Resolves each setting from flag, file or default, in this order. The file's batch only applies to training.
 * @param positions Longest input of the model.
 * @throws UserError when the context is longer than the model's positions.
 */
export function resolveSetting(
  wish: ProfileRequest,
  hints: TrainingHints,
  positions: number,
): ResolvedSetting {
  const context = first(wish.context, hints.context, Math.min(DEFAULT_CONTEXT, positions));
  requirePositions(context.value, positions);
  const inferenceBatch = first(wish.batch, undefined, 1);
  const trainingBatch = first(wish.batch, hints.batch, 1);
  const precision = first<Precision>(wish.precision, hints.precision, 'mixed');
  const hinted = hints.recompute === undefined ? undefined : hints.recompute ? 'full' : 'none';
  const recompute = first<Recompute>(wish.recompute, hinted, 'none');
  const { dtype, causal, optimizer } = wish;
  const cacheDtype = wish.cacheDtype ?? usualCacheDtype(dtype);
  return {
    inference: { batch: inferenceBatch.value, context: context.value, dtype, cacheDtype, causal },
    training: {
      batch: trainingBatch.value,
      context: context.value,
      precision: precision.value,
      optimizer,
      recompute: recompute.value,
    },
    origins: {
      inferenceBatch: inferenceBatch.origin,
      trainingBatch: trainingBatch.origin,
      context:
        context.origin === 'default' && context.value === positions ? 'longest' : context.origin,
      precision: precision.origin,
      recompute: recompute.origin,
    },
    beyondOneDevice: hints.beyondOneDevice ?? [],
  };
}

/** Quantized weights usually keep a cache in 16 bits. */
export const usualCacheDtype = (dtype: Dtype): Dtype => (DTYPES[dtype].bits < 16 ? 'bf16' : dtype);

/** @throws UserError when a context is longer than the model's positions. */
export function requirePositions(context: number, positions: number): void {
  if (context <= positions) return;
  throw usageError(
    `${setting('context')}: ${formatInteger(context)} tokens are more than the ${formatInteger(positions)} positions of the model`,
    `write ${setting('context', positions)}, or less`,
  );
}

function first<T>(
  flag: T | undefined,
  file: T | undefined,
  fallback: T,
): { readonly value: T; readonly origin: SettingOrigin } {
  if (flag !== undefined) return { value: flag, origin: 'flag' };
  if (file !== undefined) return { value: file, origin: 'file' };
  return { value: fallback, origin: 'default' };
}

// Limits for continuous integration

/** Figures with a limit, by flag. */
export const LIMITS = {
  'max-params': (profile: ModelProfile) => profile.parameters.total,
  'max-memory': (profile: ModelProfile) => profile.inference.total,
  'max-kv-cache': (profile: ModelProfile) => profile.inference.state.keyValueCache,
  'max-training-memory': (profile: ModelProfile) => profile.training.total,
  'max-flops': (profile: ModelProfile) => profile.forwardFlops.total,
} as const satisfies Record<string, (profile: ModelProfile) => Figure>;

export type LimitName = keyof typeof LIMITS;

export interface LimitCheck {
  /** Flag of the limit. */
  readonly limit: LimitName;
  readonly figure: Figure;
  readonly allowed: Exact;
  /** Whether the figure is within the limit. */
  readonly passed: boolean;
}

export function checkLimits(
  profile: ModelProfile,
  limits: Readonly<Partial<Record<LimitName, Exact | undefined>>>,
): LimitCheck[] {
  return (Object.keys(LIMITS) as LimitName[]).flatMap((limit) => {
    const allowed = limits[limit];
    if (allowed === undefined) return [];
    const figure = LIMITS[limit](profile);
    return [{ limit, figure, allowed, passed: figure.value <= allowed }];
  });
}

// The model by block and by tensor

export interface BlockBudget {
  /** Path of the block. */
  readonly name: string;
  /** Parameters of the block itself, without shared layers. */
  readonly parameters: Figure;
  /** Windows of its attention heads. */
  readonly spans: readonly BlockSpan[];
  /** Key-value cache and recurrent state with the inference setting. */
  readonly state: Figure;
  readonly forwardFlops: Figure;
}

/** Attention heads and their window. */
interface BlockSpan {
  /** Heads with this window. @integer */
  readonly heads: number;
  /** Tokens; absent without a limit. @integer */
  readonly window?: number;
  /** Rule of the window: `sliding`: the last tokens, its own included; `local`: half of them before it, and itself. */
  readonly rule?: Window['rule'];
}

/** A row per block, in order. */
export function blockBudgets(
  model: LanguageModel,
  { inference }: Pick<ProfileSetting, 'inference'>,
): BlockBudget[] {
  const shared = new Set(model.shared.flatMap(tensorsOf));
  return model.blocks.map((block) => {
    const own = countedTensors(block).filter(
      ({ tensor }) => tensor.role === 'parameter' && !shared.has(tensor),
    );
    return {
      name: block.name,
      parameters: elementsFigure(block.name, 'parameters', own),
      spans: walkCounted(block).flatMap(({ layer }) => spansOf(layer)),
      state: stateOf(block, inference).total,
      forwardFlops: forwardFlopsOf(block, inference).total,
    };
  });
}

function spansOf(layer: Layer): BlockSpan[] {
  if (!isAttention(layer)) return [];
  if (!('spans' in layer)) return [{ heads: queryHeads(layer) }];
  return layer.spans.map(({ heads, window }) =>
    window === undefined ? { heads } : { heads, window: window.tokens, rule: window.rule },
  );
}

export interface TensorEntry {
  /** Name of the tensor. */
  readonly name: string;
  /** Other names of the same tensor. */
  readonly aliases: readonly string[];
  /** Sizes of the dimensions. @integer */
  readonly shape: readonly number[];
  /** Number of elements. @integer */
  readonly elements: number;
  /** Whether it is learned. */
  readonly role: 'parameter' | 'buffer';
  /** Sources that count this buffer as a parameter. */
  readonly contested: string | undefined;
  /** Component of the model. */
  readonly component: Component;
}

/** Every stored tensor once, in state dict order. */
export function tensorInventory(model: LanguageModel): TensorEntry[] {
  return ownedTensors(model).map(({ tensor, component }) => ({ ...tensor, component }));
}
