/** StableLM (arXiv 2402.17834): LayerNorms and gates; the 12B has a norm of its own for each head. */
import { asNumber } from '../../../base/values.js';
import { headNorms, layerNormLayer } from '../constructors/basic-layers.js';
import { unreadBut } from '../transformer/config-keys.js';
import { parallelBlock, preNormBlock } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { gateActivation, normEpsilon, partOfHead, toggle } from '../transformer/settings.js';

export const stablelm = defineDecoder({
  title: 'StableLM',
  schema: plainDecoderDocument(
    'stablelm',
    {
      vocab_size: 50_304,
      hidden_size: 2560,
      intermediate_size: 6912,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 32,
      max_position_embeddings: 4096,
    },
    {
      layer_norm_eps: normEpsilon(1e-5),
      partial_rotary_factor: partOfHead(0.25),
      hidden_act: gateActivation,
      use_qkv_bias: toggle(false, 'Biases of queries, keys and values'),
      qk_layernorm: toggle(false, 'Norms on queries and keys, another for each head'),
      use_parallel_residual: toggle(
        false,
        'Attention and feed-forward read the same norm, and are added at once',
      ),
    },
  ),
  huggingFace: {
    limited: {
      head_dim: unreadBut(
        (width, { hidden_size = 2560, num_attention_heads: heads = 32 }) =>
          width === null || width === asNumber(hidden_size) / asNumber(heads),
      ),
    },
  },
  block: (name, parts, config) =>
    (config.use_parallel_residual ? parallelBlock : preNormBlock)(name, parts),
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.layer_norm_eps),
  attention({ name, config, heads: { heads, keyValueHeads, headDim } }) {
    const norms = (leaf: string, count: number) =>
      headNorms(
        `${name}.self_attn.${leaf}`,
        Array.from({ length: count }, (_, head) =>
          layerNormLayer(
            `${name}.self_attn.${leaf}.norms.${head}`,
            headDim,
            config.layer_norm_eps,
            { holds: 'weight' },
          ),
        ),
      );
    return {
      bias: config.use_qkv_bias,
      outBias: false,
      ...(config.qk_layernorm && {
        queryNorm: norms('q_layernorm', heads),
        keyNorm: norms('k_layernorm', keyValueHeads),
      }),
    };
  },
});
