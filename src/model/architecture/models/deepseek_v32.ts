/** DeepSeek-V3.2 (arXiv 2512.02556): V3 with an indexer that chooses the keys of each query. */
import {
  BEST_TWO_RULES,
  correctedRouting,
  deepseekAttention,
  deepseekFeedForward,
  falseForNull,
  LATENT_RULES,
  latentSettings,
  MLA_KEYS,
  predictionSettings,
  predictionTensors,
  ROUTED_RULES,
  routedSettings,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { mlpLayerTypes, positiveInteger, transformerDocument } from '../transformer/settings.js';
import {
  INDEXER_RULES,
  indexedKeys,
  indexerSettings,
  tokenIndexerOf,
} from '../transformer/token-indexer.js';

const schema = transformerDocument('deepseek_v32', {
  ...latentSettings({
    sizes: {
      vocab_size: 129_280,
      hidden_size: 7168,
      intermediate_size: 18_432,
      num_hidden_layers: 61,
      num_attention_heads: 128,
      max_position_embeddings: 163_840,
      rms_norm_eps: 1e-6,
    },
  }),
  q_lora_rank: positiveInteger.default(1536).describe('Rank of the queries'),
  ...routedSettings({
    moe_intermediate_size: 2048,
    n_routed_experts: 256,
    n_shared_experts: 1,
    num_experts_per_tok: 8,
    first_k_dense_replace: 3,
    routed_scaling_factor: 2.5,
    norm_topk_prob: true,
    n_group: 8,
    topk_group: 4,
  }),
  mlp_layer_types: mlpLayerTypes,
  ...indexerSettings({ index_topk: 2048, index_head_dim: 128, index_n_heads: 64 }),
  ...predictionSettings,
});

export const deepseekV32 = defineDecoder({
  title: 'DeepSeek-V3.2: latent attention with an indexer, corrected experts',
  architecture: 'mixture',
  schema,
  headRules: [...LATENT_RULES, ...ROUTED_RULES],
  rules: [...BEST_TWO_RULES, ...INDEXER_RULES],
  dimensions: null,
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  huggingFace: {
    names: {
      n_routed_experts: ['num_experts', 'num_local_experts'],
      num_nextn_predict_layers: ['num_mtp_layers'],
    },
    more: falseForNull,
    limited: { ...MLA_KEYS, ...indexedKeys() },
  },
  ignoredOnLoad: ['model\\.layers\\.61.*', ROTARY_BUFFERS],
  ignored: ({ model }) => predictionTensors(model),
  attentionLayer({ name: block, config }) {
    const name = `${block}.self_attn`;
    return deepseekAttention(name, config, 'neighbours', {
      selection: tokenIndexerOf(`${name}.indexer`, config, 'halves'),
    });
  },
  feedForward: ({ name, index, config }) =>
    deepseekFeedForward(`${name}.mlp`, index, config, { routing: correctedRouting(config) }),
});
