/** StarCoder2 (arXiv 2402.19173): LayerNorms, biases, a sliding window, no gates. */
import { layerNormLayer } from '../constructors/basic-layers.js';
import { plainMlpOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import {
  activationWord,
  normEpsilon,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

export const starcoder2 = defineDecoder({
  title: 'StarCoder2',
  schema: plainDecoderDocument(
    'starcoder2',
    {
      vocab_size: 49_152,
      hidden_size: 3072,
      intermediate_size: 12_288,
      num_hidden_layers: 30,
      num_attention_heads: 24,
      num_key_value_heads: 2,
      max_position_embeddings: 4096,
      tie_word_embeddings: true,
    },
    {
      norm_epsilon: normEpsilon(1e-5),
      sliding_window: windowSettings().sliding_window,
      hidden_act: activationWord.default('gelu_pytorch_tanh').describe('Activation'),
      use_bias: toggle(true, 'Biases in all products but the head'),
    },
  ),
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.norm_epsilon),
  attention: ({ config, index }) => ({
    bias: config.use_bias,
    outBias: config.use_bias,
    window: windowAt(config, index, true),
  }),
  feedForward: ({ name, config }) =>
    plainMlpOf(`${name}.mlp`, { ...config, mlp_bias: config.use_bias }, ['c_fc', 'c_proj']),
});
