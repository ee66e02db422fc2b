/** Constructors of layers, one per kind, with PyTorch's names for their tensors. */
import type {
  Activation,
  ActivationName,
  AdaptedProjection,
  Alibi,
  Alignment,
  AltUpBlock,
  Attention,
  CausalConv,
  ClampedExperts,
  Component,
  Embedding,
  EmbeddingJoin,
  FusedProjection,
  Gate,
  GatedConv,
  GatedDelta,
  GatedMlp,
  GatedRmsNorm,
  HeadNorms,
  HeadSpan,
  LanguageModel,
  LatentAttention,
  Layer,
  LayerNorm,
  LearnedPositions,
  Linear,
  Mamba,
  MixtureOfExperts,
  NormLayer,
  PackedExperts,
  PerLayerBranch,
  PerLayerInputs,
  ProjectionLayer,
  Projections,
  Residual,
  RmsNorm,
  Rotary,
  Router,
  RouterGroups,
  Scale,
  Sequence,
  Softcap,
  StateSpaceDual,
  Sum,
  Temperature,
  TransposedLinear,
  WeightedScale,
  Window,
} from '../layer.js';
import type { Param } from '../param.js';
import { buffer, checkEach, checkElements, checkLayers, checkNames, param } from '../param.js';
import type { RotaryScaling } from '../rotary-scaling.js';
import { sumOfTensors } from '../walk.js';

export function embedding(
  name: string,
  vocabulary: number,
  hidden: number,
  aliases: readonly string[] = [],
): Embedding {
  const weight = param(`${name}.weight`, [vocabulary, hidden], aliases);
  return { kind: 'embedding', name, component: 'embedding', weight };
}

interface LinearOptions {
  readonly bias?: boolean;
  readonly component?: Component;
  /** Further state dict paths of this same layer. */
  readonly aliases?: readonly string[];
}

/** `bias` defaults to true, as in PyTorch. */
export function linear(
  name: string,
  from: number,
  to: number,
  options: LinearOptions = {},
): Linear {
  const { bias = true, component, aliases = [] } = options;
  const named = (leaf: string) => aliases.map((alias) => `${alias}.${leaf}`);
  return {
    kind: 'linear',
    name,
    ...(component && { component }),
    weight: param(`${name}.weight`, [to, from], named('weight')),
    bias: bias ? param(`${name}.bias`, [to], named('bias')) : undefined,
  };
}

/** Head tied to the embedding's weight, or with a weight of its own. */
export function head(
  name: string,
  from: number,
  to: number,
  {
    tiedTo,
    bias = false,
  }: { readonly tiedTo?: Embedding | undefined; readonly bias?: boolean } = {},
): Linear {
  const own = linear(name, from, to, { bias, component: 'head' });
  return tiedTo ? { ...own, weight: tiedTo.weight } : own;
}

interface LayerNormOptions {
  /** Parts of the last dimension, each with its row of the weight; one row by default. */
  readonly parts?: number;
  /** `weight`: no bias; `none`: neither. */
  readonly holds?: 'both' | 'weight' | 'none';
  readonly offset?: number;
}

export function layerNormLayer(
  name: string,
  size: number,
  eps: number,
  { parts, holds = 'both', offset = 0 }: LayerNormOptions = {},
): LayerNorm {
  const shape = parts === undefined ? [size] : [parts, size];
  return {
    kind: 'layerNorm',
    name,
    component: 'norm',
    weight: holds === 'none' ? undefined : param(`${name}.weight`, shape),
    bias: holds === 'both' ? param(`${name}.bias`, [size]) : undefined,
    eps,
    offset,
    size,
  };
}

export function headNorms(name: string, norms: readonly NormLayer[]): HeadNorms {
  return { kind: 'headNorms', name, component: 'norm', norms };
}

/** linear(0), GELU (1), linear(2), numbered as in PyTorch's Sequential. */
export function geluNetwork(
  name: string,
  sizes: readonly [number, number, number],
  component?: Component,
): Sequence {
  const [from, inner, to] = sizes;
  return {
    kind: 'sequence',
    name,
    ...(component && { component }),
    layers: [
      linear(`${name}.0`, from, inner),
      activation(`${name}.1`, 'gelu'),
      linear(`${name}.2`, inner, to),
    ],
  };
}

