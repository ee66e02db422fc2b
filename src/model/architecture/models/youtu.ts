/** Youtu-LLM: latent attention of DeepSeek-V3 with a dense network in every layer. */
import {
  deepseekAttention,
  falseForNull,
  interleaved,
  LATENT_RULES,
  latentSettings,
  MLA_KEYS,
  rotaryPairs,
  rotatedAlone,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { transformerDocument } from '../transformer/settings.js';

export const youtu = defineDecoder({
  title: 'Youtu-LLM: latent attention',
  schema: transformerDocument('youtu', {
    ...latentSettings({
      sizes: {
        vocab_size: 128_256,
        hidden_size: 2048,
        intermediate_size: 6144,
        num_hidden_layers: 32,
        num_attention_heads: 16,
        max_position_embeddings: 131_072,
        rms_norm_eps: 1e-6,
      },
      tie_word_embeddings: true,
    }),
    rope_interleave: interleaved,
  }),
  headRules: LATENT_RULES,
  dimensions: null,
  huggingFace: {
    more: falseForNull,
    limited: { ...MLA_KEYS, ...rotatedAlone() },
    harmless: { embedding_initializer_range: 'used in training only' },
  },
  attentionLayer: ({ name, config }) =>
    deepseekAttention(`${name}.self_attn`, config, rotaryPairs(config)),
});
