/** Qwen3.5 with experts, the text part. */
import { sharedExpert, sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  DELTA_READING,
  DELTA_RULES,
  deltaOrAttention,
  deltaSettings,
  IMAGE_KEYS,
} from '../transformer/gated-delta.js';
import { PREDICTING, ROTARY_BUFFERS, SEEING } from '../transformer/ignored-tensors.js';
import { count, expertsStored } from '../transformer/settings.js';
import { qwen35Inputs } from './qwen3_5_text.js';

export const qwen35MoeText = defineDecoder({
  title: 'Qwen3.5 with experts, text only',
  architecture: 'hybrid',
  schema: decoderDocument(
    'qwen3_5_moe_text',
    {
      vocab_size: 248_320,
      hidden_size: 2048,
      intermediate_size: 5632,
      num_hidden_layers: 40,
      num_attention_heads: 16,
      num_key_value_heads: 2,
      head_dim: 256,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    {
      ...deltaSettings({ linear_num_value_heads: 32 }),
      num_experts: count(256, 'Experts to choose from'),
      num_experts_per_tok: count(8, 'Experts that a token goes to'),
      moe_intermediate_size: count(512, 'Width inside an expert'),
      shared_expert_intermediate_size: count(512, 'Width inside the shared expert'),
      experts_stored: expertsStored,
    },
  ),
  rules: DELTA_RULES,
  dimensions: null,
  ignoredOnLoad: [PREDICTING, ROTARY_BUFFERS, SEEING],
  huggingFace: {
    ...DELTA_READING,
    limited: IMAGE_KEYS,
    harmless: { intermediate_size: 'every layer has experts' },
  },
  normOffset: 1,
  attentionLayer: (block) => deltaOrAttention(block, qwen35Inputs),
  feedForward: ({ name, config }) =>
    sparseMixture(
      `${name}.mlp`,
      { ...config, norm_topk_prob: true },
      sharedExpert(`${name}.mlp`, config),
    ),
});
