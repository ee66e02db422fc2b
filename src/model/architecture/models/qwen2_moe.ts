/** Qwen 1.5 and 2 with routed experts, and a shared expert with its own gate. */
import { unreadBut } from '../transformer/config-keys.js';
import { mlpOf, sharedExpert, sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  count,
  gateActivation,
  hasExperts,
  sparseSettings,
  toggle,
  upperWindowSettings,
  windowAt,
} from '../transformer/settings.js';

export const qwen2Moe = defineDecoder({
  title: 'Qwen 1.5 and 2 with experts, one of them shared',
  architecture: 'mixture',
  schema: decoderDocument(
    'qwen2_moe',
    {
      vocab_size: 151_936,
      hidden_size: 2048,
      intermediate_size: 5632,
      num_hidden_layers: 24,
      num_attention_heads: 16,
      num_key_value_heads: 16,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    {
      ...upperWindowSettings,
      ...sparseSettings({ experts: 60, expertsPerToken: 4, inner: 1408 }),
      shared_expert_intermediate_size: count(5632, 'Width inside the shared expert'),
      qkv_bias: toggle(true, 'Biases on queries, keys and values'),
      hidden_act: gateActivation,
    },
  ),
  slidesByRule: ({ use_sliding_window: use }) => use === true,
  dimensions: null,
  huggingFace: { limited: { attention_bias: unreadBut([]) } },
  attention: ({ config, index }) => ({
    bias: config.qkv_bias,
    // Here, even-numbered lower layers have the window.
    window: config.use_sliding_window
      ? windowAt(config, index, index % 2 === 0 && index < config.max_window_layers)
      : undefined,
  }),
  feedForward({ name: blockName, config, index }) {
    const name = `${blockName}.mlp`;
    if (!hasExperts(config, index)) return mlpOf(name, config);
    return sparseMixture(name, config, sharedExpert(name, config));
  },
});
