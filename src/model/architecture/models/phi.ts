/** Phi 1, 1.5 and 2 (arXiv 2306.11644): one norm for attention and feed-forward, biases everywhere. */
import { layerNormLayer } from '../constructors/basic-layers.js';
import { parallelBlock, plainMlpOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { activationWord, normEpsilon, partOfHead, toggle } from '../transformer/settings.js';

export const phi = defineDecoder({
  title: 'Phi 1, 1.5 and 2',
  schema: plainDecoderDocument(
    'phi',
    {
      vocab_size: 51_200,
      hidden_size: 2048,
      intermediate_size: 8192,
      num_hidden_layers: 24,
      num_attention_heads: 32,
      max_position_embeddings: 2048,
    },
    {
      layer_norm_eps: normEpsilon(1e-5),
      partial_rotary_factor: partOfHead(0.5),
      hidden_act: activationWord.default('gelu_new').describe('Activation'),
      qk_layernorm: toggle(false, 'Norms on the queries and keys of every head'),
    },
  ),
  block: parallelBlock,
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.layer_norm_eps),
  finalNorm: 'final_layernorm',
  headBias: true,
  attention({ name, config, heads: { headDim } }) {
    const norm = (leaf: string) =>
      layerNormLayer(`${name}.self_attn.${leaf}`, headDim, config.layer_norm_eps);
    return {
      bias: true,
      outBias: true,
      outName: 'dense',
      ...(config.qk_layernorm && { queryNorm: norm('q_layernorm'), keyNorm: norm('k_layernorm') }),
    };
  },
  feedForward: ({ name, config }) => plainMlpOf(`${name}.mlp`, config, ['fc1', 'fc2']),
});