interface ConvOptions extends Pick<LinearOptions, 'bias'> {
  /** Default: kernel − 1. */
  readonly cached?: number;
}

/** @param kernel Tokens that the convolution sees, the token itself included. */
export function causalConv(
  name: string,
  channels: number,
  kernel: number,
  { bias = true, cached = kernel - 1 }: ConvOptions = {},
): CausalConv {
  return {
    kind: 'causalConv',
    name,
    weight: param(`${name}.weight`, [channels, 1, kernel]),
    bias: bias ? param(`${name}.bias`, [channels]) : undefined,
    cached,
  };
}

interface MambaSizes {
  readonly hidden: number;
  readonly inner: number;
  readonly state: number;
  readonly kernel: number;
  readonly stepRank: number;
}

interface MambaOptions {
  /** Biases of in_proj and out_proj. Default: true. */
  readonly bias?: boolean;
  readonly conv?: ConvOptions;
  readonly activation?: ActivationName;
  /** Default: none. */
  readonly innerNorms?: readonly RmsNorm[];
  readonly innerNormEps?: number;
  readonly float32State?: boolean;
  readonly doubledStepBias?: boolean;
}

/** A single bias of the steps, no norms inside and SiLU by default. */
export function mamba(name: string, sizes: MambaSizes, options: MambaOptions = {}): Mamba {
  const { hidden, inner, state, kernel, stepRank } = sizes;
  const { bias = true, innerNorms = [], innerNormEps, activation: fn = 'silu' } = options;
  return {
    kind: 'mamba',
    name,
    component: 'mamba',
    stateLog: param(`${name}.A_log`, [inner, state]),
    skip: param(`${name}.D`, [inner]),
    inProj: linear(`${name}.in_proj`, hidden, 2 * inner, { bias }),
    conv: causalConv(`${name}.conv1d`, inner, kernel, options.conv),
    xProj: linear(`${name}.x_proj`, inner, stepRank + 2 * state, { bias: false }),
    dtProj: linear(`${name}.dt_proj`, stepRank, inner),
    innerNorms,
    innerNormEps,
    outProj: linear(`${name}.out_proj`, inner, hidden, { bias }),
    innerSize: inner,
    stateSize: state,
    stepRank,
    activation: fn,
    float32State: options.float32State ?? false,
    doubledStepBias: options.doubledStepBias ?? false,
  };
}

interface StateSpaceDualSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
  readonly state: number;
  readonly groups: number;
  readonly kernel: number;
}

interface StateSpaceDualOptions {
  /** Bias of in_proj. Default: false. */
  readonly bias?: boolean;
  /** Default: as in_proj. */
  readonly outBias?: boolean;
  readonly conv?: ConvOptions;
  readonly norm?: GatedRmsNorm | undefined;
  readonly activation?: ActivationName;
  /** Default: 0 and infinity. */
  readonly stepLimits?: StateSpaceDual['stepLimits'];
  readonly inputScales?: StateSpaceDual['inputScales'];
}

/** No norm and SiLU by default. */
export function stateSpaceDual(
  name: string,
  sizes: StateSpaceDualSizes,
  options: StateSpaceDualOptions = {},
): StateSpaceDual {
  const { hidden, heads, headDim, state, groups, kernel } = sizes;
  const { bias = false, outBias = bias, activation: fn = 'silu' } = options;
  const { stepLimits = [0, Number.POSITIVE_INFINITY] } = options;
  const inner = heads * headDim;
  const channels = inner + 2 * groups * state;
  return {
    kind: 'stateSpaceDual',
    name,
    component: 'mamba',
    stepBias: param(`${name}.dt_bias`, [heads]),
    stateLog: param(`${name}.A_log`, [heads]),
    skip: param(`${name}.D`, [heads]),
    conv: causalConv(`${name}.conv1d`, channels, kernel, options.conv),
    inProj: linear(`${name}.in_proj`, hidden, inner + channels + heads, { bias }),
    norm: options.norm,
    outProj: linear(`${name}.out_proj`, inner, hidden, { bias: outBias }),
    heads,
    headDim,
    stateSize: state,
    groups,
    activation: fn,
    stepLimits,
    inputScales: options.inputScales,
  };
}

