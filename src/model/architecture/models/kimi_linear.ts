/** Kimi Linear (arXiv 2510.26692): Kimi delta attention, latent attention without positions, and experts. */

import * as z from 'zod';
import { asNumber, asText, isRecord } from '../../../base/values.js';
import { gatedRmsNorm, linear, rmsNormLayer, sequence } from '../constructors/basic-layers.js';
import { kimiDelta } from '../constructors/linear-attention-layers.js';
import { causalConv } from '../constructors/recurrent-layers.js';
import { defineRules, type StoredShapes } from '../family.js';
import type { Layer } from '../layer.js';
import { MAX_LAYERS } from '../param.js';
import {
  harmless,
  type JsonObject,
  type LimitedKey,
  unreadBut,
  unreadEach,
} from '../transformer/config-keys.js';
import { decoder, preNormBlock, separateMlp } from '../transformer/decoder-parts.js';
import {
  bestTwoRules,
  correctedRouting,
  deepseekAttention,
  latentKeys,
  routedMixture,
  routedRules,
} from '../transformer/deepseek.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { expertRules, layerListRules, lengthRules } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  decoderSizes,
  decoderStored,
  gateActivation,
  mlpLayerTypes,
  normEpsilon,
  positiveInteger,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

const {
  head_dim: _,
  num_key_value_heads: __,
  ...sizes
} = decoderSizes({
  vocab_size: 163_840,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 27,
  num_attention_heads: 32,
  max_position_embeddings: 1_048_576,
});

// Defaults are those of transformers' KimiLinearConfig.
const schema = transformerDocument('kimi_linear', {
  ...sizes,
  stored_names: z
    .enum(['published', 'saved', 'held'])
    .default('published')
    .describe(
      'Names of the tensors: as published, as transformers 5 saves them, with every network under the name of a mixture, or as it holds them',
    ),
  num_key_value_heads: positiveInteger
    .nullable()
    .default(32)
    .describe('Not used: latent attention has keys and values for every head'),
  rms_norm_eps: normEpsilon(1e-5),
  q_lora_rank: positiveInteger
    .nullable()
    .default(null)
    .describe('Rank of the queries; null: one product'),
  kv_lora_rank: count(512, 'Width of the latent of which keys and values are made'),
  qk_nope_head_dim: count(128, 'Dimensions of a head with keys of its own'),
  qk_rope_head_dim: count(64, 'Dimensions of a head whose key all heads share'),
  v_head_dim: count(128, "Width of a head's value"),
  attention_bias: attentionBias,
  layer_types: z
    .array(z.enum(['linear_attention', 'full_attention']))
    .nullish()
    .describe('Which layers have latent attention; null: every fourth one after the first'),
  linear_num_heads: count(32, 'Heads of Kimi delta attention'),
  linear_head_dim: count(128, 'Width of its heads, and of the low ranks of decays and gate'),
  linear_conv_kernel_dim: count(4, 'Tokens that its convolution sees'),
  mlp_layer_types: mlpLayerTypes,
  first_k_dense_replace: z
    .int()
    .min(0)
    .default(1)
    .describe('Without mlp_layer_types: first layers without experts'),
  num_local_experts: count(256, 'Experts to choose from'),
  n_shared_experts: count(1, 'Experts for every token, as one network of their joint width'),
  num_experts_per_tok: count(8, 'Experts that a token goes to'),
  moe_intermediate_size: count(1024, 'Width inside an expert'),
  n_group: count(1, 'Groups of experts'),
  topk_group: count(1, 'Groups that are kept'),
  routed_scaling_factor: z
    .number()
    .positive()
    .default(2.446)
    .describe('Factor of the weights of the chosen experts'),
  norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one before that'),
  hidden_act: gateActivation,
});

type KimiConfig = z.output<typeof schema>['model'];

/** Names by the layout of the file. */
const NAMES = {
  published: {
    conv: ['q_conv1d', 'k_conv1d', 'v_conv1d'],
    forget: '',
    dense: 'mlp',
    sparse: 'block_sparse_moe',
  },
  saved: {
    conv: ['q_conv1d', 'k_conv1d', 'v_conv1d'],
    forget: '',
    dense: 'block_sparse_moe',
    sparse: 'block_sparse_moe',
  },
  held: { conv: ['conv1d'], forget: '.forget_gate', dense: 'mlp', sparse: 'mlp' },
} as const;

