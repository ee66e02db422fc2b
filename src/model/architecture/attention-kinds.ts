/** Kinds of attention, their positions, and what chooses their keys. Shapes: B batch, T tokens, H hidden. */

import type {
  ActivationName,
  ClosingProjection,
  HeadNorms,
  Linear,
  Node,
  NormLayer,
  Projections,
  RmsNorm,
} from './layer-kinds.js';
import type { HeadSpan } from './masks.js';
import type { Param } from './param.js';

/**
 * Frequency scaling; names and formulas follow `modeling_rope_utils.py` of transformers.
 * `originalPositions`: training length of the model.
 */
export type RotaryScaling =
  /** All positions divided by the factor (arXiv 2306.15595). */
  | {
      /** All frequencies divided. */
      readonly kind: 'linear';
      /** Divisor of the frequencies. */
      readonly factor: number;
    }
  /** The first `pairs` frequencies of a head divided by the factor; the others are 0 (Gemma 4). */
  | {
      /** The first frequencies divided, the others zero. */
      readonly kind: 'proportional';
      /** Number of frequencies that are not zero. @count */
      readonly pairs: number;
      /** Divisor of the frequencies. */
      readonly factor: number;
    }
  /** The frequencies in another order (North Micro Vision, which reads positions of images from some of them). */
  | {
      /** Frequencies in another order. */
      readonly kind: 'reordered';
      /** For each pair of dimensions the number of its frequency. @integer */
      readonly order: readonly number[];
    }
  /** A larger base beyond the original length, depending on the input length (dynamic NTK). */
  | {
      /** Base that grows with the input. */
      readonly kind: 'dynamic';
      /** Factor of the length. */
      readonly factor: number;
      /** Positions up to which nothing is scaled. @integer */
      readonly originalPositions: number;
    }
  /** Divides long waves, keeps short ones, and blends those between (Llama 3.1). */
  | {
      /** Scaling of Llama 3. */
      readonly kind: 'llama3';
      /** Divisor of the low frequencies. */
      readonly factor: number;
      /** Waves in the original length below which a frequency is divided. */
      readonly lowFrequencyFactor: number;
      /** Waves in the original length above which a frequency is kept. */
      readonly highFrequencyFactor: number;
      /** Positions of the training. @integer */
      readonly originalPositions: number;
    }
  /** arXiv 2309.00071: a ramp over the dimensions between kept and divided frequencies. */
  | {
      /** YaRN. */
      readonly kind: 'yarn';
      /** Divisor of the low frequencies. */
      readonly factor: number;
      /** Positions of the training. @integer */
      readonly originalPositions: number;
      /** Waves in the original length from which a frequency is kept. */
      readonly betaFast: number;
      /** Waves in the original length up to which a frequency is divided. */
      readonly betaSlow: number;
      /** Whether the ends of the ramp are rounded to whole dimensions. */
      readonly truncate: boolean;
      /** Upper bound of the ramp's end; implementations differ. @integer */
      readonly lastDimension: number;
      /** Behaviour of a ramp that would end before it begins: runs backwards, or has no width. */
      readonly inverted: 'backwards' | 'stepped';
      /** Factor of cosine and sine. */
      readonly amplitude: number;
    }
  /**
   * YaRN of MiniMind before December 2025: waves up to the original length are divided by less the shorter they are, by
   * their index alone; longer ones by the factor.
   */
  | {
      /** YaRN as early versions of MiniMind compute it. */
      readonly kind: 'earlyYarn';
      /** Divisor of the frequencies. */
      readonly factor: number;
      /** Positions of the training. @integer */
      readonly originalPositions: number;
      /** Value of β at the last index. */
      readonly betaFast: number;
      /** Value of β at the first index. */
      readonly betaSlow: number;
    }
  /** A divisor for every frequency, one list up to the original length and one beyond (arXiv 2402.13753). */
  | {
      /** LongRoPE. */
      readonly kind: 'longrope';
      /** Divisors of the frequencies up to the original length. */
      readonly shortDivisors: readonly number[];
      /** Divisors of the frequencies beyond it. */
      readonly longDivisors: readonly number[];
      /** Positions of the training. @integer */
      readonly originalPositions: number;
      /** Factor of cosine and sine. */
      readonly amplitude: number;
      /** Amplitude beyond the original length; default: the same. */
      readonly longAmplitude?: number;
    };

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
  /** Whether angles are negative: pairs turn the other way. */
  readonly isBackwards?: boolean;
  /** Buffers in a state dict: frequencies, cosines, sines; often none. */
  readonly tables: readonly Param[];
}

