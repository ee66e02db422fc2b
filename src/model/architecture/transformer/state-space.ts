/** Settings and layers that families with state spaces share, with Hugging Face's keys. */
import * as z from 'zod';
import { gatedRmsNorm, rmsNormLayer } from '../constructors/basic-layers.js';
import { mambaLayer, stateSpaceDual } from '../constructors/recurrent-layers.js';
import { defineRules } from '../family.js';
import type { LanguageModel, Layer, Mamba, StateSpaceDual } from '../layer.js';
import {
  harmless,
  type JsonObject,
  type LimitedKeys,
  NO_ROTARY_KEYS,
  unreadEach,
} from './config-keys.js';
import { causalModel, residualBlock } from './decoder-parts.js';
import { groupRules } from './rules.js';
import {
  type ActivationWord,
  activationOf,
  activationWord,
  count,
  headPath,
  normEpsilon,
  positiveInteger,
  type SettingsOf,
  storedPrefix,
  toggle,
} from './settings.js';

export const RECURRENT_PREFIX = { own: 'backbone.' };

/** Settings of models with nothing but Mamba layers. */
export const recurrentSizes = (defaults: {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly state_size: number;
}) => ({
  vocab_size: count(defaults.vocab_size, 'Rows of the embedding and of the head'),
  hidden_size: count(defaults.hidden_size, 'Width of the residual stream'),
  num_hidden_layers: count(defaults.num_hidden_layers, 'Number of blocks'),
  state_size: count(defaults.state_size, 'Values of the state, a channel'),
  conv_kernel: count(4, 'Tokens that the convolution sees'),
  layer_norm_epsilon: normEpsilon(1e-5),
  hidden_act: activationWord.default('silu').describe('Activation behind the convolution'),
  use_bias: toggle(false, 'Biases in in_proj and out_proj'),
  use_conv_bias: toggle(true, 'Biases in the convolution'),
  seq_length: count(
    1_048_576,
    'Longest input; the state itself sets no limit, so raise it as you like',
  ),
  stored_prefix: storedPrefix(RECURRENT_PREFIX),
});

type RecurrentConfig = SettingsOf<ReturnType<typeof recurrentSizes>>;

/** Keys of recurrent models that change no logits. */
export const RECURRENT_HARMLESS = {
  ...harmless('start values of training', [
    'time_step_floor',
    'time_step_init_scheme',
    'time_step_max',
    'time_step_min',
    'time_step_scale',
    'rescale_prenorm_residual',
  ]),
  ...harmless('chooses how the same values are computed', [
    'chunk_size',
    'mamba_chunk_size',
    'use_associative_scan',
    'use_falcon_mambapy',
    'use_mamba_kernels',
    'use_mambapy',
  ]),
  residual_in_fp32: 'precision of the residual stream in 16-bit models',
} as const;

/** Keys of attention, for models without any. */
export const NO_ATTENTION_KEYS: LimitedKeys = {
  ...NO_ROTARY_KEYS,
  ...unreadEach(
    ['max_position_embeddings', 'num_attention_heads', 'num_key_value_heads'],
    [],
    'the model has no attention',
  ),
};

/** Model of blocks x + mixer(norm(x)), with the names of `mamba`. */
export function recurrentModel(
  config: RecurrentConfig & { readonly tie_word_embeddings: boolean },
  mixer: (name: string) => Layer,
): LanguageModel {
  const { hidden_size: hidden, stored_prefix: prefix } = config;
  const norm = (name: string) => rmsNormLayer(name, hidden, config.layer_norm_epsilon);
  return causalModel({
    paths: {
      embedding: `${prefix}embeddings`,
      blocks: `${prefix}layers`,
      head: headPath(prefix, RECURRENT_PREFIX),
    },
    vocabulary: config.vocab_size,
    hidden,
    positions: config.seq_length,
    tied: config.tie_word_embeddings,
    blocks: config.num_hidden_layers,
    blocksKey: 'num_hidden_layers',
    norm: norm(`${prefix}norm_f`),
    block: (name) => residualBlock(name, { mixer: [norm(`${name}.norm`), mixer(`${name}.mixer`)] }),
  });
}

// Mamba-1

/** Rank of the steps; `auto` is a sixteenth of the width. */
export const stepRank = z
  .union([z.literal('auto'), positiveInteger])
  .default('auto')
  .describe('Rank of the steps; auto: hidden_size / 16');

export const stepRankOf = (rank: 'auto' | number, hidden: number): number =>
  rank === 'auto' ? Math.ceil(hidden / 16) : rank;

/** Mamba layer of `mamba` and `falcon_mamba`. */
export const recurrentMamba = (
  name: string,
  config: RecurrentConfig & {
    readonly expand: number;
    readonly intermediate_size?: number | null | undefined;
    readonly time_step_rank: 'auto' | number;
  },
  options: Parameters<typeof mambaLayer>[2] = {},
): Mamba => {
  const { hidden_size: hidden, conv_kernel: kernel } = config;
  return mambaLayer(
    name,
    {
      hidden,
      inner: config.intermediate_size ?? config.expand * hidden,
      state: config.state_size,
      kernel,
      stepRank: stepRankOf(config.time_step_rank, hidden),
    },
    {
      bias: config.use_bias,
      conv: { bias: config.use_conv_bias, cached: kernel },
      activation: activationOf(config.hidden_act),
      float32State: true,
      ...options,
    },
  );
};

