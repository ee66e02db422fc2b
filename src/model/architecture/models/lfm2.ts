/** LFM2: gated short convolutions in most layers, attention with norms on queries and keys in the others. */
import * as z from 'zod';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { gatedConv } from '../constructors/recurrent-layers.js';
import type { Layer } from '../layer.js';
import { harmless } from '../transformer/config-keys.js';
import { type BlockParts, residualBlock, separateMlp } from '../transformer/decoder-parts.js';
import {
  type BlockInputs,
  defineDecoder,
  plainDecoderDocument,
} from '../transformer/define-decoder.js';
import { count, normEpsilon, toggle } from '../transformer/settings.js';

/** Keys of both generations of LFM2. */
export const lfm2Settings = {
  norm_eps: normEpsilon(1e-5),
  conv_L_cache: count(3, 'Tokens that a convolution sees'),
  conv_bias: toggle(false, 'Biases of the convolutions and of their products'),
  layer_types: z
    .array(z.enum(['full_attention', 'conv']))
    .nullish()
    .describe('Which layers have attention, and which a convolution'),
};

interface Lfm2Config {
  readonly hidden_size: number;
  readonly norm_eps: number;
  readonly conv_L_cache: number;
  readonly conv_bias: boolean;
  readonly layer_types?: readonly string[] | null | undefined;
  readonly full_attn_idxs?: readonly number[] | null | undefined;
}

/** Settings of both generations. */
export const LFM2 = {
  finalNorm: 'embedding_norm',
  norm: (name: string, config: Lfm2Config) =>
    rmsNormLayer(name, config.hidden_size, config.norm_eps),
  block: (name: string, { norm, attention, feedForward }: BlockParts) =>
    residualBlock(name, {
      attention: [norm(`${name}.operator_norm`), attention],
      mlp: [norm(`${name}.ffn_norm`), feedForward],
    }),
  attention({ name, config, heads: { headDim } }: BlockInputs<Lfm2Config>) {
    const norm = (leaf: string) =>
      rmsNormLayer(`${name}.self_attn.${leaf}`, headDim, config.norm_eps);
    return {
      outName: 'out_proj',
      queryNorm: norm('q_layernorm'),
      keyNorm: norm('k_layernorm'),
    };
  },
  attentionLayer({ name, config, index }: BlockInputs<Lfm2Config>): Layer | undefined {
    const { layer_types: types, full_attn_idxs: attending } = config;
    const attends = types
      ? types[index] === 'full_attention'
      : (attending?.includes(index) ?? true);
    const { hidden_size: hidden, conv_L_cache: kernel, conv_bias: bias } = config;
    return attends
      ? undefined
      : gatedConv(`${name}.conv`, hidden, kernel, { bias, cached: kernel });
  },
} as const;

/** `w1`, `w3` and `w2`. */
export const lfm2Mlp = (name: string, hidden: number, inner: number) =>
  separateMlp(name, { hidden, inner, activation: 'silu', leaves: LFM2_LEAVES });

export const LFM2_LEAVES = ['w1', 'w3', 'w2'] as const;

/** Keys of the first files, which transformers does not read. */
export const LFM2_HARMLESS = harmless('repeats another key, or sets the initial weights', [
  'block_dim',
  'block_mlp_init_scale',
  'block_norm_eps',
  'block_out_init_scale',
  'block_use_swiglu',
  'block_use_xavier_init',
  'conv_dim',
  'conv_dim_out',
  'conv_use_xavier_init',
  'num_heads',
  'use_pos_enc',
]);

interface InnerSettings {
  readonly intermediate_size: number;
  readonly block_auto_adjust_ff_dim: boolean;
  readonly block_ffn_dim_multiplier: number;
  readonly block_multiple_of: number;
}

/** Two thirds of intermediate_size, rounded up to a multiple, as for gated networks of as many parameters. */
function feedForwardWidth(config: InnerSettings): number {
  const { intermediate_size: size, block_multiple_of: multiple } = config;
  if (!config.block_auto_adjust_ff_dim) return size;
  const width = Math.trunc(config.block_ffn_dim_multiplier * Math.trunc((2 * size) / 3));
  return multiple * Math.ceil(width / multiple);
}

export const lfm2 = defineDecoder({
  ...LFM2,
  title: 'LFM2: gated short convolutions and attention',
  architecture: 'hybrid',
  schema: plainDecoderDocument(
    'lfm2',
    {
      vocab_size: 65_536,
      hidden_size: 2560,
      intermediate_size: 12_288,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 128_000,
      rope_theta: 1e6,
      tie_word_embeddings: true,
    },
    {
      ...lfm2Settings,
      full_attn_idxs: z
        .array(z.int().min(0))
        .nullish()
        .describe('Without layer_types: the layers with attention, from 0; null: all'),
      block_auto_adjust_ff_dim: toggle(
        true,
        'The feed-forward network is two thirds as wide as intermediate_size',
      ),
      block_ffn_dim_multiplier: z.number().positive().default(1).describe('Factor of that width'),
      block_multiple_of: count(256, 'That width is rounded up to a multiple of this'),
    },
  ),
  huggingFace: {
    names: { tie_word_embeddings: ['tie_embedding'], intermediate_size: ['block_ff_dim'] },
    harmless: LFM2_HARMLESS,
  },
  feedForward: ({ name, config }) =>
    lfm2Mlp(`${name}.feed_forward`, config.hidden_size, feedForwardWidth(config)),
});