interface GatedDeltaParts
  extends Omit<GatedDelta, 'kind' | 'name' | 'component' | 'stepBias' | 'stateLog'> {
  /** Name of the layer's own tensors; default: the layer's. */
  readonly tensors?: string;
}

export function gatedDelta(name: string, parts: GatedDeltaParts): GatedDelta {
  const { tensors = name, convs, inputs, norm, outProj, ...rest } = parts;
  const { valueHeads } = rest;
  return {
    kind: 'gatedDelta',
    name,
    component: 'deltaNet',
    stepBias: param(`${tensors}.dt_bias`, [valueHeads]),
    stateLog: param(`${tensors}.A_log`, [valueHeads]),
    convs,
    inputs,
    norm,
    outProj,
    ...rest,
  };
}

/**
 * No biases by default.
 * @param kernel Tokens that the convolution sees, the token itself included.
 */
export function gatedConv(
  name: string,
  hidden: number,
  kernel: number,
  { bias = false, cached }: ConvOptions = {},
): GatedConv {
  return {
    kind: 'gatedConv',
    name,
    component: 'shortConvolution',
    conv: causalConv(`${name}.conv`, hidden, kernel, { bias, ...(cached && { cached }) }),
    inProj: linear(`${name}.in_proj`, hidden, 3 * hidden, { bias }),
    outProj: linear(`${name}.out_proj`, hidden, hidden, { bias }),
  };
}

interface HybridAttentionSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly spans: readonly HeadSpan[];
  readonly rotaryBase: number;
  /** Rows of the stored cosine and sine tables. */
  readonly rotaryPositions: number;
}

/** Attention with a key-value head per query head; only the output projection has a bias. */
export function hybridAttention(name: string, sizes: HybridAttentionSizes): Attention {
  const { hidden, heads, spans, rotaryBase, rotaryPositions } = sizes;
  const headDim = hidden / heads;
  const projection = (leaf: string) =>
    linear(`${name}.${leaf}`, hidden, hidden, { bias: leaf === 'out_proj' });
  const cache = (leaf: string) => buffer(`${name}.rope.${leaf}`, [1, 1, rotaryPositions, headDim]);
  const tables = [
    buffer(`${name}.rope.inv_freq`, [headDim / 2]),
    cache('cos_cached'),
    cache('sin_cached'),
  ];
  return attention(name, {
    inputs: [projection('q_proj'), projection('k_proj'), projection('v_proj')],
    out: projection('out_proj'),
    rotary: rotary(`${name}.rope`, { base: rotaryBase, headDim, tables }),
    heads,
    headDim,
    spans,
  });
}

/** Optional parts of an attention; by default, one key-value head per query head and nothing else. */
export interface AttentionParts {
  readonly inputs: Projections;
  readonly out: ProjectionLayer;
  readonly heads: number;
  readonly headDim: number;
  readonly keyValueHeads?: number;
  readonly queryNorm?: Attention['queryNorm'];
  readonly keyNorm?: Attention['keyNorm'];
  readonly valueNorm?: NormLayer | undefined;
  readonly valuesAreKeys?: boolean;
  readonly sharing?: Attention['sharing'] | undefined;
  readonly normsAfterRotation?: boolean;
  readonly clip?: number | undefined;
  readonly keeps?: Attention['keeps'];
  readonly rotary?: Rotary | undefined;
  readonly temperature?: Temperature | undefined;
  readonly alibi?: Alibi | undefined;
  readonly ownTypeSoftmax?: boolean;
  /** Default: 1 / sqrt(headDim). */
  readonly scale?: number;
  readonly softcap?: number | undefined;
  /** Window of all heads. */
  readonly window?: Window | undefined;
  /** Replaces `window` where heads differ. */
  readonly spans?: readonly HeadSpan[];
  readonly gate?: ActivationName | undefined;
  /** Name of the scores without values. */
  readonly sinks?: string | undefined;
}

