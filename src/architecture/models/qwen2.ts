/** Qwen 2 and 2.5 (arXiv 2407.10671): Llama with biases on queries, keys and values. */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { unreadBut } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { decoder, mlpOf, preNormBlock, rotaryOf, separateAttention } from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import {
  DECODER_RULES,
  layerListRules,
  rotaryRules,
  usedWindowRules,
  windowRules,
} from '../transformer/rules.js';
import {
  activationWord,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  flag,
  headsOf,
  transformerDocument,
  tyingSettings,
  upperWindowSettings,
  upperWindows,
} from '../transformer/settings.js';

const schema = transformerDocument('qwen2', {
  ...decoderSizes({
    vocab_size: 151_936,
    hidden_size: 4096,
    intermediate_size: 22_016,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 32,

    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  ...upperWindowSettings,
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),

  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const qwen2 = defineFamily({
  name: 'qwen2',
  title: 'Qwen 2 and 2.5: Llama with biases on queries, keys and values',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...layerListRules('layer_types'),
    ...windowRules(),
    ...usedWindowRules,
  ],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    limited: { attention_bias: unreadBut([]), mlp_bias: unreadBut([false]) },
  }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, rms_norm_eps: eps } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, eps);
    return decoder(config, {
      norm,
      block: (name, index) =>
        preNormBlock(name, {
          norm,
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            bias: true,

            rotary: rotaryOf(name, config, headDim),
            window: upperWindows(config, index),
          }),
          feedForward: mlpOf(`${name}.mlp`, config),
        }),
    });
  },
});
