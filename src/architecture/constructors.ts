/** Constructors of layers: one per kind; PyTorch's names for what they own. */
import type {
  Alignment,
  Attention,
  Component,
  Embedding,
  Gate,
  HeadSpan,
  LanguageModel,
  Layer,
  LayerNorm,
  Linear,
  Mamba,
  Sequence,
} from './layer.js';
import { checkElements, checkNames } from './limits.js';
import { buffer, type Param, param } from './param.js';
import { tensorsOf } from './walk.js';

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
