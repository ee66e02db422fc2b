/** Audio towers of Voxtral, Audio Flamingo 3 and Gemma 4, in the classes of transformers 5.18. */
import * as z from 'zod';
import { layerNormLayer, linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer } from '../layer.js';
import { harmless } from '../transformer/config-keys.js';
import {
  attentionBothWays,
  network,
  patchProduct,
} from '../transformer/described/encoder-parts.js';
import { soundEncoder } from '../transformer/described/sound.js';
import { heldValues } from '../transformer/described/vision.js';
import { count, positiveInteger, toggle } from '../transformer/settings.js';
import { clampLimits, type Tower } from './tower.js';

const UNREAD = harmless('changes values only, or is used in training', [
  'layerdrop',
  'encoder_layerdrop',
  'activation_function',
  'activation_dropout',
  'scale_embedding',
  'initializer_range',
  'vocab_size',
  'head_dim',
]);

interface EncoderConfig {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_mel_bins: number;
  readonly max_source_positions: number;
}

/** Whisper's encoder with the names of keys of other models. */
const likeWhisper = (hasProjector: boolean): Tower => ({
  component: 'audioTower',
  shape: {
    num_mel_bins: count(128, 'Bands of the spectrum'),
    num_hidden_layers: count(32, 'Number of blocks'),
    num_attention_heads: count(20, 'Heads'),
    intermediate_size: count(5120, 'Width inside the network'),
    hidden_size: count(1280, 'Width of the encoder'),
    max_source_positions: positiveInteger.default(1500).describe('Positions'),
  },
  harmless: UNREAD,
  names: {
    num_hidden_layers: ['encoder_layers'],
    num_attention_heads: ['encoder_attention_heads'],
    intermediate_size: ['encoder_ffn_dim'],
    hidden_size: ['d_model'],
  },
  build: (prefix, settings, width) => {
    const sizes = settings as unknown as EncoderConfig;
    const { hidden_size: hidden, intermediate_size: inner } = sizes;
    const at = 'model.multi_modal_projector';
    return {
      layers: soundEncoder(prefix, {
        num_mel_bins: sizes.num_mel_bins,
        encoder_layers: sizes.num_hidden_layers,
        encoder_attention_heads: sizes.num_attention_heads,
        encoder_ffn_dim: inner,
        d_model: hidden,
        max_source_positions: sizes.max_source_positions,
      }),
      // Four positions side by side have the width inside the network in the published models.
      ...(hasProjector && {
        projector: [
          linear(`${at}.linear_1`, inner, width, { bias: false }),
          linear(`${at}.linear_2`, width, width, { bias: false }),
        ],
      }),
      width: hidden,
    };
  },
});

export const voxtralEncoder = likeWhisper(true);
export const audioFlamingoEncoder = likeWhisper(false);

// ── Gemma 4 ──────────────────────────────────────────────────────────────────────────────────────

interface ConformerConfig {
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly subsampling_conv_channels: readonly [number, number];
  readonly conv_kernel_size: number;
  readonly use_clipped_linears: boolean;
  readonly output_proj_dims: number;
}

const innerLeaf = (leaf: string) => [`${leaf}.linear`, false] as const;

const CLAMPED = [
  ...['feed_forward1', 'feed_forward2'].flatMap((part) => [
    `${part}.ffw_layer_1`,
    `${part}.ffw_layer_2`,
  ]),
  ...['q_proj', 'k_proj', 'v_proj', 'post'].map((leaf) => `self_attn.${leaf}`),
  'lconv1d.linear_start',
  'lconv1d.linear_end',
];

const norm = (name: string, width: number): Layer => rmsNormLayer(name, width, 1e-6);

