/** DeepSeek-V3 and R1 (arXiv 2412.19437): V2 with sigmoid scores, and a correction instead of a loss. */
import * as z from 'zod';
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
  predictionSettings,
  predictionTensors,
  rotaryPairs,
  rotatedAlone,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { transformerDocument } from '../transformer/settings.js';

const CONTESTED =
  'the original code of DeepSeek-V3 counts the router’s correction as a parameter, transformers holds it as a buffer';

const schema = transformerDocument('deepseek_v3', {
  ...deepseekSettings({
    sizes: {
      vocab_size: 129_280,
      hidden_size: 7168,
      intermediate_size: 18_432,
      num_hidden_layers: 61,
      num_attention_heads: 128,
      max_position_embeddings: 4096,
      rms_norm_eps: 1e-6,
    },
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
  topk_method: z.literal('noaux_tc').default('noaux_tc').describe('By corrected scores'),
  scoring_func: z.literal('sigmoid').default('sigmoid').describe('How experts are scored'),
  rope_interleave: interleaved,
  ...predictionSettings,
});

export const deepseekV3 = defineDecoder({
  title: 'DeepSeek-V3 and R1: latent attention, corrected experts',
  architecture: 'mixture',
  schema,
  headRules: DEEPSEEK_RULES,
  rules: BEST_TWO_RULES,
  dimensions: null,
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  huggingFace: {
    names: {
      n_routed_experts: ['num_local_experts'],
      num_nextn_predict_layers: ['num_mtp_layers'],
    },
    more: falseForNull,
    limited: { ...MLA_KEYS, ...rotatedAlone() },
  },
  ignoredOnLoad: ['model\\.layers\\.61.*', ROTARY_BUFFERS],
  ignored: ({ model }) => predictionTensors(model),
  attentionLayer: ({ name, config }) =>
    deepseekAttention(`${name}.self_attn`, config, rotaryPairs(config)),
  feedForward: ({ name, index, config }) =>
    deepseekFeedForward(`${name}.mlp`, index, config, {
      routing: correctedRouting(config, { contested: CONTESTED }),
    }),
});
