/** DeepSeek-V2 (arXiv 2405.04434): latent attention and grouped experts. */
import * as z from 'zod';
import {
  DEEPSEEK_RULES,
  deepseekAttention,
  deepseekFeedForward,
  deepseekSettings,
  MLA_KEYS,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { toggle, transformerDocument } from '../transformer/settings.js';

const schema = transformerDocument('deepseek_v2', {
  ...deepseekSettings({
    sizes: {
      vocab_size: 102_400,
      hidden_size: 4096,
      intermediate_size: 11_008,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-6,
    },
    moe_intermediate_size: 1407,
    n_routed_experts: 64,
    n_shared_experts: 2,
    num_experts_per_tok: 6,
    first_k_dense_replace: 0,
    routed_scaling_factor: 1,
    norm_topk_prob: false,
    n_group: null,
    topk_group: null,
  }),
  topk_method: z
    .enum(['greedy', 'group_limited_greedy'])
    .default('greedy')
    .describe('Whether only the best groups are chosen from'),
  scoring_func: z.literal('softmax').default('softmax').describe('How experts are scored'),
  mlp_bias: toggle(false, 'Biases in the dense and in the shared networks'),
});

export const deepseekV2 = defineDecoder({
  title: 'DeepSeek-V2: latent attention, experts',
  architecture: 'mixture',
  schema,
  headRules: DEEPSEEK_RULES,
  dimensions: null,
  rules: [
    {
      severity: 'warning',
      reads: ['model.norm_topk_prob'],
      check: ({ model }) =>
        model.norm_topk_prob
          ? {
              message:
                'norm_topk_prob has no effect: transformers does not read it for this family',
              suggestion: 'write norm_topk_prob: false',
            }
          : undefined,
    },
    {
      severity: 'error',
      reads: ['model.topk_method', 'model.n_group', 'model.topk_group'],
      check: ({ model: { topk_method, n_group, topk_group } }) =>
        topk_method === 'group_limited_greedy' && (n_group === null || topk_group === null)
          ? {
              message: 'group_limited_greedy needs n_group and topk_group',
              suggestion: 'give both, or write topk_method: greedy',
            }
          : undefined,
    },
  ],
  huggingFace: {
    names: { n_routed_experts: ['num_experts'] },
    limited: MLA_KEYS,
    harmless: { head_dim: 'transformers uses qk_rope_head_dim in its place' },
  },
  attentionLayer: ({ name, config }) =>
    deepseekAttention(`${name}.self_attn`, config, 'neighbours'),
  feedForward({ name, index, config }) {
    const { n_group: count, topk_group: kept, topk_method: method } = config;
    const isGrouped = method === 'group_limited_greedy' && count !== null && kept !== null;
    return deepseekFeedForward(`${name}.mlp`, index, config, {
      bias: config.mlp_bias,
      routing: () => ({
        scoring: 'softmax',
        correction: undefined,
        groups: isGrouped ? { count, kept, score: 'best', dropped: 0 } : undefined,
        renormalised: undefined,
      }),
    });
  },
});
