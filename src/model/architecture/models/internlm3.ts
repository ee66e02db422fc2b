/** InternLM 3: Llama with biases of queries, keys and values, and of the other products, by keys of their own. */

import { mlpOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, toggle } from '../transformer/settings.js';

// Defaults are those of configuration_internlm3.py in the repositories of the models.
export const internlm3 = defineDecoder({
  title: 'InternLM 3',
  schema: decoderDocument(
    'internlm3',
    {
      vocab_size: 128_512,
      hidden_size: 4096,
      intermediate_size: 11_008,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    {
      hidden_act: gateActivation,
      qkv_bias: toggle(false, 'Biases on queries, keys and values'),
      bias: toggle(false, 'Biases in the other products'),
    },
  ),
  attention: ({ config }) => ({ bias: config.qkv_bias, outBias: config.bias }),
  feedForward: ({ name, config }) => mlpOf(`${name}.mlp`, { ...config, mlp_bias: config.bias }),
});
