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

/** Product of each head's part of x with a matrix of its own: x [.., heads · d] → [.., heads · d]. */
export interface BlockDiagonal extends Node<'blockDiagonal'> {
  /** [heads, d, d]: x · weight. */
  readonly weight: Param;
  /** [heads, d] */
  readonly bias: Param;
}

/** Factor of the logarithm of the decays. */
export const RECURRENCE_FACTOR = 8;

/**
 * Recurrent block of Griffin (arXiv 2402.19427) with a real-gated linear recurrent unit. u = conv(x(input)), [width];
 * with r = σ(recurrentGate(u)), the decays are a = exp(−8 · r · softplus(decay)), and h = a · h + √(1 − a²) · σ(inputGate(u)) · u,
 * where the first token has the factor 1. out(activation(y(input)) · h).
 */
export interface GriffinRecurrence extends Node<'griffinRecurrence'> {
  readonly y: Linear;
  readonly x: Linear;
  readonly out: Linear;
  readonly conv: CausalConv;
  /** [width] */
  readonly decay: Param;
  readonly inputGate: BlockDiagonal;
  readonly recurrentGate: BlockDiagonal;
  readonly activation: ActivationName;
}

/** Mixes of a token with the one before it: m_i = x · weight_i + before · (1 − weight_i); weights [1, 1, H]. */
interface TokenShift {
  readonly mixes: readonly Param[];
  readonly hidden: number;
}

/**
 * Time mixing of RWKV-4 (arXiv 2305.13048): the mixes of x with the token before it give keys, values and a receptance,
 * [width] each. For each channel, y is the mean of the values up to its token, with weights exp(k), times
 * exp(−exp(timeDecay)) for each token after the next, and exp(k + timeFirst) for its own. output(σ(receptance) · y).
 * The state has numerator, denominator and largest exponent of each channel, in float32.
 */
export interface RwkvTimeMix extends Node<'rwkvTimeMix'>, TokenShift {
  /** [width] */
  readonly timeDecay: Param;
  readonly timeFirst: Param;
  readonly key: Linear;
  readonly value: Linear;
  readonly receptance: Linear;
  readonly output: Linear;
}

/** Channel mixing of RWKV-4: σ(receptance(m_2)) · value(max(key(m_1), 0)²), with mixes as in time mixing. */
export interface RwkvChannelMix extends Node<'rwkvChannelMix'>, TokenShift {
  readonly key: Linear;
  readonly receptance: Linear;
  readonly value: Linear;
}
