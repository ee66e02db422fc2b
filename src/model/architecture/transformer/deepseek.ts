/** Parts shared by DeepSeek's second and third generation (arXiv 2405.04434, 2412.19437). */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { latentAttention, rotary } from '../constructors/attention-layers.js';
import { linear, rmsNormLayer, sequence } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules, type Ignored } from '../family.js';
import type { LatentAttention, Layer, MixtureOfExperts, Rotary, Router } from '../layer.js';
import { buffer } from '../param.js';
import { type JsonObject, type LimitedKeys, unreadBut } from './config-keys.js';
import { expertsOf, jointExperts, separateMlp } from './decoder-parts.js';
import { rotarySettings, scalingOf, yarnAmplitude } from './rotary.js';
import { lengthRules, rotationRules, scalingRules } from './rules.js';
import {
  type ActivationWord,
  activationOf,
  activationWord,
  count,
  decoderSizes,
  epsilon,
  expertsStored,
  positiveInteger,
  type SettingsOf,
  tiedHead,
  toggle,
} from './settings.js';

/** Norms inside the attention use this instead of `rms_norm_eps`. */
const LATENT_NORM_EPS = 1e-6;

/** Keys whose null means false, as in Python, and not the default. */
export const falseForNull = ({ norm_topk_prob, rope_interleave }: JsonObject): JsonObject => ({
  ...(norm_topk_prob === null && { norm_topk_prob: false }),
  ...(rope_interleave === null && { rope_interleave: false }),
});

interface LatentDefaults {
  readonly sizes: Omit<Parameters<typeof decoderSizes>[0], 'head_dim' | 'num_key_value_heads'> & {
    readonly rms_norm_eps: number;
  };
  /** Sizes of the attention; default: those of the second and third generation. */
  readonly latent?: {
    readonly q_lora_rank: number;
    readonly kv_lora_rank: number;
    readonly qk_nope_head_dim: number;
    readonly qk_rope_head_dim?: number;
    readonly v_head_dim?: number;
  };
  readonly tie_word_embeddings?: boolean;
}

interface RoutedDefaults {
  readonly moe_intermediate_size: number;
  readonly n_routed_experts: number;
  readonly n_shared_experts: number;
  readonly num_experts_per_tok: number;
  readonly first_k_dense_replace: number;
  readonly routed_scaling_factor: number;
  readonly norm_topk_prob: boolean;
  readonly n_group: number | null;
  readonly topk_group: number | null;
}

/** Every head has its own keys and values; its width is the sum of two others. */
function deepseekSizes(sizes: LatentDefaults['sizes']) {
  const { num_key_value_heads: _, head_dim: __, ...rest } = decoderSizes(sizes);
  return rest;
}

const LATENT: NonNullable<LatentDefaults['latent']> = {
  q_lora_rank: 1536,
  kv_lora_rank: 512,
  qk_nope_head_dim: 128,
};

/** Keys of experts in the layers after the first ones, chosen by groups. */
export const routedSettings = (defaults: RoutedDefaults) => ({
  n_routed_experts: count(defaults.n_routed_experts, 'Experts to choose from'),
  n_shared_experts: z
    .int()
    .min(0)
    .nullable()
    .default(defaults.n_shared_experts)
    .describe('Experts for every token, as one network of their joint width'),
  num_experts_per_tok: count(defaults.num_experts_per_tok, 'Experts that a token goes to'),
  moe_intermediate_size: count(defaults.moe_intermediate_size, 'Width inside an expert'),
  first_k_dense_replace: z
    .int()
    .min(0)
    .default(defaults.first_k_dense_replace)
    .describe('First layers without experts'),
  n_group: positiveInteger.nullable().default(defaults.n_group).describe('Groups of experts'),
  topk_group: positiveInteger
    .nullable()
    .default(defaults.topk_group)
    .describe('Groups that are kept'),
  routed_scaling_factor: z
    .number()
    .positive()
    .default(defaults.routed_scaling_factor)
    .describe('What the weights of the chosen experts are multiplied by'),
  norm_topk_prob: toggle(
    defaults.norm_topk_prob,
    'Weights of the chosen experts sum to one before that',
  ),
  experts_stored: expertsStored,
});

