/** Gemma 3, the text part (arXiv 2503.19786): five layers with a window to one without, norms on q and k. */
import { rmsNorm, rotary, scale, softcap } from '../constructors.js';
import type { KeyRemark } from '../family.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { HIDDEN_ACT_UNREAD, type Json, unreadBut } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { decoder, sandwichBlock, separateAttention, separateMlp } from '../transformer/parts.js';
import type { RotaryReading } from '../transformer/rotary.js';
import {
  isObject,
  rotarySettings,
  scalingIn,
  scalingOf,
  unreadRotary,
} from '../transformer/rotary.js';
import {
  DECODER_RULES,
  layerListRules,
  localRotaryRules,
  rotaryRules,
  windowRules,
} from '../transformer/rules.js';
import {
  activationOf,
  count,
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

const [fullBase, localBase] = [1e6, 10_000];

/** Keys of the model that reads images, too. */
const WITH_IMAGES = Object.fromEntries(
  ['text_config', 'vision_config', 'mm_tokens_per_image'].map((key) => [key, unreadBut([])]),
);

/** Five layers with a window to one without. */
const DEFAULT_PATTERN = 6;

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
  rope_local_scaling: rotarySettings(localBase).rope_scaling.describe(
    'How the positions of those layers reach beyond the training',
  ),
  ...windowSettings(4096),
  sliding_window_pattern: count
    .default(DEFAULT_PATTERN)
    .describe('Every so many layers one has no window'),
  ...laterGemmaSettings({ attention: null, logits: null }),
});

const objectOr = (value: unknown): Json => (isObject(value) ? value : {});

/** Settings of the two kinds of layers; an older `rope_scaling` is of those without a window. */
function rotaryByKind(config: Json): Readonly<Record<'full' | 'sliding', Json>> {
  const { full_attention, sliding_attention } = objectOr(config.rope_parameters);
  return {
    full: { ...objectOr(full_attention), ...objectOr(config.rope_scaling) },
    sliding: objectOr(sliding_attention),
  };
}

/** Without `truncate`: transformers looks for it outside of the two kinds. */
function scalingOfKind(rotary: Json): Json | undefined {
  const { truncate: _, ...scaling } = scalingIn(rotary) ?? {};
  return 'rope_type' in scaling ? scaling : undefined;
}

function unreadOfKind(rotary: Json, kind: string): KeyRemark[] {
  const path = ['rope_parameters', kind];
  const { truncate, ...rest } = rotary;
  const why = 'this family always truncates';
  return [
    ...unreadRotary(rest, path, false),
    ...(truncate === false
      ? [{ path: [...path, 'truncate'], severity: 'warning', why } as const]
      : []),
  ];
}

/** transformers 5 keeps rotary settings by the kind of layer. */
const rotaryByLayer: RotaryReading = {
  keys: ['rope_parameters', 'rope_scaling', 'rope_theta'],
  settings(config) {
    const { full, sliding } = rotaryByKind(config);
    return {
      rope_theta: full.rope_theta ?? config.rope_theta,
      rope_scaling: scalingOfKind(full),
      rope_local_base_freq: sliding.rope_theta ?? config.rope_local_base_freq,
      rope_local_scaling: scalingOfKind(sliding),
    };
  },
  remarks(config) {
    const { full_attention: _, sliding_attention: __, ...flat } = objectOr(config.rope_parameters);
    const { full, sliding } = rotaryByKind(config);
    return [
      ...Object.keys(flat).map(
        (key): KeyRemark => ({
          path: ['rope_parameters', key],
          severity: 'warning',
          why: 'this family has rotary settings for each kind of layer',
        }),
      ),
      ...unreadOfKind(full, 'full_attention'),
      ...unreadOfKind(sliding, 'sliding_attention'),
    ];
  },
};

export const gemma3Text = defineFamily({
  name: 'gemma3_text',
  title: 'Gemma 3, text only',
  schema,
  rules: [
    ...DECODER_RULES,
    ...rotaryRules,
    ...localRotaryRules,
    ...layerListRules('layer_types'),
    ...windowRules(() => true),
  ],
  confusions: [],
  presets: {},
  dimensions: { ...DECODER_DIMENSIONS, headDim: ['head_dim', 'query_pre_attn_scalar'] },
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    rotary: rotaryByLayer,
    limited: {
      ...HIDDEN_ACT_UNREAD,
      ...WITH_IMAGES,
      attn_logit_softcapping: unreadBut([]),
      // transformers writes it next to the list that it made by it, and reads 6 without the list.
      _sliding_window_pattern: unreadBut(
        (step, { layer_types: types, sliding_window_pattern: read = DEFAULT_PATTERN }) =>
          types != null || step === read,
      ),
    },
  }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias, rms_norm_eps: eps } = config;
    const { final_logit_softcapping: cap, rope_theta, rope_local_base_freq } = config;
    const heads = headsOf(config);
    const { headDim } = heads;
    const positions = config.max_position_embeddings;
    const scaling = scalingOf(config.rope_scaling, positions, headDim);
    const localScaling = scalingOf(config.rope_local_scaling, positions, headDim);
    const norm = (name: string) => rmsNorm(name, hidden, eps, 1);
    return decoder(config, {
      embeddingSteps: [scale('model.embed_scale', Math.sqrt(hidden))],
      norm,
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
              ? rotary(`${name}.rotary`, {
                  base: rope_local_base_freq,
                  headDim,
                  scaling: localScaling,
                })
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
