/**
 * Layer kinds with a state that is not one of Mamba or the gated delta rule. `layer-kinds.ts` has those and what these hold.
 * Shapes: B batch, T tokens, H hidden.
 */
import type {
  ActivationName,
  CausalConv,
  GatedRmsNorm,
  Linear,
  Node,
  Projections,
} from './layer-kinds.js';
import type { Param } from './param.js';

/**
 * Lightning attention (arXiv 2401.04658): attention without a softmax, with a fixed decay for each head. The inputs give
 * queries, keys and values, which go through an activation, and a gate, [heads · headDim] each. With the decay
 * a = exp(−slope), the state of a head is S = a · S + k ⊗ v, [headDim, headDim], and y = q · S. out_proj(norm(y, gate)).
 */
export interface LightningAttention extends Node<'lightningAttention'> {
  /**
   * Buffers in a state dict that follow from the slopes, for blocks of C tokens: slopes [heads, 1, 1], decays of queries
   * and of keys [heads, C, 1], and between tokens [1, heads, C, C].
   */
  readonly tables: readonly Param[];
  readonly norm: GatedRmsNorm;
  readonly inputs: Projections;
  readonly outProj: Linear;
  /** Of each head, above 0. */
  readonly slopes: readonly number[];
  readonly headDim: number;
  readonly activation: ActivationName;
}

/** A product through a lower rank. */
export interface LowRankProduct extends Node<'sequence'> {
  readonly layers: readonly [down: Linear, up: Linear];
}

/**
 * Kimi delta attention (arXiv 2510.26692): the gated delta rule with a decay for each channel of a key. The inputs give
 * queries, keys and values, [heads · headDim] each. Side by side they go through one convolution, or each through its
 * own, and an activation; queries and keys of a head are divided by their length, queries by √headDim too. With the
 * decays a = exp(−exp(stateLog) · softplus(forget + stepBias)), [headDim], the state of a head is S = diag(a) · S, then
 * S = S + k ⊗ (σ(beta) · (v − k · S)), and y = q · S. out_proj(norm(y, gate)).
 */
export interface KimiDelta extends Node<'kimiDelta'> {
  readonly inputs: readonly Linear[];
  /** One of all channels, or one for each of queries, keys and values. */
  readonly convs: readonly CausalConv[];
  /** [heads · headDim] */
  readonly stepBias: Param;
  /** [1, 1, heads, 1] */
  readonly stateLog: Param;
  readonly forget: LowRankProduct;
  /** → [heads] */
  readonly beta: Linear;
  readonly gate: LowRankProduct;
  readonly norm: GatedRmsNorm;
  readonly outProj: Linear;
  readonly heads: number;
  readonly headDim: number;
  readonly activation: ActivationName;
}
