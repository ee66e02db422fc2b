/** Mixtral (arXiv 2401.04088): Mistral with a mixture of experts in every layer. */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { NO_BIASES, unreadBut } from '../transformer/config-keys.js';
import { expertsIn, huggingFaceReader } from '../transformer/hugging-face.js';
import {
  decoder,
  preNormBlock,
  rotaryOf,
  separateAttention,
  softmaxMixture,
} from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, expertRules, rotaryRules, windowRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  DECODER_DIMENSIONS,
  decoderSizes,
  expertsStored,
  flag,
  headsOf,
  mixtureStored,
  transformerDocument,
  tyingSettings,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const schema = transformerDocument('mixtral', {
  ...decoderSizes({
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 14_336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
  }),
  ...rotarySettings(1e6),
  sliding_window: windowSettings().sliding_window,
  num_local_experts: count.default(8).describe('Experts to choose from'),
  num_experts_per_tok: count.default(2).describe('Experts that a token goes to'),
  experts_stored: expertsStored,
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

/** What the mixture is called where experts are packed, and where they stand apart. */
const MIXTURE = { packed: 'mlp', separate: 'block_sparse_moe' } as const;

export const mixtral = defineFamily({
  name: 'mixtral',
  title: 'Mixtral: Mistral with experts',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...windowRules(),
    ...expertRules({ experts: 'num_local_experts', chosen: 'num_experts_per_tok' }),
  ],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    names: { num_local_experts: ['num_experts'] },
    more: (config) => ({ experts_stored: expertsIn(config) }),
    limited: { ...NO_BIASES, norm_topk_prob: unreadBut([true]) },
  }),
  storedSettings: mixtureStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, experts_stored: stored } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps);
    const mixture = (name: string) =>
      softmaxMixture(name, {
        experts: config.num_local_experts,
        expertsPerToken: config.num_experts_per_tok,
        isNormed: true,
        stored,
        hidden,
        inner: config.intermediate_size,
        activation: activationOf(config.hidden_act),
        leaves: ['w1', 'w3', 'w2'],
      });
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
          feedForward: mixture(`${name}.${MIXTURE[stored]}`),
        }),
    });
  },
});
