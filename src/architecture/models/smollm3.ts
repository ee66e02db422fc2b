/** SmolLM 3: Llama without positions in every fourth layer (NoPE, arXiv 2501.18795). */
import * as z from 'zod';
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { decoder, mlpOf, preNormBlock, rotaryOf, separateAttention } from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, layerListRules, rotaryRules, windowRules } from '../transformer/rules.js';
import {
  activationWord,
  count,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  flag,
  headsOf,
  transformerDocument,
  tyingSettings,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const DEFAULT_LAYERS = 36;

const schema = transformerDocument('smollm3', {
  ...decoderSizes({
    vocab_size: 128_256,
    hidden_size: 2048,
    intermediate_size: 11_008,
    num_hidden_layers: DEFAULT_LAYERS,
    num_attention_heads: 16,
    num_key_value_heads: 4,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(2e6),
  no_rope_layers: z
    .array(z.literal([0, 1]))
    .nullish()
    .describe('For each layer 1 where positions are rotated, 0 where there are none'),
  no_rope_layer_interval: count
    .default(4)
    .describe('Without no_rope_layers: every so many layers one has no positions'),
  ...windowSettings(),
  use_sliding_window: flag.default(false).describe('Whether layers without positions have it'),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  mlp_bias: flag.default(false).describe('Biases in the feed-forward network'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
});

export const smollm3 = defineFamily({
  name: 'smollm3',
  title: 'SmolLM 3: no positions in every fourth layer',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...layerListRules('no_rope_layers'),
    ...layerListRules('layer_types'),
    ...windowRules(),
  ],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    // Of a longer list, transformers reads as much as there are layers.
    more: ({ no_rope_layers: list, num_hidden_layers: layers = DEFAULT_LAYERS }) => ({
      no_rope_layers: Array.isArray(list) ? list.slice(0, Number(layers)) : undefined,
    }),
  }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias, no_rope_layers: listed } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps);
    return decoder(config, {
      norm,
      block(name, index) {
        const rotates = listed
          ? listed[index] === 1
          : (index + 1) % config.no_rope_layer_interval !== 0;
        return preNormBlock(name, {
          norm,
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            bias,
            outBias: bias,
            rotary: rotates ? rotaryOf(name, config, headDim) : undefined,
            window: windowAt(config, index, config.use_sliding_window && !rotates),
          }),
          feedForward: mlpOf(`${name}.mlp`, config),
        });
      },
    });
  },
});
