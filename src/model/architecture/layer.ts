/**
 * Description of a model: a closed union of layer kinds, each with its named tensors.
 * Every count is a fold over this tree: an exhaustive `switch` without `default`, so a new kind fails to compile
 * wherever it is not handled.
 *
 * Shapes in comments: B batch, T tokens, H hidden, V vocabulary.
 */
import type {
  Alibi,
  Attention,
  BlockIndexer,
  DifferentialAttention,
  DynamicMask,
  LatentAttention,
  Rotary,
  TokenIndexer,
} from './attention-kinds.js';
import type {
  Activation,
  ActivationName,
  ClosingProjection,
  Embedding,
  EmbeddingJoin,
  FusedProjection,
  GatedRmsNorm,
  HeadNorms,
  LayerNorm,
  LearnedPositions,
  Linear,
  Node,
  NormLayer,
  Projections,
  RmsNorm,
  Scale,
  Shift,
  SinusoidalPositions,
  Softcap,
  TransposedLinear,
  WeightedScale,
  Xielu,
} from './layer-kinds.js';
import type { Window } from './masks.js';
import type { Param } from './param.js';
import type {
  BlockDiagonal,
  CausalConv,
  GatedConv,
  GatedDelta,
  GriffinRecurrence,
  HeadedMamba,
  KimiDelta,
  LightningAttention,
  Mamba,
  RwkvChannelMix,
  RwkvTimeMix,
  StateSpaceDual,
} from './recurrent-kinds.js';

export * from './attention-kinds.js';
export * from './layer-kinds.js';
export type { HeadSpan, Window } from './masks.js';
export * from './recurrent-kinds.js';

// A walk visits layers and tensors in the order in which the constructor sets the fields.
// It has to be the order in which PyTorch registers them.

/** Layers applied in order. */
export interface Sequence extends Node<'sequence'> {
  readonly layers: readonly Layer[];
}

/** Sum of the branches' outputs for one input, without the input itself. */
export interface Sum extends Node<'sum'> {
  readonly branches: readonly Layer[];
  /** Layers that the original stores here and does not read. */
  readonly unread?: readonly Layer[];
}

/**
 * A block that the original skips where there is no image, x → x. It holds the tensors of its gates and layers all the
 * same (Llama 3.2 Vision).
 */
export interface SkippedBlock extends Node<'skippedBlock'> {
  readonly gates: readonly Param[];
  readonly unread: readonly Layer[];
}

/** x + the sum of the branches' outputs for x, [B, T, H]. */
export interface Residual extends Node<'residual'> {
  readonly branches: readonly Layer[];
}

/**
 * Limits of a gated network: the gate is at most `limit`, and up lies within ±limit. The activation of a gate g is
 * f(sharpness · g) / sharpness, and `raise` is added to up.
 */
export interface GateLimits {
  readonly limit: number;
  readonly sharpness: number;
  readonly raise: number;
}

/** down(activation(gateScale · gate(x)) · up(x)), [.., H] → [.., H] (arXiv 2002.05202). */
export interface GatedMlp extends Node<'gatedMlp'> {
  /** Gate, then up. */
  readonly inputs: Projections;
  readonly activation: ActivationName;
  readonly down: ClosingProjection;
  /** Default: 1. */
  readonly gateScale?: number;
  /**
   * Gates are max(gate − cutoff, 0) before the activation: the cutoff of a token is the mean of its gates plus this
   * many of their standard deviations (Gemma 3n).
   */
  readonly cutoffDeviations?: number;
  readonly limits?: GateLimits;
}

/** Expert groups; only experts of the best few groups can be chosen (DeepSeek, arXiv 2405.04434). */
export interface RouterGroups {
  /** Number of groups; the experts of a group are consecutive. */
  readonly count: number;
  /** Number of groups kept. */
  readonly kept: number;
  /** Score of a group: its best expert, or the sum of its two best. */
  readonly score: 'best' | 'bestTwo';
  /** Score of the experts in dropped groups. */
  readonly dropped: 0 | typeof Number.NEGATIVE_INFINITY;
}

/**
 * Choice and weights of a token's experts: scores = softmax or sigmoid of x · weightᵀ, softcapped. The `expertsPerToken` best
 * by score + correction are chosen. Their weights are the scores without correction, divided by their sum + eps if
 * renormalised, or by `least` where that is larger, times `scale`. With `sparseMixer` (arXiv 2409.12136, without its sampling), experts are taken one by
 * one, best first; the weight of each is its share of a softmax of the scores that are left and near its own.
 */
