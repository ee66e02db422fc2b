/** Emu 3 (arXiv 2409.18869), the text part: Llama. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, mlpBias } from '../transformer/settings.js';

export const emu3TextModel = defineDecoder({
  title: 'Emu 3, text only',
  schema: decoderDocument(
    'emu3_text_model',
    {
      vocab_size: 184_622,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 9216,
      rms_norm_eps: 1e-5,
      rope_theta: 1e6,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias, mlp_bias: mlpBias },
  ),
});
