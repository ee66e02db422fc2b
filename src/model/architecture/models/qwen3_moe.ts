/** Qwen 3 with experts (arXiv 2505.09388). */
import { unreadBut } from '../transformer/config-keys.js';
import { mlpOf, sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  gateActivation,
  hasExperts,
  sparseSettings,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

export const qwen3Moe = defineDecoder({
  title: 'Qwen 3 with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'qwen3_moe',
    {
      vocab_size: 151_936,
      hidden_size: 2048,
      intermediate_size: 6144,
      num_hidden_layers: 24,
      num_attention_heads: 32,
      num_key_value_heads: 4,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    {
      sliding_window: windowSettings(4096).sliding_window,
      use_sliding_window: toggle(false, 'Whether all layers have the window, or none'),
      ...sparseSettings({ experts: 128, expertsPerToken: 8, inner: 768 }),
      attention_bias: attentionBias,
      hidden_act: gateActivation,
    },
  ),
  dimensions: {
    headDim: ['head_dim'],
    // Many small experts: 768 of 2048 in Qwen3-30B-A3B.
    feedForward: { key: 'moe_intermediate_size', perChannel: [1 / 4, 1] },
  },
  huggingFace: {
    names: { num_experts: ['num_local_experts'] },
    limited: { attention_bias: unreadBut([false]) },
    harmless: { max_window_layers: 'all layers have the window, or none' },
  },
  queryKeyNorms: 'each head',
  attention: ({ config, index }) => ({
    window: config.use_sliding_window ? windowAt(config, index, true) : undefined,
  }),
  feedForward: ({ name, config, index }) =>
    (hasExperts(config, index) ? sparseMixture : mlpOf)(`${name}.mlp`, config),
});
