/**
 * What a forward pass keeps for the backward pass, counted from the model's own operations as the
 * original writes them: every value that a gradient needs, once. What dropout adds (masks and their
 * products), statistics of norms and token ids are not counted. Attention scores and scan states are
 * those of the plain implementations; fused kernels, and selective recomputation, do without them.
 */

import type { LanguageModel } from '../architecture/layer.js';
import {
  COMPONENTS,
  type Component,
  type Layer,
  type Linear,
  type Projections,
} from '../architecture/layer.js';
import { scoreValues, windowKey } from '../architecture/masks.js';
import { productsOf, walk } from '../architecture/walk.js';
import { type Exact, exact, type Figure, figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';

export interface ActivationSetting {
  readonly batch: number;
  readonly context: number;
  /** Bytes of an activation. */
  readonly bytesPerValue: number;
  readonly recompute: Recompute;
}

/** Parts that are not simply those of a component. */
const OTHER_PARTS = {
  scores: 'attention scores',
  scanStates: 'scan states',
  logits: 'logits, for the loss',
  blockInputs: 'inputs of the blocks',
  oneBlock: 'the block being recomputed',
} as const satisfies Record<string, string>;

/** A part of the activations: a component's, or one of `OTHER_PARTS`. */
export type ActivationPart = Component | keyof typeof OTHER_PARTS;

interface PartBytes {
  readonly part: ActivationPart;
  readonly bytes: Figure;
}

export interface ActivationBudget {
  readonly parts: readonly PartBytes[];
  readonly total: Figure;
}

/** Activations of a training step on one device, at their fullest. */
export function activationsOf(model: LanguageModel, setting: ActivationSetting): ActivationBudget {
  const top = [model.norm, model.head].flatMap((layer) => keptBy(layer));
  const parts =
    setting.recompute === 'full'
      ? [
          { part: 'blockInputs' as const, bytes: blockInputs(model, setting) },
          { part: 'oneBlock' as const, bytes: largestBlock(model, setting) },
          ...partsOf(top, [], setting),
        ]
      : partsOf([...model.blocks.flatMap((block) => keptBy(block)), ...top], model.blocks, setting);
  const all = [...parts, { part: 'logits' as const, bytes: logits(model, setting) }];
  return { parts: all, total: sumOf('activations', all) };
}

const sumOf = (label: string, parts: readonly PartBytes[]) =>
  sumFigure(
    label,
    'bytes',
    Object.fromEntries(parts.map(({ part, bytes }) => [part, bytes])),
    'sum of the parts',
  );

/** `count` vectors of `size` values for each token. */
interface Vectors {
  readonly count: number;
  /** What the size is called in formulas: `hidden`. */
  readonly name: string;
  readonly size: number;
}

/** What a layer keeps for each token. */
interface Kept {
  readonly part: Component;
  readonly vectors: readonly Vectors[];
  readonly source: string;
}

const vectors = (count: number, name: string, size: number): Vectors => ({ count, name, size });

/**
 * What a layer keeps besides scores and scan states. An input that several layers read is told by the
 * layer that stands first: the attention tells of the normed input, the gate of its own and the MLP's.
 */
function keptBy(layer: Layer, part: Component = 'other'): Kept[] {
  const own = layer.component ?? part;
  const all = (layers: readonly Layer[]) => layers.flatMap((child) => keptBy(child, own));
  const kept = (source: string, ...values: Vectors[]): Kept[] => [
    { part: own, vectors: values, source },
  ];
  switch (layer.kind) {
    case 'languageModel':
      return all([...layer.blocks, layer.norm, layer.head]);
    case 'hybridBlock': {
      const { inputNorm, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = layer;
      const optional = alignment ? [alignment] : [];
      return all([inputNorm, mamba, attention, ...optional, gate, fusion, mlp, outputNorm]);
    }
    case 'mamba':
      return kept(
        'its input; x and residual before and after SiLU and convolution (5 inner), step before and after ' +
          'softplus (2), output of the scan and its gated product (2); low-rank step, B and C',
        vectors(1, 'hidden', inputSize(layer.inProj)),
        vectors(9, 'inner', layer.innerSize),
        vectors(1, 'step_rank', layer.stepRank),
        vectors(2, 'state', layer.stateSize),
      );
    case 'attention':
      return kept(
        'its input; q and the output of the heads; k and v',
        vectors(1, 'hidden', firstInputSize(layer.inputs)),
        vectors(2, 'query_width', layer.heads * layer.headDim),
        vectors(2, 'key_width', layer.keyValueHeads * layer.headDim),
      );
    case 'alignment':
      return [
        ...kept('both branches, concatenated', vectors(1, 'both', inputSize(layer.residual))),
        ...all([layer.net]),
      ];
    case 'gate':
      return kept(
        'its input; gate and 1 − gate, and both branches that they multiply; tanh',
        vectors(5, 'hidden', inputSize(layer.up)),
        vectors(1, 'rank', inputSize(layer.down)),
      );
    case 'sequence':
      // What the first layer reads is told by whoever made it.
      return layer.layers.slice(1).flatMap((child, index) => {
        const before = layer.layers[index];
        if (child.kind === 'linear') return all([child]);
        const size = before?.kind === 'linear' ? outputSize(before) : 0;
        return kept('before GELU', vectors(1, 'inner', size));
      });
    case 'linear':
      return kept('its input', vectors(1, 'input', inputSize(layer)));
    case 'layerNorm':
      return kept('its input', vectors(1, 'hidden', layer.weight.elements));
    case 'embedding':
    case 'activation':
    case 'transposedLinear':
    case 'fusedProjection':
    case 'rmsNorm':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'residual':
    case 'gatedMlp':
    case 'router':
    case 'packedExperts':
    case 'mixtureOfExperts':
    case 'alibi':
    case 'latentAttention':
    case 'causalConv':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return [];
  }
}

const inputSize = ({ weight }: Linear) => weight.shape[1] ?? 0;
const firstInputSize = (inputs: Projections) => {
  const [first] = productsOf(inputs);
  return first?.kind === 'linear' ? inputSize(first) : (first?.weight.shape[0] ?? 0);
};
const outputSize = ({ weight }: Linear) => weight.shape[0] ?? 0;

/** The parts of `kept`, and the scores and scan states of `blocks` unless these are recomputed. */
function partsOf(
  kept: readonly Kept[],
  blocks: readonly Layer[],
  setting: ActivationSetting,
): PartBytes[] {
  const byPart = new Map<Component, Kept[]>();
  for (const each of kept) byPart.set(each.part, [...(byPart.get(each.part) ?? []), each]);
  const parts: PartBytes[] = [...byPart].map(([part, members]) => ({
    part,
    bytes: vectorsFigure(`activations: ${COMPONENTS[part]}`, members, setting),
  }));
  if (setting.recompute === 'selective' || blocks.length === 0) return parts;
  return [
    ...parts,
    { part: 'scores', bytes: scoresFigure(blocks, setting) },
    { part: 'scanStates', bytes: scanFigure(blocks, setting) },
  ];
}

/** Vectors of the same name and size are one input, times how many there are in all layers. */
function vectorsFigure(
  label: string,
  members: readonly Kept[],
  { batch, context, bytesPerValue: bytes }: ActivationSetting,
): Figure {
  const inputs: Record<string, Exact> = { batch, context, bytes };
  const counts = new Map<string, number>();
  for (const { name, size, count } of members.flatMap((member) => member.vectors)) {
    let input = name;
    for (let number = 2; (inputs[input] ?? size) !== size; number++) input = `${name}_${number}`;
    inputs[input] = size;
    counts.set(input, (counts.get(input) ?? 0) + count);
  }
  const terms = [...counts].map(([input, count]) => `${count} * ${input}`);
  const sources = [...new Set(members.map(({ source }) => source))];
  return figure({
    label,
    unit: 'bytes',
    formula: `batch * context * bytes * (${terms.join(' + ') || '0'})`,
    inputs,
    source: `per token, over all layers: ${sources.join('; ')}`,
  });
}

/** The softmax of every head, over as many keys as the original multiplies. */
function scoresFigure(
  blocks: readonly Layer[],
  { batch, context, bytesPerValue: bytes }: ActivationSetting,
): Figure {
  const inputs: Record<string, Exact> = { batch, bytes };
  const heads = new Map<string, number>();
  for (const { layer } of blocks.flatMap(walk)) {
    if (layer.kind !== 'attention') continue;
    for (const span of layer.spans) {
      const name = windowKey(span.window);
      heads.set(name, (heads.get(name) ?? 0) + span.heads);
      inputs[`scores_${name}`] = exact(scoreValues(context, span.window));
    }
  }
  const terms = [...heads].map(([name, count]) => `${count} * scores_${name}`);
  return figure({
    label: `activations: ${OTHER_PARTS.scores}`,
    unit: 'bytes',
    formula: `batch * bytes * (${terms.join(' + ') || '0'})`,
    inputs,
    source:
      'the softmax of each head: the whole square up to 2048 tokens, block by block beyond it for local heads',
  });
}

/** The scan as a loop keeps decay, B·Δ and state of every step. */
function scanFigure(
  blocks: readonly Layer[],
  { batch, context, bytesPerValue: bytes }: ActivationSetting,
): Figure {
  const state_values = blocks
    .flatMap((block) => walk(block))
    .reduce(
      (total, { layer }) =>
        layer.kind === 'mamba' ? total + layer.innerSize * layer.stateSize : total,
      0,
    );
  return figure({
    label: `activations: ${OTHER_PARTS.scanStates}`,
    unit: 'bytes',
    formula: '3 * batch * context * bytes * state_values',
    inputs: { batch, context, bytes, state_values },
    source: 'decay, B·Δ and state of every step, as a loop over time keeps them',
  });
}

/** Full recomputation keeps what goes into each block, and nothing of its inside. */
function blockInputs(
  model: LanguageModel,
  { batch, context, bytesPerValue: bytes }: ActivationSetting,
): Figure {
  return figure({
    label: `activations: ${OTHER_PARTS.blockInputs}`,
    unit: 'bytes',
    formula: 'batch * context * bytes * blocks * hidden',
    inputs: {
      batch,
      context,
      bytes,
      blocks: model.blocks.length,
      hidden: model.norm.weight.elements,
    },
    source: 'full recomputation keeps the input of every block (arXiv 2205.05198)',
  });
}

/** … and, while one block runs again, all of that one but its input, which is kept already. */
function largestBlock(model: LanguageModel, setting: ActivationSetting): Figure {
  // Blocks are mostly alike, and each kind needs to be counted once only.
  const distinct = new Map<string, Figure>();
  for (const block of model.blocks) {
    const [, ...inside] = keptBy(block);
    const key = JSON.stringify([inside, walk(block).flatMap(({ layer }) => spansOf(layer))]);
    if (distinct.has(key)) continue;
    const parts = partsOf(inside, [block], setting);
    distinct.set(key, sumOf(`activations: ${OTHER_PARTS.oneBlock}`, parts));
  }
  return [...distinct.values()].reduce((a, b) => (b.value > a.value ? b : a));
}

const spansOf = (layer: Layer) => (layer.kind === 'attention' ? layer.spans : []);

/** The loss is taken over logits in float32, whatever the model computes in. */
function logits(model: LanguageModel, { batch, context }: ActivationSetting): Figure {
  return figure({
    label: `activations: ${OTHER_PARTS.logits}`,
    unit: 'bytes',
    formula: '4 * batch * context * vocabulary',
    inputs: { batch, context, vocabulary: outputSize(model.head) },
    source: 'log-softmax in float32',
  });
}
