/** Attention and its positions: rotary embedding, windows, ALiBi. Shapes: B batch, T tokens, H hidden. */
import type { Param } from '../param.js';
import type { RotaryScaling } from '../rotary-scaling.js';
import type { ActivationName } from './activation-kinds.js';
import type { Node } from './layer-node.js';
import type { HeadNorms, NormLayer, RmsNorm } from './norm-kinds.js';
import type { Linear, ProjectionLayer, Projections } from './projection-kinds.js';

/**
 * Rotary position embedding (arXiv 2104.09864) of the first `rotatedDim` dimensions of every head. Angles are
 * position · frequency (see rotary-scaling.ts). Its amplitude scales cosine and sine.
 */
export interface Rotary extends Node<'rotary'> {
  readonly base: number;
  readonly headDim: number;
  readonly rotatedDim: number;
  /** Dimensions rotated together: j and j + rotatedDim / 2, or 2j and 2j + 1. */
  readonly pairs: 'halves' | 'neighbours';
  readonly scaling: RotaryScaling | undefined;
  /** Buffers in a state dict: frequencies, cosines, sines; often none. */
  readonly tables: readonly Param[];
}

/**
 * Window of a head. `sliding`: the last `tokens` keys, including a position's own. `chunked`: the keys up to its own in
 * its chunk of `tokens` positions. `local`: the hybrid model's rule, tokens // 2 keys before it and itself (see
 * masks.ts).
 */
export interface Window {
  readonly rule: 'sliding' | 'chunked' | 'local';
  readonly tokens: number;
}

/** A group of heads with the same window; without a window they see all earlier positions. */
export interface HeadSpan {
  readonly heads: number;
  readonly window: Window | undefined;
}

/** Penalty −slope · distance on every score, with a slope per head (ALiBi, arXiv 2108.12409). */
export interface Alibi extends Node<'alibi'> {
  readonly slopes: readonly number[];
}

/** Factor of the queries at a position: 1 + strength · ln(1 + floor((position + offset) / tokens)) (arXiv 2501.19399). */
export interface Temperature {
  readonly tokens: number;
  readonly strength: number;
  readonly offset: 0 | 1;
}

/**
 * Causal softmax attention; query head j reads key and value head floor(j · keyValueHeads / heads). Scores are q ·
 * k · scale, softcapped, then ALiBi and the mask. Heads follow the order of `spans`.
 */
export interface Attention extends Node<'attention'> {
  /** Queries [heads · headDim], a gate of the same width if there is one, keys and values [keyValueHeads · headDim]. */
  readonly inputs: Projections;
  readonly out: ProjectionLayer;
  /** Applied before the rotation: per head, or over all heads when the weight has their total width. */
  readonly queryNorm: NormLayer | HeadNorms | undefined;
  readonly keyNorm: NormLayer | HeadNorms | undefined;
  readonly valueNorm?: NormLayer;
  /** Whether the inputs give no values: these are the keys before their norm. */
  readonly valuesAreKeys?: boolean;
  /**
   * Whether later layers read the keys and values of this one, or the name of the layer whose it reads itself. Where
   * it runs without that layer, they are 0.
   */
  readonly sharing?: 'lends' | { readonly from: string };
  /** Whether these norms come behind the rotation. */
  readonly normsAfterRotation?: boolean;
  /** Largest size of a query, key or value, which are cut to ±clip behind their norms. */
  readonly clip?: number;
  readonly rotary: Rotary | undefined;
  readonly temperature?: Temperature;
  readonly alibi: Alibi | undefined;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly scale: number;
  /** cap · tanh(score / cap) */
  readonly softcap: number | undefined;
  /** Whether the original computes the softmax in the type of the scores; otherwise in float32. */
  readonly ownTypeSoftmax?: boolean;
  readonly spans: readonly HeadSpan[];
  /** Function of the gate that multiplies the output of the heads. */
  readonly gate?: ActivationName;
  /** A score of each head that takes its share of the softmax and has no value, [heads] (arXiv 2309.17453). */
  readonly sinks?: Param;
  /** Values that the original's cache keeps and decoding does not need. */
  readonly keeps?: 'a key for each query head' | 'keys outside the windows';
}

/**
 * Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434). The cache holds a latent [latentRank] and one
 * rotated key [rotary.headDim] per token, shared by all heads. Each head has a query and key of nopeDim +
 * rotary.headDim and a value of valueDim.
 */
export interface LatentAttention extends Node<'latentAttention'> {
  /** → [heads · (nopeDim + rotary.headDim)]; the rotated part of each head comes last. */
  readonly query: Linear | LowRankQuery;
  /** → [latentRank + rotary.headDim] */
  readonly keyValueDown: Linear;
  readonly latentNorm: RmsNorm;
  /** Latent → [heads · (nopeDim + valueDim)]; the value of each head comes last. */
  readonly keyValueUp: Linear;
  readonly out: Linear;
  readonly rotary: Rotary;
  readonly heads: number;
  readonly latentRank: number;
  readonly nopeDim: number;
  readonly valueDim: number;
  readonly scale: number;
  readonly temperature?: Temperature;
}

/** Queries through a lower rank, with a norm between. */
interface LowRankQuery extends Node<'sequence'> {
  readonly layers: readonly [down: Linear, norm: RmsNorm, up: Linear];
}
