/** Qwen 3 (arXiv 2505.09388): norms on the queries and keys of every head. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  gateActivation,
  upperWindowSettings,
  upperWindows,
} from '../transformer/settings.js';

export const qwen3 = defineDecoder({
  title: 'Qwen 3: norms on queries and keys',
  presets: {
    'qwen3-0.6b': {
      title: 'Qwen3-0.6B: 596M',
      model: {
        vocab_size: 151936,
        hidden_size: 1024,
        intermediate_size: 3072,
        num_hidden_layers: 28,
        num_attention_heads: 16,
        num_key_value_heads: 8,
        max_position_embeddings: 40960,
        rope_theta: 1000000,
        tie_word_embeddings: true,
      },
    },
  },
  schema: decoderDocument(
    'qwen3',
    {
      vocab_size: 151_936,
      hidden_size: 4096,
      intermediate_size: 22_016,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 32,
      head_dim: 128,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    { ...upperWindowSettings, hidden_act: gateActivation, attention_bias: attentionBias },
  ),
  queryKeyNorms: 'each head',
  attention: ({ config, index }) => ({ window: upperWindows(config, index) }),
});
