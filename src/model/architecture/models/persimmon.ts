/** Persimmon 8B: LayerNorms on queries and keys, one product for the three, a squared ReLU without a gate. */
import { attention } from '../constructors/attention-layers.js';
import { fusedProjection, layerNormLayer, linear } from '../constructors/basic-layers.js';
import { headDimOfWidth } from '../transformer/config-keys.js';
import { plainMlpOf, rotaryOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { activationWord, normEpsilon, partOfHead, toggle } from '../transformer/settings.js';

const SIZES = {
  vocab_size: 262_144,
  hidden_size: 4096,
  intermediate_size: 16_384,
  num_hidden_layers: 36,
  num_attention_heads: 64,
  max_position_embeddings: 16_384,
};

// Defaults are those of transformers' PersimmonConfig.
const schema = plainDecoderDocument('persimmon', SIZES, {
  layer_norm_eps: normEpsilon(1e-5),
  partial_rotary_factor: partOfHead(0.5),
  hidden_act: activationWord.default('relu2').describe('Activation'),
  qk_layernorm: toggle(true, 'Norms on the queries and keys of every head'),
});

export const persimmon = defineDecoder({
  title: 'Persimmon',
  schema,
  huggingFace: {
    harmless: { num_key_value_heads: 'every head has keys and values of its own' },
    limited: { head_dim: headDimOfWidth(SIZES) },
  },
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.layer_norm_eps),
  finalNorm: 'final_layernorm',
  attentionLayer({ name: block, config, heads: { hidden, heads, headDim } }) {
    const name = `${block}.self_attn`;
    const norm = (leaf: string) =>
      layerNormLayer(`${name}.${leaf}`, headDim, config.layer_norm_eps);
    const product = linear(`${name}.query_key_value`, hidden, 3 * hidden);
    return attention(name, {
      inputs: fusedProjection(product, [hidden, hidden, hidden], heads),
      out: linear(`${name}.dense`, hidden, hidden),
      ...(config.qk_layernorm && { queryNorm: norm('q_layernorm'), keyNorm: norm('k_layernorm') }),
      rotary: rotaryOf(block, config, headDim, { part: config.partial_rotary_factor }),
      heads,
      headDim,
    });
  },
  feedForward: ({ name, config }) =>
    plainMlpOf(`${name}.mlp`, config, ['dense_h_to_4h', 'dense_4h_to_h']),
});
