/** Seed-OSS: Llama with biases on queries, keys and values. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, mlpBias, toggle } from '../transformer/settings.js';

export const seedOss = defineDecoder({
  title: 'Seed-OSS',
  schema: decoderDocument(
    'seed_oss',
    {
      vocab_size: 155_136,
      hidden_size: 4096,
      intermediate_size: 27_648,
      num_hidden_layers: 64,
      num_attention_heads: 80,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 524_288,
      rms_norm_eps: 1e-6,
    },
    {
      hidden_act: gateActivation,
      attention_bias: toggle(true, 'Biases of queries, keys and values'),
      attention_out_bias: toggle(false, 'Bias of the output of attention'),
      mlp_bias: mlpBias,
    },
  ),
  attention: ({ config }) => ({ bias: config.attention_bias, outBias: config.attention_out_bias }),
});
