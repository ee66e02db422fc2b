/** dots.llm1 (arXiv 2506.05767): attention of Qwen 3 with experts of DeepSeek-V3. */
import * as z from 'zod';
import {
  correctedRouting,
  deepseekFeedForward,
  ROUTED_RULES,
  routedSettings,
} from '../transformer/deepseek.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  gateActivation,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

export const dots1 = defineDecoder({
  title: 'dots.llm1, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'dots1',
    {
      vocab_size: 152_064,
      hidden_size: 4608,
      intermediate_size: 10_944,
      num_hidden_layers: 62,
      num_attention_heads: 32,
      num_key_value_heads: 32,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-6,
    },
    {
      ...windowSettings(4096),
      max_window_layers: z
        .int()
        .min(0)
        .nullable()
        .default(62)
        .describe('Without layer_types: the first layer that has the window'),
      attention_bias: attentionBias,
      // The class has no defaults for its experts: these are those of dots.llm1.
      ...routedSettings({
        moe_intermediate_size: 1408,
        n_routed_experts: 128,
        n_shared_experts: 2,
        num_experts_per_tok: 6,
        first_k_dense_replace: 0,
        routed_scaling_factor: 1,
        norm_topk_prob: false,
        n_group: 1,
        topk_group: 1,
      }),
      hidden_act: gateActivation,
    },
  ),
  rules: ROUTED_RULES,
  dimensions: null,
  huggingFace: { names: { n_routed_experts: ['num_local_experts'] } },
  queryKeyNorms: 'each head',
  attention: ({ config, index }) => ({
    window: windowAt(config, index, index >= (config.max_window_layers ?? 0)),
  }),
  feedForward: ({ name, config, index }) =>
    deepseekFeedForward(`${name}.mlp`, index, config, { routing: correctedRouting(config) }),
});
