/** Gemma 2 (arXiv 2408.00118): a window in every other layer, softcaps, norms before and after each branch. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { windowAt, windowSettings } from '../transformer/settings.js';
import { HIDDEN_ACT_UNREAD, LATER_GEMMA, laterGemmaSettings } from './gemma.js';

export const gemma2 = defineDecoder({
  ...LATER_GEMMA,
  title: 'Gemma 2',
  schema: decoderDocument(
    'gemma2',
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
    { ...windowSettings(4096), ...laterGemmaSettings({ attention: 50, logits: 30 }) },
  ),
  huggingFace: { limited: HIDDEN_ACT_UNREAD },
  attention: ({ config, index }) => ({
    scale: config.query_pre_attn_scalar ** -0.5,
    softcap: config.attn_logit_softcapping ?? undefined,
    window: windowAt(config, index, index % 2 === 0),
  }),
});