/** A block of Gemma 4's conformer: half a network, attention, a convolution, half a network. */
function conformerBlock(name: string, config: ConformerConfig): Layer {
  const { hidden_size: hidden, num_attention_heads: heads } = config;
  const headDim = Math.floor(hidden / heads);
  const half = (part: string): Layer[] => [
    norm(`${name}.${part}.pre_layer_norm`, hidden),
    network(`${name}.${part}`, [innerLeaf('ffw_layer_1'), innerLeaf('ffw_layer_2')], {
      hidden,
      inner: 4 * hidden,
    }),
    norm(`${name}.${part}.post_layer_norm`, hidden),
  ];
  const at = `${name}.lconv1d`;
  return described(name, {
    title: 'conformer block',
    parts: [
      ...half('feed_forward1'),
      ...half('feed_forward2'),
      norm(`${name}.norm_pre_attn`, hidden),
      attentionBothWays(
        `${name}.self_attn`,
        [innerLeaf('q_proj'), innerLeaf('k_proj'), innerLeaf('v_proj'), innerLeaf('post')],
        { hidden, heads, headDim },
      ),
      linear(`${name}.self_attn.relative_k_proj`, hidden, heads * headDim, { bias: false }),
      heldValues(name, [[`${name}.self_attn.per_dim_scale`, [headDim]]], hidden),
      norm(`${name}.norm_post_attn`, hidden),
      norm(`${at}.pre_layer_norm`, hidden),
      linear(`${at}.linear_start.linear`, hidden, 2 * hidden, { bias: false }),
      patchProduct(`${at}.depthwise_conv1d`, [hidden, 1, config.conv_kernel_size], { bias: false }),
      norm(`${at}.conv_norm`, hidden),
      linear(`${at}.linear_end.linear`, hidden, hidden, { bias: false }),
      norm(`${name}.norm_out`, hidden),
      ...(config.use_clipped_linears ? [clampLimits(name, CLAMPED, hidden)] : []),
    ],
    output: hidden,
  });
}

export const gemma4Audio: Tower = {
  component: 'audioTower',
  shape: {
    hidden_size: count(1024, 'Width of the encoder'),
    num_hidden_layers: count(12, 'Number of blocks'),
    num_attention_heads: count(8, 'Heads'),
    subsampling_conv_channels: z
      .tuple([z.int().min(1), z.int().min(1)])
      .default([128, 32])
      .describe('Channels of two convolutions over the spectrum'),
    conv_kernel_size: count(5, 'Positions that the convolution of a block reads'),
    use_clipped_linears: toggle(true, 'Limits of the values of products'),
    output_proj_dims: count(1536, 'Width of the output'),
  },
  harmless: harmless('changes values only, or what is read', [
    'residual_weight',
    'attention_chunk_size',
    'attention_context_left',
    'attention_context_right',
    'attention_logit_cap',
    'attention_invalid_logits_value',
    'rms_norm_eps',
    'gradient_clipping',
  ]),
  build: (prefix, settings, width) => {
    const config = settings as unknown as ConformerConfig;
    const { hidden_size: hidden, output_proj_dims: out } = config;
    const [first, second] = config.subsampling_conv_channels;
    const at = `${prefix}subsample_conv_projection`;
    const read = (layer: string, shape: readonly [number, number]) => [
      patchProduct(`${at}.${layer}.conv`, [...shape, 3, 3], { bias: false }),
      layerNormLayer(`${at}.${layer}.norm`, shape[0], 1e-6, { holds: 'weight' }),
    ];
    return {
      layers: [
        ...read('layer0', [first, 1]),
        ...read('layer1', [second, first]),
        linear(`${at}.input_proj_linear`, Math.floor(first / 4) * second, hidden, { bias: false }),
        ...Array.from({ length: config.num_hidden_layers }, (_, index) =>
          conformerBlock(`${prefix}layers.${index}`, config),
        ),
        linear(`${prefix}output_proj`, hidden, out),
      ],
      projector: [linear('model.embed_audio.embedding_projection', out, width, { bias: false })],
      width: out,
    };
  },
};
