/** Bamba: Mamba-2 layers, and attention in a few. */
import * as z from 'zod';
import { unreadBut } from '../transformer/config-keys.js';
import { mixerBlock, mlpOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { rotaryIn } from '../transformer/rotary.js';
import { attentionBias, gateActivation, mlpBias, partOfHead } from '../transformer/settings.js';
import {
  dualIn,
  dualOf,
  dualRules,
  dualSettings,
  RECURRENT_HARMLESS,
} from '../transformer/state-space.js';

/** Rotated share of a head, unless the rotary parameters state another; a factor outside them is not read. */
const HALF = 0.5;

export const bamba = defineDecoder({
  title: 'Bamba: Mamba-2 and attention',
  architecture: 'hybrid',
  schema: decoderDocument(
    'bamba',
    {
      vocab_size: 128_000,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 262_144,
      rms_norm_eps: 1e-5,
    },
    {
      ...dualSettings,
      attn_layer_indices: z
        .array(z.int().min(0))
        .nullish()
        .describe('Layers with attention; the others are Mamba layers'),
      partial_rotary_factor: partOfHead(HALF),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  rules: dualRules,
  dimensions: null,
  huggingFace: {
    more: (config) => ({
      ...dualIn(config),
      partial_rotary_factor: rotaryIn(config).partial_rotary_factor ?? HALF,
    }),
    limited: { partial_rotary_factor: unreadBut([HALF], 'the one in rope_parameters is read') },
    harmless: {
      ...RECURRENT_HARMLESS,
      layers_block_type: 'follows from attn_layer_indices',
      layer_types: 'follows from attn_layer_indices',
      num_logits_to_keep: 'the logits of fewer tokens are the same',
      z_loss_coefficient: 'used in training only',
    },
  },
  finalNorm: 'final_layernorm',
  attentionLayer: ({ name, config, index }) =>
    config.attn_layer_indices?.includes(index) ? undefined : dualOf(`${name}.mamba`, config),
  feedForward: ({ name, config }) => mlpOf(`${name}.feed_forward`, config),
  block: mixerBlock,
});
