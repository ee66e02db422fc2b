/**
 * Layer kinds that hold only tensors and each other: products, norms, operations on every value. `attention-kinds.ts` and
 * `recurrent-kinds.ts` build on them, `layer.ts` has the others. Shapes: B batch, T tokens, H hidden, V vocabulary.
 */
import type { Param } from './param.js';

/** Purpose of a layer; budgets are broken down by it. Reports use this order. */
export const COMPONENTS = {
  embedding: 'embedding',
  perLayerInputs: 'per-layer inputs',
  srte: 'SRTE',
  mamba: 'Mamba',
  deltaNet: 'gated DeltaNet',
  linearAttention: 'linear attention',
  recurrence: 'gated recurrence',
  shortConvolution: 'short convolution',
  attention: 'attention',
  indexer: 'indexer',
  altUp: 'AltUp',
  alignment: 'alignment',
  gate: 'gate',
  fusion: 'fusion',
  mlp: 'small MLP',
  norm: 'norms',
  positions: 'learned positions',
  feedForward: 'feed-forward',
  router: 'router',
  experts: 'experts',
  sharedExperts: 'shared experts',
  head: 'head',
  visionTower: 'vision tower',
  audioTower: 'audio encoder',
  projector: 'projector',
  /** Fallback without a component on any layer above. */
  other: 'other',
} as const satisfies Record<string, string>;

export type Component = keyof typeof COMPONENTS;

export interface Node<Kind extends string> {
  readonly kind: Kind;
  /** PyTorch path in the model: `layers.0.mamba`. */
  readonly name: string;
  /** Purpose of the layer; defaults to that of its parent. */
  readonly component?: Component;
}

// Activation functions, and layers that apply one operation to every value

/** Activation functions by name; σ is the sigmoid. */
export const ACTIVATIONS = {
  silu: 'x · σ(x)',
  /** Uses erf. */
  gelu: 'GELU',
  geluTanh: 'GELU, approximated by tanh',
  /** x · σ(1.702 x) */
  quickGelu: 'GELU, approximated by σ',
  relu: 'max(x, 0)',
  reluSquared: 'max(x, 0)²',
  relu6: 'min(max(x, 0), 6)',
  leakyRelu: 'max(x, x / 100)',
  /** Clipped at ±10. */
  geluClipped: 'GELU, between −10 and 10',
  hardSwish: 'x · min(max(x + 3, 0), 6) / 6',
  mish: 'x · tanh(log(1 + eˣ))',
  tanh: 'tanh(x)',
  sigmoid: 'σ(x)',
  identity: 'x',
  softplus: 'log(1 + eˣ)',
  sqrtSoftplus: '√log(1 + eˣ)',
  /** Uses erf, with mean √½ and deviation √(1 / 4π) (arXiv 2209.10655). */
  laplace: 'distribution function of a normal distribution',
} as const satisfies Record<string, string>;

/** Constants of `laplace`, with the digits that implementations use. */
export const LAPLACE = { mean: 707_107e-6, deviation: 282_095e-6 } as const;

export type ActivationName = keyof typeof ACTIVATIONS;

/** Elementwise. */
export interface Activation extends Node<'activation'> {
  readonly fn: ActivationName;
  /** Whether the original uses elementary operations, each of which keeps values for its gradient. */
  readonly composed?: boolean;
}

/**
 * xIELU (arXiv 2411.13010), elementwise with learned parameters [1]: β · x + softplus(positive) · x² above 0, and
 * β · x + (β + softplus(negative)) · (exp(min(x, ε)) − 1 − x) elsewhere.
 */
export interface Xielu extends Node<'xielu'> {
  readonly positive: Param;
  readonly negative: Param;
  /** β and ε, [] */
  readonly beta: Param;
  readonly eps: Param;
}

/** x · weight, weight [1] or as wide as x. */
export interface WeightedScale extends Node<'weightedScale'> {
  readonly weight: Param;
}

/** x + bias, [1] or as wide as x. */
export interface Shift extends Node<'shift'> {
  readonly bias: Param;
}

/** x · factor. */
export interface Scale extends Node<'scale'> {
  readonly factor: number;
}

/** cap · tanh(x / cap). */
export interface Softcap extends Node<'softcap'> {
  readonly cap: number;
}

// Layers that look up rows or multiply by a matrix

/** Token ids [B, T] → rows of the weight [V, H]. */
export interface Embedding extends Node<'embedding'> {
  readonly weight: Param;
}

/** x [.., in] → x · weightᵀ + bias [.., out]; weight [out, in]. */
export interface Linear extends Node<'linear'> {
  readonly weight: Param;
  readonly bias: Param | undefined;
}

/** `Conv1D` of transformers: x [.., in] → x · weight + bias [.., out]; weight [in, out]. */
export interface TransposedLinear extends Node<'transposedLinear'> {
  readonly weight: Param;
  readonly bias: Param | undefined;
}