/** Kinds of layers from lists of their numbers, from 1 on. */
function layerTypesIn({ num_hidden_layers: layers = 27 }: JsonObject, lists: JsonObject) {
  const { full_attn_layers: full, kda_layers: delta } = lists;
  if (!Array.isArray(full) || !Array.isArray(delta)) return undefined;
  const count = asNumber(layers);
  // Other numbers of layers are refused as such.
  if (!Number.isInteger(count) || count < 1 || count > MAX_LAYERS) return undefined;
  const types = new Array<unknown>(count).fill(null);
  for (const [list, kind] of [
    [full, 'full_attention'],
    [delta, 'linear_attention'],
  ] as const) {
    // A layer that the model lacks makes the list too long, which is refused.
    for (const number of list) types[isLayer(number, count) ? number - 1 : count] = kind;
  }
  return types;
}

const isLayer = (number: unknown, count: number): number is number =>
  Number.isInteger(number) && asNumber(number) >= 1 && asNumber(number) <= count;

/** Settings that published files have in a section of their own, which overrides the others. */
function linearIn(config: JsonObject): JsonObject {
  const { linear_attn_config: own = {}, layer_types: types } = config;
  if (!isRecord(own)) return {};
  return {
    linear_head_dim: own.head_dim,
    linear_num_heads: own.num_heads,
    linear_conv_kernel_dim: own.short_conv_kernel_size,
    layer_types: types ?? layerTypesIn(config, own),
  };
}

/** Layout of a `config.json` of the class; a file can show another one. */
function layoutOf(config: JsonObject): KimiConfig['stored_names'] {
  if (isHeldInMemory(config)) return 'held';
  return Number.parseInt(asText(config.transformers_version ?? ''), 10) >= 5
    ? 'saved'
    : 'published';
}

/** Layout of a checkpoint; undefined where its names are those of several. */
function layoutStored(stored: StoredShapes): KimiConfig['stored_names'] | undefined {
  let found: KimiConfig['stored_names'] | undefined;
  for (const name of stored.names()) {
    if (/\.self_attn\.(?:conv1d|forget_gate)\.|\.experts\.gate_up_proj$/.test(name)) return 'held';
    if (/\.block_sparse_moe\.gate_proj\./.test(name)) return 'saved';
    if (/\.self_attn\.q_conv1d\.|\.block_sparse_moe\./.test(name)) found = 'published';
  }
  return found;
}

const attends = ({ layer_types: types }: KimiConfig, index: number): boolean =>
  types ? types[index] === 'full_attention' : index > 0 && index % 4 === 0;

const isSparse = (config: KimiConfig, index: number): boolean =>
  config.mlp_layer_types
    ? config.mlp_layer_types[index] === 'sparse'
    : index >= config.first_k_dense_replace;

function deltaLayer(name: string, config: KimiConfig): Layer {
  const { hidden_size: hidden, linear_num_heads: heads, linear_head_dim: headDim } = config;
  const width = heads * headDim;
  const { conv, forget } = NAMES[config.stored_names];
  const product = (path: string, from: number, to: number) =>
    linear(path, from, to, { bias: false });
  const lowRank = (path: string, leaf: string) =>
    sequence(`${path}.${leaf}_low_rank`, [
      product(`${path}.${leaf}_a_proj`, hidden, headDim),
      product(`${path}.${leaf}_b_proj`, headDim, width),
    ]);
  return kimiDelta(name, {
    tensors: `${name}${forget}`,
    inputs: ['q', 'k', 'v'].map((leaf) => product(`${name}.${leaf}_proj`, hidden, width)),
    convs: conv.map((leaf) =>
      causalConv(`${name}.${leaf}`, (3 * width) / conv.length, config.linear_conv_kernel_dim, {
        bias: false,
        cached: config.linear_conv_kernel_dim,
      }),
    ),
    forget: lowRank(`${name}${forget}`, 'f'),
    beta: product(`${name}.b_proj`, hidden, heads),
    gate: lowRank(name, 'g'),
    norm: gatedRmsNorm(`${name}.o_norm`, {
      eps: config.rms_norm_eps,
      width,
      groups: heads,
      sharedWeight: true,
      activation: 'sigmoid',
      gated: 'after',
    }),
    outProj: product(`${name}.o_proj`, width, hidden),
    heads,
    headDim,
    activation: activationOf(config.hidden_act),
  });
}

