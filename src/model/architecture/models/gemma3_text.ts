/** Gemma 3, the text part (arXiv 2503.19786): one layer in six without a window, norms on q and k. */
import { unreadBut, unreadEach } from '../transformer/config-keys.js';
import { rotaryByKind } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { localRotarySettings, rotaryByLayer } from '../transformer/rotary.js';
import { localRotaryRules } from '../transformer/rules.js';
import { count, slidesAt, windowAt, windowSettings } from '../transformer/settings.js';
import { HIDDEN_ACT_UNREAD, LATER_GEMMA, laterGemmaSettings } from './gemma.js';

const [fullBase, localBase] = [1e6, 10_000];

/** Keys of the multimodal model. */
const WITH_IMAGES = unreadEach(['text_config', 'vision_config', 'mm_tokens_per_image']);

/** Five layers with a window, then one without. */
const DEFAULT_PATTERN = 6;

export const gemma3Text = defineDecoder({
  ...LATER_GEMMA,
  title: 'Gemma 3, text only',
  schema: decoderDocument(
    'gemma3_text',
    {
      vocab_size: 262_208,
      hidden_size: 2304,
      intermediate_size: 9216,
      num_hidden_layers: 26,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-6,
      rope_theta: fullBase,
      tie_word_embeddings: true,
    },
    {
      ...localRotarySettings(localBase),
      ...windowSettings(4096),
      sliding_window_pattern: count(DEFAULT_PATTERN, 'Period of the layers without a window'),
      ...laterGemmaSettings({ attention: null, logits: null }),
    },
  ),
  rules: localRotaryRules,
  ignoredOnLoad: [],
  huggingFace: {
    rotary: rotaryByLayer,
    limited: {
      ...HIDDEN_ACT_UNREAD,
      ...WITH_IMAGES,
      attn_logit_softcapping: unreadBut([]),
      // transformers writes it with the list made from it, and reads 6 without the list.
      _sliding_window_pattern: unreadBut(
        (step, { layer_types: types, sliding_window_pattern: read = DEFAULT_PATTERN }) =>
          types != null || step === read,
      ),
    },
  },
  queryKeyNorms: 'each head',
  // transformers stores attn_logit_softcapping for this family but does not use it.
  attention({ name, config, index, heads: { headDim } }) {
    const slides = slidesAt(config, index, (index + 1) % config.sliding_window_pattern !== 0);
    return {
      rotary: rotaryByKind(name, config, headDim, slides),
      scale: config.query_pre_attn_scalar ** -0.5,
      window: windowAt(config, index, slides),
    };
  },
});
