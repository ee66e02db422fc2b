/** Gemma 3n, the text part: streams of AltUp, LAuReL, per-layer inputs, shared keys and values, sparse gates. */
import * as z from 'zod';
import {
  linear,
  residual,
  rmsNormLayer,
  scale,
  sequence,
  sum,
} from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import type { Layer, PerLayerInputs } from '../layer.js';
import { unreadEach } from '../transformer/config-keys.js';
import { decoder, separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineTransformer } from '../transformer/define-decoder.js';
import {
  altUpBlock,
  altUpEnd,
  ignoredKeys,
  perLayerBranch,
  perLayerIn,
  perLayerOf,
  perLayerSettings,
  sharedKeyAttention,
  sharedKeySettings,
  sharingRules,
} from '../transformer/per-layer.js';
import { localRotarySettings, rotaryByLayer } from '../transformer/rotary.js';
import {
  layerListRules,
  localRotaryRules,
  WHOLE_HEAD_RULES,
  windowRules,
} from '../transformer/rules.js';
import {
  activationOf,
  count,
  decoderStored,
  headsOf,
  positiveInteger,
  toggle,
  windowSettings,
} from '../transformer/settings.js';
import { GEMMA, gateAndLogitSettings, HIDDEN_ACT_UNREAD, softcappedLogits } from './gemma.js';

/** Four layers with a window, then one without. */
const PERIOD = 5;

/** Without a list, gates of the first layers of a model with more layers are as sparse as this. */
const SPARSE = { layers: 10, part: 0.95 } as const;

/** Keys of the multimodal model. */
const OF_OTHER_PARTS = [
  'audio_config',
  'audio_soft_tokens_per_image',
  'audio_token_id',
  'gradient_clipping',
  'text_config',
  'vision_config',
  'vision_soft_tokens_per_image',
];

const gemma3nSchema = decoderDocument(
  'gemma3n_text',
  {
    vocab_size: 262_400,
    hidden_size: 2048,
    intermediate_size: 16_384,
    num_hidden_layers: 35,
    num_attention_heads: 8,
    num_key_value_heads: 2,
    head_dim: 256,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
    rope_theta: 1e6,
    tie_word_embeddings: true,
  },
  {
    intermediate_size: z
      .union([positiveInteger, z.array(positiveInteger)])
      .default(16_384)
      .describe('Width inside the feed-forward network, or one for each layer'),
    ...localRotarySettings(10_000),
    ...windowSettings(512),
    ...perLayerSettings(1),
    ...sharedKeySettings(15),
    altup_num_inputs: z.int().min(1).max(256).default(4).describe('Streams of AltUp'),
    altup_active_idx: z.int().min(0).default(0).describe('The stream that blocks compute'),
    altup_correct_scale: toggle(true, 'That stream is scaled before it meets the per-layer inputs'),
    laurel_rank: count(64, 'Rank of LAuReL'),
    activation_sparsity_pattern: z
      .array(z.number().min(0).lt(1))
      .nullish()
      .describe(
        'For each layer the part of the gates that is 0, if they were normally distributed',
      ),
    ...gateAndLogitSettings(30),
  },
);

type Config = z.output<typeof gemma3nSchema>['model'];

const slides = ({ layer_types: types }: Config, index: number): boolean =>
  types ? types[index] === 'sliding_attention' : (index + 1) % PERIOD !== 0;

const altUpRules = defineRules<{ readonly model: Config }>([
  {
    severity: 'error',
    reads: ['model.altup_active_idx', 'model.altup_num_inputs'],
    check: ({ model: { altup_active_idx: active, altup_num_inputs: streams } }) =>
      active >= streams
        ? {
            message: `expected a stream from 0 to ${streams - 1}, found ${active}`,
            suggestion: `write altup_active_idx: ${streams - 1} or less`,
          }
        : undefined,
  },
]);

