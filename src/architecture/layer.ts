/**
 * Description of a model: a closed union of layer kinds, each with its named tensors.
 * Every count is a fold over this tree: an exhaustive `switch` without `default`, so a new kind fails to compile
 * wherever it is not handled.
 *
 * Shapes in comments: B batch, T tokens, H hidden, V vocabulary.
 */
import type { Param } from './param.js';
import type { RotaryScaling } from './rotary-scaling.js';

/** Purpose of a layer; budgets are broken down by it. Reports use this order. */
export const COMPONENTS = {
  embedding: 'embedding',
  perLayerInputs: 'per-layer inputs',
  srte: 'SRTE',
  mamba: 'Mamba',
  deltaNet: 'gated DeltaNet',
  shortConvolution: 'short convolution',
  attention: 'attention',
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

interface Node<Kind extends string> {
  readonly kind: Kind;
  /** PyTorch path in the model: `layers.0.mamba`. */
  readonly name: string;
  /** Purpose of the layer; defaults to that of its parent. */
  readonly component?: Component;
}

// A walk visits layers and tensors in the order in which the constructor sets the fields.
// It has to be the order in which PyTorch registers them.

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
export interface AdaptedProjection extends Sum {
  readonly branches: readonly [product: ProjectionLayer, adapter: Adapter];
}

interface Adapter extends Sequence {
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
  /** Uses erf, with mean √½ and deviation √(1 / 4π) (arXiv 2209.10655). */
  laplace: 'distribution function of a normal distribution',
} as const satisfies Record<string, string>;

/** Mean and deviation of `laplace`, with the digits used by implementations. */
export const LAPLACE = { mean: 707_107e-6, deviation: 282_095e-6 } as const;

export type ActivationName = keyof typeof ACTIVATIONS;

/** Elementwise. */
export interface Activation extends Node<'activation'> {
  readonly fn: ActivationName;
  /** Whether the original uses elementary operations, each of which keeps values for its gradient. */
  readonly composed?: boolean;
}

/** x · weight, weight [1] or as wide as x. */
export interface WeightedScale extends Node<'weightedScale'> {
  readonly weight: Param;
}

/** x · factor. */
export interface Scale extends Node<'scale'> {
  readonly factor: number;
}

/** cap · tanh(x / cap). */
export interface Softcap extends Node<'softcap'> {
  readonly cap: number;
}

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

/** x + the sum of the branches' outputs for x, [B, T, H]. */
export interface Residual extends Node<'residual'> {
  readonly branches: readonly Layer[];
}

/** down(activation(gateScale · gate(x)) · up(x)), [.., H] → [.., H] (arXiv 2002.05202). */
export interface GatedMlp extends Node<'gatedMlp'> {
  /** Gate, then up. */
  readonly inputs: Projections;
  readonly activation: ActivationName;
  readonly down: ProjectionLayer;
  /** Default: 1. */
  readonly gateScale?: number;
  /**
   * Gates are max(gate − cutoff, 0) before the activation: the cutoff of a token is the mean of its gates plus this
   * many of their standard deviations (Gemma 3n).
   */
  readonly cutoffDeviations?: number;
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
 * Choice and weights of a token's experts: scores = softmax or sigmoid of x · weightᵀ. The `expertsPerToken` best
 * by score + correction are chosen. Their weights are the scores without correction, divided by their sum + eps if
 * renormalised, times `scale`. With `sparseMixer` (arXiv 2409.12136, without its sampling), experts are taken one by
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
  readonly scoring: 'softmax' | 'sigmoid' | 'sparseMixer';
  /** With `sparseMixer`, the largest distance of a near score: (best − score) / max(|score|, best). */
  readonly nearness?: number;
  readonly expertsPerToken: number;
  readonly groups: RouterGroups | undefined;
  readonly renormalised: { readonly eps: number } | undefined;
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
}

/**
 * Gated networks of all experts with biases and limits (gpt-oss): with gate and up in turn as columns of
 * x · gateUp + gateUpBias, down takes activation(min(gate, limit)) · (1 + up), up between ±limit.
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
  /** Applied to every token; several are summed. */
  readonly shared: readonly Expert[];
  /** Multiplies the shared experts' output by σ of its own output, [H → 1]. */
  readonly sharedGate: Linear | undefined;
  /** Products into a narrower width for the routed experts, and back from it; often none. */
  readonly latent: readonly [into: Linear, outOf: Linear] | readonly [];
}

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
  readonly query: Linear | Sequence;
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

/** The reverse: mean of the first stream and of the other streams' products, scaled to its root mean square. */
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

/** Token ids [B, T] → logits [B, T, V] through embedding, blocks, norm and head. */
export interface LanguageModel extends Node<'languageModel'> {
  readonly embedding: Embedding;
  /** Steps between the embedding and the first block. */
  readonly embeddingSteps: readonly Layer[];
  /** Layers that several blocks share; stored and named once, here. */
  readonly shared: readonly Layer[];
  readonly blocks: readonly Layer[];
  /** Norm of the last block's output; in a few models with a product behind it, or nothing. */
  readonly norm: NormLayer | Sequence;
  readonly head: Linear;
  /** Steps applied to the logits. */
  readonly logitSteps: readonly Layer[];
  /** Longest input, in tokens. */
  readonly positions: number;
  /** Width of the residual stream. */
  readonly hidden: number;
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
  | Scale
  | WeightedScale
  | PerLayerInputs
  | PerLayerBranch
  | AltUpSplit
  | AltUpMerge
  | AltUpBlock
  | Softcap
  | LearnedPositions
  | EmbeddingJoin
  | Sum
  | Residual
  | GatedMlp
  | Router
  | PackedExperts
  | ClampedExperts
  | MixtureOfExperts
  | CausalConv
  | Mamba
  | StateSpaceDual
  | GatedDelta
  | GatedConv
  | Rotary
  | Alibi
  | Attention
  | LatentAttention
  | Srte
  | Alignment
  | Gate;
