/**
 * The description of a model: a closed union of layer kinds, each owning named tensors. Every answer
 * is a fold over this tree, written as an exhaustive `switch` without `default`, so that a new kind
 * stops the compiler exactly where something is missing.
 *
 * Shapes in comments: B batch, T tokens, H hidden, V vocabulary.
 */
import { checkElements, checkNames } from './limits.js';
import { buffer, type Param, param } from './param.js';

/** What a layer is for; budgets are broken down by it. In the order in which reports list them. */
export const COMPONENTS = {
  embedding: 'embedding',
  srte: 'SRTE',
  mamba: 'Mamba',
  attention: 'attention',
  alignment: 'alignment',
  gate: 'gate',
  fusion: 'fusion',
  mlp: 'small MLP',
  norm: 'norms',
  head: 'head',
  /** What no layer above says. */
  other: 'other',
} as const satisfies Record<string, string>;

export type Component = keyof typeof COMPONENTS;

interface Node<Kind extends string> {
  readonly kind: Kind;
  /** Its path in the model, PyTorch's: `layers.0.mamba`. */
  readonly name: string;
  /** What it is for; when absent, what the layer that holds it is for. */
  readonly component?: Component;
}

/** Token ids [B, T] → rows of the weight [V, H]. */
export interface Embedding extends Node<'embedding'> {
  readonly weight: Param;
}

/** x [.., in] → x · weightᵀ + bias [.., out]; weight [out, in]. */
export interface Linear extends Node<'linear'> {
  readonly weight: Param;
  readonly bias: Param | undefined;
}

/** Normalises over the last dimension; weight and bias [H]. */
export interface LayerNorm extends Node<'layerNorm'> {
  readonly weight: Param;
  readonly bias: Param;
  readonly eps: number;
}

/** The exact GELU (by erf), elementwise. */
export type Gelu = Node<'gelu'>;

/** One layer after the other. */
export interface Sequence extends Node<'sequence'> {
  readonly layers: readonly Layer[];
}

/** Depthwise convolution over time, left-padded with zeros; weight [channels, 1, kernel], bias [channels]. */
export interface CausalConv extends Node<'causalConv'> {
  readonly weight: Param;
  readonly bias: Param;
}

/**
 * Selective state space (Mamba, arXiv 2312.00752). in_proj gives x and the residual, [B, T, inner] each;
 * x_proj(x) gives the step's low-rank form, B and C; the scan keeps a state [B, inner, state].
 */
export interface Mamba extends Node<'mamba'> {
  /** log(−A), [inner, state]. */
  readonly stateLog: Param;
  /** The skip connection D, [inner]. */
  readonly skip: Param;
  readonly inProj: Linear;
  readonly conv: CausalConv;
  readonly xProj: Linear;
  /** Its bias is added twice by the original: once in the projection, once before softplus. */
  readonly dtProj: Linear;
  readonly outProj: Linear;
  readonly innerSize: number;
  readonly stateSize: number;
  /** Rank of the step's projection. */
  readonly stepRank: number;
}

/** Rotary position embedding, rotating halves; its tables are buffers. */
export interface Rotary extends Node<'rotary'> {
  readonly base: number;
  readonly headDim: number;
  readonly tables: readonly Param[];
}

/**
 * How far back some of the heads see. With a window w, position i sees the w // 2 keys before it and
 * itself; without one, all that came before.
 */
export interface HeadSpan {
  readonly heads: number;
  readonly window: number | undefined;
}

/** Causal softmax attention, scores / sqrt(headDim). Heads in the order of `spans`. */
export interface Attention extends Node<'attention'> {
  readonly q: Linear;
  readonly k: Linear;
  readonly v: Linear;
  readonly out: Linear;
  readonly rotary: Rotary;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly spans: readonly HeadSpan[];
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

/** Two branches [B, T, H] to one: c = concat(mamba, attention); net(c) + residual(c). */
export interface Alignment extends Node<'alignment'> {
  readonly net: Sequence;
  readonly residual: Linear;
}

/** How much of the Mamba branch to take, per value: sigmoid(down(tanh(up(z)))). */
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

/** Token ids [B, T] → logits [B, T, V]: embedding, blocks, norm, head. */
export interface LanguageModel extends Node<'languageModel'> {
  readonly embedding: Embedding;
  /** Layers that several blocks hold; stored, and named, once and here. */
  readonly shared: readonly Layer[];
  readonly blocks: readonly Layer[];
  readonly norm: LayerNorm;
  readonly head: Linear;
  /** The longest input, in tokens. */
  readonly positions: number;
}

export type Layer =
  | LanguageModel
  | HybridBlock
  | Sequence
  | Embedding
  | Linear
  | LayerNorm
  | Gelu
  | CausalConv
  | Mamba
  | Rotary
  | Attention
  | Srte
  | Alignment
  | Gate;

// ── Constructors: one per kind; PyTorch's names for what they own ────────────────────────────────

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
  /** Paths of further places where a state dict names this same layer. */
  readonly aliases?: readonly string[];
}

