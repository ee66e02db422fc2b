/** Command R and R+: one norm for attention and feed-forward, LayerNorms without biases, scaled logits. */
import * as z from 'zod';
import { layerNormLayer, scale } from '../constructors/basic-layers.js';
import { parallelBlock } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, normEpsilon, toggle } from '../transformer/settings.js';

/** Default sizes of both generations. */
export const COHERE_SIZES = {
  vocab_size: 256_000,
  hidden_size: 8192,
  intermediate_size: 22_528,
  num_hidden_layers: 40,
  num_attention_heads: 64,
  max_position_embeddings: 8192,
  tie_word_embeddings: true,
};

/** Own keys of both generations. */
export const cohereSettings = {
  layer_norm_eps: normEpsilon(1e-5),
  logit_scale: z.number().default(0.0625).describe('Factor of the logits'),
  hidden_act: gateActivation,
  attention_bias: attentionBias,
};

/** Parts of both generations. */
export const COHERE = {
  block: parallelBlock,
  rotaryPairs: 'neighbours',
  norm: (name: string, config: { readonly hidden_size: number; readonly layer_norm_eps: number }) =>
    layerNormLayer(name, config.hidden_size, config.layer_norm_eps, { holds: 'weight' }),
  logitSteps: ({ logit_scale: factor }: { readonly logit_scale: number }) => [
    scale('logit_scale', factor),
  ],
} as const;

export const cohere = defineDecoder({
  ...COHERE,
  title: 'Command R',
  schema: plainDecoderDocument(
    'cohere',
    { ...COHERE_SIZES, rope_theta: 500_000 },
    {
      ...cohereSettings,
      use_qk_norm: toggle(false, 'Norms on queries and keys, another for each head'),
    },
  ),
  attention({ name, config, heads: { heads, keyValueHeads, headDim } }) {
    const norm = (leaf: string, parts: number) =>
      layerNormLayer(`${name}.self_attn.${leaf}`, headDim, config.layer_norm_eps, {
        parts,
        holds: 'weight',
      });
    return config.use_qk_norm
      ? { queryNorm: norm('q_norm', heads), keyNorm: norm('k_norm', keyValueHeads) }
      : {};
  },
});
