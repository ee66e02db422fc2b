/** Qwen 2 and 2.5 (arXiv 2407.10671): Llama with biases on queries, keys and values. */
import { unreadBut } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, upperWindowSettings, upperWindows } from '../transformer/settings.js';

export const qwen2 = defineDecoder({
  title: 'Qwen 2 and 2.5: Llama with biases on queries, keys and values',
  schema: decoderDocument(
    'qwen2',
    {
      vocab_size: 151_936,
      hidden_size: 4096,
      intermediate_size: 22_016,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 32,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    { ...upperWindowSettings, hidden_act: gateActivation },
  ),
  huggingFace: { limited: { attention_bias: unreadBut([]) } },
  attention: ({ config, index }) => ({ bias: true, window: upperWindows(config, index) }),
});