export function attention(name: string, parts: AttentionParts): Attention {
  const { inputs, out, heads, headDim, window } = parts;
  return {
    kind: 'attention',
    name,
    component: 'attention',
    inputs,
    out,
    queryNorm: parts.queryNorm,
    keyNorm: parts.keyNorm,
    ...(parts.valueNorm && { valueNorm: parts.valueNorm }),
    ...(parts.valuesAreKeys && { valuesAreKeys: true }),
    ...(parts.sharing && { sharing: parts.sharing }),
    rotary: parts.rotary,
    alibi: parts.alibi,
    heads,
    keyValueHeads: parts.keyValueHeads ?? heads,
    headDim,
    scale: parts.scale ?? 1 / Math.sqrt(headDim),
    softcap: parts.softcap,
    spans: parts.spans ?? [{ heads, window }],
    ...(parts.temperature && { temperature: parts.temperature }),
    ...(parts.ownTypeSoftmax && { ownTypeSoftmax: true }),
    ...(parts.gate && { gate: parts.gate }),
    ...(parts.sinks && { sinks: param(parts.sinks, [heads]) }),
    ...(parts.normsAfterRotation && { normsAfterRotation: true }),
    ...(parts.clip !== undefined && { clip: parts.clip }),
    ...(parts.keeps && { keeps: parts.keeps }),
  };
}

export function latentAttention(
  name: string,
  parts: Omit<LatentAttention, 'kind' | 'name' | 'component'>,
): LatentAttention {
  const { query, keyValueDown, latentNorm, keyValueUp, out, rotary, ...sizes } = parts;
  const layers = { query, keyValueDown, latentNorm, keyValueUp, out, rotary };
  return { kind: 'latentAttention', name, component: 'attention', ...layers, ...sizes };
}

interface RotaryParts {
  readonly base: number;
  readonly headDim: number;
  /** Default: the whole head. */
  readonly rotatedDim?: number;
  readonly pairs?: Rotary['pairs'];
  readonly scaling?: RotaryScaling | undefined;
  readonly tables?: readonly Param[];
}

export function rotary(name: string, parts: RotaryParts): Rotary {
  const { base, headDim, rotatedDim = headDim, pairs = 'halves', scaling, tables = [] } = parts;
  return { kind: 'rotary', name, base, headDim, rotatedDim, pairs, scaling, tables };
}

/** @param slopes Slope of each head. */
export function alibi(name: string, slopes: Iterable<number>): Alibi {
  return { kind: 'alibi', name, slopes: [...slopes] };
}

export function slidingWindow(tokens: number): Window {
  return { rule: 'sliding', tokens };
}

export function chunkWindow(tokens: number): Window {
  return { rule: 'chunked', tokens };
}

/** weight [in, out], with a bias. */
export function transposedLinear(name: string, from: number, to: number): TransposedLinear {
  const [weight, bias] = [param(`${name}.weight`, [from, to]), param(`${name}.bias`, [to])];
  return { kind: 'transposedLinear', name, weight, bias };
}

type Adapter = AdaptedProjection['branches'][1];

/** @param layers Products into and out of the low rank. */
export function adapter(name: string, layers: Adapter['layers']): Adapter {
  return { kind: 'sequence', name, layers };
}

export function adapted(
  product: ProjectionLayer,
  own: Adapter,
  unread: readonly Adapter[] = [],
): AdaptedProjection {
  const name = `${product.name}.adapted`;
  return { kind: 'sum', name, branches: [product, own], ...(unread.length > 0 && { unread }) };
}

/** @param widths Columns of each value; their sum is the projection's output width. */
export function fusedProjection(
  projection: FusedProjection['projection'],
  widths: readonly number[],
  groups = 1,
): FusedProjection {
  return { kind: 'fusedProjection', name: `${projection.name}.parts`, projection, widths, groups };
}

/** `weight` [size]; `offset` is added to it. */
export function rmsNormLayer(name: string, size: number, eps: number, offset = 0): RmsNorm {
  const weight = param(`${name}.weight`, [size]);
  return { kind: 'rmsNorm', name, component: 'norm', weight, eps, size, offset };
}