/** Keys of a decoder with latent attention. */
export const latentSettings = ({ sizes, latent = LATENT, ...defaults }: LatentDefaults) => ({
  ...deepseekSizes(sizes),
  rms_norm_eps: epsilon
    .default(sizes.rms_norm_eps)
    .describe('Epsilon of the norms; those inside the attention always have 1e-6'),
  ...rotarySettings(10_000),
  q_lora_rank: positiveInteger
    .nullable()
    .default(latent.q_lora_rank)
    .describe('Rank of the queries; null: one product'),
  kv_lora_rank: count(latent.kv_lora_rank, 'Width of the latent of which keys and values are made'),
  qk_nope_head_dim: count(latent.qk_nope_head_dim, 'Dimensions of a head that are not rotated'),
  qk_rope_head_dim: count(latent.qk_rope_head_dim ?? 64, 'Dimensions of a head that are'),
  v_head_dim: count(latent.v_head_dim ?? 128, "Width of a head's value"),
  attention_bias: toggle(false, 'Biases in the products into and out of it'),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: tiedHead(defaults.tie_word_embeddings ?? false),
});

export const deepseekSettings = (defaults: LatentDefaults & RoutedDefaults) => ({
  ...latentSettings(defaults),
  ...routedSettings(defaults),
  moe_layer_freq: count(1, 'Period of the layers with experts, after the dense layers'),
});

type RoutedSettings = SettingsOf<ReturnType<typeof routedSettings>>;

type RoutedConfig = Omit<RoutedSettings, 'first_k_dense_replace'> & {
  readonly hidden_size: number;
  readonly hidden_act: ActivationWord;
};

/** Keys that say which layers have experts; without a list, all after the first few. */
interface SparseLayers {
  readonly first_k_dense_replace: number;
  readonly moe_layer_freq?: number;
  readonly mlp_layer_types?: readonly string[] | null | undefined;
}

type LatentConfig = SettingsOf<ReturnType<typeof latentSettings>>;

const ROTATED = {
  reads: ['model.qk_rope_head_dim'],
  of: ({ qk_rope_head_dim }: Pick<LatentConfig, 'qk_rope_head_dim'>) => qk_rope_head_dim,
  suggestion: 'write an even qk_rope_head_dim',
} as const;

/**
 * Keys that latent attention supports with limits.
 * @param still Dimensions of a head that are not rotated, by default.
 * @param turned Dimensions that are.
 */
export const latentKeys = (still = 128, turned = 64): LimitedKeys => ({
  num_key_value_heads: {
    allows: (count, { num_attention_heads: heads }) =>
      count === null || heads === undefined || 2 * asNumber(count) > asNumber(heads),
    why: 'latent attention has keys and values for every head, which the class would repeat',
    severity: 'error',
  },
  qk_head_dim: unreadBut(
    (width, { qk_nope_head_dim: nope = still, qk_rope_head_dim: rotated = turned }) =>
      width === asNumber(nope) + asNumber(rotated),
    'it is the sum of qk_nope_head_dim and qk_rope_head_dim',
  ),
  partial_rotary_factor: unreadBut([1], 'this family rotates qk_rope_head_dim dimensions'),
});

export const MLA_KEYS = latentKeys();

/** Limit of `head_dim`, where it is another name of `qk_rope_head_dim`. @param turned Its default. */
export const rotatedAlone = (turned = 64): LimitedKeys => ({
  head_dim: {
    allows: (width, { qk_rope_head_dim: rotated = turned }) => width === rotated,
    why: 'it is taken for the number of dimensions that are rotated',
    severity: 'error',
  },
});

/** Rules of `routedSettings`. @param key The number of experts. */
export const routedRules = (key: string) => [
  ...defineRules<{
    readonly model: Pick<RoutedSettings, 'num_experts_per_tok' | 'n_group' | 'topk_group'>;
  }>([
    {
      severity: 'error',
      reads: ['model.n_group', 'model.topk_group', `model.${key}`],
      check: ({ model }) => {
        const { n_group: groups, topk_group: kept } = model;
        const experts = numberAt(model, key);
        if (groups === null || groups === 1) return undefined;
        if (experts % groups !== 0) {
          return {
            message: `${groups} groups do not divide ${experts} experts`,
            suggestion: `write a divisor of ${key}`,
          };
        }
        return kept === null || kept > groups
          ? {
              message: `expected topk_group from 1 to n_group ${groups}, found ${kept}`,
              suggestion: `write topk_group: 1 to ${groups}`,
            }
          : undefined;
      },
    },
    {
      severity: 'error',
      reads: ['model.num_experts_per_tok', 'model.n_group', 'model.topk_group', `model.${key}`],
      check: ({ model }) => {
        const { num_experts_per_tok: chosen, n_group: groups, topk_group: kept } = model;
        if (groups === null || kept === null) return undefined;
        const there = (kept * numberAt(model, key)) / groups;
        return chosen > there
          ? {
              message: `${chosen} experts for a token are more than the ${there} in ${kept} of ${groups} groups`,
              suggestion: `write num_experts_per_tok: ${Math.floor(there)} or less, or a larger topk_group`,
            }
          : undefined;
      },
    },
  ]),
];

