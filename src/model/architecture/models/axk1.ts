/** A.X K1: DeepSeek-V3 with a norm behind the experts. */
import { rmsNormLayer, sequence } from '../constructors/basic-layers.js';
import {
  BEST_TWO_RULES,
  correctedRouting,
  DEEPSEEK_RULES,
  deepseekAttention,
  deepseekFeedForward,
  deepseekSettings,
  falseForNull,
  interleaved,
  MLA_KEYS,
  rotaryPairs,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { positiveInteger, transformerDocument } from '../transformer/settings.js';

const settings = deepseekSettings({
  sizes: {
    vocab_size: 163_840,
    hidden_size: 7168,
    intermediate_size: 18_432,
    num_hidden_layers: 61,
    num_attention_heads: 64,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
  },
  moe_intermediate_size: 2048,
  n_routed_experts: 192,
  n_shared_experts: 1,
  num_experts_per_tok: 8,
  first_k_dense_replace: 1,
  routed_scaling_factor: 2.5,
  norm_topk_prob: true,
  n_group: 8,
  topk_group: 4,
});

export const axk1 = defineDecoder({
  title: 'A.X K1: latent attention, experts with a norm',
  architecture: 'mixture',
  schema: transformerDocument('axk1', {
    ...settings,
    q_lora_rank: positiveInteger.default(1536).describe('Rank of the queries'),
    rope_interleave: interleaved,
  }),
  headRules: DEEPSEEK_RULES,
  rules: BEST_TWO_RULES,
  dimensions: null,
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    more: falseForNull,
    limited: {
      ...MLA_KEYS,
      q_lora_rank: {
        allows: (rank) => rank !== null,
        why: 'the class has no queries of one product',
        severity: 'error',
      },
      head_dim: {
        allows: (width, { qk_rope_head_dim: rotated = 64 }) => width === rotated,
        why: 'it is taken for the number of dimensions that are rotated',
        severity: 'error',
      },
    },
  },
  ignoredOnLoad: ['inv_freq', ROTARY_BUFFERS],
  attentionLayer: ({ name, config }) =>
    deepseekAttention(`${name}.self_attn`, config, rotaryPairs(config)),
  feedForward({ name: block, index, config }) {
    const name = `${block}.mlp`;
    const network = deepseekFeedForward(name, index, config, { routing: correctedRouting(config) });
    if (network.kind !== 'mixtureOfExperts') return network;
    const place = config.experts_stored === 'packed' ? name : block;
    return sequence(`${name}.normed`, [
      network,
      rmsNormLayer(`${place}.post_mlp_layernorm`, config.hidden_size, config.rms_norm_eps),
    ]);
  },
});
