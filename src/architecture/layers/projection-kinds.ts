/** Layers that look up rows or multiply by a matrix. Shapes: B batch, T tokens, H hidden, V vocabulary. */
import type { Param } from '../param.js';
import type { Node } from './layer-node.js';

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
}

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
 * x [B, T, H] and the embedding of each token, side by side, [B, T, 2 · H]. A layer that runs alone, without token ids,
 * has the embedding of token 0.
 */
export interface EmbeddingJoin extends Node<'embeddingJoin'> {
  readonly embedding: Embedding;
}
