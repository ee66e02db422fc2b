/**
 * What a forward pass keeps for the backward pass, counted from the model's own operations as the
 * original writes them: every value that a gradient needs, once. Dropout masks, statistics of norms
 * and token ids are not counted. Attention scores and scan states are those of the plain
 * implementations; fused kernels, and selective recomputation, do without them.
 */
import {
  COMPONENTS,
  type Component,
  type LanguageModel,
  type Layer,
  type Linear,
} from '../architecture/layer.js';
import { type Figure, figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';

export interface ActivationSetting {
  readonly batch: number;
  readonly context: number;
  /** Bytes of an activation. */
  readonly bytesPerValue: number;
  readonly recompute: Recompute;
}

/** A part of the activations: a component's, or one of `OTHER_PARTS`. */
export type ActivationPart = Component | keyof typeof OTHER_PARTS;

export interface ActivationBudget {
  readonly parts: readonly { readonly part: ActivationPart; readonly bytes: Figure }[];
  readonly total: Figure;
}

const OTHER_PARTS = {
  logits: 'logits, for the loss',
  blockInputs: 'inputs of the blocks',
  oneBlock: 'the block being recomputed',
} as const satisfies Record<string, string>;

/** Values that a layer keeps for each token: a formula over its sizes, and what they are. */
interface Kept {
  readonly part: Component;
  readonly perToken: string;
  readonly inputs: Readonly<Record<string, number>>;
  readonly source: string;
}

/** Activations of a training step on one device, at their fullest. */
export function activationsOf(model: LanguageModel, setting: ActivationSetting): ActivationBudget {
  const { recompute } = setting;
  const blocks = model.blocks.map((block) => keptBy(block, recompute === 'selective'));
  const top = [model.norm, model.head].flatMap((layer) => keptBy(layer, false));
  const parts =
    recompute === 'full'
      ? [
          blockInputs(model, setting),
          { part: 'oneBlock' as const, bytes: largestBlock(blocks, setting) },
          ...bytesByPart(top, setting),
        ]
      : bytesByPart([...blocks.flat(), ...top], setting);
  const all = [...parts, logits(model, setting)];
  const named = Object.fromEntries(all.map(({ part, bytes }) => [part, bytes]));
  return { parts: all, total: sumFigure('activations', 'bytes', named, 'sum of the parts') };
}

/**
 * What a layer keeps. An input that several layers read is told by the layer that stands first: the
 * attention tells of the normed input, the gate of its own and the MLP's.
 */
function keptBy(layer: Layer, selective: boolean, part: Component = 'mlp'): Kept[] {
  const own = layer.component ?? part;
  const all = (layers: readonly Layer[]) =>
    layers.flatMap((child) => keptBy(child, selective, own));
  switch (layer.kind) {
    case 'languageModel':
      return all([...layer.blocks, layer.norm, layer.head]);
    case 'hybridBlock': {
      const { inputNorm, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = layer;
      const optional = alignment ? [alignment] : [];
      return all([inputNorm, mamba, attention, ...optional, gate, fusion, mlp, outputNorm]);
    }
    case 'mamba': {
      const { innerSize: inner, stateSize: state, stepRank: step_rank, inProj } = layer;
      const hidden = inputSize(inProj);
      const states = selective ? '' : ' + 3 * inner * state';
      return [
        {
          part: own,
          perToken: `hidden + 9 * inner + step_rank + 2 * state${states}`,
          inputs: { hidden, inner, state, step_rank },
          source:
            'input; x and residual before and after SiLU and convolution (5 inner), step before and after softplus (2), ' +
            'scan output and its gated product (2), B and C; the scan as a loop keeps decay, B·Δ and state of every step',
        },
      ];
    }
    case 'attention': {
      const { heads, keyValueHeads, headDim, q } = layer;
      const scores = selective ? '' : ' + heads * context';
      return [
        {
          part: own,
          perToken: `hidden + 2 * query_width + 2 * key_width${scores}`,
          inputs: {
            hidden: inputSize(q),
            query_width: heads * headDim,
            key_width: keyValueHeads * headDim,
            ...(!selective && { heads }),
          },
          source:
            'input; q, k, v; output of the heads; the softmax of every head over the whole square',
        },
      ];
    }
    case 'alignment':
      return [
        {
          part: own,
          perToken: 'both_branches',
          inputs: { both_branches: inputSize(layer.residual) },
          source: 'both branches, concatenated',
        },
        ...all([layer.net]),
      ];
    case 'gate':
      return [
        {
          part: own,
          perToken: '5 * hidden + rank',
          inputs: { hidden: inputSize(layer.up), rank: inputSize(layer.down) },
          source: 'its input, tanh, gate and 1 − gate, and both branches that they multiply',
        },
      ];
    case 'sequence':
      // What the first layer reads is told by whoever made it.
      return layer.layers.slice(1).flatMap((child, index) => {
        const before = layer.layers[index];
        const values =
          child.kind === 'linear'
            ? inputSize(child)
            : before?.kind === 'linear'
              ? outputSize(before)
              : 0;
        return [
          {
            part: own,
            perToken: 'inner',
            inputs: { inner: values },
            source: 'before and after GELU',
          },
        ];
      });
    case 'linear':
      return [
        {
          part: own,
          perToken: 'hidden',
          inputs: { hidden: inputSize(layer) },
          source: 'its input',
        },
      ];
    case 'layerNorm': {
      const [hidden = 0] = layer.weight.shape;
      return [
        { part: own, perToken: 'hidden', inputs: { hidden }, source: 'the inputs of the norms' },
      ];
    }
    case 'embedding':
    case 'gelu':
    case 'causalConv':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return [];
  }
}

const inputSize = ({ weight }: Linear) => weight.shape[1] ?? 0;
const outputSize = ({ weight }: Linear) => weight.shape[0] ?? 0;

/** The parts of `kept`, each with the bytes of all its layers; like layers are counted together. */
function bytesByPart(kept: readonly Kept[], setting: ActivationSetting) {
  const byPart = new Map<Component, Kept[]>();
  for (const each of kept) byPart.set(each.part, [...(byPart.get(each.part) ?? []), each]);
  return [...byPart].map(([part, members]) => ({
    part,
    bytes: bytesFigure(COMPONENTS[part], members, setting),
  }));
}

/** Bytes of everything in `members`: a term for each distinct kind of them, times how many there are. */
function bytesFigure(label: string, members: readonly Kept[], setting: ActivationSetting): Figure {
  const { batch, context, bytesPerValue: bytes } = setting;
  const distinct = new Map<string, { kept: Kept; layers: number }>();
  for (const kept of members) {
    const key = JSON.stringify([kept.perToken, kept.inputs]);
    const known = distinct.get(key);
    if (known) known.layers += 1;
    else distinct.set(key, { kept, layers: 1 });
  }
  const inputs: Record<string, number> = { batch, context, bytes };
  const terms = [...distinct.values()].map(({ kept, layers }, index) => {
    const suffix = distinct.size > 1 ? `_${index + 1}` : '';
    inputs[`layers${suffix}`] = layers;
    for (const [name, value] of Object.entries(kept.inputs)) inputs[`${name}${suffix}`] = value;
    const perToken = kept.perToken.replace(/[a-z_]+/g, (name) =>
      name === 'context' ? name : `${name}${suffix}`,
    );
    return `layers${suffix} * (${perToken})`;
  });
  const sources = [...new Set([...distinct.values()].map(({ kept }) => kept.source))];
  return figure({
    label,
    unit: 'bytes',
    formula: `batch * context * bytes * (${terms.join(' + ') || '0'})`,
    inputs,
    source: `per layer and token: ${sources.join('; ')}`,
  });
}

/** Full recomputation keeps what goes into each block, and nothing of its inside. */
function blockInputs(model: LanguageModel, setting: ActivationSetting) {
  const { batch, context, bytesPerValue: bytes } = setting;
  const [hidden = 0] = model.norm.weight.shape;
  return {
    part: 'blockInputs' as const,
    bytes: figure({
      label: OTHER_PARTS.blockInputs,
      unit: 'bytes',
      formula: 'batch * context * bytes * blocks * hidden',
      inputs: { batch, context, bytes, blocks: model.blocks.length, hidden },
      source: 'full recomputation keeps the input of every block (arXiv 2205.05198)',
    }),
  };
}

/** … and, while one block runs again, all of that one. */
function largestBlock(blocks: readonly Kept[][], setting: ActivationSetting): Figure {
  const figures = blocks.map((kept) => bytesFigure(OTHER_PARTS.oneBlock, kept, setting));
  return figures.reduce((a, b) => (b.value > a.value ? b : a));
}

/** The loss is taken over logits in float32, whatever the model computes in. */
function logits(model: LanguageModel, { batch, context }: ActivationSetting) {
  return {
    part: 'logits' as const,
    bytes: figure({
      label: OTHER_PARTS.logits,
      unit: 'bytes',
      formula: '4 * batch * context * vocabulary',
      inputs: { batch, context, vocabulary: outputSize(model.head) },
      source: 'log-softmax in float32',
    }),
  };
}
