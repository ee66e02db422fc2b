/**
 * Primitives: the work that every layer is lowered to (lower.ts). Each gives its computation, tensors, saved
 * values and division among GPUs. Budgets, parallelism and graph limits are folds over lists of these.
 */
import type { Attention, Component, HeadSpan } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';

/**
 * Part of a value on each GPU that shares a layer. `width`: a part of its width (heads, channels, inner
 * feed-forward width, vocabulary). `tokens`: all of it, or some tokens with sequence parallelism. `whole`: always
 * all of it.
 */
export type Share = 'width' | 'tokens' | 'whole';

/** `count` vectors of `size` values per token. */
export interface Vectors {
  readonly count: number;
  /** Name of the size in formulas: `hidden`. */
  readonly name: string;
  readonly size: number;
  readonly share: Share;
  /** Bytes of a value, as a formula over `bytes`; undefined means the bytes of any activation. */
  readonly bytes?: '1' | '4' | '4 - bytes';
}

/** Parts of the saved activations that are counted only on request. */
export type OptionalPart = 'dropout' | 'unfused' | 'repeated';

/** Values per token that autograd saves for the backward pass. */
export interface Saved {
  readonly part: Component | OptionalPart;
  /** The first is the layer's input, if the layer saves it. */
  readonly vectors: readonly Vectors[];
  readonly source: string;
}

type Unit =
  | 'heads'
  | 'key-value heads'
  | 'key heads'
  | 'groups'
  | 'channels'
  | 'inner values'
  | 'outputs'
  | 'rows of the vocabulary';

/** Units stored consecutively in a tensor and distributed whole over the GPUs. */
export interface UnitRun {
  readonly unit: Unit;
  readonly count: number;
  /** Rows per unit, or values of a row. */
  readonly size: number;
}

/** Division of a tensor. A row holds the weights of one output, in any storage layout. */
export interface Cut {
  readonly along: 'rows' | 'length';
  /** Consecutive runs, each distributed separately: queries, keys and values of one product. */
  readonly runs: readonly UnitRun[];
  /** Layer that the units belong to. */
  readonly of: string;
}

/** Values per token that the GPUs of a layer sum (all-reduce) or concatenate (all-gather). */
export interface Collective {
  readonly kind: 'allReduce' | 'allGather';
  readonly width: number;
}

interface Base<Kind extends string> {
  readonly kind: Kind;
  /** Name of the layer that performs it. */
  readonly layer: string;
  readonly component: Component;
  /** Input values per token. */
  readonly input: number;
  /** Output values per token. */
  readonly output: number;
  readonly params: readonly Param[];
  readonly saved: readonly Saved[];
  /** Tensor cuts under tensor parallelism; the others are whole on every GPU. */
  readonly cuts: readonly (readonly [Param, Cut])[];
  /** Collective for the layer's output among the GPUs that share it. */
  readonly forward?: Collective;
  /** Collective for the gradient of its input. */
  readonly backward?: Collective;
  /** Number of kernel launches. */
  readonly launches: number;
  /** Number of equal blocks for which it stands in counts; absent in a block itself. */
  readonly times?: number;
}

/** A matrix product with a stored weight. */
export interface Matmul extends Base<'matmul'> {
  readonly tensor: Param;
  /** Weight values per row: one multiply-accumulate each. */
  readonly weights: number;
  /** One row per token of the batch, or per position once for the whole batch, or this number once in a pass. */
  readonly rows: 'tokens' | 'positions' | number;
}

/** Router scores and the choice of experts. */
export interface Route extends Base<'router'> {
  readonly tensor: Param;
  readonly weights: number;
  readonly rows: 'tokens';
}

/** Softmax attention: scores q·kᵀ of the query heads of each span, and their weighted sums over v. */
export interface Scores extends Base<'scores'> {
  readonly heads: number;
  readonly keyValueHeads: number;
  /** Query and key width of a head. */
  readonly headDim: number;
  /** Value width of a head. */
  readonly valueDim: number;
  readonly spans: readonly HeadSpan[];
  /** Values that the original's cache keeps and decoding does not need; nothing where another layer keeps them. */
  readonly keeps?: Attention['keeps'] | 'nothing';
  /** Set if latents are cached instead of keys and values. */
  readonly latent: Latent | undefined;
  /** Whether a tanh caps the scores. */
  readonly capped: boolean;
  /** Whether the softmax is computed in float32, for any type of scores. */
  readonly inFloat32: boolean;
}

