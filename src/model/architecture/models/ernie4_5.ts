/** ERNIE 4.5, dense: neighbouring dimensions rotate together. */
import { mlpOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, toggle } from '../transformer/settings.js';

export const ernie45 = defineDecoder({
  title: 'ERNIE 4.5, dense',
  schema: decoderDocument(
    'ernie4_5',
    {
      vocab_size: 103_424,
      hidden_size: 1024,
      intermediate_size: 3072,
      num_hidden_layers: 18,
      num_attention_heads: 16,
      num_key_value_heads: 2,
      head_dim: 128,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: 500_000,
      tie_word_embeddings: true,
    },
    {
      hidden_act: gateActivation,
      use_bias: toggle(false, 'Biases in all products but the head'),
    },
  ),
  rotaryPairs: 'neighbours',
  attention: ({ config }) => ({ bias: config.use_bias, outBias: config.use_bias }),
  feedForward: ({ name, config }) => mlpOf(`${name}.mlp`, { ...config, mlp_bias: config.use_bias }),
});
