/** Gemma 4, the text part: per-layer inputs, shared keys and values, other heads in layers without a window. */

import * as z from 'zod';
import { asNumber, isRecord } from '../../../base/values.js';
import {
  plainRmsNorm,
  rmsNormLayer,
  scale,
  sequence,
  sum,
  weightedScale,
} from '../constructors/basic-layers.js';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules } from '../family.js';
import type { LanguageModel, Layer, PerLayerInputs } from '../layer.js';
import { buffer, param } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { decoder, residualBlock, separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineTransformer } from '../transformer/define-decoder.js';
import type { Special } from '../transformer/hugging-face.js';
import {
  ignoredKeys,
  ownKeyLayers,
  perLayerBranch,
  perLayerIn,
  perLayerOf,
  perLayerSettings,
  sharedKeyAttention,
  sharedKeySettings,
  sharingRules,
} from '../transformer/per-layer.js';
import {
  localRotarySettings,
  nestedRotary,
  OLDER_ROTARY_KEYS,
  rotarySettings,
} from '../transformer/rotary.js';
import {
  keyHeadsDivide,
  layerListRules,
  localRotaryRules,
  WHOLE_HEAD_RULES,
  windowRules,
} from '../transformer/rules.js';
import {
  activationOf,
  count,
  decoderStored,
  positiveInteger,
  toggle,
  windowSettings,
} from '../transformer/settings.js';
import { GEMMA, gateAndLogitSettings, HIDDEN_ACT_UNREAD, softcappedLogits } from './gemma.js';

const [fullBase, localBase] = [1e6, 10_000];

/** Rotation of the layers without a window, unless a file has rotary settings. */
const FULL_ROTARY = { rope_type: 'proportional', partial_rotary_factor: 0.25 } as const;

const DEFAULT_ROTARY = {
  rope_theta: fullBase,
  rope_scaling: FULL_ROTARY,
  rope_local_base_freq: localBase,
  rope_local_scaling: null,
} as const;

/** Five layers with a window, then one without; the last one never has a window. */
const PERIOD = 6;

const DEFAULT_HEAD_DIM = 256;

const DEFAULT_LAYERS = 30;

/** Setting of the experts, which most of these models lack. */
const expertCount = positiveInteger.nullable().default(null);

const SIZES = {
  vocab_size: 262_144,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: DEFAULT_LAYERS,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: DEFAULT_HEAD_DIM,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-6,
  rope_theta: fullBase,
  tie_word_embeddings: true,
} as const;

/** Keys of both kinds. @param window Tokens of a window. */
const gemma4Settings = (window: number) => ({
  rope_scaling: rotarySettings(fullBase).rope_scaling.default(FULL_ROTARY),
  ...localRotarySettings(localBase),
  ...windowSettings(window),
  global_head_dim: count(512, 'Width of a head in layers without a window'),
  num_global_key_value_heads: positiveInteger
    .nullable()
    .default(null)
    .describe('Key and value heads of layers without a window; null: as in the others'),
  attention_k_eq_v: toggle(
    false,
    'Values are the keys before their norm in layers without a window',
  ),
  ...sharedKeySettings(0),
  use_double_wide_mlp: toggle(false, 'The networks of these layers have twice the width'),
  ...gateAndLogitSettings(null),
  use_bidirectional_attention: z
    .literal('vision')
    .nullish()
    .describe('Attention to text is causal'),
});

const gemma4Schema = decoderDocument('gemma4_text', SIZES, {
  ...gemma4Settings(512),
  ...perLayerSettings(0),
  enable_moe_block: toggle(
    false,
    'Experts in addition to the network of every block; the outputs are summed',
  ),
  num_experts: expertCount.describe('Experts to choose from'),
  top_k_experts: expertCount.describe('Experts that a token goes to'),
  moe_intermediate_size: expertCount.describe('Width inside an expert'),
});

type Config = Omit<z.output<typeof gemma4Schema>['model'], 'family'>;

const slides = ({ layer_types: types, num_hidden_layers: layers }: Config, index: number) =>
  index < layers - 1 && (types ? types[index] === 'sliding_attention' : (index + 1) % PERIOD !== 0);

/** Sizes of the layers without a window, from either of the two keys that a file can have. */
function fullSizes(config: JsonObject): JsonObject {
  const { per_layer_config: byLayer, attention_k_eq_v: shares } = config;
  if (byLayer === undefined) {
    return shares === true ? {} : { num_global_key_value_heads: null };
  }
  // Without any entry, all layers have the sizes of the file.
  const [sizes] = isRecord(byLayer) ? Object.values(byLayer).filter(isRecord) : [];
  return {
    global_head_dim: sizes?.head_dim ?? config.head_dim ?? DEFAULT_HEAD_DIM,
    num_global_key_value_heads: sizes?.num_key_value_heads ?? null,
  };
}