export interface Router extends Node<'router'> {
  /** Layers between the input and the product with the weight: in Gemma 4, a norm and two scales. */
  readonly steps?: readonly Layer[];
  /** [experts, H] */
  readonly weight: Param;
  /** Added to the products with the weight, [experts]. */
  readonly bias?: Param;
  /** [experts] */
  readonly correction: Param | undefined;
  /** Experts of each token id, in place of a choice: [V, expertsPerToken]. */
  readonly table?: Param;
  /** `described`: no engine computes them. */
  readonly scoring: 'softmax' | 'sigmoid' | 'sparseMixer' | 'described';
  /** cap · tanh(product / cap), before the softmax or sigmoid. */
  readonly softcap?: number;
  /** With `sparseMixer`, the largest distance of a near score: (best − score) / max(|score|, best). */
  readonly nearness?: number;
  readonly expertsPerToken: number;
  readonly groups: RouterGroups | undefined;
  readonly renormalised: { readonly eps: number; readonly least?: number } | undefined;
  readonly scale: number;
  /** Factor of each expert's weight, [experts]. */
  readonly expertScales?: Param;
}

/** Networks of all experts in two tensors, the layout of transformers 5 and later. */
export interface PackedExperts extends Node<'packedExperts'> {
  /** Gate above up, [experts, 2 · inner, H]; of experts without a gate, up alone, [experts, inner, H]. */
  readonly gateUp: Param;
  /** [experts, H, inner] */
  readonly down: Param;
  readonly activation: ActivationName;
  /** Whether the matrices are [experts, H, 2 · inner] and [experts, inner, H], as in Llama 4. */
  readonly isTransposed?: boolean;
  /**
   * Up apart, as in DBRX: the three tensors have the matrices of this many experts below each other, [experts · inner,
   * H]. Those of down are [inner, H] too.
   */
  readonly stacked?: number;
  readonly up?: Param;
  /** Limits of networks with a gate. */
  readonly limits?: GateLimits;
}

/**
 * Gated networks of all experts with biases and limits (gpt-oss). The columns of x · gateUp + gateUpBias are gate and
 * up, interleaved. The input of down is activation(min(gate, limit)) · (1 + up), with up clipped to ±limit.
 */
export interface ClampedExperts extends Node<'clampedExperts'> {
  /** [experts, H, 2 · inner] */
  readonly gateUp: Param;
  /** [experts, 2 · inner] */
  readonly gateUpBias: Param;
  /** [experts, inner, H] */
  readonly down: Param;
  /** [experts, H] */
  readonly downBias: Param;
  readonly activation: ActivationName;
  readonly limit: number;
}

/**
 * Experts of one inner value, chosen by the sum of a score of their row and one of their column (Doge; PEER, arXiv
 * 2407.04153). With the weights w of the `expertsPerToken` best, the softmax of their sums: shared(x) + Σ w ·
 * activation(x · down_e) · up_e.
 */
export interface ProductKeyExperts extends Node<'productKeyExperts'> {
  readonly shared: GatedMlp;
  /** Scores of rows, then of columns, ⌊√experts⌋ each. */
  readonly scores: Linear;
  /** [experts, H] */
  readonly down: Param;
  readonly up: Param;
  readonly expertsPerToken: number;
  readonly activation: ActivationName;
}

/** A network with a gate, or a product, an activation and a product. */
export type Expert = GatedMlp | Sequence;

/** Weighted sum of the chosen experts' outputs, plus the shared experts': x [B, T, H] → [B, T, H]. */
export interface MixtureOfExperts extends Node<'mixtureOfExperts'> {
  readonly router: Router;
  /** Whether a chosen expert's weight multiplies its input in place of its output. */
  readonly weighsInputs?: boolean;
  /** Norm of what the experts read; the router reads the input itself. */
  readonly expertNorm?: NormLayer;
  /** Equal in all but their names. */
  readonly experts: readonly Expert[] | PackedExperts | ClampedExperts;
  /** Experts of the router beyond these, whose output is their input (arXiv 2509.01322). */
  readonly zeroExperts?: number;
  /** Applied to every token; several are summed. */
  readonly shared: readonly Expert[];
  /** Multiplies the shared experts' output by σ of its own output, [H → 1]. */
  readonly sharedGate: Linear | undefined;
  /** Products into a narrower width for the routed experts, and back from it; often none. */
  readonly latent: readonly [into: Linear, outOf: Linear] | readonly [];
}

