/** OLMo 3: OLMo 2 with windows in three layers of four; only the others scale their positions. */
import { postNormBlock, rotaryByKind } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { localRotarySettings, rotaryByLayer } from '../transformer/rotary.js';
import { localRotaryRules } from '../transformer/rules.js';
import {
  attentionBias,
  gateActivation,
  LLAMA_SIZES,
  slidesAt,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const BASE = 500_000;
const PATTERN = 4;

export const olmo3 = defineDecoder({
  title: 'OLMo 3',
  presets: {
    'olmo-3-7b': {
      title: 'OLMo 3 7B: 7.30B',
      model: {
        vocab_size: 100278,
        hidden_size: 4096,
        intermediate_size: 11008,
        num_hidden_layers: 32,
        num_attention_heads: 32,
        num_key_value_heads: 32,
        max_position_embeddings: 65536,
        rope_scaling: {
          rope_type: 'yarn',
          factor: 8,
          original_max_position_embeddings: 8192,
          beta_fast: 32,
          beta_slow: 1,
          attention_factor: 1.2079441541679836,
        },
        rms_norm_eps: 1e-6,
      },
    },
  },
  schema: decoderDocument(
    'olmo3',
    {
      ...LLAMA_SIZES,
      vocab_size: 50_304,
      rms_norm_eps: 1e-5,
      rope_theta: BASE,
    },
    {
      ...localRotarySettings(BASE),
      ...windowSettings(4096),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
    },
  ),
  rules: localRotaryRules,
  ignoredOnLoad: [],
  huggingFace: { rotary: rotaryByLayer },
  slidesByRule: () => true,
  block: postNormBlock,
  queryKeyNorms: 'all heads',
  attention({ name, config, index, heads: { headDim } }) {
    const slides = slidesAt(config, index, (index + 1) % PATTERN !== 0);
    return {
      rotary: rotaryByKind(name, config, headDim, slides),
      window: windowAt(config, index, slides),
    };
  },
});
