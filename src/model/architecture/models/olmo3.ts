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