/** Scores of an indexer, which choose keys: q·kᵀ of its heads, and their sum over the heads if it has weights. */
export interface IndexScores extends Base<'indexScores'> {
  readonly heads: number;
  /** Query and key width of a head. */
  readonly headDim: number;
  /** Multiply-accumulates of a head's score: 1 with weights of the heads. */
  readonly valueDim: 0 | 1;
  readonly spans: readonly HeadSpan[];
}

interface Latent {
  /** Cached values per token: the latent, and the rotated key that all heads share. */
  readonly cached: number;
  /** Values of a cached token that a head multiplies: the latent for its score and for its value. */
  readonly multiplied: number;
  /** Values expanded from a token's latent per head: the unrotated key, and the value. */
  readonly expanded: number;
}

/** A depthwise convolution over time. */
export interface Convolution extends Base<'convolution'> {
  readonly channels: number;
  readonly kernel: number;
  /** Last inputs that the cache holds. */
  readonly cached: number;
  /** Whether these are what a described layer keeps, and no convolution reads them. */
  readonly isBuffer?: boolean;
}

/** A scan over time, with a state [inner, state]. */
export interface Scan extends Base<'scan'> {
  readonly inner: number;
  readonly state: number;
  /**
   * Unit with its own decay: each value of the state (Mamba), or each head, of equal width (Mamba-2); `delta`: each
   * head, with the delta rule; `fixed`: each head, the same for all tokens; `channels`:
   * each channel, whose state is one value; `rwkv`: each
   * channel, with a weighted mean.
   */
  readonly decays: 'values' | 'heads' | 'delta' | 'fixed' | 'channels' | 'rwkv';
  /** Whether the state is kept in float32, for any type of the cache. */
  readonly inFloat32: boolean;
}

/** Lookup of table rows by token ids, by token positions, or by positions once for the whole batch. */
export interface Lookup extends Base<'lookup'> {
  readonly by: 'ids' | 'positions' | 'positions of a batch';
  /** Rows of the table; not limited for a formula. */
  readonly rows: number;
}

/** A normalisation over `size` values. */
export interface Norm extends Base<'norm'> {
  readonly size: number;
}

/** Copies each token for each of its experts. */
export interface Dispatch extends Base<'dispatch'> {
  readonly copies: number;
}

/** Elementwise work: activations, sums, rotations. */
export type Elementwise = Base<'elementwise'>;

export type Primitive =
  | Matmul
  | Route
  | Scores
  | IndexScores
  | Convolution
  | Scan
  | Lookup
  | Norm
  | Dispatch
  | Elementwise;

export const vectors = (
  count: number,
  name: string,
  size: number,
  share: Share = 'tokens',
): Vectors => ({ count, name, size, share });

/** Mask of a dropout on the residual stream. */
export const dropoutMask = (hidden: number): Saved => ({
  part: 'dropout',
  vectors: [{ ...vectors(1, 'hidden', hidden), bytes: '1' }],
  source: 'a mask of 1 byte a value, of the embeddings and of each branch (arXiv 2205.05198)',
});

/** Saved values without the first layer's input, which another layer already saves. */
export function withoutInput([first, ...others]: readonly Saved[]): Saved[] {
  const rest = first?.vectors.slice(1) ?? [];
  return first && rest.length > 0 ? [{ ...first, vectors: rest }, ...others] : others;
}

/** The same primitives, without the saved input of the first. */
export function afterSavedInput(primitives: readonly Primitive[]): Primitive[] {
  const first = primitives.findIndex(({ saved }) => saved.length > 0);
  return primitives.map((each, index) =>
    index === first ? { ...each, saved: withoutInput(each.saved) } : each,
  );
}

export const runOf = (unit: Unit, count: number, size = 1): UnitRun => ({ unit, count, size });

export const allReduce = (width: number): Collective => ({ kind: 'allReduce', width });
