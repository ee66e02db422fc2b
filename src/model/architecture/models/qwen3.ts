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