const SIZE_KEYS = ['head_dim', 'num_key_value_heads'];

/** Whether these are the numbers of all layers without a window. Makes no list of layers, whose number can be huge. */
function areFullLayers(
  indices: ReadonlySet<number>,
  { layer_types: types, num_hidden_layers: layers }: JsonObject,
): boolean {
  const count = Array.isArray(types) ? types.length : asNumber(layers ?? DEFAULT_LAYERS);
  const isFull = (index: number) =>
    index === count - 1 ||
    (Array.isArray(types) ? types[index] === 'full_attention' : (index + 1) % PERIOD === 0);
  const full = Array.isArray(types)
    ? types.filter((_, index) => isFull(index)).length
    : Math.ceil(count / PERIOD);
  const isLayer = (index: number) => index >= 0 && index < count && isFull(index);
  return indices.size === full && [...indices].every(isLayer);
}

/** Whether the layers without a window, and only these, have other sizes, which are the same for all. */
function hasFullSizes(byLayer: unknown, config: JsonObject): boolean {
  if (byLayer === null) return true;
  if (!isRecord(byLayer)) return false;
  const [first, ...others] = Object.values(byLayer);
  // Written where all layers have the same sizes.
  if (first === undefined) return true;
  return (
    isRecord(first) &&
    Object.keys(first).every((key) => SIZE_KEYS.includes(key)) &&
    others.every((each) => JSON.stringify(each) === JSON.stringify(first)) &&
    // transformers writes numbers of one width: "05".
    areFullLayers(new Set(Object.keys(byLayer).map(Number)), config)
  );
}

const globalHeadRules = defineRules<{ readonly model: Config }>([
  {
    severity: 'error',
    reads: ['model.global_head_dim'],
    check: ({ model: { global_head_dim: width } }) =>
      width % 2 === 1
        ? {
            message: `RoPE rotates pairs, but global_head_dim ${width} is odd`,
            suggestion: 'write an even global_head_dim',
          }
        : undefined,
  },
]);

interface Experts {
  readonly experts: number;
  readonly chosen: number;
  readonly inner: number;
}

/** Sizes of the experts, none in a model without them. */
function expertsIn(config: Config): Experts | undefined {
  const { num_experts: experts, top_k_experts: chosen, moe_intermediate_size: inner } = config;
  return config.enable_moe_block && experts !== null && chosen !== null && inner !== null
    ? { experts, chosen, inner }
    : undefined;
}

const EXPERT_KEYS = ['num_experts', 'top_k_experts', 'moe_intermediate_size'] as const;

const sparseRules = defineRules<{ readonly model: Config }>([
  {
    severity: 'error',
    reads: ['model.enable_moe_block', ...EXPERT_KEYS.map((key) => `model.${key}`)],
    check({ model }) {
      if (!model.enable_moe_block) return undefined;
      const missing = EXPERT_KEYS.filter((key) => model[key] === null);
      if (missing.length > 0) {
        return {
          message: `enable_moe_block needs ${missing.join(', ')}`,
          suggestion: `write ${missing.join(', ')}, or enable_moe_block: false`,
        };
      }
      const { experts = 0, chosen = 0 } = expertsIn(model) ?? {};
      return chosen > experts
        ? {
            message: `${chosen} experts for a token are more than the ${experts} there are`,
            suggestion: `write at most ${experts} as top_k_experts`,
          }
        : undefined;
    },
  },
]);

const RULES = [
  ...WHOLE_HEAD_RULES,
  ...localRotaryRules,
  ...layerListRules('layer_types'),
  ...windowRules(() => true),
  ...keyHeadsDivide('num_global_key_value_heads'),
  ...globalHeadRules,
  ...sharingRules(slides),
];

const HUGGING_FACE = {
  rotary: nestedRotary(DEFAULT_ROTARY),
  more: fullSizes,
  reads: ['per_layer_config'],
  limited: {
    ...HIDDEN_ACT_UNREAD,
    ...unreadEach([
      'audio_config',
      'audio_token_id',
      'image_token_id',
      'text_config',
      'use_clipped_linears',
      'video_token_id',
      'vision_config',
    ]),
    ...OLDER_ROTARY_KEYS,
    per_layer_config: {
      allows: hasFullSizes,
      why: 'layers have sizes that are not those of their kind',
      severity: 'error',
    },
  },
} as const satisfies Special;

export const gemma4Text = defineTransformer({
  title: 'Gemma 4, text only',
  schema: gemma4Schema,
  rules: [...RULES, ...sparseRules],
  ignoredOnLoad: ({ model }) => ignoredKeys(model),
  huggingFace: HUGGING_FACE,
  storedSettings: decoderStored,
  build: ({ model }) => gemma4Model(model),
});

