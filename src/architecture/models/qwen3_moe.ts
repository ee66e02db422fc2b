/** Qwen 3 with experts (arXiv 2505.09388). */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import type { Layer } from '../layer.js';
import { trainingHints } from '../training-section.js';
import { NO_BIASES } from '../transformer/config-keys.js';
import { expertsIn, huggingFaceReader } from '../transformer/hugging-face.js';
import {
  decoder,
  mlpOf,
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
  DECODER_DIMENSIONS,
  decoderSizes,
  flag,
  hasExperts,
  headsOf,
  mixtureStored,
  sparseSettings,
  transformerDocument,
  tyingSettings,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const schema = transformerDocument('qwen3_moe', {
  ...decoderSizes({
    vocab_size: 151_936,
    hidden_size: 2048,
    intermediate_size: 6144,
    num_hidden_layers: 24,
    num_attention_heads: 32,
    num_key_value_heads: 4,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  sliding_window: windowSettings(4096).sliding_window,
  use_sliding_window: flag.default(false).describe('Whether all layers have the window, or none'),
  ...sparseSettings({ experts: 128, expertsPerToken: 8, inner: 768 }),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const qwen3Moe = defineFamily({
  name: 'qwen3_moe',
  title: 'Qwen 3 with experts',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...windowRules(),
    ...expertRules({ experts: 'num_experts', chosen: 'num_experts_per_tok' }),
  ],
  confusions: [],
  presets: {},
  dimensions: {
    ...DECODER_DIMENSIONS,
    headDim: ['head_dim'],
    // Many small experts: 768 of 2048 in Qwen3-30B-A3B.
    feedForward: { key: 'moe_intermediate_size', perChannel: [1 / 4, 1] },
  },
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    names: { num_experts: ['num_local_experts'] },
    more: (config) => ({ experts_stored: expertsIn(config) }),
    limited: NO_BIASES,
    harmless: { max_window_layers: 'all layers have the window, or none' },
  }),
  storedSettings: mixtureStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias } = config;
    const { rms_norm_eps: eps } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, eps);
    const mixture = (name: string): Layer =>
      softmaxMixture(name, {
        experts: config.num_experts,
        expertsPerToken: config.num_experts_per_tok,
        isNormed: config.norm_topk_prob,
        stored: config.experts_stored,
        hidden,
        inner: config.moe_intermediate_size,
        activation: activationOf(config.hidden_act),
      });
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
            window: config.use_sliding_window ? windowAt(config, index, true) : undefined,
          }),
          feedForward: hasExperts(config, index)
            ? mixture(`${name}.mlp`)
            : mlpOf(`${name}.mlp`, config),
        }),
    });
  },
});
