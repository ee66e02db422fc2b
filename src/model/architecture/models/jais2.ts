/** Jais 2: Llama with LayerNorms, biases, and a squared ReLU without a gate. */
import { layerNormLayer } from '../constructors/basic-layers.js';
import { plainMlpOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { activationWord, normEpsilon, toggle } from '../transformer/settings.js';

export const jais2 = defineDecoder({
  title: 'Jais 2',
  schema: plainDecoderDocument(
    'jais2',
    {
      vocab_size: 150_272,
      hidden_size: 3328,
      intermediate_size: 26_624,
      num_hidden_layers: 32,
      num_attention_heads: 26,
      max_position_embeddings: 8192,
    },
    {
      layer_norm_eps: normEpsilon(1e-5),
      hidden_act: activationWord.default('relu2').describe('Activation'),
      attention_bias: toggle(true, 'Biases in all four products of attention'),
      mlp_bias: toggle(true, 'Biases in the feed-forward network'),
    },
  ),
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.layer_norm_eps),
  feedForward: ({ name, config }) => plainMlpOf(`${name}.mlp`, config),
});
