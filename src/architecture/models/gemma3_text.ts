/** Gemma 3, the text part (arXiv 2503.19786): five layers with a window to one without, norms on q and k. */
import { rmsNorm, rotary, scale, softcap } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training.js';
import { isObject, readHuggingFace, rotaryIn, scalingIn } from '../transformer/hugging-face.js';
import { decoder, sandwichBlock, separateAttention, separateMlp } from '../transformer/parts.js';
import { rotarySettings, scalingOf } from '../transformer/rotary-settings.js';
import { DECODER_RULES, layerListRules, rotaryRules } from '../transformer/rules.js';
import {
  activationOf,
  count,
  DECODER_DIMENSIONS,
  decoderSizes,
  headsOf,
  laterGemmaSettings,
  transformerDocument,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';
import { tyingSettings } from '../transformer/stored.js';

const [fullBase, localBase] = [1e6, 10_000];

const schema = transformerDocument('gemma3_text', {
  ...decoderSizes({
    vocab_size: 262_208,
    hidden_size: 2304,
    intermediate_size: 9216,
    num_hidden_layers: 26,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 256,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(fullBase),
  rope_local_base_freq: rotarySettings(localBase).rope_theta.describe(
    'Base of the rotary frequencies in the layers with a window',
  ),
  ...windowSettings(4096),
  sliding_window_pattern: count.default(6).describe('Every so many layers one has no window'),
  ...laterGemmaSettings({ attention: null, logits: null }),
});

/** transformers 5 keeps rotary settings by the kind of layer. */
function rotaryByLayer(config: Readonly<Record<string, unknown>>) {
  const { full_attention: full, sliding_attention: sliding } = rotaryIn(config);
  return {
    ...(isObject(full) && { rope_theta: full.rope_theta, rope_scaling: scalingIn(full) }),
    ...(isObject(sliding) && { rope_local_base_freq: sliding.rope_theta }),
  };
}

export const gemma3Text = defineFamily({
  name: 'gemma3_text',
  title: 'Gemma 3, text only',
  schema,
  rules: [...DECODER_RULES, ...rotaryRules, ...layerListRules('layer_types')],
  confusions: [],
  presets: {},
  dimensions: { ...DECODER_DIMENSIONS, headDim: ['head_dim', 'query_pre_attn_scalar'] },
  trainingHints,
  fromHuggingFace: (config) =>
    readHuggingFace(schema.shape.model, config, {
      names: { sliding_window_pattern: ['_sliding_window_pattern'] },
      more: rotaryByLayer,
    }),
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias, rms_norm_eps: eps } = config;
    const { final_logit_softcapping: cap, rope_theta, rope_local_base_freq } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const scaling = scalingOf(config.rope_scaling, config.max_position_embeddings, headDim);
    const norm = (name: string) => rmsNorm(name, hidden, eps, 1);
    return decoder(config, {
      embeddingSteps: [scale('model.embed_scale', Math.sqrt(hidden))],
      norm: norm('model.norm'),
      block(name, index) {
        const isFull = (index + 1) % config.sliding_window_pattern === 0;
        const slides = config.layer_types
          ? config.layer_types[index] === 'sliding_attention'
          : !isFull;
        return sandwichBlock(name, {
          norm,
          // transformers stores attn_logit_softcapping for this family, and does not use it.
          attention: separateAttention(`${name}.self_attn`, {
            ...heads,
            bias,
            outBias: bias,
            queryNorm: rmsNorm(`${name}.self_attn.q_norm`, headDim, eps, 1),
            keyNorm: rmsNorm(`${name}.self_attn.k_norm`, headDim, eps, 1),
            rotary: slides
              ? rotary(`${name}.rotary`, { base: rope_local_base_freq, headDim })
              : rotary(`${name}.rotary`, { base: rope_theta, headDim, scaling }),
            scale: config.query_pre_attn_scalar ** -0.5,
            window: windowAt(config, index, slides),
          }),
          feedForward: separateMlp(`${name}.mlp`, {
            hidden,
            inner: config.intermediate_size,
            activation: activationOf(config.hidden_activation),
          }),
        });
      },
      logitSteps: cap === null ? [] : [softcap('logit_softcap', cap)],
    });
  },
});
