/** Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783): the base of most later decoders. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, mlpBias, oldBuffers } from '../transformer/settings.js';

export const llama = defineDecoder({
  title: 'Llama 2 and 3, and what is built like them',
  schema: decoderDocument(
    'llama',
    {
      vocab_size: 32_000,
      hidden_size: 4096,
      intermediate_size: 11_008,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-6,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias, mlp_bias: mlpBias },
  ),
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers([`${prefix}layers.*.self_attn.rotary_emb.inv_freq`]),
});
