/** MiMo-V2-Flash (Xiaomi): windows with sinks and twice the key-value heads, narrower values, experts of DeepSeek-V3. */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { attention, slidingWindow } from '../constructors/attention-layers.js';
import { linear, scale, sequence } from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { type JsonObject, unreadBut, unreadEach } from '../transformer/config-keys.js';
import {
  BEST_TWO_RULES,
  correctedRouting,
  deepseekFeedForward,
  falseForNull,
  routedRules,
  routedSettings,
} from '../transformer/deepseek.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  PART_RULES,
  partSettings,
  partsByKind,
  rotaryOfKind,
} from '../transformer/rotary-by-kind.js';
import {
  count,
  gateActivation,
  mlpLayerTypes,
  slidesAt,
  toggle,
  windowSettings,
} from '../transformer/settings.js';

const ROTARY = {
  rope_theta: 5e6,
  rope_local_base_freq: 10_000,
  partial_rotary_factor: 0.334,
  local_partial_rotary_factor: 0.334,
} as const;

const [WINDOW, EPS, DENSE] = [128, 1e-5, 1];
const SIZES = {
  vocab_size: 152_576,
  hidden_size: 4096,
  intermediate_size: 16_384,
  num_hidden_layers: 48,
  num_attention_heads: 64,
  num_key_value_heads: 4,
  head_dim: 192,
  max_position_embeddings: 131_072,
} as const;
const VALUE_DIM = 128;

/** Without a list, the first layer and every sixth have no window. */
const slidesByRule = (index: number): boolean => index !== 0 && (index + 1) % 6 !== 0;

const mimoLayerTypes = ({
  layer_types: types,
  num_hidden_layers: layers,
}: JsonObject): unknown[] =>
  Array.isArray(types)
    ? types
    : Array.from(
        { length: Math.min(asNumber(layers ?? SIZES.num_hidden_layers), 6) },
        (_, index) => (slidesByRule(index) ? 'sliding_attention' : 'full_attention'),
      );

const {
  first_k_dense_replace: _,
  n_shared_experts: __,
  ...experts
} = routedSettings({
  moe_intermediate_size: 2048,
  n_routed_experts: 256,
  n_shared_experts: 0,
  num_experts_per_tok: 8,
  first_k_dense_replace: DENSE,
  routed_scaling_factor: 1,
  norm_topk_prob: true,
  n_group: 1,
  topk_group: 1,
});

/** A key of published files with the value that the class computes from others. */
const asComputed = (read: (config: JsonObject) => unknown) =>
  unreadBut((value, config) => value === null || value === read(config));

/** Lists of published files with a 1 for each layer of a kind. */
const asListed = (isOne: (config: JsonObject, index: number) => boolean) =>
  unreadBut(
    (list, config) =>
      list === null ||
      (Array.isArray(list) && list.every((one, index) => (one === 1) === isOne(config, index))),
  );

