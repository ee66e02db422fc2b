/** Gemma 2 (arXiv 2408.00118): a window in every other layer, softcaps, norms on both sides. */
import { rmsNorm, scale, softcap } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { HIDDEN_ACT_UNREAD } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import {
  decoder,
  rotaryOf,
  sandwichBlock,
  separateAttention,
  separateMlp,
} from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, layerListRules, rotaryRules, windowRules } from '../transformer/rules.js';
import {
  activationOf,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  headsOf,
  laterGemmaSettings,
  transformerDocument,
  tyingSettings,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const schema = transformerDocument('gemma2', {
  ...decoderSizes({
    vocab_size: 256_000,
    hidden_size: 2304,
    intermediate_size: 9216,
    num_hidden_layers: 26,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 256,
    max_position_embeddings: 8192,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  ...windowSettings(4096),
  ...laterGemmaSettings({ attention: 50, logits: 30 }),
});

export const gemma2 = defineFamily({
  name: 'gemma2',
  title: 'Gemma 2',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...layerListRules('layer_types'),
    ...windowRules(() => true),
  ],
  confusions: [],
  presets: {},
  dimensions: { ...DECODER_DIMENSIONS, headDim: ['head_dim', 'query_pre_attn_scalar'] },
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, { limited: HIDDEN_ACT_UNREAD }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias, final_logit_softcapping: cap } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps, 1);
    return decoder(config, {
      embeddingSteps: [scale('model.embed_scale', Math.sqrt(hidden))],
      norm,
      block: (name, index) =>
        sandwichBlock(name, {
          norm,
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            bias,
            outBias: bias,
            rotary: rotaryOf(name, config, headDim),
            scale: config.query_pre_attn_scalar ** -0.5,
            softcap: config.attn_logit_softcapping ?? undefined,
            window: windowAt(config, index, index % 2 === 0),
          }),
          feedForward: separateMlp(`${name}.mlp`, {
            hidden,
            inner: config.intermediate_size,
            activation: activationOf(config.hidden_activation),
          }),
        }),
      logitSteps: cap === null ? [] : [softcap('logit_softcap', cap)],
    });
  },
});