/**
 * Attention with experts (JetMoe, arXiv 2404.07413; arXiv 2210.05144). Each expert of a token gives `keyValueHeads`
 * queries of `headDim`, and multiplies what they see; keys and values are the same for all experts. With the weight w of
 * an expert, the output is bias + Σ w · down(heads(queries)).
 */
export interface ExpertAttention extends Node<'expertAttention'> {
  readonly router: Router;
  /** Into the queries, [experts, keyValueHeads · headDim, H], and out of the heads, [experts, H, keyValueHeads · headDim]. */
  readonly experts: PackedExperts;
  /** [H] */
  readonly bias: Param;
  /** Keys, then values. */
  readonly keyValues: FusedProjection;
  readonly rotary: Rotary;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly scale: number;
}

/**
 * Values of each token for each of `layers` blocks, `width` values each (Gemma 3n). With e the embedding of the token
 * times embeddingScale: scale · (norm(projectionScale · projection(e)) + tableScale · row of the token in the table).
 * A block that runs alone, without token ids, has those of token 0.
 */
export interface PerLayerInputs extends Node<'perLayerInputs'> {
  readonly embedding: Embedding;
  /** [V, layers · width] */
  readonly table: Embedding;
  /** [H → layers · width] */
  readonly projection: Linear;
  /** Norm over the values of one block: [width]. */
  readonly norm: RmsNorm;
  readonly layers: number;
  readonly width: number;
  readonly embeddingScale: number;
  readonly tableScale: number;
  readonly projectionScale: number;
  readonly scale: number;
}

/** projection(activation(gate(x)) · values), [B, T, H] → [B, T, H]: the values for block `index`. */
export interface PerLayerBranch extends Node<'perLayerBranch'> {
  readonly gate: Linear;
  readonly projection: Linear;
  readonly activation: ActivationName;
  readonly inputs: PerLayerInputs;
  readonly index: number;
}

/**
 * Streams of AltUp (arXiv 2301.13310) from a value, [B, T, H] → [B, T, streams · H]: the value, and its product with
 * each projection, scaled to the root mean square of the value.
 */
export interface AltUpSplit extends Node<'altUpSplit'> {
  readonly projections: readonly Linear[];
}

/**
 * Reverse of `AltUpSplit`: mean of the first stream and of the other streams' products, scaled to its root mean square.
 */
export interface AltUpMerge extends Node<'altUpMerge'> {
  readonly projections: readonly Linear[];
}

/** Least mean square of a product of AltUp. */
export const ALTUP_LEAST = 1e-5;

/**
 * Block on streams, [B, T, streams · H] → the same. With m(v) = tanh(router(norm(v) / H)) and a the active stream:
 * stream i becomes p_i = x_i + Σ_j prediction(m(a))[i, j] · x_j; y = inner(p_a); then
 * c_i = p_i + (1 + correction(m(y))[i]) · (y − p_a); and perLayer(c_a · outputScale) is added to all but the first.
 */
export interface AltUpBlock extends Node<'altUpBlock'> {
  readonly routerNorm: RmsNorm;
  readonly router: Linear;
  /** → [streams · streams] */
  readonly prediction: Linear;
  readonly correction: Linear;
  /** [H] */
  readonly outputScale: Param;
  /** Whether outputScale is used. */
  readonly isScaled: boolean;
  readonly active: number;
  readonly inner: Layer;
  readonly perLayer: Layer;
}

/**
 * Two stacks of blocks in turn (HRM, arXiv 2506.21734), [B, T, H] → [B, T, H]. The high state begins as the input, the
 * low one as `initial`, [H]. Each of the stacks replaces one of the two by its output for their sum: the low state
 * `lowPerHigh` times, then the high one once, and so on. The result is the high state.
 */