export type ProjectionLayer = Linear | TransposedLinear;

/** A product behind a norm, which closes a branch. */
export interface NormedProjection extends Node<'sequence'> {
  readonly layers: readonly [norm: RmsNorm, product: Linear];
}

/** Last product of a branch. */
export type ClosingProjection = ProjectionLayer | NormedProjection;

/** A product, and one of a low rank for the same input that is added to it (LoRA, arXiv 2106.09685). */
export interface AdaptedProjection extends Node<'sum'> {
  readonly branches: readonly [product: ProjectionLayer, adapter: Adapter];
  /** Adapters that the original stores here and does not read. */
  readonly unread?: readonly Adapter[];
}

interface Adapter extends Node<'sequence'> {
  readonly layers: readonly [down: Linear, up: Linear];
}

/** One product that gives several values as adjacent columns. */
export interface FusedProjection extends Node<'fusedProjection'> {
  readonly projection: ProjectionLayer | AdaptedProjection;
  /** Columns of each value. */
  readonly widths: readonly number[];
  /** Number of equal column groups, each with its part of every value; 1 means no grouping. */
  readonly groups: number;
  /** For each value in turn its place among the columns; default: the same. */
  readonly places?: readonly number[];
}

/** Values of a fused projection in turn, from those in the order of their columns. */
export const valuesInTurn = <Value>(
  { places }: Pick<FusedProjection, 'places'>,
  columns: readonly Value[],
): Value[] => places?.map((place) => columns[place] as Value) ?? [...columns];

/** Several values of one input, in order: products that give one value or several each. */
export type Projections = readonly Projection[] | FusedProjection;

export type Projection = ProjectionLayer | AdaptedProjection | FusedProjection;

/** x [B, T, H] + the row of each position; weight [offset + positions, H]. */
export interface LearnedPositions extends Node<'learnedPositions'> {
  readonly weight: Param;
  /** Row of the first position: 2 in OPT, 0 elsewhere. */
  readonly offset: number;
}

/**
 * x [B, T, H] + sines and cosines of each position, which no file stores (arXiv 1706.03762). With p the position plus
 * `offset`, the columns are sin(p · f) of all frequencies f, cos(p · f) of the first ones as long as there are columns,
 * and 0.
 */
export interface SinusoidalPositions extends Node<'sinusoidalPositions'> {
  readonly frequencies: readonly number[];
  /** H */
  readonly size: number;
  /** Position of the first token: 2 in XGLM, 0 in CTRL. */
  readonly offset: number;
  /** Value of p whose columns are all 0. */
  readonly zeroAt?: number | undefined;
}

/** Columns of a `SinusoidalPositions` that are cosines. */
export const cosinesOf = ({ frequencies, size }: SinusoidalPositions): number =>
  Math.min(frequencies.length, size - frequencies.length);

/**
 * x [B, T, H] and the embedding of each token, side by side, [B, T, 2 · H]. A layer that runs alone, without token ids,
 * has the embedding of token 0.
 */
export interface EmbeddingJoin extends Node<'embeddingJoin'> {
  readonly embedding: Embedding;
}

/**
 * Normalises every `size` values: (x − mean) / sqrt(variance + eps) · (offset + weight) + bias. The weight is [size], or
 * [parts, size] with a row for each part of the last dimension; without a weight, the factor is 1.
 */
export interface LayerNorm extends Node<'layerNorm'> {
  readonly weight: Param | undefined;
  /** [size] */
  readonly bias: Param | undefined;
  readonly eps: number;
  /** Added to the weight: 1 in Nemotron, 0 elsewhere. */
  readonly offset: number;
  readonly size: number;
}

/**
 * x / sqrt(mean(x²) + eps) · (offset + weight) over every `size` values (arXiv 1910.07467); weight [size]. Without a
 * weight, the factor is 1.
 */
export interface RmsNorm extends Node<'rmsNorm'> {
  readonly weight: Param | undefined;
  readonly eps: number;
  readonly size: number;
  /** Added to the weight: 1 in Gemma, 0 elsewhere. */
  readonly offset: number;
}

export type NormLayer = LayerNorm | RmsNorm;

/**
 * RMSNorm of x with a gate of the same width: norm(x · f(gate)), or norm(x) · f(gate). The values are normalised in
 * groups of equal width. A weight of a group's width serves every group; otherwise it has the whole width.
 */
export interface GatedRmsNorm extends Node<'gatedRmsNorm'> {
  readonly weight: Param;
  readonly eps: number;
  readonly width: number;
  readonly groups: number;
  readonly activation: ActivationName;
  /** Whether the gate multiplies what is normalised, or the result. */
  readonly gated: 'before' | 'after';
}

/** A norm of its own for each head, as consecutive parts of the last dimension. */
export interface HeadNorms extends Node<'headNorms'> {
  readonly norms: readonly NormLayer[];
}