/** Penalty −slope · distance on every score, with a slope per head (ALiBi, arXiv 2108.12409). */
export interface Alibi extends Node<'alibi'> {
  readonly slopes: readonly number[];
  /**
   * Factor of the products slope · position when they are computed in bfloat16, as Falcon's class does for every type.
   * Undefined for exact products.
   */
  readonly bfloat16Factor?: number | undefined;
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
  /**
   * Queries [heads · headDim], a gate [heads · gateDim] if there is one, keys [keyValueHeads · headDim], values
   * [keyValueHeads · valueDim].
   */
  readonly inputs: Projections;
  readonly out: ClosingProjection;
  /** Applied before the rotation: per head, or over all heads when the weight has their total width. */
  readonly queryNorm: NormLayer | HeadNorms | undefined;
  readonly keyNorm: NormLayer | HeadNorms | undefined;
  readonly valueNorm?: NormLayer;
  /** Whether the inputs give no values: these are the keys before their norm. */
  readonly valuesAreKeys?: boolean;
  /**
   * `lends`: later layers read the keys and values of this one. `from`: name of the layer whose keys and values this
   * one reads; they are 0 where it runs without that layer.
   */
  readonly sharing?: 'lends' | { readonly from: string };
  /** Whether these norms come after the rotation. */
  readonly normsAfterRotation?: boolean;
  /** Queries, keys and values are clipped to ±clip after their norms. */
  readonly clip?: number;
  readonly rotary: Rotary | undefined;
  readonly temperature?: Temperature;
  readonly alibi: Alibi | undefined;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  /** Width of a head's value; default: `headDim`. */
  readonly valueDim?: number;
  readonly scale: number;
  /** cap · tanh(score / cap) */
  readonly softcap: number | undefined;
  /** Whether the original computes the softmax in the type of the scores; otherwise in float32. */
  readonly ownTypeSoftmax?: boolean;
  readonly spans: readonly HeadSpan[];
  /** Function of the gate that multiplies the output of the heads. */
  readonly gate?: ActivationName;
  /** Values of the gate for each head: one that multiplies all of its output, or, by default, one for each value. */
  readonly gateDim?: number;
  /** One score per head that takes part in the softmax and has no value, [heads] (arXiv 2309.17453). */
  readonly sinks?: Param;
  /** Values that the original's cache keeps and decoding does not need. */
  readonly keeps?: 'a key for each query head' | 'keys outside the windows';
  /** Chooses the keys that a query of each head sees. */
  readonly selection?: BlockIndexer;
}

/**
 * Lightning indexer (DeepSeek-V3.2, arXiv 2512.02556): a query sees the `kept` keys with the best scores, all where it
 * has no more. The score of a key is Σ_h weight_h · max(scale · q_h · k, 0) over heads of its own, which share one key
 * per token; the cache holds it. The first dimensions of queries and keys are rotated. It has no gradient.
 */
export interface TokenIndexer extends Node<'tokenIndexer'> {
  /** Normed latent of the queries → [heads · rotary.headDim] */
  readonly query: Linear;
  /** → [rotary.headDim] */
  readonly key: Linear;
  readonly keyNorm: NormLayer;
  /** → weight of each head, [heads] */
  readonly weights: Linear;
  readonly rotary: Rotary;
  readonly heads: number;
  readonly scale: number;
  readonly kept: number;
}

/**
 * Indexer of blocks (MiniMax-M3): a query sees the keys of the `kept` blocks with the best scores, of `size` keys each.
 * The score of a block is its best q · k. The last `local` blocks up to that of the query come first. The blocks are
 * chosen by heads of its own, each for an equal part of the heads of the attention; they share one key per token, which
 * the cache holds. It has no gradient.
 */
export interface BlockIndexer extends Node<'blockIndexer'> {
  /** → [heads · rotary.headDim] */
  readonly query: Linear;
  /** → [rotary.headDim] */
  readonly key: Linear;
  readonly queryNorm: RmsNorm;
  readonly keyNorm: RmsNorm;
  readonly rotary: Rotary;
  readonly heads: number;
  readonly size: number;
  readonly kept: number;
  readonly local: number;
}

export type Indexer = TokenIndexer | BlockIndexer;