/** `bias` is true unless said otherwise, as in PyTorch. */
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

/** A head that reads the embedding's own weight when tied, or has a weight of its own. */
export function head(name: string, from: number, to: number, tiedTo?: Embedding): Linear {
  return tiedTo
    ? { kind: 'linear', name, component: 'head', weight: tiedTo.weight, bias: undefined }
    : linear(name, from, to, { bias: false, component: 'head' });
}

export function layerNorm(name: string, size: number, eps: number): LayerNorm {
  const [weight, bias] = [param(`${name}.weight`, [size]), param(`${name}.bias`, [size])];
  return { kind: 'layerNorm', name, component: 'norm', weight, bias, eps };
}

/** linear(0), GELU (1), linear(2): numbered as PyTorch's Sequential numbers them. */
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
      { kind: 'gelu', name: `${name}.1` },
      linear(`${name}.2`, inner, to),
    ],
  };
}

interface MambaSizes {
  readonly hidden: number;
  readonly inner: number;
  readonly state: number;
  readonly kernel: number;
  readonly stepRank: number;
}

export function mamba(name: string, sizes: MambaSizes): Mamba {
  const { hidden, inner, state, kernel, stepRank } = sizes;
  return {
    kind: 'mamba',
    name,
    component: 'mamba',
    stateLog: param(`${name}.A_log`, [inner, state]),
    skip: param(`${name}.D`, [inner]),
    inProj: linear(`${name}.in_proj`, hidden, 2 * inner),
    conv: {
      kind: 'causalConv',
      name: `${name}.conv1d`,
      weight: param(`${name}.conv1d.weight`, [inner, 1, kernel]),
      bias: param(`${name}.conv1d.bias`, [inner]),
    },
    xProj: linear(`${name}.x_proj`, inner, stepRank + 2 * state, { bias: false }),
    dtProj: linear(`${name}.dt_proj`, stepRank, inner),
    outProj: linear(`${name}.out_proj`, inner, hidden),
    innerSize: inner,
    stateSize: state,
    stepRank,
  };
}

interface AttentionSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly spans: readonly HeadSpan[];
  readonly rotaryBase: number;
  /** Rows of the cosine and sine tables that a state dict holds. */
  readonly rotaryPositions: number;
}

