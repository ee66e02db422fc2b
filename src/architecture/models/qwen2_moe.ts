/** Qwen 1.5 and 2 with experts: routed ones, and a shared one behind a gate of its own. */
import { linear, rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import type { Layer } from '../layer.js';
import { trainingHints } from '../training-section.js';
import { unreadBut } from '../transformer/config-keys.js';
import { expertsIn, huggingFaceReader } from '../transformer/hugging-face.js';
import {
  decoder,
  mlpOf,
  preNormBlock,
  rotaryOf,
  separateAttention,
  separateMlp,
  softmaxMixture,
} from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import {
  DECODER_RULES,
  expertRules,
  layerListRules,
  rotaryRules,
  usedWindowRules,
  windowRules,
} from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  decoderSizes,
  flag,
  hasExperts,
  headsOf,
  mixtureStored,
  sparseSettings,
  transformerDocument,
  tyingSettings,
  upperWindowSettings,
  windowAt,
} from '../transformer/settings.js';

const schema = transformerDocument('qwen2_moe', {
  ...decoderSizes({
    vocab_size: 151_936,
    hidden_size: 2048,
    intermediate_size: 5632,
    num_hidden_layers: 24,
    num_attention_heads: 16,
    num_key_value_heads: 16,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  ...upperWindowSettings,
  ...sparseSettings({ experts: 60, expertsPerToken: 4, inner: 1408 }),
  shared_expert_intermediate_size: count.default(5632).describe('Width inside the shared expert'),
  qkv_bias: flag.default(true).describe('Biases on queries, keys and values'),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const qwen2Moe = defineFamily({
  name: 'qwen2_moe',
  title: 'Qwen 1.5 and 2 with experts, one of them shared',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...layerListRules('layer_types'),
    ...usedWindowRules,
    ...windowRules(({ use_sliding_window: use }) => use === true),
    ...expertRules({ experts: 'num_experts', chosen: 'num_experts_per_tok' }),
  ],
  confusions: [],
  presets: {},
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    more: (config) => ({ experts_stored: expertsIn(config) }),
    limited: { attention_bias: unreadBut([]), mlp_bias: unreadBut([false]) },
  }),
  storedSettings: mixtureStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps);
    const mixture = (name: string): Layer =>
      softmaxMixture(
        name,
        {
          experts: config.num_experts,
          expertsPerToken: config.num_experts_per_tok,
          isNormed: config.norm_topk_prob,
          stored: config.experts_stored,
          hidden,
          inner: config.moe_intermediate_size,
          activation: activationOf(config.hidden_act),
        },
        {
          shared: [
            separateMlp(`${name}.shared_expert`, {
              hidden,
              inner: config.shared_expert_intermediate_size,
              activation: activationOf(config.hidden_act),
              component: 'sharedExperts',
            }),
          ],
          sharedGate: linear(`${name}.shared_expert_gate`, hidden, 1, {
            bias: false,
            component: 'sharedExperts',
          }),
        },
      );
    return decoder(config, {
      norm,
      block: (name, index) =>
        preNormBlock(name, {
          norm,
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            bias: config.qkv_bias,
            rotary: rotaryOf(name, config, headDim),
            // Here it is the even ones of the lower layers that have the window.
            window: config.use_sliding_window
              ? windowAt(config, index, index % 2 === 0 && index < config.max_window_layers)
              : undefined,
          }),
          feedForward: hasExperts(config, index)
            ? mixture(`${name}.mlp`)
            : mlpOf(`${name}.mlp`, config),
        }),
    });
  },
});