/**
 * Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434). The cache holds a latent [latentRank] and one
 * key [sharedDim] per token, shared by all heads and rotated if there is a rotation. Each head has a query and key of
 * nopeDim + sharedDim and a value of valueDim.
 */
export interface LatentAttention extends Node<'latentAttention'> {
  /** → [heads · (nopeDim + sharedDim)]; the rotated part of each head comes last. */
  readonly query: Linear | LowRankQuery;
  /** → [latentRank + sharedDim] */
  readonly keyValueDown: Linear;
  readonly latentNorm: RmsNorm;
  /** Factor of the normed latent; default: 1. */
  readonly latentScale?: number;
  /** Latent → [heads · (nopeDim + valueDim)]; the value of each head comes last. */
  readonly keyValueUp: Linear;
  readonly out: Linear;
  readonly rotary: Rotary | undefined;
  readonly sharedDim: number;
  readonly heads: number;
  readonly latentRank: number;
  readonly nopeDim: number;
  readonly valueDim: number;
  readonly scale: number;
  readonly temperature?: Temperature;
  /**
   * Chooses the keys that a query sees, for all heads; `from`: name of the layer whose choice this one takes, which sees
   * all keys where it runs without that layer. The query then has a lower rank.
   */
  readonly selection?: TokenIndexer | { readonly from: string };
}

/** Queries through a lower rank, with a norm between. */
export interface LowRankQuery extends Node<'sequence'> {
  readonly layers: readonly [down: Linear, norm: RmsNorm, up: Linear];
}

/** Fields that softmax over heads needs, for any source of queries, keys and values. */
export type AttentionCore = Pick<
  Attention,
  | 'name'
  | 'heads'
  | 'keyValueHeads'
  | 'headDim'
  | 'valueDim'
  | 'scale'
  | 'softcap'
  | 'alibi'
  | 'spans'
  | 'sinks'
  | 'sharing'
>;

/**
 * Differential attention (arXiv 2410.05258), in the form of DiffLlama: head h of the first half and the one at its place in
 * the second half see the same values, [2 · headDim], of two value heads. The output is norm(first − λ · second) ·
 * (1 − initial), λ = exp(q1 · k1) − exp(q2 · k2) + initial.
 */
export interface DifferentialAttention extends Node<'differentialAttention'> {
  /** Queries, keys, values. */
  readonly inputs: Projections;
  readonly out: Linear;
  /** q1, k1, q2 and k2, [headDim] each. */
  readonly lambdas: readonly [Param, Param, Param, Param];
  readonly initial: number;
  /** Norm of each pair of heads, [2 · headDim]. */
  readonly norm: RmsNorm;
  readonly rotary: Rotary;
  readonly heads: number;
  /** Even. */
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly scale: number;
}

/**
 * Attention whose scores gain a value of each key (Doge): exp(rate · softplus(steps(values))), for each key-value head. A
 * query sees only the `kept` visible keys with the largest ones.
 */
export interface DynamicMask extends Node<'dynamicMask'> {
  readonly attention: Attention;
  /** [keyValueHeads] */
  readonly rates: Param;
  /** [keyValueHeads · headDim → keyValueHeads] */
  readonly steps: Linear;
  readonly kept: number;
}

/** Heads of attention with experts. */
interface ExpertHeads extends Omit<AttentionCore, 'heads' | 'spans' | 'softcap' | 'alibi'> {
  readonly router: { readonly expertsPerToken: number };
}

/** Query heads of attention with experts: those of all experts of a token. */
export const expertHeads = ({ router, keyValueHeads }: ExpertHeads): number =>
  router.expertsPerToken * keyValueHeads;

/** Softmax of attention with experts, with its heads in the order of the keys that they read. */
export const expertCore = (layer: ExpertHeads): AttentionCore =>
  coreOf({ ...layer, heads: expertHeads(layer) });

export const differentialCore = (layer: DifferentialAttention): AttentionCore => coreOf(layer);

const coreOf = (
  layer: Pick<Attention, 'name' | 'heads' | 'keyValueHeads' | 'headDim' | 'scale'>,
): AttentionCore => ({
  name: layer.name,
  heads: layer.heads,
  keyValueHeads: layer.keyValueHeads,
  headDim: layer.headDim,
  scale: layer.scale,
  softcap: undefined,
  alibi: undefined,
  spans: [{ heads: layer.heads, window: undefined }],
});
