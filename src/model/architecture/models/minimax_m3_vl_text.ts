/** MiniMax-M3: attention to chosen blocks of keys, partly rotated heads, and networks with limited gates. */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { blockIndexer, rotary } from '../constructors/attention-layers.js';
import { linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules, type Setting, type StoredShapes } from '../family.js';
import type { BlockIndexer, GateLimits } from '../layer.js';
import { buffer } from '../param.js';
import { harmless, type JsonObject, unreadBut, unreadEach } from '../transformer/config-keys.js';
import { expertsOf, fusedMlp, separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { partialFactorIn, scalingOf } from '../transformer/rotary.js';
import {
  count,
  expertsStored,
  mixtureStored,
  mlpLayerTypes,
  partOfHead,
} from '../transformer/settings.js';

const HEAD_DIM = 128;

const schema = decoderDocument(
  'minimax_m3_vl_text',
  {
    vocab_size: 200_064,
    hidden_size: 6144,
    intermediate_size: 3072,
    num_hidden_layers: 60,
    num_attention_heads: 64,
    num_key_value_heads: 4,
    head_dim: HEAD_DIM,
    max_position_embeddings: 524_288,
    rms_norm_eps: 1e-6,
    rope_theta: 5e6,
  },
  {
    partial_rotary_factor: partOfHead(1),
    layer_types: z
      .array(z.enum(['full_attention', 'minimax_m3_sparse']))
      .nullish()
      .describe('Which layers choose blocks of keys: minimax_m3_sparse; by default, none'),
    mlp_layer_types: mlpLayerTypes,
    dense_intermediate_size: count(12_288, 'Width of the networks without experts'),
    shared_intermediate_size: count(3072, 'Width of the expert for every token'),
    num_local_experts: count(128, 'Experts to choose from'),
    num_experts_per_tok: count(4, 'Experts that a token goes to'),
    experts_stored: expertsStored,
    routed_scaling_factor: z
      .number()
      .positive()
      .default(2)
      .describe('What the weights of the chosen experts are multiplied by'),
    swiglu_alpha: z
      .number()
      .positive()
      .default(1.702)
      .describe('Factor α of a gate g in g · σ(α · g)'),
    swiglu_limit: z.number().positive().default(7).describe('Limit of gate and up'),
    index_n_heads: count(4, 'Heads of an indexer, each for a part of the heads of the attention'),
    index_head_dim: count(128, "Width of the indexer's heads"),
    index_block_size: count(128, 'Keys of a block'),
    index_topk_blocks: count(16, 'Blocks that a query sees at most'),
    index_local_blocks: z
      .int()
      .min(0)
      .default(1)
      .describe('Blocks up to that of the query, which it always sees'),
  },
);

type Config = z.output<typeof schema>['model'];

/** Keys of `sparse_attention_config` in published files, and the settings that they give. */
const SPARSE: Readonly<Record<string, string>> = {
  sparse_num_index_heads: 'index_n_heads',
  sparse_index_dim: 'index_head_dim',
  sparse_block_size: 'index_block_size',
  sparse_topk_blocks: 'index_topk_blocks',
  sparse_local_block: 'index_local_blocks',
};

const typesOfFlags = (flags: unknown, [on, off]: readonly [string, string]) =>
  Array.isArray(flags) ? flags.map((flag) => (flag ? on : off)) : flags;

function published(config: JsonObject): JsonObject {
  const { sparse_attention_config: given, moe_layer_freq: frequent } = config;
  const sparse = (given ?? {}) as JsonObject;
  const sizes = Object.entries(SPARSE).flatMap(([key, setting]) =>
    Object.hasOwn(sparse, key) ? [[setting, sparse[key]] as const] : [],
  );
  return {
    ...partialFactorIn(config),
    ...Object.fromEntries(sizes),
    ...(config.layer_types == null &&
      Object.hasOwn(sparse, 'sparse_attention_freq') && {
        layer_types: typesOfFlags(sparse.sparse_attention_freq, [
          'minimax_m3_sparse',
          'full_attention',
        ]),
      }),
    ...(config.mlp_layer_types == null &&
      frequent != null && { mlp_layer_types: typesOfFlags(frequent, ['sparse', 'dense']) }),
  };
}

const gateLimits = ({ swiglu_limit: limit, swiglu_alpha: sharpness }: Config): GateLimits => ({
  limit,
  sharpness,
  raise: 1,
});

const rotatedDims = ({ head_dim: width, partial_rotary_factor: part }: Config): number =>
  Math.trunc(Number(width) * part);

/** In published files, the products of an indexer have other names. */
const INDEXER = { packed: 'indexer.', separate: 'index_' } as const;

/** Path of a mixture. */
const MIXTURE = { packed: 'mlp', separate: 'block_sparse_moe' } as const;

function indexerOf(name: string, config: Config): BlockIndexer {
  const { hidden_size: hidden, index_n_heads: heads, index_head_dim: headDim } = config;
  const path = `${name}.${INDEXER[config.experts_stored]}`;
  const product = (leaf: string, to: number) =>
    linear(`${path}${leaf}`, hidden, to, { bias: false });
  const norm = (leaf: string) => rmsNormLayer(`${path}${leaf}`, headDim, config.rms_norm_eps, 1);
  return blockIndexer(`${name}.indexer`, {
    query: product('q_proj', heads * headDim),
    key: product('k_proj', headDim),
    queryNorm: norm('q_norm'),
    keyNorm: norm('k_norm'),
    rotary: rotary(`${name}.indexer.rotary`, {
      base: config.rope_theta,
      headDim,
      rotatedDim: rotatedDims(config),
      scaling: scalingOf(config.rope_scaling, config.max_position_embeddings, rotatedDims(config)),
    }),
    heads,
    size: config.index_block_size,
    kept: config.index_topk_blocks,
    local: config.index_local_blocks,
  });
}

const hasIndexers = ({ layer_types: kinds }: Config): boolean =>
  kinds?.includes('minimax_m3_sparse') ?? false;

const INDEX_RULES = defineRules<{ readonly model: Config }>([
  {
    severity: 'error',
    reads: ['model.index_head_dim', 'model.head_dim', 'model.partial_rotary_factor'],
    check: ({ model }) =>
      hasIndexers(model) && model.index_head_dim < rotatedDims(model)
        ? {
            message: `the indexer's heads of ${model.index_head_dim} dimensions are narrower than the ${rotatedDims(model)} that are rotated`,
            suggestion: `write index_head_dim: ${rotatedDims(model)} or more`,
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: ['model.index_n_heads', 'model.num_attention_heads'],
    check: ({ model }) =>
      hasIndexers(model) && model.num_attention_heads % model.index_n_heads !== 0
        ? {
            message: `${model.index_n_heads} heads of the indexer do not divide the ${model.num_attention_heads} of the attention`,
            suggestion: 'write a divisor of num_attention_heads as index_n_heads',
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: ['model.index_local_blocks', 'model.index_topk_blocks'],
    check: ({ model }) =>
      hasIndexers(model) && model.index_local_blocks > model.index_topk_blocks
        ? {
            message: `${model.index_local_blocks} blocks up to that of the query are more than the ${model.index_topk_blocks} that it sees: which it sees is not defined`,
            suggestion: `write index_local_blocks: ${model.index_topk_blocks} or less`,
          }
        : undefined,
  },
]);

const FUSED = /\.gate_up_proj\.weight$/;
const APART = /\.mlp\.gate_proj\.weight$/;

/** Layout of a checkpoint without experts, whose networks have it, too. */
function layoutIn(stored: StoredShapes): readonly Setting[] {
  for (const name of stored.names()) {
    const value = FUSED.test(name) ? 'packed' : APART.test(name) ? 'separate' : undefined;
    if (value) return [{ path: 'model.experts_stored', value }];
  }
  return [];
}

export const minimaxM3VlText = defineDecoder({
  title: 'MiniMax-M3, with experts and attention to blocks',
  architecture: 'mixture',
  schema,
  rules: INDEX_RULES,
  storedSettings: (stored) => [...layoutIn(stored), ...mixtureStored(stored)],
  dimensions: null,
  ignoredOnLoad: ['(^|\\.)mtp\\..*', ROTARY_BUFFERS],
  huggingFace: {
    names: { num_local_experts: ['num_experts'] },
    more: published,
    reads: ['sparse_attention_config', 'moe_layer_freq'],
    limited: {
      rotary_dim: unreadBut(
        (rotated, config) =>
          rotated ===
          asNumber(config.head_dim ?? HEAD_DIM) *
            asNumber(partialFactorIn(config).partial_rotary_factor ?? 1),
        'partial_rotary_factor says how much of a head is rotated',
      ),
      hidden_act: unreadBut(['silu', 'swigluoai'], 'the gates are always g · σ(α · g)'),
      ...unreadEach(['scoring_func'], ['sigmoid']),
      ...unreadEach(['use_qk_norm', 'use_gemma_norm', 'use_routing_bias'], [true]),
      ...unreadEach(['qk_norm_type'], ['per_head']),
      ...unreadEach(['n_shared_experts'], [1]),
    },
    harmless: harmless('layers that predict further tokens are never part of the model', [
      'num_mtp_modules',
      'num_nextn_predict_layers',
    ]),
  },
  normOffset: 1,
  queryKeyNorms: 'each head',
  attention: ({ name, index, config }) =>
    config.layer_types?.[index] === 'minimax_m3_sparse'
      ? { selection: indexerOf(`${name}.self_attn`, config) }
      : {},
  feedForward({ name: block, index, config }) {
    const { hidden_size: hidden, experts_stored: stored, num_local_experts: experts } = config;
    const sizes = { hidden, activation: 'silu', limits: gateLimits(config) } as const;
    const mlp = stored === 'packed' ? fusedMlp : separateMlp;
    if (config.mlp_layer_types?.[index] === 'dense') {
      return mlp(`${block}.mlp`, { ...sizes, inner: config.dense_intermediate_size });
    }
    const name = `${block}.${MIXTURE[stored]}`;
    // In published files, the correction has another place.
    const correction = stored === 'packed' ? `${name}.gate` : name;
    return mixtureOfExperts(name, {
      router: router(`${name}.gate`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
        correction: buffer(`${correction}.e_score_correction_bias`, [experts]),
        renormalised: { eps: 0 },
        scale: config.routed_scaling_factor,
      }),
      experts: expertsOf(`${name}.experts`, {
        ...sizes,
        experts,
        inner: config.intermediate_size,
        stored,
        ...(stored === 'separate' && { leaves: ['w1', 'w3', 'w2'] }),
      }),
      shared: [
        mlp(`${name}.shared_experts`, {
          ...sizes,
          inner: config.shared_intermediate_size,
          component: 'sharedExperts',
        }),
      ],
    });
  },
});
