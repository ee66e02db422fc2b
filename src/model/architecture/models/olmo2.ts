/** OLMo 2 (arXiv 2501.00656): norms after the branches, and over all queries and all keys at once. */
import { postNormBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, LLAMA_SIZES } from '../transformer/settings.js';

export const olmo2 = defineDecoder({
  title: 'OLMo 2: norms behind the branches',
  schema: decoderDocument(
    'olmo2',
    {
      ...LLAMA_SIZES,
      vocab_size: 50_304,
      rms_norm_eps: 1e-5,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias },
  ),
  block: postNormBlock,
  queryKeyNorms: 'all heads',
});