const numberAt = (model: object, key: string) => asNumber((model as JsonObject)[key]);

/** `routedRules` with the usual keys, and one for the dense layers. */
export const ROUTED_RULES = [
  ...routedRules('n_routed_experts'),
  ...defineRules<{
    readonly model: SparseLayers & { readonly num_hidden_layers: number };
  }>([
    {
      severity: 'warning',
      reads: ['model.first_k_dense_replace', 'model.num_hidden_layers'],
      check: ({ model: { first_k_dense_replace: dense, num_hidden_layers: layers } }) =>
        dense >= layers
          ? {
              message: `the first ${dense} of ${layers} layers are dense: none has experts`,
              suggestion: `write first_k_dense_replace: ${layers - 1} or less`,
            }
          : undefined,
    },
  ]),
];

/** Rules of `latentSettings`. */
export const LATENT_RULES = [
  ...lengthRules('max_position_embeddings'),
  ...rotationRules(ROTATED),
  ...scalingRules(ROTATED),
];

export const DEEPSEEK_RULES = [
  ...LATENT_RULES,
  ...ROUTED_RULES,
  ...defineRules<{ readonly model: { readonly moe_layer_freq: number } }>([
    {
      severity: 'warning',
      reads: ['model.moe_layer_freq'],
      check: ({ model: { moe_layer_freq: step } }) =>
        step === 1
          ? undefined
          : {
              message: `moe_layer_freq ${step}: experts are counted in every layer whose number it divides, as in DeepSeek's own code; transformers reads 1`,
              suggestion: 'write moe_layer_freq: 1 to count what transformers builds',
            },
    },
  ]),
];

/** Rule of groups that are scored by their two best experts. @param key The number of experts. */
export const bestTwoRules = (key: string) =>
  defineRules<{ readonly model: Pick<RoutedSettings, 'n_group'> }>([
    {
      severity: 'error',
      reads: ['model.n_group', `model.${key}`],
      check: ({ model }) => {
        const { n_group: groups } = model;
        const experts = numberAt(model, key);
        return groups !== null && experts < 2 * groups
          ? {
              message: `${groups} groups of ${experts} experts have fewer than two each, but the two best give the score of a group`,
              suggestion: `write n_group: ${Math.max(1, Math.floor(experts / 2))} or less`,
            }
          : undefined;
      },
    },
  ]);

export const BEST_TWO_RULES = bestTwoRules('n_routed_experts');

/** Key of the rotated pairs since the third generation. */
export const interleaved = toggle(true, 'Neighbours are rotated together, not halves');

export const rotaryPairs = (config: { readonly rope_interleave: boolean }): Rotary['pairs'] =>
  config.rope_interleave ? 'neighbours' : 'halves';

/** Factors of the queries and of the normed latent. */
interface LatentFactors {
  readonly queries?: number;
  readonly latent?: number;
}

/** Multi-head latent attention. @param pairs Undefined where nothing is rotated. */
export function deepseekAttention(
  name: string,
  config: Omit<LatentConfig, 'intermediate_size' | 'num_hidden_layers'>,
  pairs: Rotary['pairs'] | undefined,
  { temperature, selection }: Pick<LatentAttention, 'temperature' | 'selection'> = {},
  factors: LatentFactors = {},
): Layer {
  const { hidden_size: hidden, num_attention_heads: heads, attention_bias: bias } = config;
  const { q_lora_rank: queryRank, kv_lora_rank: latentRank, v_head_dim: valueDim } = config;
  const { qk_nope_head_dim: nopeDim, qk_rope_head_dim: rotatedDim } = config;
  const width = heads * (nopeDim + rotatedDim);
  const plain = { bias: false };
  const norm = (leaf: string, size: number) =>
    rmsNormLayer(`${name}.${leaf}`, size, LATENT_NORM_EPS);
  const scaling = config.rope_scaling;
  const stretched = scaling && scaling.rope_type !== 'default' ? (scaling.mscale_all_dim ?? 0) : 0;
  return latentAttention(name, {
    query:
      queryRank === null
        ? linear(`${name}.q_proj`, hidden, width, plain)
        : sequence(`${name}.query`, [
            linear(`${name}.q_a_proj`, hidden, queryRank, { bias }),
            norm('q_a_layernorm', queryRank),
            linear(`${name}.q_b_proj`, queryRank, width, plain),
          ]),
    keyValueDown: linear(`${name}.kv_a_proj_with_mqa`, hidden, latentRank + rotatedDim, { bias }),
    latentNorm: norm('kv_a_layernorm', latentRank),
    keyValueUp: linear(`${name}.kv_b_proj`, latentRank, heads * (nopeDim + valueDim), plain),
    rotary:
      pairs &&
      rotary(`${name}.rotary`, {
        base: config.rope_theta,
        headDim: rotatedDim,
        pairs,
        scaling: scalingOf(scaling, config.max_position_embeddings, rotatedDim),
      }),
    sharedDim: rotatedDim,
    out: linear(`${name}.o_proj`, heads * valueDim, hidden, { bias }),
    heads,
    latentRank,
    nopeDim,
    valueDim,
    ...(temperature && { temperature }),
    ...(selection && { selection }),
    ...(factors.latent !== undefined && { latentScale: factors.latent }),
    // With this setting, YaRN scales the scores by the square of its amplitude.
    scale:
      (factors.queries ?? 1) *
      (nopeDim + rotatedDim) ** -0.5 *
      (stretched ? yarnAmplitude(scaling?.factor ?? 1, stretched) ** 2 : 1),
  });
}

