/** OLMo 1 (arXiv 2402.00838): LayerNorms without weights, queries, keys and values that may be clipped. */
import { layerNormLayer } from '../constructors/basic-layers.js';
import { unreadBut } from '../transformer/config-keys.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import {
  attentionBias,
  clipSetting,
  gateActivation,
  LLAMA_SIZES,
} from '../transformer/settings.js';

/** Fixed in the original code. */
const NORM_EPS = 1e-5;

export const olmo = defineDecoder({
  title: 'OLMo 1: norms without weights',
  schema: plainDecoderDocument(
    'olmo',
    {
      ...LLAMA_SIZES,
      vocab_size: 50_304,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias, clip_qkv: clipSetting },
  ),
  huggingFace: { limited: { rms_norm_eps: unreadBut([]) } },
  norm: (name, config) => layerNormLayer(name, config.hidden_size, NORM_EPS, { holds: 'none' }),
  attention: ({ config }) => ({ clip: config.clip_qkv ?? undefined }),
});
