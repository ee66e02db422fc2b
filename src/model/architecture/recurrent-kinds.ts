/**
 * Layer kinds with a state or a convolution over time. `layer-kinds.ts` has what they hold.
 * Shapes: B batch, T tokens, H hidden.
 */
import type {
  ActivationName,
  GatedRmsNorm,
  Linear,
  Node,
  Projection,
  Projections,
  RmsNorm,
} from './layer-kinds.js';
import type { Param } from './param.js';

/** Depthwise convolution over time, left-padded with zeros; weight [channels, 1, kernel], bias [channels]. */
export interface CausalConv extends Node<'causalConv'> {
  readonly weight: Param;
  readonly bias: Param | undefined;
  /** Last inputs that the original's cache holds: kernel − 1, or one more, as in transformers. */
  readonly cached: number;
}

/**
 * Selective state space (Mamba, arXiv 2312.00752). in_proj gives x and the residual, [B, T, inner] each.
 * x_proj(x) gives the step's low-rank form, B and C; the scan keeps a state [B, inner, state] and gives y;
 * out_proj(y · SiLU(residual)).
 */
export interface Mamba extends Node<'mamba'> {
  /** log(−A), [inner, state]. */
  readonly stateLog: Param;
  /** The skip connection D, [inner]. */
  readonly skip: Param;
  readonly inProj: Linear;
  readonly conv: CausalConv;
  readonly xProj: Linear;
  readonly dtProj: Linear;
  /** Norms of the low-rank step, B and C; often none. */
  readonly innerNorms: readonly RmsNorm[];
  /** Epsilon of norms without weights in their place. */
  readonly innerNormEps: number | undefined;
  readonly outProj: Linear;
  readonly innerSize: number;
  readonly stateSize: number;
  /** Rank of the step's projection. */
  readonly stepRank: number;
  /** Activation of the convolution's output. */
  readonly activation: ActivationName;
  /** Whether the original keeps its state in float32, for any type of the model. */
  readonly float32State: boolean;
  /** Whether the bias of dt_proj is added twice: in the projection, and before softplus. */
  readonly doubledStepBias: boolean;
}

/**
 * Mamba layer whose scan has heads, each with products of its own (Zamba, arXiv 2405.16712). in_proj gives x and the
 * residual in turn, a value of each: x_0, r_0, x_1, r_1, …, [B, T, 2 · heads · headDim]. x goes through the convolution
 * and its activation. For the part of a head, x_proj gives the step's low-rank form, B and C; the scan and the rest are
 * those of `Mamba`.
 */
export interface HeadedMamba extends Node<'headedMamba'> {
  /** [heads, stepRank + 2 · state, headDim] */
  readonly xProj: Param;
  /** [heads, headDim, stepRank] */
  readonly stepProj: Param;
  /** [heads, headDim] */
  readonly stepBias: Param;
  /** log(−A), [heads, headDim, state]. */
  readonly stateLog: Param;
  /** The skip connection D, [heads, headDim]. */
  readonly skip: Param;
  readonly conv: CausalConv;
  readonly inProj: Linear;
  readonly outProj: Linear;
  readonly heads: number;
  readonly headDim: number;
  readonly stateSize: number;
  readonly stepRank: number;
  /** Activation of the convolution's output. */
  readonly activation: ActivationName;
  /** Whether the original keeps its state in float32, for any type of the model. */
  readonly float32State: boolean;
}

/**
 * State space dual (Mamba-2, arXiv 2405.21060). in_proj gives a gate, x, B, C and a step per head. x, B and C go
 * through the convolution and its activation; the heads of a group share B and C. With the decay
 * a = exp(−exp(stateLog) · step), the state of a head is h = a · h + step · B ⊗ x, and y = C · h + skip · x.
 * out_proj(norm(y, gate)), or out_proj(y · SiLU(gate)) without a norm.
 */
export interface StateSpaceDual extends Node<'stateSpaceDual'> {
  /** Added to the steps before softplus, [heads]. */
  readonly stepBias: Param;
  /** [heads] */
  readonly stateLog: Param;
  /** [heads] */
  readonly skip: Param;
  readonly conv: CausalConv;
  readonly inProj: Linear;
  readonly norm: GatedRmsNorm | undefined;
  readonly outProj: Linear;
  readonly heads: number;
  readonly headDim: number;
  readonly stateSize: number;
  readonly groups: number;
  readonly activation: ActivationName;
  /** Least and largest step after softplus. */
  readonly stepLimits: readonly [least: number, most: number];
  /** Factors of the gate, x, B, C and steps as in_proj gives them. */
  readonly inputScales: readonly number[] | undefined;
}

/**
 * Gated delta rule (Gated DeltaNet, arXiv 2412.06464). The inputs give queries and keys [keyHeads · keyDim], values
 * and a gate [valueHeads · valueDim], and for each value head β before its sigmoid and a step. Queries, keys and values
 * side by side go through convolutions, each of some channels, and an activation; queries and keys of a head are divided by their length, queries by
 * √keyDim too. Value head j reads key head floor(j · keyHeads / valueHeads). With the decay
 * a = exp(−exp(stateLog) · softplus(step + stepBias)), the state of a head is S = a · S, then
 * S = S + k ⊗ (betaScale · σ(β) · (v − k · S)), and y = q · S. out_proj(norm(y, gate)).
 */
export interface GatedDelta extends Node<'gatedDelta'> {
  /** [valueHeads] */
  readonly stepBias: Param;
  readonly stateLog: Param;
  readonly convs: readonly CausalConv[];
  readonly inputs: readonly Projection[];
  readonly norm: GatedRmsNorm;
  readonly outProj: Linear;
  readonly keyHeads: number;
  readonly keyDim: number;
  readonly valueHeads: number;
  readonly valueDim: number;
  readonly activation: ActivationName;
  /** 2 allows states that change their sign (arXiv 2411.12537). */
  readonly betaScale: number;
}

/**
 * Channels of each convolution of a gated delta rule where they are not those of queries, keys and values: one has all
 * channels, or equal parts of them. Undefined where each has its own convolution.
 */
export function jointChannels({ convs, ...sizes }: GatedDelta): readonly number[] | undefined {
  const channels = convs.map(({ weight }) => weight.shape[0] ?? 0);
  const keys = sizes.keyHeads * sizes.keyDim;
  const own = [keys, keys, sizes.valueHeads * sizes.valueDim];
  const areOwn = channels.length === own.length && channels.every((each, at) => each === own[at]);
  return areOwn ? undefined : channels;
}

/** Gated short convolution (LFM2): in_proj gives B, C and x, [B, T, H] each; out_proj(C · conv(B · x)). */
export interface GatedConv extends Node<'gatedConv'> {
  readonly conv: CausalConv;
  readonly inProj: Linear;
  readonly outProj: Linear;
}

/** Added to the sum of squares of a query or key in the gated delta rule. */
export const LENGTH_EPS = 1e-6;

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
  /** Slope of each head, above 0. */
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
