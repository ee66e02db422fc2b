/** Ministral 8B: Mistral with windows in some layers. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, windowAt, windowSettings } from '../transformer/settings.js';

export const ministral = defineDecoder({
  title: 'Ministral',
  schema: decoderDocument(
    'ministral',
    {
      vocab_size: 32_000,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-6,
    },
    { ...windowSettings(4096), hidden_act: gateActivation },
  ),
  attention: ({ config, index }) => ({ window: windowAt(config, index, true) }),
});
