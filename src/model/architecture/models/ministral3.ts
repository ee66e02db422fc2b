/** Ministral 3: Mistral with YaRN, and queries that grow with their position. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { temperatureOf, temperatureSettings, temperedReading } from '../transformer/rotary.js';
import { gateActivation, windowAt, windowSettings } from '../transformer/settings.js';

export const ministral3 = defineDecoder({
  title: 'Ministral 3: queries that grow with their position',
  schema: decoderDocument(
    'ministral3',
    {
      vocab_size: 131_072,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 34,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 262_144,
      rms_norm_eps: 1e-5,
      rope_theta: 1e6,
    },
    {
      ...temperatureSettings,
      sliding_window: windowSettings().sliding_window,
      hidden_act: gateActivation,
    },
  ),
  huggingFace: {
    rotary: temperedReading({
      rope_type: 'yarn',
      rope_theta: 1e6,
      factor: 16,
      original_max_position_embeddings: 16_384,
      beta_fast: 32,
      beta_slow: 1,
      mscale_all_dim: 1,
      mscale: 1,
      llama_4_scaling_beta: 0.1,
    }),
  },
  attention: ({ config, index }) => ({
    temperature: temperatureOf(config),
    window: windowAt(config, index, true),
  }),
});
