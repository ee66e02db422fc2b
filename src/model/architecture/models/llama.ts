/** Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783): the base of most later decoders. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, LLAMA_SIZES, mlpBias } from '../transformer/settings.js';

export const llama = defineDecoder({
  title: 'Llama 2 and 3, and what is built like them',
  presets: {
    'smollm2-135m': {
      title: 'SmolLM2-135M: 135M',
      model: {
        vocab_size: 49152,
        hidden_size: 576,
        intermediate_size: 1536,
        num_hidden_layers: 30,
        num_attention_heads: 9,
        num_key_value_heads: 3,
        max_position_embeddings: 8192,
        rope_theta: 100000,
        rms_norm_eps: 1e-5,
        tie_word_embeddings: true,
      },
    },
    'llama-3.2-1b': {
      title: 'Llama 3.2 1B: 1.24B',
      model: {
        vocab_size: 128256,
        hidden_size: 2048,
        intermediate_size: 8192,
        num_hidden_layers: 16,
        num_attention_heads: 32,
        num_key_value_heads: 8,
        max_position_embeddings: 131072,
        rope_theta: 500000,
        rope_scaling: {
          rope_type: 'llama3',
          factor: 32,
          original_max_position_embeddings: 8192,
          low_freq_factor: 1,
          high_freq_factor: 4,
        },
        rms_norm_eps: 1e-5,
        tie_word_embeddings: true,
      },
    },
  },
  schema: decoderDocument(
    'llama',
    {
      ...LLAMA_SIZES,
      rms_norm_eps: 1e-6,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias, mlp_bias: mlpBias },
  ),
});
