/** Layers with a state or a convolution over time. Shapes: B batch, T tokens, H hidden. */
import type { Param } from '../param.js';
import type { ActivationName } from './activation-kinds.js';
import type { Node } from './layer-node.js';
import type { GatedRmsNorm, RmsNorm } from './norm-kinds.js';
import type { Linear, Projection } from './projection-kinds.js';

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
 * go through a convolution for all of them or one each, and an activation; queries and keys of a head are divided by their length, queries by
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

/** Gated short convolution (LFM2): in_proj gives B, C and x, [B, T, H] each; out_proj(C · conv(B · x)). */
export interface GatedConv extends Node<'gatedConv'> {
  readonly conv: CausalConv;
  readonly inProj: Linear;
  readonly outProj: Linear;
}

/** Added to the sum of squares of a query or key in the gated delta rule. */
export const LENGTH_EPS = 1e-6;
