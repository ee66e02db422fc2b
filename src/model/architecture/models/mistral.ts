/** Mistral (arXiv 2310.06825): Llama with grouped-query attention in a sliding window. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, windowAt, windowSettings } from '../transformer/settings.js';

/** Document of Mistral and Ministral. */
export const mistralDocument = <Name extends string>(family: Name) =>
  decoderDocument(
    family,
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
  );

export const mistral = defineDecoder({
  title: 'Mistral: a sliding window in every layer, or in those listed',
  schema: mistralDocument('mistral'),
  attention: ({ config, index }) => ({ window: windowAt(config, index, true) }),
});