// Mamba-2

/** Bounds of the steps; null is no bound. */
export const stepLimit = z
  .tuple([z.number().min(0), z.number().positive().nullable()])
  .default([0, null])
  .describe('Least and largest step; null: no limit');

/**
 * Bounds of the steps in a `config.json`; null for infinity, which transformers 5 writes as an object, and older
 * versions as a word.
 */
export function stepLimitIn(value: unknown): unknown {
  if (!Array.isArray(value)) return undefined;
  return value.map((bound) => (typeof bound === 'number' && Number.isFinite(bound) ? bound : null));
}

export const timeStepRange = ([least, most]: z.output<typeof stepLimit>): readonly [
  number,
  number,
] => [least, most ?? Number.POSITIVE_INFINITY];

/** Mamba-2 keys of Bamba and its descendants. */
export const dualSettings = {
  mamba_n_heads: count(128, 'Heads of a Mamba layer'),
  mamba_d_head: z
    .union([z.literal('auto'), positiveInteger])
    .default('auto')
    .describe('Width of a head; auto: the inner width / mamba_n_heads'),
  mamba_n_groups: count(1, 'Groups of heads with the same B and C'),
  mamba_d_state: count(256, 'Values of the state, a channel'),
  mamba_d_conv: count(4, 'Tokens that the convolution sees'),
  mamba_expand: count(2, 'Inner width of a Mamba layer, in widths of the model'),
  mamba_conv_bias: toggle(true, 'Biases in the convolution'),
  mamba_proj_bias: toggle(false, 'Biases in in_proj and out_proj'),
  time_step_limit: stepLimit,
};

/** Settings that `more` reads from a `config.json`. */
export const dualIn = ({ time_step_limit: limit }: JsonObject): JsonObject => ({
  time_step_limit: stepLimitIn(limit),
});

export type DualConfig = SettingsOf<typeof dualSettings> & {
  readonly hidden_size: number;
  readonly mamba_d_ssm?: number | null | undefined;
  readonly hidden_act: ActivationWord;
  readonly rms_norm_eps: number;
};

const stateSpaceWidth = (config: DualConfig): number =>
  config.mamba_d_ssm ?? config.mamba_expand * config.hidden_size;

const headDimOf = (config: DualConfig): number =>
  config.mamba_d_head === 'auto'
    ? Math.floor(stateSpaceWidth(config) / config.mamba_n_heads)
    : config.mamba_d_head;

/** Mamba-2 layer of Bamba: a norm over all channels, with a gate before it. */
export function dualOf(
  name: string,
  config: DualConfig,
  options: Parameters<typeof stateSpaceDual>[2] = {},
): StateSpaceDual {
  const kernel = config.mamba_d_conv;
  return stateSpaceDual(
    name,
    {
      hidden: config.hidden_size,
      heads: config.mamba_n_heads,
      headDim: headDimOf(config),
      state: config.mamba_d_state,
      groups: config.mamba_n_groups,
      kernel,
    },
    {
      bias: config.mamba_proj_bias,
      conv: { bias: config.mamba_conv_bias, cached: kernel },
      norm: gatedRmsNorm(`${name}.norm`, {
        eps: config.rms_norm_eps,
        width: stateSpaceWidth(config),
        gated: 'before',
      }),
      activation: activationOf(config.hidden_act),
      stepLimits: timeStepRange(config.time_step_limit),
      ...options,
    },
  );
}

/** Heads must fill the inner width, and groups divide the heads. */
export const dualRules = defineRules<{ readonly model: DualConfig }>([
  {
    severity: 'error',
    reads: ['model.mamba_n_heads', 'model.mamba_d_head', 'model.mamba_expand', 'model.hidden_size'],
    check: ({ model }) => {
      const [inner, heads, headDim] = [
        stateSpaceWidth(model),
        model.mamba_n_heads,
        headDimOf(model),
      ];
      return heads * headDim === inner
        ? undefined
        : {
            message: `expected heads for ${inner} inner values of a Mamba layer, found ${heads} heads of ${headDim}`,
            suggestion: `write mamba_d_head: auto, and a mamba_n_heads that divides ${inner}`,
          };
    },
  },
  ...groupRules('mamba_n_groups', 'mamba_n_heads'),
]);

/** Older names of the kinds of layers. */
const OLD_LAYERS: Readonly<Record<string, string>> = {
  mamba: 'linear_attention',
  attention: 'full_attention',
};

/** List of kinds of layers, by their current names. */
export const layerTypesIn = (list: unknown): unknown =>
  Array.isArray(list)
    ? list.map((kind) =>
        typeof kind === 'string' && Object.hasOwn(OLD_LAYERS, kind) ? OLD_LAYERS[kind] : kind,
      )
    : undefined;
