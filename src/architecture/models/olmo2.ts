/** OLMo 2 (arXiv 2501.00656): norms after the branches, and over all queries and all keys at once. */
import { postNormBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation } from '../transformer/settings.js';

export const olmo2 = defineDecoder({
  title: 'OLMo 2: norms behind the branches',
  schema: decoderDocument(
    'olmo2',
    {
      vocab_size: 50_304,
      hidden_size: 4096,
      intermediate_size: 11_008,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-5,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias },
  ),
  block: postNormBlock,
  queryKeyNorms: 'all heads',
});