function feedForward(block: string, config: KimiConfig, index: number): Layer {
  const { dense, sparse } = NAMES[config.stored_names];
  const { hidden_size: hidden, stored_names: stored } = config;
  if (!isSparse(config, index)) {
    return separateMlp(`${block}.${dense}`, {
      hidden,
      inner: config.intermediate_size,
      activation: activationOf(config.hidden_act),
    });
  }
  const routed = {
    ...config,
    n_routed_experts: config.num_local_experts,
    experts_stored: stored === 'held' ? ('packed' as const) : ('separate' as const),
  };
  return routedMixture(`${block}.${sparse}`, routed, {
    routing: correctedRouting(routed),
    leaves: ['w1', 'w3', 'w2'],
  });
}

const noRotation: LimitedKey['allows'] = (value, config) =>
  value == null || config.mla_use_nope === true;

export const kimiLinear = defineTransformer({
  title: 'Kimi Linear: delta attention, latent attention and experts',
  architecture: 'hybrid',
  schema,
  rules: [
    ...lengthRules('max_position_embeddings'),
    ...layerListRules('layer_types'),
    ...layerListRules('mlp_layer_types'),
    ...expertRules('num_local_experts'),
    ...routedRules('num_local_experts'),
    ...bestTwoRules('num_local_experts'),
    ...defineRules<{
      readonly model: Pick<KimiConfig, 'num_attention_heads' | 'num_key_value_heads'>;
    }>([
      {
        severity: 'error',
        reads: ['model.num_key_value_heads', 'model.num_attention_heads'],
        check: ({ model: { num_attention_heads: heads, num_key_value_heads: keys } }) =>
          Math.floor(heads / (keys ?? heads)) === 1
            ? undefined
            : {
                message: `latent attention has keys and values for all ${heads} heads, found num_key_value_heads ${keys}`,
                suggestion: `write num_key_value_heads: ${heads}`,
              },
      },
    ]),
  ],
  // The class never ties its head.
  settingsFor: () => [],
  huggingFace: {
    names: {
      max_position_embeddings: ['model_max_length'],
      norm_topk_prob: ['moe_renormalize'],
      n_group: ['num_expert_group'],
      num_local_experts: ['num_experts'],
      num_experts_per_tok: ['num_experts_per_token'],
      n_shared_experts: ['num_shared_experts'],
    },
    more: (config) => ({ ...linearIn(config), stored_names: layoutOf(config) }),
    reads: ['linear_attn_config'],
    harmless: harmless('transformers does not read it for this family', [
      'head_dim',
      'pretraining_tp',
    ]),
    limited: {
      qk_head_dim: latentKeys().qk_head_dim as LimitedKey,
      tie_word_embeddings: unreadBut([false], 'the class never ties its head'),
      mla_use_nope: unreadBut([true], 'the class rotates nothing'),
      moe_layer_freq: unreadBut([1]),
      moe_router_activation_func: unreadBut(['sigmoid']),
      use_grouped_topk: unreadBut([true]),
      num_nextn_predict_layers: unreadBut([0]),
      ...unreadEach(
        ['rope_parameters', 'rope_scaling', 'rope_theta', 'partial_rotary_factor'],
        noRotation,
      ),
    },
  },
  storedSettings(stored) {
    const layout = layoutStored(stored);
    return [
      ...decoderStored(stored),
      ...(layout === undefined ? [] : [{ path: 'model.stored_names', value: layout }]),
    ];
  },
  build({ model: config }) {
    const norm = (name: string) => rmsNormLayer(name, config.hidden_size, config.rms_norm_eps);
    const unrotated = { ...config, rope_theta: 1, rope_scaling: null, tie_word_embeddings: false };
    return decoder(unrotated, {
      norm,
      block: (name, index) =>
        preNormBlock(name, {
          norm,
          attention: attends(config, index)
            ? deepseekAttention(`${name}.self_attn`, unrotated, undefined)
            : deltaLayer(`${name}.self_attn`, config),
          feedForward: feedForward(name, config, index),
        }),
    });
  },
});