export const gemma3nText = defineTransformer({
  title: 'Gemma 3n, text only',
  schema: gemma3nSchema,
  rules: [
    ...WHOLE_HEAD_RULES,
    ...localRotaryRules,
    ...layerListRules('layer_types'),
    ...layerListRules('intermediate_size'),
    ...layerListRules('activation_sparsity_pattern'),
    ...windowRules(() => true),
    ...sharingRules(slides),
    ...altUpRules,
  ],
  ignoredOnLoad: ({ model }) => ignoredKeys(model),
  huggingFace: {
    rotary: rotaryByLayer,
    limited: {
      ...HIDDEN_ACT_UNREAD,
      ...unreadEach(OF_OTHER_PARTS),
    },
    harmless: { altup_coef_clip: 'used in training only' },
  },
  storedSettings: decoderStored,
  build({ model: config }) {
    const { hidden_size: hidden, stored_prefix: prefix, altup_num_inputs: streams } = config;
    return decoder(config, {
      embeddingSteps: [
        ...GEMMA.embeddingSteps(config),
        altUpEnd('altUpSplit', `${prefix}altup_projections`, hidden, streams),
      ],
      shared: (tokens) => perLayerOf(config, tokens),
      block: (name, index, shared) => gemma3nBlock(name, index, config, perLayerIn(shared)),
      norm: (name) =>
        sequence(`${prefix}output`, [
          altUpEnd('altUpMerge', `${prefix}altup_unembed_projections`, hidden, streams),
          rmsNormLayer(name, hidden, config.rms_norm_eps),
        ]),
      logitSteps: softcappedLogits(config),
    });
  },
});

function gemma3nBlock(
  name: string,
  index: number,
  config: Config,
  inputs: PerLayerInputs | undefined,
): Layer {
  if (!inputs) throw new TypeError('Gemma 3n has inputs for each layer');
  const { hidden_size: hidden, rms_norm_eps: eps, intermediate_size: inner } = config;
  const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, hidden, eps);
  const activation = activationOf(config.hidden_activation);
  const laurel = `${name}.laurel`;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${laurel}.${leaf}`, from, to, { bias: false, component: 'feedForward' });
  // n + LAuReL(n), parallel to the attention that reads the same norm.
  const lowRank = residual(
    laurel,
    sequence(`${laurel}.branch`, [
      product('linear_left', hidden, config.laurel_rank),
      product('linear_right', config.laurel_rank, hidden),
      rmsNormLayer(`${laurel}.post_laurel_norm`, hidden, eps),
    ]),
  );
  const attend = sequence(`${name}.attention`, [
    sharedKeyAttention(name, index, config, slides, headsOf(config)),
    norm('post_attention_layernorm'),
  ]);
  const mlp = sequence(`${name}.mlp_branch`, [
    norm('pre_feedforward_layernorm'),
    separateMlp(`${name}.mlp`, {
      hidden,
      inner: typeof inner === 'number' ? inner : (inner[index] ?? 0),
      activation,
      cutoffDeviations: cutoffAt(config, index),
    }),
    norm('post_feedforward_layernorm'),
  ]);
  return altUpBlock(name, {
    hidden,
    streams: config.altup_num_inputs,
    eps,
    active: config.altup_active_idx,
    isScaled: config.altup_correct_scale,
    inner: sequence(`${name}.active`, [
      residual(
        `${name}.attention_residual`,
        sequence(`${name}.attention_branch`, [
          norm('input_layernorm'),
          sum(`${name}.attention_sum`, attend, lowRank),
        ]),
      ),
      scale(`${name}.halved`, Math.SQRT1_2),
      residual(`${name}.mlp_residual`, mlp),
    ]),
    perLayer: sequence(`${name}.per_layer_branch`, [
      perLayerBranch(`${name}.per_layer`, name, { hidden, activation, inputs, index }),
      norm('post_per_layer_input_norm'),
    ]),
  });
}

/** Standard deviations from the mean to the cutoff of a layer's gates. */
function cutoffAt(config: Config, index: number): number | undefined {
  const { activation_sparsity_pattern: parts, num_hidden_layers: layers } = config;
  const byRule = layers > SPARSE.layers && index < SPARSE.layers ? SPARSE.part : 0;
  const part = parts ? (parts[index] ?? 0) : byRule;
  return part > 0 ? normalQuantile(Math.fround(part)) : undefined;
}

/** Quantile of the standard normal distribution, by bisection. */
function normalQuantile(part: number): number {
  let [low, high] = [-9, 9];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (belowNormal(middle) < part) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Cumulative distribution function of the standard normal distribution: ½ + φ(x) · (x + x³ / 3 + x⁵ / (3 · 5) + …). */
function belowNormal(x: number): number {
  let [term, series] = [x, x];
  for (let odd = 3; Math.abs(term) > 1e-17; odd += 2) {
    term *= x ** 2 / odd;
    series += term;
  }
  return 0.5 + (Math.exp(-(x ** 2) / 2) / Math.sqrt(2 * Math.PI)) * series;
}
