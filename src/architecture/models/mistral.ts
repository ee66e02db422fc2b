/** Mistral (arXiv 2310.06825): Llama with grouped-query attention in a sliding window. */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { NO_BIASES } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { decoder, mlpOf, preNormBlock, rotaryOf, separateAttention } from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, layerListRules, rotaryRules, windowRules } from '../transformer/rules.js';
import {
  activationWord,
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

const schema = transformerDocument('mistral', {
  ...decoderSizes({
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 14_336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  ...windowSettings(4096),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const mistral = defineFamily({
  name: 'mistral',
  title: 'Mistral: a sliding window in every layer, or in those listed',
  schema,
  rules: [...DECODER_RULES, ...rotaryRules, ...layerListRules('layer_types'), ...windowRules()],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, { limited: NO_BIASES }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps);
    return decoder(config, {
      norm,
      block: (name, index) =>
        preNormBlock(name, {
          norm,
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            rotary: rotaryOf(name, config, headDim),
            window: windowAt(config, index, true),
          }),
          feedForward: mlpOf(`${name}.mlp`, config),
        }),
    });
  },
});
