/** Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783): the base of most later decoders. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, LLAMA_SIZES, mlpBias } from '../transformer/settings.js';

export const llama = defineDecoder({
  title: 'Llama 2 and 3, and what is built like them',
  schema: decoderDocument(
    'llama',
    {
      ...LLAMA_SIZES,
      rms_norm_eps: 1e-6,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias, mlp_bias: mlpBias },
  ),
});
