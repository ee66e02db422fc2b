/** Qwen 3 (arXiv 2505.09388): norms on the queries and keys of every head. */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { NO_BIASES } from '../transformer/config-keys.js';
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

const schema = transformerDocument('qwen3', {
  ...decoderSizes({
    vocab_size: 151_936,
    hidden_size: 4096,
    intermediate_size: 22_016,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 32,
    head_dim: 128,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  ...upperWindowSettings,
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const qwen3 = defineFamily({
  name: 'qwen3',
  title: 'Qwen 3: norms on queries and keys',
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
  dimensions: { ...DECODER_DIMENSIONS, headDim: ['head_dim'] },
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, { limited: NO_BIASES }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, rms_norm_eps: eps, attention_bias: bias } = config;
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
            bias,
            outBias: bias,
            queryNorm: rmsNorm(`${name}.self_attn.q_norm`, headDim, eps),
            keyNorm: rmsNorm(`${name}.self_attn.k_norm`, headDim, eps),
            rotary: rotaryOf(name, config, headDim),
            window: upperWindows(config, index),
          }),
          feedForward: mlpOf(`${name}.mlp`, config),
        }),
    });
  },
});