/** RMSNorm of every `size` values, without a weight. */
export function plainRmsNorm(name: string, size: number, eps: number): RmsNorm {
  return { kind: 'rmsNorm', name, component: 'norm', weight: undefined, eps, size, offset: 0 };
}

interface GatedNormParts extends Pick<GatedRmsNorm, 'eps' | 'width' | 'gated'> {
  /** Default: 1. */
  readonly groups?: number;
  readonly activation?: ActivationName;
  /** Whether all groups have the same weight; by default each has its own. */
  readonly sharedWeight?: boolean;
}

/** The gate's activation is SiLU by default. */
export function gatedRmsNorm(name: string, parts: GatedNormParts): GatedRmsNorm {
  const { eps, width, gated, groups = 1, activation: fn = 'silu', sharedWeight = false } = parts;
  const weight = param(`${name}.weight`, [sharedWeight ? width / groups : width]);
  const sizes = { eps, width, groups, activation: fn, gated };
  return { kind: 'gatedRmsNorm', name, component: 'norm', weight, ...sizes };
}

export function activation(name: string, fn: ActivationName, composed = false): Activation {
  return { kind: 'activation', name, fn, ...(composed && { composed }) };
}

export function scale(name: string, factor: number): Scale {
  return { kind: 'scale', name, factor };
}

export function weightedScale(name: string, weight: Param): WeightedScale {
  return { kind: 'weightedScale', name, weight };
}

export function perLayerInputs(
  name: string,
  parts: Omit<PerLayerInputs, 'kind' | 'name' | 'component'>,
): PerLayerInputs {
  return { kind: 'perLayerInputs', name, component: 'perLayerInputs', ...parts };
}

interface PerLayerParts extends Pick<PerLayerBranch, 'activation' | 'inputs' | 'index'> {
  readonly hidden: number;
}

/** `per_layer_input_gate` and `per_layer_projection`. */
export function perLayerBranch(
  name: string,
  block: string,
  { hidden, inputs, ...rest }: PerLayerParts,
): PerLayerBranch {
  return {
    kind: 'perLayerBranch',
    name,
    component: 'perLayerInputs',
    gate: linear(`${block}.per_layer_input_gate`, hidden, inputs.width, { bias: false }),
    projection: linear(`${block}.per_layer_projection`, inputs.width, hidden, { bias: false }),
    inputs,
    ...rest,
  };
}

/** The ends of AltUp: from one value to its streams, and back. */
export function altUpEnd<Kind extends 'altUpSplit' | 'altUpMerge'>(
  kind: Kind,
  name: string,
  hidden: number,
  streams: number,
): { kind: Kind; name: string; component: 'altUp'; projections: Linear[] } {
  const projections = Array.from({ length: streams - 1 }, (_, index) =>
    linear(`${name}.${index}`, hidden, hidden, { bias: false }),
  );
  return { kind, name, component: 'altUp', projections };
}

interface AltUpParts extends Pick<AltUpBlock, 'active' | 'isScaled' | 'inner' | 'perLayer'> {
  readonly hidden: number;
  readonly streams: number;
  readonly eps: number;
}

