/** Kinds of attention whose queries, keys or scores are made in another way. Shapes: B batch, T tokens, H hidden. */

import type { Attention, Linear, Node, Projections, RmsNorm, Rotary } from './layer-kinds.js';
import type { Param } from './param.js';

/** What softmax over heads needs, whatever makes its queries, keys and values. */
export type AttentionCore = Pick<
  Attention,
  | 'name'
  | 'heads'
  | 'keyValueHeads'
  | 'headDim'
  | 'valueDim'
  | 'scale'
  | 'softcap'
  | 'alibi'
  | 'spans'
  | 'sinks'
  | 'sharing'
>;

/**
 * Differential attention (arXiv 2410.05258), in the form of DiffLlama: head h of the first half and the one at its place in
 * the second half see the same values, [2 · headDim], of two value heads. The output is norm(first − λ · second) ·
 * (1 − initial), λ = exp(q1 · k1) − exp(q2 · k2) + initial.
 */
export interface DifferentialAttention extends Node<'differentialAttention'> {
  /** Queries, keys, values. */
  readonly inputs: Projections;
  readonly out: Linear;
  /** q1, k1, q2 and k2, [headDim] each. */
  readonly lambdas: readonly [Param, Param, Param, Param];
  readonly initial: number;
  /** Of each pair of heads, [2 · headDim]. */
  readonly norm: RmsNorm;
  readonly rotary: Rotary;
  readonly heads: number;
  /** Even. */
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly scale: number;
}

/**
 * Attention whose scores gain a value of each key (Doge): exp(rate · softplus(steps(values))), for each key-value head. A
 * query sees only the `kept` visible keys with the largest ones.
 */
export interface DynamicMask extends Node<'dynamicMask'> {
  readonly attention: Attention;
  /** [keyValueHeads] */
  readonly rates: Param;
  /** [keyValueHeads · headDim → keyValueHeads] */
  readonly steps: Linear;
  readonly kept: number;
}

/** Heads of attention with experts. */
interface ExpertHeads extends Omit<AttentionCore, 'heads' | 'spans' | 'softcap' | 'alibi'> {
  readonly router: { readonly expertsPerToken: number };
}

/** Query heads of attention with experts: those of all experts of a token. */
export const expertHeads = ({ router, keyValueHeads }: ExpertHeads): number =>
  router.expertsPerToken * keyValueHeads;

/** Softmax of attention with experts, with its heads in the order of the keys that they read. */
export const expertCore = (layer: ExpertHeads): AttentionCore =>
  coreOf({ ...layer, heads: expertHeads(layer) });

export const differentialCore = (layer: DifferentialAttention): AttentionCore => coreOf(layer);

const coreOf = (
  layer: Pick<Attention, 'name' | 'heads' | 'keyValueHeads' | 'headDim' | 'scale'>,
): AttentionCore => ({
  name: layer.name,
  heads: layer.heads,
  keyValueHeads: layer.keyValueHeads,
  headDim: layer.headDim,
  scale: layer.scale,
  softcap: undefined,
  alibi: undefined,
  spans: [{ heads: layer.heads, window: undefined }],
});