/** Expert routing of a generation. */
type Routing = Pick<Router, 'scoring' | 'correction' | 'groups' | 'renormalised'>;

interface RoutedOptions {
  readonly routing: (name: string) => Routing;
  readonly bias?: boolean;
  /** Names of gate, up and down of an expert. */
  readonly leaves?: readonly [gate: string, up: string, down: string];
}

/** A gated network in the first layers, or those listed, a mixture of experts in the others. */
export function deepseekFeedForward(
  name: string,
  index: number,
  config: RoutedConfig & SparseLayers & { readonly intermediate_size: number },
  options: RoutedOptions,
): Layer {
  const { mlp_layer_types: types, moe_layer_freq: step = 1 } = config;
  const isDense = types
    ? types[index] !== 'sparse'
    : index < config.first_k_dense_replace || index % step !== 0;
  return isDense
    ? separateMlp(name, {
        hidden: config.hidden_size,
        inner: config.intermediate_size,
        activation: activationOf(config.hidden_act),
        bias: options.bias ?? false,
      })
    : routedMixture(name, config, options);
}

/** Experts with the keys of `routedSettings`. */
export function routedMixture(
  name: string,
  config: RoutedConfig,
  { routing, bias = false, leaves }: RoutedOptions,
): MixtureOfExperts {
  const { hidden_size: hidden, moe_intermediate_size: inner, n_routed_experts: experts } = config;
  const activation = activationOf(config.hidden_act);
  return mixtureOfExperts(name, {
    router: router(`${name}.gate`, hidden, {
      experts,
      expertsPerToken: config.num_experts_per_tok,
      scale: config.routed_scaling_factor,
      ...routing(`${name}.gate`),
    }),
    experts: expertsOf(`${name}.experts`, {
      experts,
      stored: config.experts_stored,
      hidden,
      inner,
      activation,
      ...(leaves && { leaves }),
    }),
    shared: jointExperts(`${name}.shared_experts`, config.n_shared_experts ?? 0, {
      hidden,
      inner,
      activation,
      bias,
    }),
  });
}

/** Added to the sum of the chosen experts' scores. */
export const RENORMALISE_EPS = 1e-20;

/**
 * Routing of DeepSeek-V3: sigmoid scores, and a correction for the choice.
 * @param options Of the correction.
 */
export const correctedRouting =
  (config: RoutedConfig, options?: Parameters<typeof buffer>[2]) =>
  (gate: string): Routing => {
    const { n_routed_experts: experts, n_group: count, topk_group: kept } = config;
    return {
      scoring: 'sigmoid',
      correction: buffer(`${gate}.e_score_correction_bias`, [experts], options),
      groups:
        count !== null && kept !== null && count > 1
          ? { count, kept, score: 'bestTwo', dropped: Number.NEGATIVE_INFINITY }
          : undefined,
      renormalised: config.norm_topk_prob ? { eps: RENORMALISE_EPS } : undefined,
    };
  };

/** Keys of the layers after the last block that predict further tokens. */
export const predictionSettings = {
  num_nextn_predict_layers: z
    .int()
    .min(0)
    .nullish()
    .describe('Layers that predict further tokens: in some files, never part of the model'),
};

/** Upper bound of these layers; models have fewer. */
const MOST_FURTHER = 16;

interface PredictingConfig {
  readonly num_hidden_layers: number;
  readonly num_nextn_predict_layers?: number | null | undefined;
  readonly stored_prefix: string;
}

/** Tensors of these layers. */
export const predictionTensors = ({
  num_hidden_layers: layers,
  num_nextn_predict_layers: further,
  stored_prefix: prefix,
}: PredictingConfig): readonly Ignored[] =>
  Array.from({ length: Math.min(further ?? 1, MOST_FURTHER) }, (_, index) => ({
    pattern: `${prefix}layers.${layers + index}.**`,
    what: 'they predict the token after the next, and the model computes the same without them',
  }));
