/** Nemotron-4 and Minitron (arXiv 2407.14679): LayerNorms with offset 1, a squared ReLU without a gate. */
import { layerNormLayer } from '../constructors/basic-layers.js';
import { plainMlpOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import {
  activationWord,
  attentionBias,
  mlpBias,
  normEpsilon,
  partOfHead,
} from '../transformer/settings.js';

export const nemotron = defineDecoder({
  title: 'Nemotron-4 and Minitron',
  schema: plainDecoderDocument(
    'nemotron',
    {
      vocab_size: 256_000,
      hidden_size: 6144,
      intermediate_size: 24_576,
      num_hidden_layers: 32,
      num_attention_heads: 48,
      max_position_embeddings: 4096,
    },
    {
      norm_eps: normEpsilon(1e-5),
      partial_rotary_factor: partOfHead(0.5),
      hidden_act: activationWord.default('relu2').describe('Activation'),
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.norm_eps, { offset: 1 }),
  feedForward: ({ name, config }) => plainMlpOf(`${name}.mlp`, config),
});
