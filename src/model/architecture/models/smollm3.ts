/** SmolLM 3: Llama without positions in every fourth layer (NoPE, arXiv 2501.18795). */
import { asNumber } from '../../../base/values.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  gateActivation,
  mlpBias,
  toggle,
  unrotatedLayers,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const DEFAULT_LAYERS = 36;

export const smollm3 = defineDecoder({
  title: 'SmolLM 3: no positions in every fourth layer',
  schema: decoderDocument(
    'smollm3',
    {
      vocab_size: 128_256,
      hidden_size: 2048,
      intermediate_size: 11_008,
      num_hidden_layers: DEFAULT_LAYERS,
      num_attention_heads: 16,
      num_key_value_heads: 4,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      rope_theta: 2e6,
      tie_word_embeddings: true,
    },
    {
      ...unrotatedLayers,
      ...windowSettings(),
      use_sliding_window: toggle(false, 'Whether layers without positions have it'),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  huggingFace: {
    // Transformers ignores entries beyond the number of layers.
    more: ({ no_rope_layers: list, num_hidden_layers: layers = DEFAULT_LAYERS }) => ({
      no_rope_layers: Array.isArray(list) ? list.slice(0, asNumber(layers)) : undefined,
    }),
  },
  attention({ config, index }) {
    const { no_rope_layers: listed, no_rope_layer_interval: interval } = config;
    const rotates = listed ? listed[index] === 1 : (index + 1) % interval !== 0;
    return {
      ...(!rotates && { rotary: undefined }),
      window: windowAt(config, index, config.use_sliding_window && !rotates),
    };
  },
});
