/** Gemma (arXiv 2403.08295): scaled embeddings, norms about one, GELU in the gate. */
import { rmsNorm, scale } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { unreadBut } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import {
  decoder,
  preNormBlock,
  rotaryOf,
  separateAttention,
  separateMlp,
} from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, rotaryRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  causalOnly,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  flag,
  headsOf,
  transformerDocument,
  tyingSettings,
} from '../transformer/settings.js';

const schema = transformerDocument('gemma', {
  ...decoderSizes({
    vocab_size: 256_000,
    hidden_size: 3072,
    intermediate_size: 24_576,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    num_key_value_heads: 16,
    head_dim: 256,
    max_position_embeddings: 8192,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  hidden_act: activationWord
    .default('gelu_pytorch_tanh')
    .describe('Activation of the gate; gelu means gelu_pytorch_tanh, as in transformers'),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  use_bidirectional_attention: causalOnly,
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
});

export const gemma = defineFamily({
  name: 'gemma',
  title: 'Gemma 1',
  schema,
  rules: [...DECODER_RULES, ...rotaryRules],
  confusions: [],
  presets: {},
  dimensions: { ...DECODER_DIMENSIONS, headDim: ['head_dim'] },
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    limited: {
      mlp_bias: unreadBut([false]),
      hidden_activation: unreadBut(
        (word, { hidden_act: read = 'gelu_pytorch_tanh' }) => word === null || word === read,
      ),
    },
  }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias, hidden_act: word } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps, 1);
    return decoder(config, {
      embeddingSteps: [scale('model.embed_scale', Math.sqrt(hidden))],
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
          feedForward: separateMlp(`${name}.mlp`, {
            hidden,
            inner: config.intermediate_size,
            activation: word === 'gelu' ? 'geluTanh' : activationOf(word),
          }),
        }),
    });
  },
});