export interface Cycles extends Node<'cycles'> {
  readonly initial: Param;
  /** One for each use, with the same tensors as the others of its kind and states of its own. */
  readonly stacks: readonly Layer[];
  readonly lowPerHigh: number;
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

/** Combines two branches [B, T, H]: c = concat(mamba, attention); net(c) + residual(c). */
export interface Alignment extends Node<'alignment'> {
  readonly net: Sequence;
  readonly residual: Linear;
}

/** Share of the Mamba branch, per value: sigmoid(down(tanh(up(z)))). */
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

/** Work of a described layer beside that of its parts, per token. */
export type DescribedWork =
  /** A product with one of its own tensors: a multiply-accumulate for each element. */
  | {
      readonly work: 'product';
      readonly tensor: Param;
      readonly input: number;
      readonly output: number;
    }
  /** A product of `rows` with a tensor, once in a pass for all its sequences: of a number of rows, or one a position. */
  | { readonly work: 'rows'; readonly tensor: Param; readonly rows: number | 'positions' }
  /** Softmax attention, with a key and a value of each key-value head in the cache, or `cached` values of a token. */
  | {
      readonly work: 'attention';
      readonly heads: number;
      readonly keyValueHeads: number;
      readonly headDim: number;
      readonly valueDim: number;
      readonly window?: Window | undefined;
      readonly cached?: number | undefined;
      /** Values of a cached token that a head multiplies in decoding; default: its query and its value. */
      readonly multiplied?: number;
      /** Whether no cache holds the keys, as in an encoder. */
      readonly isUncached?: boolean;
    }
  /** Scores of an indexer over one key of `headDim` values for each token or entry, which the cache holds. */
  | {
      readonly work: 'index';
      readonly heads: number;
      readonly headDim: number;
      readonly window?: Window | undefined;
    }
  /** A recurrence with a state [inner, state] and a decay for each head. */
  | {
      readonly work: 'state';
      readonly inner: number;
      readonly state: number;
      readonly inFloat32?: boolean;
    }
  /** The last `tokens` values of each of some channels, which the cache holds. */
  | {
      readonly work: 'buffer';
      readonly channels: number;
      readonly tokens: number;
      /** Multiply-accumulates of a channel. */
      readonly macs: number;
    };

/**
 * A layer whose parameters, FLOPs and caches are exact, and which no engine runs. A model with one of these is
 * described, not run.
 */
export interface Described extends Node<'described'> {
  /** `compressed attention` */
  readonly title: string;
  /** Tensors that belong to no part. */
  readonly tensors: readonly Param[];
  /** Each is computed once for each token. */
  readonly parts: readonly Layer[];
  readonly works: readonly DescribedWork[];
  /** Values of a token that it gives. */
  readonly output: number;
}

/** Token ids [B, T] → logits [B, T, V] through embedding, blocks, norm and head. */
export interface LanguageModel extends Node<'languageModel'> {
  readonly embedding: Embedding;
  /** Steps between the embedding and the first block. */
  readonly embeddingSteps: readonly Layer[];
  /** Layers that several blocks share; stored and named once, here. */
  readonly shared: readonly Layer[];
  readonly blocks: readonly Layer[];
  /** Norm of the last block's output; in a few models with a product after it, or nothing. */
  readonly norm: NormLayer | Sequence;
  readonly head: Linear;
  /** Steps applied to the logits. */
  readonly logitSteps: readonly Layer[];
  /** Longest input, in tokens. */
  readonly positions: number;
  /** Width of the residual stream. */
  readonly hidden: number;
  /** Bits of the tensors that a checkpoint stores quantized, scales included; absent if it stores none so. */
  readonly storedBits?: () => ReadonlyMap<Param, number>;
}

export type Layer =
  | LanguageModel
  | HybridBlock
  | Sequence
  | Embedding
  | Linear
  | TransposedLinear
  | FusedProjection
  | LayerNorm
  | RmsNorm
  | GatedRmsNorm
  | HeadNorms
  | Activation
  | Xielu
  | Scale
  | Shift
  | WeightedScale
  | PerLayerInputs
  | PerLayerBranch
  | AltUpSplit
  | AltUpMerge
  | AltUpBlock
  | Softcap
  | LearnedPositions
  | SinusoidalPositions
  | EmbeddingJoin
  | Sum
  | SkippedBlock
  | Described
  | Residual
  | GatedMlp
  | Router
  | PackedExperts
  | ClampedExperts
  | MixtureOfExperts
  | CausalConv
  | Mamba
  | HeadedMamba
  | StateSpaceDual
  | GatedDelta
  | GatedConv
  | LightningAttention
  | KimiDelta
  | BlockDiagonal
  | GriffinRecurrence
  | RwkvTimeMix
  | RwkvChannelMix
  | Rotary
  | Alibi
  | Attention
  | LatentAttention
  | ExpertAttention
  | DifferentialAttention
  | DynamicMask
  | ProductKeyExperts
  | Cycles
  | TokenIndexer
  | BlockIndexer
  | Srte
  | Alignment
  | Gate;
