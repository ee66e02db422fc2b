/** Latent attention with an indexer, and experts with a correction, in models that are described and not run. */
import { layerNormLayer, rmsNormLayer } from '../../constructors/basic-layers.js';
import { described } from '../../constructors/described-layer.js';
import { mixtureOfExperts } from '../../constructors/feed-forward-layers.js';
import type { Described, Layer, Linear, MixtureOfExperts, NormLayer } from '../../layer.js';
import { buffer, param } from '../../param.js';
import { expertsOf, jointExperts } from '../decoder-parts.js';
import { type ActivationWord, activationOf } from '../settings.js';
import { describedRouter, product } from './parts.js';

/** Epsilon of the norms inside the attention and of the indexer's keys. */
const INNER_EPS = 1e-6;

interface LatentSizes {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly q_lora_rank: number;
  readonly kv_lora_rank: number;
  readonly qk_nope_head_dim: number;
  readonly qk_rope_head_dim: number;
  readonly v_head_dim: number;
  readonly attention_bias: boolean;
}

interface IndexerSizes {
  readonly hidden_size: number;
  readonly q_lora_rank: number;
  readonly index_n_heads: number;
  readonly index_head_dim: number;
}

/** Products and norms of latent attention with queries of a lower rank, by their names in DeepSeek-V3. */
export function latentParts(
  name: string,
  config: LatentSizes,
): readonly [Linear, NormLayer, Linear, Linear, NormLayer, Linear, Linear] {
  const { hidden_size: hidden, num_attention_heads: heads, attention_bias: bias } = config;
  const { q_lora_rank: queryRank, kv_lora_rank: rank } = config;
  const { qk_nope_head_dim: still, qk_rope_head_dim: turned, v_head_dim: valueDim } = config;
  return [
    product(`${name}.q_a_proj`, hidden, queryRank, { bias }),
    rmsNormLayer(`${name}.q_a_layernorm`, queryRank, INNER_EPS),
    product(`${name}.q_b_proj`, queryRank, heads * (still + turned)),
    product(`${name}.kv_a_proj_with_mqa`, hidden, rank + turned, { bias }),
    rmsNormLayer(`${name}.kv_a_layernorm`, rank, INNER_EPS),
    product(`${name}.kv_b_proj`, rank, heads * (still + valueDim)),
    product(`${name}.o_proj`, heads * valueDim, hidden, { bias }),
  ];
}

/** Attention whose cache holds a latent and one rotated key for each token. */
export const indexedLatent = (
  name: string,
  config: LatentSizes,
  title: string,
  parts: readonly Layer[],
  tensors: Parameters<typeof described>[1]['tensors'] = {},
): Described =>
  described(name, {
    title,
    component: 'attention',
    tensors,
    parts,
    works: [
      {
        work: 'attention',
        heads: config.num_attention_heads,
        keyValueHeads: config.num_attention_heads,
        headDim: config.qk_nope_head_dim + config.qk_rope_head_dim,
        valueDim: config.v_head_dim,
        cached: config.kv_lora_rank + config.qk_rope_head_dim,
        multiplied: 2 * config.kv_lora_rank + config.qk_rope_head_dim,
      },
    ],
    output: config.hidden_size,
  });

/** Heads that choose keys, with one key for each token. */
export function indexerParts(name: string, config: IndexerSizes, eps = INNER_EPS): Described {
  const { hidden_size: hidden, index_n_heads: heads, index_head_dim: width } = config;
  return described(name, {
    title: 'indexer',
    component: 'indexer',
    parts: [
      product(`${name}.wq_b`, config.q_lora_rank, heads * width),
      product(`${name}.wk`, hidden, width),
      layerNormLayer(`${name}.k_norm`, width, eps),
      product(`${name}.weights_proj`, hidden, heads),
    ],
    works: [{ work: 'index', heads, headDim: width }],
    output: heads,
  });
}

interface ExpertSizes {
  readonly hidden_size: number;
  readonly moe_intermediate_size: number;
  readonly n_routed_experts: number;
  readonly n_shared_experts: number;
  readonly num_experts_per_tok: number;
  readonly hidden_act: ActivationWord;
  readonly experts_stored: 'packed' | 'separate';
}

/** Experts of DeepSeek-V3, whose choice has a correction. */
export function correctedExperts(name: string, config: ExpertSizes): MixtureOfExperts {
  const { hidden_size: hidden, moe_intermediate_size: inner, n_routed_experts: experts } = config;
  const sizes = { hidden, inner, activation: activationOf(config.hidden_act) };
  return mixtureOfExperts(name, {
    router: describedRouter(`${name}.gate`, {
      weight: param(`${name}.gate.weight`, [experts, hidden]),
      correction: buffer(`${name}.gate.e_score_correction_bias`, [experts]),
      expertsPerToken: config.num_experts_per_tok,
    }),
    experts: expertsOf(`${name}.experts`, { ...sizes, experts, stored: config.experts_stored }),
    shared: jointExperts(`${name}.shared_experts`, config.n_shared_experts, sizes),
  });
}
