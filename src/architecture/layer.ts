/**
 * The description of a model: a closed union of layer kinds, each owning named tensors. Every answer
 * is a fold over this tree, written as an exhaustive `switch` without `default`, so that a new kind
 * stops the compiler exactly where something is missing.
 *
 * Shapes in comments: B batch, T tokens, H hidden, V vocabulary.
 */
import type { Param } from './param.js';

/** What a layer is for; budgets are broken down by it. In the order in which reports list them. */
export const COMPONENTS = {
  embedding: 'embedding',
  srte: 'SRTE',
  mamba: 'Mamba',
  attention: 'attention',
  alignment: 'alignment',
  gate: 'gate',
  fusion: 'fusion',
  mlp: 'small MLP',
  norm: 'norms',
  head: 'head',
  /** What no layer above says. */
  other: 'other',
} as const satisfies Record<string, string>;

export type Component = keyof typeof COMPONENTS;

interface Node<Kind extends string> {
  readonly kind: Kind;
  /** Its path in the model, PyTorch's: `layers.0.mamba`. */
  readonly name: string;
  /** What it is for; when absent, what the layer that holds it is for. */
  readonly component?: Component;
}

/** Token ids [B, T] → rows of the weight [V, H]. */
export interface Embedding extends Node<'embedding'> {
  readonly weight: Param;
}

/** x [.., in] → x · weightᵀ + bias [.., out]; weight [out, in]. */
export interface Linear extends Node<'linear'> {
  readonly weight: Param;
  readonly bias: Param | undefined;
}

/** Normalises over the last dimension; weight and bias [H]. */
export interface LayerNorm extends Node<'layerNorm'> {
  readonly weight: Param;
  readonly bias: Param;
  readonly eps: number;
}

/** The exact GELU (by erf), elementwise. */
export type Gelu = Node<'gelu'>;

/** One layer after the other. */
export interface Sequence extends Node<'sequence'> {
  readonly layers: readonly Layer[];
}

/** Depthwise convolution over time, left-padded with zeros; weight [channels, 1, kernel], bias [channels]. */
export interface CausalConv extends Node<'causalConv'> {
  readonly weight: Param;
  readonly bias: Param;
}

/**
 * Selective state space (Mamba, arXiv 2312.00752). in_proj gives x and the residual, [B, T, inner] each;
 * x_proj(x) gives the step's low-rank form, B and C; the scan keeps a state [B, inner, state].
 */
export interface Mamba extends Node<'mamba'> {
  /** log(−A), [inner, state]. */
  readonly stateLog: Param;
  /** The skip connection D, [inner]. */
  readonly skip: Param;
  readonly inProj: Linear;
  readonly conv: CausalConv;
  readonly xProj: Linear;
  /** Its bias is added twice by the original: once in the projection, once before softplus. */
  readonly dtProj: Linear;
  readonly outProj: Linear;
  readonly innerSize: number;
  readonly stateSize: number;
  /** Rank of the step's projection. */
  readonly stepRank: number;
}

/** Rotary position embedding, rotating halves; its tables are buffers. */
export interface Rotary extends Node<'rotary'> {
  readonly base: number;
  readonly headDim: number;
  readonly tables: readonly Param[];
}

/**
 * How far back some of the heads see. With a window w, position i sees the w // 2 keys before it and
 * itself; without one, all that came before.
 */
export interface HeadSpan {
  readonly heads: number;
  readonly window: number | undefined;
}

/** Causal softmax attention, scores / sqrt(headDim). Heads in the order of `spans`. */
export interface Attention extends Node<'attention'> {
  readonly q: Linear;
  readonly k: Linear;
  readonly v: Linear;
  readonly out: Linear;
  readonly rotary: Rotary;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly spans: readonly HeadSpan[];
}

/** Shared Relative Time Encoding: one row of H values per position, as a table [1, rows, H]. */
export interface SrteTable extends Node<'srteTable'> {
  readonly table: Param;
}

/** SRTE as a product: lowRank [1, rows, rank] · projectionᵀ, projection [H, rank]. */
export interface SrteLowRank extends Node<'srteLowRank'> {
  readonly lowRank: Param;
  readonly projection: Linear;
}

/** SRTE as a formula: sines and cosines of t · inverseFrequencies, [H / 2]. */
export interface SrteSincos extends Node<'srteSincos'> {
  readonly inverseFrequencies: Param;
}

export type Srte = SrteTable | SrteLowRank | SrteSincos;

/** Two branches [B, T, H] to one: c = concat(mamba, attention); net(c) + residual(c). */
export interface Alignment extends Node<'alignment'> {
  readonly net: Sequence;
  readonly residual: Linear;
}

/** How much of the Mamba branch to take, per value: sigmoid(down(tanh(up(z)))). */
export interface Gate extends Node<'gate'> {
  readonly up: Linear;
  readonly down: Linear;
}

/**
 * One block of the hybrid model, [B, T, H] → [B, T, H]:
 * n = inputNorm(x); m = mamba(n + srte); a = attention(n); z = alignment(m, a), or their mean;
 * g = gate(z); f = g·m + (1 − g)·a; outputNorm(x + fusion(f) + mlp(z)).
 */
export interface HybridBlock extends Node<'hybridBlock'> {
  readonly inputNorm: LayerNorm;
  readonly mamba: Mamba;
  readonly attention: Attention;
  readonly srte: Srte;
  readonly alignment: Alignment | undefined;
  readonly gate: Gate;
  readonly fusion: Linear;
  readonly mlp: Sequence;
  readonly outputNorm: LayerNorm;
}

/** Token ids [B, T] → logits [B, T, V]: embedding, blocks, norm, head. */
export interface LanguageModel extends Node<'languageModel'> {
  readonly embedding: Embedding;
  /** Layers that several blocks hold; stored, and named, once and here. */
  readonly shared: readonly Layer[];
  readonly blocks: readonly Layer[];
  readonly norm: LayerNorm;
  readonly head: Linear;
  /** The longest input, in tokens. */
  readonly positions: number;
}

export type Layer =
  | LanguageModel
  | HybridBlock
  | Sequence
  | Embedding
  | Linear
  | LayerNorm
  | Gelu
  | CausalConv
  | Mamba
  | Rotary
  | Attention
  | Srte
  | Alignment
  | Gate;