/** Every query head has its own key and value head; projections without bias, output with. */
export function attention(name: string, sizes: AttentionSizes): Attention {
  const { hidden, heads, spans, rotaryBase, rotaryPositions } = sizes;
  const headDim = hidden / heads;
  const projection = (leaf: string) =>
    linear(`${name}.${leaf}`, hidden, hidden, { bias: leaf === 'out_proj' });
  const cache = (leaf: string) => buffer(`${name}.rope.${leaf}`, [1, 1, rotaryPositions, headDim]);
  return {
    kind: 'attention',
    name,
    component: 'attention',
    q: projection('q_proj'),
    k: projection('k_proj'),
    v: projection('v_proj'),
    out: projection('out_proj'),
    rotary: {
      kind: 'rotary',
      name: `${name}.rope`,
      base: rotaryBase,
      headDim,
      tables: [
        buffer(`${name}.rope.inv_freq`, [headDim / 2]),
        cache('cos_cached'),
        cache('sin_cached'),
      ],
    },
    heads,
    keyValueHeads: heads,
    headDim,
    spans,
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

/** @throws LimitError when it has too many tensor names, or more than 2^53 − 1 stored values. */
export function languageModel(parts: Omit<LanguageModel, 'kind' | 'name'>): LanguageModel {
  const model: LanguageModel = { kind: 'languageModel', name: '', ...parts };
  const tensors = tensorsOf(model);
  checkNames('model', namesIn(tensors));
  checkElements('model', elementsIn(tensors));
  return model;
}

/** `layers.0`, `layers.1`, …: the names of `count` blocks, refused when they alone are too many. */
export function blockNames(prefix: string, count: number, countPath: string): string[] {
  checkNames(countPath, count);
  return Array.from({ length: count }, (_, index) => `${prefix}.${index}`);
}

/**
 * Expands blocks one by one, in order. The first tells how much to expect, so that an absurd number of
 * blocks is refused before they are built; blocks that grow are stopped on the way.
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
    // Each tensor that a block holds stands in the state dict under a name of the block.
    held += tensorsOf(block).length;
    checkNames(countPath, index === 0 ? held * names.length : held);
    blocks.push(block);
  }
  return blocks;
}

const namesIn = (tensors: readonly Param[]) =>
  tensors.reduce((total, { aliases }) => total + 1 + aliases.length, 0);

const elementsIn = (tensors: readonly Param[]) =>
  tensors.reduce((total, { elements }) => total + elements, 0);

// ── Walking ──────────────────────────────────────────────────────────────────────────────────────

/** The layers that a layer holds, in the order in which PyTorch registers them. */
function childrenOf(layer: Layer): readonly Layer[] {
  switch (layer.kind) {
    case 'languageModel':
      return [layer.embedding, ...layer.shared, ...layer.blocks, layer.norm, layer.head];
    case 'hybridBlock':
      return [
        layer.inputNorm,
        layer.mamba,
        layer.attention,
        layer.srte,
        ...(layer.alignment ? [layer.alignment] : []),
        layer.gate,
        layer.fusion,
        layer.mlp,
        layer.outputNorm,
      ];
    case 'sequence':
      return layer.layers;
    case 'mamba':
      return [layer.inProj, layer.conv, layer.xProj, layer.dtProj, layer.outProj];
    case 'attention':
      return [layer.q, layer.k, layer.v, layer.out, layer.rotary];
    case 'srteLowRank':
      return [layer.projection];
    case 'alignment':
      return [layer.net, layer.residual];
    case 'gate':
      return [layer.up, layer.down];
    case 'embedding':
    case 'linear':
    case 'layerNorm':
    case 'gelu':
    case 'causalConv':
    case 'rotary':
    case 'srteTable':
    case 'srteSincos':
      return [];
  }
}

/** The tensors that a layer itself holds, without those of its children. */
function ownTensors(layer: Layer): readonly Param[] {
  switch (layer.kind) {
    case 'embedding':
      return [layer.weight];
    case 'linear':
      return layer.bias ? [layer.weight, layer.bias] : [layer.weight];
    case 'layerNorm':
    case 'causalConv':
      return [layer.weight, layer.bias];
    case 'mamba':
      return [layer.stateLog, layer.skip];
    case 'rotary':
      return layer.tables;
    case 'srteTable':
      return [layer.table];
    case 'srteLowRank':
      return [layer.lowRank];
    case 'srteSincos':
      return [layer.inverseFrequencies];
    case 'languageModel':
    case 'hybridBlock':
    case 'sequence':
    case 'attention':
    case 'alignment':
    case 'gate':
    case 'gelu':
      return [];
  }
}

/** A layer met on a walk. */
export interface Visit {
  readonly layer: Layer;
  /** What it is for: its own, or that of the nearest layer above which says so. */
  readonly component: Component;
}

/** Every layer below and with `layer`, parents before children; a shared layer at each place that holds it. */
export function walk(layer: Layer): Visit[] {
  const visits: Visit[] = [];
  collect(layer, 'other', visits);
  return visits;
}

function collect(layer: Layer, inherited: Component, visits: Visit[]): void {
  const component = layer.component ?? inherited;
  visits.push({ layer, component });
  for (const child of childrenOf(layer)) collect(child, component, visits);
}

/** A stored tensor and what it is for. */
export interface OwnedTensor {
  readonly tensor: Param;
  /** The component of the first layer that holds it: a tied head counts as embedding. */
  readonly component: Component;
}

/** Every stored tensor below `layer` once, by identity, in the canonical order. */
export function ownedTensors(layer: Layer): OwnedTensor[] {
  const owned = new Map<Param, OwnedTensor>();
  for (const visit of walk(layer)) {
    for (const tensor of ownTensors(visit.layer)) {
      if (!owned.has(tensor)) owned.set(tensor, { tensor, component: visit.component });
    }
  }
  return [...owned.values()];
}

/** `ownedTensors` without their components. */
export function tensorsOf(layer: Layer): Param[] {
  return ownedTensors(layer).map(({ tensor }) => tensor);
}

/** One entry of a state dict. */
export interface StateDictEntry {
  /** The tensor's own name, or the alias under which it stands here. */
  readonly name: string;
  readonly tensor: Param;
}

/**
 * The state dict of a model as PyTorch writes it, aliases and buffers included: an entry for each place
 * that holds a tensor, in the order of the places. The first has the tensor's name, the others its
 * aliases in turn.
 */
export function stateDictOf(layer: Layer): StateDictEntry[] {
  const met = new Map<Param, number>();
  const entries: StateDictEntry[] = [];
  for (const visit of walk(layer)) {
    for (const tensor of ownTensors(visit.layer)) {
      const times = met.get(tensor) ?? 0;
      met.set(tensor, times + 1);
      entries.push({
        name: times === 0 ? tensor.name : (tensor.aliases[times - 1] ?? tensor.name),
        tensor,
      });
    }
  }
  return entries;
}
