/** GLM-4.7-Flash: latent attention of DeepSeek-V3 with experts in the layers that the config lists. */
import { unreadEach } from '../transformer/config-keys.js';
import {
  BEST_TWO_RULES,
  correctedRouting,
  deepseekAttention,
  deepseekFeedForward,
  falseForNull,
  interleaved,
  LATENT_RULES,
  latentKeys,
  latentSettings,
  predictionSettings,
  predictionTensors,
  rotaryPairs,
  rotatedAlone,
  routedRules,
  routedSettings,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { mlpLayerTypes, transformerDocument } from '../transformer/settings.js';

/** Dimensions of a head that are not rotated. */
const STILL = 192;

/** First layers without experts, where the config does not list them. */
const DENSE = 1;

const { first_k_dense_replace: _, ...experts } = routedSettings({
  moe_intermediate_size: 1536,
  n_routed_experts: 64,
  n_shared_experts: 1,
  num_experts_per_tok: 4,
  first_k_dense_replace: DENSE,
  routed_scaling_factor: 1.8,
  norm_topk_prob: true,
  n_group: 1,
  topk_group: 1,
});

export const glm4MoeLite = defineDecoder({
  title: 'GLM-4.7-Flash: latent attention, experts',
  architecture: 'mixture',
  schema: transformerDocument('glm4_moe_lite', {
    ...latentSettings({
      latent: { q_lora_rank: 768, kv_lora_rank: 512, qk_nope_head_dim: STILL, v_head_dim: 256 },
      sizes: {
        vocab_size: 154_880,
        hidden_size: 2048,
        intermediate_size: 10_240,
        num_hidden_layers: 47,
        num_attention_heads: 20,
        max_position_embeddings: 202_752,
        rms_norm_eps: 1e-5,
      },
    }),
    ...experts,
    mlp_layer_types: mlpLayerTypes,
    rope_interleave: interleaved,
    ...predictionSettings,
  }),
  headRules: LATENT_RULES,
  rules: [...routedRules('n_routed_experts'), ...BEST_TWO_RULES],
  dimensions: null,
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    more: falseForNull,
    limited: {
      ...latentKeys(STILL),
      ...rotatedAlone(),
      ...unreadEach(['first_k_dense_replace'], [DENSE]),
      ...unreadEach(['moe_layer_freq'], [1]),
      ...unreadEach(['topk_method'], ['noaux_tc']),
      ...unreadEach(['scoring_func'], ['sigmoid']),
    },
  },
  ignoredOnLoad: ['model\\.layers\\.47.*', ROTARY_BUFFERS],
  ignored: ({ model }) => predictionTensors(model),
  attentionLayer: ({ name, config }) =>
    deepseekAttention(`${name}.self_attn`, config, rotaryPairs(config)),
  feedForward: ({ name, index, config }) =>
    deepseekFeedForward(
      `${name}.mlp`,
      index,
      { ...config, first_k_dense_replace: DENSE },
      { routing: correctedRouting(config) },
    ),
});