/** The tensors of a block's `altup`. */
export function altUpBlock(name: string, parts: AltUpParts): AltUpBlock {
  const { hidden, streams, eps, active, isScaled, inner, perLayer } = parts;
  const own = `${name}.altup`;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${own}.${leaf}`, from, to, { bias: false, component: 'altUp' });
  return {
    kind: 'altUpBlock',
    name,
    outputScale: param(`${own}.correct_output_scale`, [hidden]),
    correction: product('correction_coefs', streams, streams),
    prediction: product('prediction_coefs', streams, streams ** 2),
    router: product('modality_router', hidden, streams),
    routerNorm: rmsNormLayer(`${own}.router_norm`, hidden, eps),
    isScaled,
    active,
    inner,
    perLayer,
  };
}

export function softcap(name: string, cap: number): Softcap {
  return { kind: 'softcap', name, cap };
}

export function learnedPositions(
  name: string,
  positions: number,
  hidden: number,
  offset = 0,
): LearnedPositions {
  const weight = param(`${name}.weight`, [offset + positions, hidden]);
  return { kind: 'learnedPositions', name, component: 'positions', weight, offset };
}

export function embeddingJoin(name: string, tokens: Embedding): EmbeddingJoin {
  return { kind: 'embeddingJoin', name, embedding: tokens };
}

export function sequence(name: string, layers: readonly Layer[], component?: Component): Sequence {
  return { kind: 'sequence', name, ...(component && { component }), layers };
}

export function sum(name: string, ...branches: readonly Layer[]): Sum {
  return { kind: 'sum', name, branches };
}

export function residual(name: string, ...branches: readonly Layer[]): Residual {
  return { kind: 'residual', name, branches };
}

interface GatedMlpParts {
  readonly inputs: Projections;
  readonly activation: ActivationName;
  readonly down: ProjectionLayer;
  readonly component?: Component;
  /** Factor of the gate before its activation. */
  readonly gateScale?: number;
  readonly cutoffDeviations?: number | undefined;
}

export function gatedMlp(name: string, parts: GatedMlpParts): GatedMlp {
  const { inputs, activation: fn, down, component = 'feedForward', gateScale = 1 } = parts;
  const { cutoffDeviations: deviations } = parts;
  return {
    kind: 'gatedMlp',
    name,
    component,
    inputs,
    activation: fn,
    down,
    ...(gateScale !== 1 && { gateScale }),
    ...(deviations !== undefined && { cutoffDeviations: deviations }),
  };
}

interface RouterParts {
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly scoring: Router['scoring'];
  readonly nearness?: number;
  /** Default: none. */
  readonly bias?: boolean;
  /** `e_score_correction_bias`, or the file's name for it. */
  readonly correction?: Param | undefined;
  readonly groups?: RouterGroups | undefined;
  readonly renormalised?: { readonly eps: number } | undefined;
  readonly scale?: number;
  readonly steps?: Router['steps'];
  /** Name of the factors of the experts' weights. */
  readonly expertScales?: string;
}

export function router(name: string, hidden: number, parts: RouterParts): Router {
  const { experts, expertsPerToken, scoring, correction, groups, renormalised } = parts;
  const weight = param(`${name}.weight`, [experts, hidden]);
  return {
    kind: 'router',
    name,
    component: 'router',
    ...(parts.steps && { steps: parts.steps }),
    weight,
    ...(parts.bias && { bias: param(`${name}.bias`, [experts]) }),
    correction,
    scoring,
    ...(parts.nearness !== undefined && { nearness: parts.nearness }),
    expertsPerToken,
    groups,
    renormalised,
    scale: parts.scale ?? 1,
    ...(parts.expertScales && { expertScales: param(parts.expertScales, [experts]) }),
  };
}

interface PackedSizes {
  readonly experts: number;
  readonly hidden: number;
  readonly inner: number;
}

interface PackedOptions {
  /** Names of the two tensors; transformers' have no `.weight`. */
  readonly leaves?: readonly [gateUp: string, down: string];
  /** Default: true. */
  readonly gated?: boolean;
  readonly isTransposed?: boolean;
}

export function packedExperts(
  name: string,
  { experts, hidden, inner }: PackedSizes,
  fn: ActivationName,
  {
    leaves = ['gate_up_proj', 'down_proj'],
    gated = true,
    isTransposed = false,
  }: PackedOptions = {},
): PackedExperts {
  const matrix = (leaf: string, to: number, from: number) =>
    param(`${name}.${leaf}`, [experts, ...(isTransposed ? [from, to] : [to, from])]);
  return {
    kind: 'packedExperts',
    name,
    component: 'experts',
    gateUp: matrix(leaves[0], (gated ? 2 : 1) * inner, hidden),
    down: matrix(leaves[1], hidden, inner),
    activation: fn,
    ...(isTransposed && { isTransposed }),
  };
}

/** `gate_up_proj`, `gate_up_proj_bias`, `down_proj` and `down_proj_bias`. */
export function clampedExperts(
  name: string,
  { experts, hidden, inner }: PackedSizes,
  fn: ActivationName,
  limit: number,
): ClampedExperts {
  return {
    kind: 'clampedExperts',
    name,
    component: 'experts',
    gateUp: param(`${name}.gate_up_proj`, [experts, hidden, 2 * inner]),
    gateUpBias: param(`${name}.gate_up_proj_bias`, [experts, 2 * inner]),
    down: param(`${name}.down_proj`, [experts, inner, hidden]),
    downBias: param(`${name}.down_proj_bias`, [experts, hidden]),
    activation: fn,
    limit,
  };
}

export function mixtureOfExperts(
  name: string,
  parts: Pick<MixtureOfExperts, 'router' | 'experts'> &
    Partial<
      Pick<MixtureOfExperts, 'weighsInputs' | 'expertNorm' | 'shared' | 'sharedGate' | 'latent'>
    >,
): MixtureOfExperts {
  return {
    kind: 'mixtureOfExperts',
    name,
    component: 'feedForward',
    router: parts.router,
    ...(parts.weighsInputs && { weighsInputs: true }),
    ...(parts.expertNorm && { expertNorm: parts.expertNorm }),
    experts: parts.experts,
    shared: parts.shared ?? [],
    sharedGate: parts.sharedGate,
    latent: parts.latent ?? [],
  };
}

export function alignment(name: string, hidden: number): Alignment {
  return {
    kind: 'alignment',
    name,
    component: 'alignment',
    net: geluNetwork(`${name}.net`, [2 * hidden, hidden, hidden]),
    residual: linear(`${name}.residual_proj`, 2 * hidden, hidden),
  };
}

export function gate(name: string, hidden: number, rank: number): Gate {
  return {
    kind: 'gate',
    name,
    component: 'gate',
    up: linear(`${name}.u`, hidden, rank, { bias: false }),
    down: linear(`${name}.d`, rank, hidden, { bias: false }),
  };
}

/** Parts of a model; parts that most models lack are optional. */
type ModelParts = Pick<LanguageModel, 'embedding' | 'blocks' | 'norm' | 'head' | 'positions'> &
  Partial<Pick<LanguageModel, 'embeddingSteps' | 'shared' | 'logitSteps' | 'hidden'>>;

/** @throws LimitError for too many tensor names, or more than 2^53 − 1 stored values. */
export function languageModel(parts: ModelParts): LanguageModel {
  const model: LanguageModel = {
    kind: 'languageModel',
    name: '',
    embedding: parts.embedding,
    embeddingSteps: parts.embeddingSteps ?? [],
    shared: parts.shared ?? [],
    blocks: parts.blocks,
    norm: parts.norm,
    head: parts.head,
    logitSteps: parts.logitSteps ?? [],
    positions: parts.positions,
    hidden: parts.hidden ?? parts.embedding.weight.shape[1] ?? 0,
  };
  checkNames('model', namesIn(model));
  checkElements(
    'model',
    sumOfTensors(model, ({ elements }) => elements),
  );
  return model;
}

/** Names of `count` blocks: `layers.0`, `layers.1`, … @throws LimitError for too many blocks. */
export function blockNames(prefix: string, count: number, countPath: string): string[] {
  checkLayers(countPath, count);
  return Array.from({ length: count }, (_, index) => `${prefix}.${index}`);
}

/**
 * Expands blocks in order. The size of the first block rules out an absurd number of blocks before they are built.
 * Growing blocks are checked on the way.
 */
export function stack<Block extends Layer>(
  names: readonly string[],
  countPath: string,
  make: (name: string, index: number) => Block,
): Block[] {
  const blocks: Block[] = [];
  let held = 0;
  for (const [index, name] of names.entries()) {
    const block = make(name, index);
    // A state dict names each tensor of a block.
    held += sumOfTensors(block, () => 1);
    if (index === 0) checkEach(countPath, names.length, held);
    checkNames(countPath, held);
    blocks.push(block);
  }
  return blocks;
}

const namesIn = (layer: Layer) => sumOfTensors(layer, ({ aliases }) => 1 + aliases.length);
