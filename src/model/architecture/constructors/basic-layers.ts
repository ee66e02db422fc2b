/** Constructors of layers, one per kind, with PyTorch's names for their tensors. */

import { sumOfTensors } from '../equal-blocks.js';
import type {
  Activation,
  ActivationName,
  AdaptedProjection,
  Alignment,
  Component,
  Embedding,
  EmbeddingJoin,
  FusedProjection,
  Gate,
  GatedRmsNorm,
  HeadNorms,
  LanguageModel,
  Layer,
  LayerNorm,
  LearnedPositions,
  Linear,
  NormedProjection,
  NormLayer,
  ProjectionLayer,
  Residual,
  RmsNorm,
  Scale,
  Sequence,
  Shift,
  SinusoidalPositions,
  SkippedBlock,
  Softcap,
  Sum,
  TransposedLinear,
  WeightedScale,
  Xielu,
} from '../layer.js';
import type { Param } from '../param.js';
import { buffer, checkEach, checkElements, checkLayers, checkNames, param } from '../param.js';

export function embedding(
  name: string,
  vocabulary: number,
  hidden: number,
  aliases: readonly string[] = [],
): Embedding {
  const weight = param(`${name}.weight`, [vocabulary, hidden], aliases);
  return { kind: 'embedding', name, component: 'embedding', weight };
}

export interface LinearOptions {
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

/** Head of a model that has none: a product of no outputs, which no file holds. */
export const noHead = (from: number): Linear =>
  linear('no_head', from, 0, { bias: false, component: 'head' });

/** Embedding of a model that reads no token ids: a table of no rows, which no file holds. */
export const noEmbedding = (hidden: number): Embedding => embedding('no_embedding', 0, hidden);

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
  places?: FusedProjection['places'],
): FusedProjection {
  const name = `${projection.name}.parts`;
  const own = { kind: 'fusedProjection', name, projection, widths, groups } as const;
  return places ? { ...own, places } : own;
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

/** A product behind an RMSNorm of its input. */
export const normedProjection = (norm: RmsNorm, product: Linear): NormedProjection =>
  sequence(`${product.name}.normed`, [norm, product]);

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

export function xielu(name: string): Xielu {
  return {
    kind: 'xielu',
    name,
    positive: param(`${name}.alpha_p`, [1]),
    negative: param(`${name}.alpha_n`, [1]),
    beta: buffer(`${name}.beta`, []),
    eps: buffer(`${name}.eps`, []),
  };
}

export function scale(name: string, factor: number): Scale {
  return { kind: 'scale', name, factor };
}

export function weightedScale(name: string, weight: Param): WeightedScale {
  return { kind: 'weightedScale', name, weight };
}

export function shift(name: string, bias: Param): Shift {
  return { kind: 'shift', name, bias };
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

export function sinusoidalPositions(
  name: string,
  parts: Omit<SinusoidalPositions, 'kind' | 'name' | 'component'>,
): SinusoidalPositions {
  return { kind: 'sinusoidalPositions', name, component: 'positions', ...parts };
}

export function embeddingJoin(name: string, tokens: Embedding): EmbeddingJoin {
  return { kind: 'embeddingJoin', name, embedding: tokens };
}

export function sequence<const Layers extends readonly Layer[]>(
  name: string,
  layers: Layers,
  component?: Component,
): Sequence & { readonly layers: Layers } {
  return { kind: 'sequence', name, ...(component && { component }), layers };
}

export function sum(name: string, ...branches: readonly Layer[]): Sum {
  return { kind: 'sum', name, branches };
}

/** @param gates Names of values that multiply its branches. */
export function skippedBlock(
  name: string,
  gates: readonly string[],
  unread: readonly Layer[],
): SkippedBlock {
  return {
    kind: 'skippedBlock',
    name,
    gates: gates.map((leaf) => param(`${name}.${leaf}`, [1])),
    unread,
  };
}

export function residual(name: string, ...branches: readonly Layer[]): Residual {
  return { kind: 'residual', name, branches };
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

// The root of a model and its blocks, within limits

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
  checkNames('model', tensorNameCount(model));
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

const tensorNameCount = (layer: Layer) => sumOfTensors(layer, ({ aliases }) => 1 + aliases.length);
