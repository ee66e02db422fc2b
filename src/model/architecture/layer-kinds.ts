/**
 * Layer kinds that hold only tensors and each other: products, norms, attention, recurrent layers. `layer.ts` has the
 * others. Shapes: B batch, T tokens, H hidden, V vocabulary.
 */
import type { HeadSpan } from './masks.js';
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

// Attention and its positions: rotary embedding, windows, ALiBi

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

// Layers with a state or a convolution over time

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
