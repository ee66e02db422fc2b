/** Code World Model (arXiv 2510.02387): Llama with windows in three layers of four. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { rotaryOr } from '../transformer/rotary.js';
import { gateActivation, mlpBias, windowAt, windowSettings } from '../transformer/settings.js';

const BASE = 1_000_000;
const PATTERN = 4;

export const cwm = defineDecoder({
  title: 'Code World Model',
  schema: decoderDocument(
    'cwm',
    {
      vocab_size: 128_256,
      hidden_size: 6144,
      intermediate_size: 21_504,
      num_hidden_layers: 64,
      num_attention_heads: 48,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: BASE,
    },
    { ...windowSettings(8192), hidden_act: gateActivation, mlp_bias: mlpBias },
  ),
  huggingFace: {
    rotary: rotaryOr({
      rope_type: 'llama3',
      rope_theta: BASE,
      factor: 16,
      original_max_position_embeddings: 8192,
      low_freq_factor: 1,
      high_freq_factor: 4,
    }),
  },
  slidesByRule: () => true,
  attention: ({ config, index }) => ({
    window: windowAt(config, index, index % PATTERN !== 0),
  }),
});
