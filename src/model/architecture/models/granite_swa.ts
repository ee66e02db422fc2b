/** Granite with windows in three layers of four, attention sinks, and a rotary base for each layer. */
import * as z from 'zod';
import { rotaryOf } from '../transformer/decoder-parts.js';
import { type BlockInputs, decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { layerListRules } from '../transformer/rules.js';
import {
  attentionBias,
  gateActivation,
  mlpBias,
  type SettingsOf,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';
import { GRANITE, graniteSettings } from './granite.js';

const PATTERN = 4;

/** Keys of windows, and of the rotary base of each layer. */
export const graniteWindowSettings = {
  ...windowSettings(128),
  layer_rope_theta: z
    .array(z.number().min(0))
    .nullish()
    .describe(
      'Base of the rotary frequencies of each layer, in place of rope_theta; 0: no positions',
    ),
};

type WindowedConfig = SettingsOf<typeof graniteSettings> &
  SettingsOf<typeof graniteWindowSettings> &
  Parameters<typeof rotaryOf>[1];

/** Attention with windows and sinks, with or without experts. */
export const GRANITE_WINDOWS = {
  rules: layerListRules('layer_rope_theta'),
  slidesByRule: () => true,
  attention({ name, config, index, heads: { headDim } }: BlockInputs<WindowedConfig>) {
    const base = config.layer_rope_theta?.[index] ?? config.rope_theta;
    return {
      ...GRANITE.attention({ config }),
      sinks: `${name}.self_attn.sinks`,
      rotary: base === 0 ? undefined : rotaryOf(name, { ...config, rope_theta: base }, headDim),
      window: windowAt(config, index, index % PATTERN !== 0),
    };
  },
} as const;

export const graniteSwa = defineDecoder({
  ...GRANITE,
  ...GRANITE_WINDOWS,
  title: 'Granite with windows and attention sinks',
  schema: decoderDocument(
    'granite_swa',
    {
      vocab_size: 100_352,
      hidden_size: 2560,
      intermediate_size: 8192,
      num_hidden_layers: 24,
      num_attention_heads: 20,
      num_key_value_heads: 4,
      max_position_embeddings: 8192,
      rms_norm_eps: 1e-5,
      tie_word_embeddings: true,
    },
    {
      ...graniteSettings,
      ...graniteWindowSettings,
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
});
