/** Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783): the pattern of most later decoders. */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { decoder, mlpOf, preNormBlock, rotaryOf, separateAttention } from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, rotaryRules } from '../transformer/rules.js';
import {
  activationWord,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  flag,
  headsOf,
  oldBuffers,
  transformerDocument,
  tyingSettings,
} from '../transformer/settings.js';

const schema = transformerDocument('llama', {
  ...decoderSizes({
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  mlp_bias: flag.default(false).describe('Biases in the feed-forward network'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const llama = defineFamily({
  name: 'llama',
  title: 'Llama 2 and 3, and what is built like them',
  schema,
  rules: [...DECODER_RULES, ...rotaryRules],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model),
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers([`${prefix}layers.*.self_attn.rotary_emb.inv_freq`]),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps);
    return decoder(config, {
      norm,
      block: (name) =>
        preNormBlock(name, {
          norm,
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            bias,
            outBias: bias,
            rotary: rotaryOf(name, config, headDim),
          }),
          feedForward: mlpOf(`${name}.mlp`, config),
        }),
    });
  },
});