export const mimoV2Flash = defineDecoder({
  title: 'MiMo-V2-Flash, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'mimo_v2_flash',
    { ...SIZES, rms_norm_eps: EPS, rope_theta: ROTARY.rope_theta },
    {
      ...partSettings(ROTARY),
      ...windowSettings(WINDOW),
      v_head_dim: count(VALUE_DIM, "Width of a head's value"),
      attention_value_scale: z
        .number()
        .nullable()
        .default(707e-3)
        .describe('What values are multiplied by; null: 1'),
      attention_bias: toggle(false, 'Biases on queries, keys and values'),
      mlp_layer_types: mlpLayerTypes,
      ...experts,
      hidden_act: gateActivation,
    },
  ),
  slidesByRule: ({ sliding_window: tokens }) => tokens !== null,
  rules: [
    ...PART_RULES,
    ...routedRules('n_routed_experts'),
    ...BEST_TWO_RULES,
    ...defineRules<{
      readonly model: {
        readonly num_attention_heads: number;
        readonly num_key_value_heads: number | null;
        readonly num_hidden_layers: number;
        readonly layer_types?: readonly string[] | null | undefined;
      };
    }>([
      {
        severity: 'error',
        reads: ['model.num_key_value_heads', 'model.num_attention_heads', 'model.layer_types'],
        check({ model }) {
          const { num_attention_heads: heads, num_key_value_heads: keys } = model;
          const slides = Array.from({ length: Math.min(model.num_hidden_layers, 4096) }, (_, at) =>
            slidesAt(model, at, slidesByRule(at)),
          ).includes(true);
          return slides && heads % (2 * (keys ?? heads)) !== 0
            ? {
                message: `layers with a window have twice the key-value heads, ${2 * (keys ?? heads)}, which do not divide ${heads} heads`,
                suggestion: 'write num_key_value_heads: half of a divisor of the heads',
              }
            : undefined;
        },
      },
    ]),
  ],
  dimensions: null,
  ignoredOnLoad: ['^model\\.mtp\\.'],
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    more: (config) => ({
      ...falseForNull(config),
      ...(config.routed_scaling_factor === null && { routed_scaling_factor: 1 }),
    }),
    rotary: partsByKind(ROTARY, ROTARY.partial_rotary_factor, mimoLayerTypes),
    limited: {
      ...unreadEach(['rope_theta'], [ROTARY.rope_theta]),
      ...unreadEach(['swa_rope_theta'], [ROTARY.rope_local_base_freq]),
      ...unreadEach(['rope_scaling', 'rope_local_base_freq']),
      ...unreadEach(['partial_rotary_factor'], [ROTARY.partial_rotary_factor]),
      ...unreadEach(['n_shared_experts'], [0]),
      ...unreadEach(['first_k_dense_replace'], [DENSE]),
      ...unreadEach(['topk_method'], ['noaux_tc']),
      ...unreadEach(['scoring_func'], ['sigmoid']),
      ...unreadEach(['add_swa_attention_sink_bias'], [true]),
      ...unreadEach(['add_full_attention_sink_bias'], [false]),
      layernorm_epsilon: asComputed(({ rms_norm_eps: eps = EPS }) => eps),
      sliding_window_size: asComputed(({ sliding_window: tokens = WINDOW }) => tokens),
      attention_chunk_size: asComputed(({ sliding_window: tokens = WINDOW }) => tokens),
      swa_num_attention_heads: asComputed(
        ({ num_attention_heads: heads = SIZES.num_attention_heads }) => heads,
      ),
      swa_num_key_value_heads: asComputed(
        ({ num_key_value_heads: keys = SIZES.num_key_value_heads }) => 2 * asNumber(keys),
      ),
      swa_head_dim: asComputed(({ head_dim: width = SIZES.head_dim }) => width),
      swa_v_head_dim: asComputed(({ v_head_dim: width = VALUE_DIM }) => width),
      hybrid_layer_pattern: asListed(({ layer_types: types }, index) =>
        Array.isArray(types) ? types[index] === 'sliding_attention' : slidesByRule(index),
      ),
      moe_layer_freq: asListed(({ mlp_layer_types: types }, index) =>
        Array.isArray(types) ? types[index] === 'sparse' : index >= DENSE,
      ),
    },
  },
  attentionLayer({ name: block, config, index, heads: { hidden, heads, headDim, keyValueHeads } }) {
    const name = `${block}.self_attn`;
    const { v_head_dim: valueDim, attention_bias: bias, sliding_window: tokens } = config;
    const slides = slidesAt(config, index, slidesByRule(index));
    const keys = slides ? 2 * keyValueHeads : keyValueHeads;
    const product = (leaf: string, width: number) =>
      linear(`${name}.${leaf}`, hidden, width, { bias });
    const mixer = attention(name, {
      inputs: [
        product('q_proj', heads * headDim),
        product('k_proj', keys * headDim),
        product('v_proj', keys * valueDim),
      ],
      out: linear(`${name}.o_proj`, heads * valueDim, hidden, { bias: false }),
      rotary: rotaryOfKind(block, config, headDim, slides),
      ...(slides && { sinks: `${name}.${SINKS[config.experts_stored]}` }),
      window: slides && tokens !== null ? slidingWindow(tokens) : undefined,
      ownTypeSoftmax: true,
      heads,
      keyValueHeads: keys,
      headDim,
      valueDim,
    });
    return withScaledValues(mixer, config.attention_value_scale ?? 1);
  },
  feedForward({ name, index, config }) {
    const filled = { ...config, n_shared_experts: 0, first_k_dense_replace: DENSE };
    return deepseekFeedForward(`${name}.mlp`, index, filled, { routing: correctedRouting(filled) });
  },
});

/** Names of the sinks in files and in memory. */
const SINKS = { separate: 'attention_sink_bias', packed: 'sinks' } as const;

/** Attention is linear in its values, and its last product has no bias. */
const withScaledValues = (mixer: Layer, factor: number): Layer =>
  factor === 1
    ? mixer
    : sequence(`${mixer.name}.scaled`, [mixer, scale(`${mixer.name}.value_scale`, factor)]);
