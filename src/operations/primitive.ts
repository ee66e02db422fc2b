/**
 * Primitives: the work that every layer is lowered to (lower.ts). Each says what it computes, with which tensors, what
 * autograd saves of it and how GPUs divide it. Budgets, parallelism and graph limits are folds over lists of these.
 */
import type { Component, HeadSpan, Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';

/**
 * The part of a value that each of the GPUs that share a layer holds: a part of its `width` (heads, channels, the
 * inside of a feed-forward network, the vocabulary); all of it, or some of its `tokens` with sequence parallelism; or
 * the `whole` in any case.
 */
export type Share = 'width' | 'tokens' | 'whole';

/** `count` vectors of `size` values for each token. */
export interface Vectors {
  readonly count: number;
  /** Name of the size in formulas: `hidden`. */
  readonly name: string;
  readonly size: number;
  readonly share: Share;
  /** Bytes of a value, as a formula over `bytes`; undefined: the bytes of any activation. */
  readonly bytes?: '1' | '4' | '4 - bytes';
}

/** Parts of the saved activations that are counted only on request. */
export type OptionalPart = 'dropout' | 'unfused' | 'repeated';

/** Values that autograd saves for the backward pass, for each token. */
export interface Saved {
  readonly part: Component | OptionalPart;
  /** The first is the layer's input, where the layer saves it. */
  readonly vectors: readonly Vectors[];
  readonly source: string;
}

type Unit =
  | 'heads'
  | 'key-value heads'
  | 'channels'
  | 'inner values'
  | 'outputs'
  | 'rows of the vocabulary';

/** Neighbours in a tensor that are dealt out to the GPUs, each of them whole. */
export interface Run {
  readonly unit: Unit;
  readonly count: number;
  /** Rows of each, or values of a row. */
  readonly size: number;
}

/** A row is what one output multiplies its inputs with, however the tensor is stored. */
export interface Cut {
  readonly along: 'rows' | 'length';
  /** Side by side, and each dealt out for itself: queries, keys and values of one product. */
  readonly runs: readonly Run[];
  /** The layer whose units these are. */
  readonly of: string;
}

/** Values of each token that the GPUs of a layer sum (all-reduce) or put together (all-gather). */
export interface Collective {
  readonly kind: 'allReduce' | 'allGather';
  readonly width: number;
}

interface Base<Kind extends string> {
  readonly kind: Kind;
  /** Name of the layer that does it. */
  readonly layer: string;
  readonly component: Component;
  /** Values of each token that go in. */
  readonly input: number;
  /** Values of each token that come out. */
  readonly output: number;
  readonly params: readonly Param[];
  readonly saved: readonly Saved[];
  /** How tensor parallelism cuts tensors; the others are whole on every GPU. */
  readonly cuts: readonly (readonly [Param, Cut])[];
  /** Layers that do the same for other tokens: they cost nothing more, but have tensors of their own. */
  readonly alike?: readonly Layer[];
  /** What the GPUs that share the layer send for its output. */
  readonly forward?: Collective;
  /** What they send for the gradient of its input. */
  readonly backward?: Collective;
  /** Kernels that it launches. */
  readonly launches: number;
}

/** A matrix product with a stored weight. */
export interface Matmul extends Base<'matmul'> {
  readonly tensor: Param;
  /** Values of the weight that each row takes: a multiply-accumulate for each. */
  readonly weights: number;
  /** A row for each token of the batch, or for each position once for the whole batch. */
  readonly rows: 'tokens' | 'positions';
}

/** The scores of a router, and its choice of experts. */
export interface Route extends Base<'router'> {
  readonly tensor: Param;
  readonly weights: number;
  readonly rows: 'tokens';
}

/** Softmax attention: scores q·kᵀ of the query heads of each span, and their sums over v. */
export interface Scores extends Base<'scores'> {
  readonly heads: number;
  readonly keyValueHeads: number;
  /** Width of a head's query and key. */
  readonly headDim: number;
  /** Width of a head's value. */
  readonly valueDim: number;
  readonly spans: readonly HeadSpan[];
  /** Where latents are cached in place of keys and values. */
  readonly latent: Latent | undefined;
  /** Whether a tanh caps the scores. */
  readonly capped: boolean;
  /** Whether the softmax is taken in float32, whatever the type of the scores. */
  readonly inFloat32: boolean;
}

interface Latent {
  /** Values that are cached of a token: the latent, and the rotated key that all heads share. */
  readonly cached: number;
  /** Values of a cached token that a head multiplies: the latent for its score and for its value. */
  readonly multiplied: number;
  /** Values that a head's part of a token's latent is expanded to: key without rotation, and value. */
  readonly expanded: number;
}

/** A depthwise convolution over time. */
export interface Convolution extends Base<'convolution'> {
  readonly channels: number;
  readonly kernel: number;
}

/** A selective scan over time, with a state [inner, state]. */
export interface Scan extends Base<'scan'> {
  readonly inner: number;
  readonly state: number;
}

/** Rows of a table, by token ids, by the positions of tokens, or by positions once for the whole batch. */
export interface Lookup extends Base<'lookup'> {
  readonly by: 'ids' | 'positions' | 'positions of a batch';
  /** Rows of the table; a formula has any number of them. */
  readonly rows: number;
}

/** A normalisation over `size` values. */
export interface Norm extends Base<'norm'> {
  readonly size: number;
}

/** A copy of each token for each of the experts that it goes to. */
export interface Dispatch extends Base<'dispatch'> {
  readonly copies: number;
}

/** Work value by value: activations, sums, rotations. */
export type Elementwise = Base<'elementwise'>;

export type Primitive =
  | Matmul
  | Route
  | Scores
  | Convolution
  | Scan
  | Lookup
  | Norm
  | Dispatch
  | Elementwise;

/** `count` vectors of saved values. */
export const vectors = (
  count: number,
  name: string,
  size: number,
  share: Share = 'tokens',
): Vectors => ({ count, name, size, share });

/** The mask of a dropout on the residual stream. */
export const dropoutMask = (hidden: number): Saved => ({
  part: 'dropout',
  vectors: [{ ...vectors(1, 'hidden', hidden), bytes: '1' }],
  source: 'a mask of 1 byte a value, of the embeddings and of each branch (arXiv 2205.05198)',
});

/** Saved values without the input of the first layer, which another layer saves already. */
export function withoutInput([first, ...others]: readonly Saved[]): Saved[] {
  const rest = first?.vectors.slice(1) ?? [];
  return first && rest.length > 0 ? [{ ...first, vectors: rest }, ...others] : others;
}

/** The same primitives, without the input that the first of them saves. */
export function afterSavedInput(primitives: readonly Primitive[]): Primitive[] {
  const first = primitives.findIndex(({ saved }) => saved.length > 0);
  return primitives.map((each, index) =>
    index === first ? { ...each, saved: withoutInput(each.saved) } : each,
  );
}

export const runOf = (unit: Unit, count: number, size = 1): Run => ({ unit, count, size });

export const allReduce = (width: number): Collective => ({ kind: 'allReduce', width });
