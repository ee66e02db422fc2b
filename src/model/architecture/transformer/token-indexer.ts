/** Parts of models with latent attention and an indexer (DeepSeek-V3.2, arXiv 2512.02556). */
import { rotary, tokenIndexer } from '../constructors/attention-layers.js';
import { layerNormLayer, linear } from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import type { Rotary, TokenIndexer } from '../layer.js';
import { type LimitedKeys, unreadBut } from './config-keys.js';
import { type RopeScaling, scalingOf } from './rotary.js';
import { count } from './settings.js';

/** Epsilon of the norm of an indexer's keys, whatever the config says. */
const KEY_NORM_EPS = 1e-6;

interface IndexerDefaults {
  readonly index_topk: number;
  readonly index_head_dim: number;
  readonly index_n_heads: number;
}

export const indexerSettings = (defaults: IndexerDefaults) => ({
  index_topk: count(defaults.index_topk, 'Keys that a query sees at most'),
  index_head_dim: count(defaults.index_head_dim, "Width of the indexer's heads"),
  index_n_heads: count(defaults.index_n_heads, 'Heads of the indexer'),
});

interface IndexedConfig extends IndexerDefaults {
  readonly hidden_size: number;
  readonly q_lora_rank: number;
  readonly qk_rope_head_dim: number;
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly max_position_embeddings: number;
}

/** The indexer of an attention. @param pairs Dimensions that rotate together, of its own heads. */
export function tokenIndexerOf(
  name: string,
  config: IndexedConfig,
  pairs: Rotary['pairs'],
): TokenIndexer {
  const { hidden_size: hidden, index_n_heads: heads, index_head_dim: headDim } = config;
  const { qk_rope_head_dim: rotatedDim, q_lora_rank: rank } = config;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${name}.${leaf}`, from, to, { bias: false });
  return tokenIndexer(name, {
    query: product('wq_b', rank, heads * headDim),
    key: product('wk', hidden, headDim),
    keyNorm: layerNormLayer(`${name}.k_norm`, headDim, KEY_NORM_EPS),
    weights: product('weights_proj', hidden, heads),
    rotary: rotary(`${name}.rotary`, {
      base: config.rope_theta,
      headDim,
      rotatedDim,
      pairs,
      scaling: scalingOf(config.rope_scaling, config.max_position_embeddings, rotatedDim),
    }),
    heads,
    // The weights of the heads have a factor, too.
    scale: headDim ** -0.5 * heads ** -0.5,
    kept: config.index_topk,
  });
}

export const INDEXER_RULES = defineRules<{
  readonly model: Pick<IndexedConfig, 'index_head_dim' | 'qk_rope_head_dim'>;
}>([
  {
    severity: 'error',
    reads: ['model.index_head_dim', 'model.qk_rope_head_dim'],
    check: ({ model: { index_head_dim: width, qk_rope_head_dim: rotated } }) =>
      width < rotated
        ? {
            message: `the indexer's heads of ${width} dimensions are narrower than the ${rotated} that are rotated`,
            suggestion: `write index_head_dim: ${rotated} or more`,
          }
        : undefined,
  },
]);

/** Kind of all layers, and the name of it in older files. */
const INDEXED: ReadonlySet<unknown> = new Set(['indexed_attention', 'deepseek_sparse_attention']);

/** Keys of these models that are supported with limits. @param turned Dimensions that are rotated, by default. */
export const indexedKeys = (turned = 64): LimitedKeys => ({
  q_lora_rank: {
    allows: (rank) => rank !== null,
    why: 'the class has no queries of one product',
    severity: 'error',
  },
  layer_types: {
    allows: (kinds) =>
      kinds === null || (Array.isArray(kinds) && kinds.every((kind) => INDEXED.has(kind))),
    why: 'the cache of another kind of layer has no place for the keys of the indexer',
    severity: 'error',
  },
  head_dim: unreadBut(
    (width, { qk_rope_head_dim: rotated = turned }) => width === null || width === rotated,
    'it is qk_rope_head_dim',
  ),
  rope_interleave: unreadBut([true], 'neighbours are always rotated together'),
  moe_layer_freq: unreadBut([1]),
  topk_method: unreadBut(['noaux_tc']),
  scoring_func: unreadBut(['sigmoid']),
});