/** Gemma 4 12B: images and sounds enter without towers; no inputs for each layer, no experts. */
export const gemma4UnifiedText = defineTransformer({
  title: 'Gemma 4 without towers, text only',
  schema: decoderDocument(
    'gemma4_unified_text',
    { ...SIZES, max_position_embeddings: 262_144 },
    gemma4Settings(1024),
  ),
  rules: RULES,
  ignoredOnLoad: [],
  huggingFace: HUGGING_FACE,
  storedSettings: decoderStored,
  build: ({ model }) => gemma4Model({ ...model, ...NO_EXTRAS }),
});

const NO_EXTRAS = {
  hidden_size_per_layer_input: 0,
  vocab_size_per_layer_input: 0,
  enable_moe_block: false,
  num_experts: null,
  top_k_experts: null,
  moe_intermediate_size: null,
} as const;

function gemma4Model(config: Config): LanguageModel {
  const { hidden_size: hidden, rms_norm_eps: eps } = config;
  return decoder(config, {
    norm: (name: string) => rmsNormLayer(name, hidden, eps),
    embeddingSteps: GEMMA.embeddingSteps(config),
    shared: (tokens) => perLayerOf(config, tokens),
    block: (name, index, shared) => gemma4Block(name, index, config, perLayerIn(shared)),
    logitSteps: softcappedLogits(config),
  });
}

function gemma4Block(
  name: string,
  index: number,
  config: Config,
  inputs: PerLayerInputs | undefined,
): Layer {
  const { hidden_size: hidden, rms_norm_eps: eps } = config;
  const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, hidden, eps);
  const isWide = config.use_double_wide_mlp && index >= ownKeyLayers(config);
  const activation = activationOf(config.hidden_activation);
  const network = [
    norm('pre_feedforward_layernorm'),
    separateMlp(`${name}.mlp`, {
      hidden,
      inner: config.intermediate_size * (isWide ? 2 : 1),
      activation,
    }),
  ];
  const withNorms = sequence(`${name}.network`, [...network, norm('post_feedforward_layernorm_1')]);
  const experts = expertBranch(name, config);
  const { layers } = residualBlock(name, {
    attention: [
      norm('input_layernorm'),
      sharedKeyAttention(name, index, config, slides, headsAt(config, index)),
      norm('post_attention_layernorm'),
    ],
    mlp: [
      ...(experts ? [sum(`${name}.networks`, withNorms, experts)] : network),
      norm('post_feedforward_layernorm'),
    ],
    ...(inputs && {
      per_layer: [
        perLayerBranch(`${name}.per_layer`, name, { hidden, activation, inputs, index }),
        norm('post_per_layer_input_norm'),
      ],
    }),
  });
  const scaled = weightedScale(`${name}.scaled`, buffer(`${name}.layer_scalar`, [1]));
  return sequence(name, [...layers, scaled]);
}

/** norm(experts(norm(x))); the router reads x with a norm and scales of its own. */
function expertBranch(name: string, config: Config): Layer | undefined {
  const sizes = expertsIn(config);
  if (!sizes) return undefined;
  const { hidden_size: hidden, rms_norm_eps: eps } = config;
  const { experts, chosen, inner } = sizes;
  const own = `${name}.router`;
  const mixture = mixtureOfExperts(`${name}.mixture`, {
    router: router(`${own}.proj`, hidden, {
      experts,
      expertsPerToken: chosen,
      scoring: 'softmax',
      renormalised: { eps: 0 },
      expertScales: `${own}.per_expert_scale`,
      steps: [
        plainRmsNorm(`${own}.norm`, hidden, eps),
        weightedScale(`${own}.scaled`, param(`${own}.scale`, [hidden])),
        scale(`${own}.root`, 1 / Math.sqrt(hidden)),
      ],
    }),
    expertNorm: rmsNormLayer(`${name}.pre_feedforward_layernorm_2`, hidden, eps),
    experts: packedExperts(
      `${name}.experts`,
      { experts, hidden, inner },
      activationOf(config.hidden_activation),
    ),
  });
  return sequence(`${name}.sparse`, [
    mixture,
    rmsNormLayer(`${name}.post_feedforward_layernorm_2`, hidden, eps),
  ]);
}

function headsAt(config: Config, index: number) {
  const { hidden_size: hidden, num_attention_heads: heads, head_dim: headDim } = config;
  const keyValueHeads = config.num_key_value_heads ?? heads;
  return slides(config, index)
    ? { heads, keyValueHeads, headDim: headDim ?? hidden / heads }
    : {
        heads,
        keyValueHeads: config.num_global_key_value_heads ?? keyValueHeads,
        headDim: config.global_head_dim,
        valuesAreKeys: config.attention_k_eq_v,
      };
}
