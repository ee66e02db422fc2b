/** VaultGemma (arXiv 2510.15001): Gemma 2 without the norms behind its branches. */
import { unreadBut } from '../transformer/config-keys.js';
import { residualBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { windowAt, windowSettings } from '../transformer/settings.js';
import { HIDDEN_ACT_UNREAD, LATER_GEMMA, laterGemmaSettings } from './gemma.js';

const { use_bidirectional_attention: _, ...settings } = laterGemmaSettings({
  attention: 50,
  logits: 30,
});

export const vaultgemma = defineDecoder({
  ...LATER_GEMMA,
  title: 'VaultGemma',
  schema: decoderDocument(
    'vaultgemma',
    {
      vocab_size: 256_000,
      hidden_size: 2304,
      intermediate_size: 9216,
      num_hidden_layers: 26,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 8192,
      rms_norm_eps: 1e-6,
      tie_word_embeddings: true,
    },
    { ...windowSettings(4096), ...settings },
  ),
  huggingFace: {
    limited: { ...HIDDEN_ACT_UNREAD, use_bidirectional_attention: unreadBut([false]) },
  },
  block: (name, { norm, attention, feedForward }) =>
    residualBlock(name, {
      attention: [norm(`${name}.input_layernorm`), attention],
      mlp: [norm(`${name}.pre_feedforward_layernorm`), feedForward],
    }),
  attention: ({ config, index }) => ({
    scale: config.query_pre_attn_scalar ** -0.5,
    softcap: config.attn_logit_softcapping ?? undefined,
    window: windowAt(config, index, index % 2 === 0),
  }),
});
