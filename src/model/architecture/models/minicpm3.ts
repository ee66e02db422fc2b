/** MiniCPM3: latent attention, with factors of the embedding, of each branch and of the logits (arXiv 2404.06395). */
import * as z from 'zod';
import { unreadEach } from '../transformer/config-keys.js';
import { streamFactor } from '../transformer/decoder-parts.js';
import {
  deepseekAttention,
  LATENT_RULES,
  latentKeys,
  latentSettings,
  rotatedAlone,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { mlpBias, positiveInteger, transformerDocument } from '../transformer/settings.js';

/** Dimensions of a head that are not rotated, and that are. */
const [STILL, TURNED] = [64, 32];

export const minicpm3 = defineDecoder({
  title: 'MiniCPM3: latent attention',
  schema: transformerDocument('minicpm3', {
    ...latentSettings({
      latent: {
        q_lora_rank: 768,
        kv_lora_rank: 256,
        qk_nope_head_dim: STILL,
        qk_rope_head_dim: TURNED,
      },
      sizes: {
        vocab_size: 73_448,
        hidden_size: 2560,
        intermediate_size: 6400,
        num_hidden_layers: 62,
        num_attention_heads: 40,
        max_position_embeddings: 32_768,
        rms_norm_eps: 1e-5,
      },
      tie_word_embeddings: true,
    }),
    v_head_dim: positiveInteger
      .nullish()
      .describe("Width of a head's value; null: hidden_size / num_attention_heads"),
    mlp_bias: mlpBias,
    scale_emb: z.number().default(12).describe('Factor of the embeddings'),
    scale_depth: z
      .number()
      .nullable()
      .default(1.4)
      .describe("Factor of each branch's output, times √num_hidden_layers; null: no factor"),
    dim_model_base: positiveInteger
      .nullable()
      .default(256)
      .describe('Part of hidden_size that the logits are multiplied by; null: no factor'),
  }),
  headRules: LATENT_RULES,
  dimensions: null,
  huggingFace: {
    limited: {
      ...latentKeys(STILL, TURNED),
      ...rotatedAlone(TURNED),
      ...unreadEach(['logits_scaling'], [], 'it is hidden_size / dim_model_base'),
    },
  },
  embeddingSteps: ({ scale_emb }) => streamFactor('scale_emb', scale_emb),
  branchFactor: ({ scale_depth, num_hidden_layers }) =>
    scale_depth === null ? 1 : scale_depth / Math.sqrt(num_hidden_layers),
  logitSteps: ({ dim_model_base, hidden_size }) =>
    streamFactor('dim_model_base', (dim_model_base ?? hidden_size) / hidden_size),
  attentionLayer: ({ name, config }) =>
    deepseekAttention(
      `${name}.self_attn`,
      {
        ...config,
        v_head_dim:
          config.v_head_dim ?? Math.floor(config.hidden_size / config.num_attention_heads),
      },
      'halves',
    ),
});
