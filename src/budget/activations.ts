/**
 * What a forward pass keeps for the backward pass, counted from the model's own operations as the
 * original writes them: every value that a gradient needs, once. What dropout adds (masks and their
 * products), statistics of norms and token ids are not counted, and keys that several query heads read are
 * kept once. Attention scores and scan states are those of the plain implementations; fused kernels, and
 * selective recomputation, do without them.
 */

import {
  type Attention,
  COMPONENTS,
  type Component,
  type HeadSpan,
  type LanguageModel,
  type LatentAttention,
  type Layer,
  type MixtureOfExperts,
} from '../architecture/layer.js';
import { scoreValues, windowKey } from '../architecture/masks.js';
import { stagesOf, walk } from '../architecture/walk.js';
import {
  expertInner,
  inputWidth,
  outputWidth,
  sharedInputWidth,
  widthAfter,
} from '../architecture/widths.js';
import { type Exact, exact, type Figure, figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';

/** Whether scores and scan states are kept, or computed again by kernels that never hold them whole. */
export type AttentionKernel = 'plain' | 'fused';

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
  const { blocks, embeddingSteps, norm, head, logitSteps } = model;
  const hidden = norm.weight.elements;
  const aroundBlocks = [
    ...keptInTurn(embeddingSteps, hidden, 'embedding'),
    ...keptInTurn([norm, head], hidden),
    ...keptInTurn(logitSteps, outputWidth(head), 'head'),
  ];
  const parts =
    setting.recompute === 'full'
      ? [
          { part: 'blockInputs' as const, bytes: blockInputs(model, setting) },
          { part: 'oneBlock' as const, bytes: largestBlock(model, setting) },
          ...partsOf(aroundBlocks, [], setting),
        ]
      : partsOf([...keptInTurn(blocks, hidden), ...aroundBlocks], blocks, setting);
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
  /** The first is what the layer is given, where it keeps that. */
  readonly vectors: readonly Vectors[];
  readonly source: string;
}

const vectors = (count: number, name: string, size: number): Vectors => ({ count, name, size });

/**
 * What a layer keeps besides scores and scan states. An input that several layers read is told by the
 * layer that stands first: the attention tells of the normed input, the gate of its own and the MLP's.
 * @param width Of what it is given.
 */
function keptBy(layer: Layer, width: number, part: Component = 'other'): Kept[] {
  const own = layer.component ?? part;
  const all = (layers: readonly Layer[]) => layers.flatMap((child) => keptBy(child, width, own));
  const kept = (source: string, ...values: Vectors[]): Kept[] => [
    { part: own, vectors: values, source },
  ];
  switch (layer.kind) {
    case 'languageModel':
      return keptInTurn(stagesOf(layer), layer.norm.weight.elements);
    case 'hybridBlock': {
      const { inputNorm, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = layer;
      const optional = alignment ? [alignment] : [];
      return [
        ...all([inputNorm, mamba, attention, ...optional, gate, fusion]),
        ...withoutInput(keptBy(mlp, width, own)),
        ...all([outputNorm]),
      ];
    }
    case 'mamba':
      return kept(
        'its input; x and residual before and after SiLU and convolution (5 inner), step before and after ' +
          'softplus (2), output of the scan and its gated product (2); low-rank step, B and C',
        vectors(1, 'hidden', inputWidth(layer.inProj)),
        vectors(9, 'inner', layer.innerSize),
        vectors(1, 'step_rank', layer.stepRank),
        vectors(2, 'state', layer.stateSize),
      );
    case 'attention': {
      const [queries, keys] = [layer.heads * layer.headDim, layer.keyValueHeads * layer.headDim];
      return [
        ...kept(
          'its input; q and the output of the heads; k and v',
          vectors(1, 'hidden', sharedInputWidth(layer.inputs)),
          vectors(2, 'query_width', queries),
          vectors(2, 'key_width', keys),
        ),
        ...(layer.queryNorm ? kept('q before its norm', vectors(1, 'query_width', queries)) : []),
        ...(layer.keyNorm ? kept('k before its norm', vectors(1, 'key_width', keys)) : []),
      ];
    }
    case 'latentAttention':
      return [...latentAttentionKept(layer, own), ...latentQueryKept(layer, own)];
    case 'gatedMlp': {
      const inner = inputWidth(layer.down);
      return kept(
        'its input; gate before and after the activation, what it multiplies, and the product (4 inner)',
        vectors(1, 'hidden', sharedInputWidth(layer.inputs)),
        vectors(4, 'inner', inner),
      );
    }
    case 'mixtureOfExperts':
      return mixtureKept(layer, own);
    case 'router':
      return kept(
        'its input; the scores of all experts; those of the chosen',
        vectors(1, 'hidden', layer.weight.shape[1] ?? 0),
        vectors(1, 'experts', layer.weight.shape[0] ?? 0),
        vectors(1, 'chosen', layer.expertsPerToken),
      );
    case 'alignment':
      return [
        ...kept('both branches, concatenated', vectors(1, 'both', inputWidth(layer.residual))),
        ...withoutInput(keptBy(layer.net, inputWidth(layer.residual), own)),
      ];
    case 'gate':
      return kept(
        'its input; gate and 1 − gate, and both branches that they multiply; tanh',
        vectors(5, 'hidden', inputWidth(layer.up)),
        vectors(1, 'rank', inputWidth(layer.down)),
      );
    case 'residual': {
      // Every branch is given the same.
      const [first, ...others] = layer.branches.map((branch) => keptBy(branch, width, own));
      return [...(first ?? []), ...others.flatMap(withoutInput)];
    }
    case 'sequence':
      return keptInTurn(layer.layers, width, own);
    case 'activation':
      return kept('what an activation is given', vectors(1, 'inner', width));
    case 'softcap':
      return kept('tanh', vectors(1, 'width', width));
    case 'fusedProjection':
      return all([layer.projection]);
    case 'linear':
    case 'transposedLinear':
      return kept('its input', vectors(1, 'input', inputWidth(layer)));
    case 'layerNorm':
    case 'rmsNorm':
      return kept('its input', vectors(1, 'hidden', layer.weight.elements));
    case 'embedding':
    case 'scale':
    case 'learnedPositions':
    case 'packedExperts':
    case 'alibi':
    case 'causalConv':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return [];
  }
}

/** Of layers that follow each other. */
function keptInTurn(layers: readonly Layer[], width: number, part?: Component): Kept[] {
  let before = width;
  return layers.flatMap((layer) => {
    const kept = keptBy(layer, before, part);
    before = widthAfter(layer, before);
    return kept;
  });
}

/** What is kept besides an input that is kept already. */
function withoutInput([first, ...others]: readonly Kept[]): Kept[] {
  const vectors = first?.vectors.slice(1) ?? [];
  return first && vectors.length > 0 ? [{ ...first, vectors }, ...others] : others;
}

function latentAttentionKept(layer: LatentAttention, part: Component): Kept[] {
  const { heads, latentRank, nopeDim, valueDim, rotary } = layer;
  const values = [
    vectors(1, 'hidden', inputWidth(layer.keyValueDown)),
    vectors(2, 'latent_rank', latentRank),
    vectors(2, 'query_width', heads * (nopeDim + rotary.headDim)),
    vectors(2, 'value_width', heads * valueDim),
  ];
  const source =
    'its input; the latent before and after its norm; q, and k with the shared part for every head; v and ' +
    'the output of the heads';
  return [{ part, vectors: values, source }];
}

/** Its first layer reads what the keys and values are made of too. */
function latentQueryKept({ query, keyValueDown }: LatentAttention, part: Component): Kept[] {
  return withoutInput(keptBy(query, inputWidth(keyValueDown), part));
}

/** A chosen expert is given a copy of its tokens, and its output is kept to be weighted. */
function mixtureKept(layer: MixtureOfExperts, part: Component): Kept[] {
  const { router, experts, shared, sharedGate } = layer;
  const hidden = router.weight.shape[1] ?? 0;
  const inside = shared.flatMap((each) => withoutInput(keptBy(each, hidden, part)));
  const gate: Kept = {
    part: sharedGate?.component ?? part,
    vectors: [vectors(1, 'hidden', hidden), vectors(1, 'gates', 1)],
    source: 'the shared output before its gate, and the gate',
  };
  const chosen = router.expertsPerToken;
  const routed: Kept = {
    part: expertPart(experts, part),
    vectors: [
      vectors(2 * chosen, 'hidden', hidden),
      vectors(4 * chosen, 'expert_inner', expertInner(layer)),
    ],
    source:
      'of each expert that a token goes to: its copy of the input and its output; gate before and after the ' +
      'activation, what it multiplies, and the product',
  };
  return [...keptBy(router, hidden, part), routed, ...inside, ...(sharedGate ? [gate] : [])];
}

const expertPart = (experts: MixtureOfExperts['experts'], part: Component) =>
  ('kind' in experts ? experts.component : experts[0]?.component) ?? part;

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
  const scores: PartBytes = { part: 'scores', bytes: scoresFigure(blocks, setting) };
  const states: PartBytes = { part: 'scanStates', bytes: scanFigure(blocks, setting) };
  return [...parts, ...[scores, states].filter(({ bytes }) => bytes.value > 0)];
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

/** The softmax of every head, over as many keys as the original multiplies; and a softcap's tanh before it. */
function scoresFigure(
  blocks: readonly Layer[],
  { batch, context, bytesPerValue: bytes }: ActivationSetting,
): Figure {
  const inputs: Record<string, Exact> = { batch, bytes };
  const squares = new Map<string, number>();
  const visits = blocks.flatMap(walk);
  for (const { layer } of visits) {
    if (layer.kind !== 'attention' && layer.kind !== 'latentAttention') continue;
    for (const span of spansOf(layer)) {
      const name = windowKey(span.window);
      squares.set(name, (squares.get(name) ?? 0) + span.heads * squaresPerHead(layer));
      inputs[`scores_${name}`] = exact(scoreValues(context, span.window));
    }
  }
  const terms = [...squares].map(([name, count]) => `${count} * scores_${name}`);
  const local = [...squares.keys()].some((name) => name.startsWith('window_'));
  const capped = visits.some(
    ({ layer }) => layer.kind === 'attention' && layer.softcap !== undefined,
  );
  return figure({
    label: `activations: ${OTHER_PARTS.scores}`,
    unit: 'bytes',
    formula: `batch * bytes * (${terms.join(' + ') || '0'})`,
    inputs,
    source: [
      'the softmax of each head',
      capped ? ', and the tanh of its softcap' : '',
      local
        ? ': the whole square up to 2048 tokens, block by block beyond it for local heads'
        : ': the whole square, masked or not',
    ].join(''),
  });
}

const squaresPerHead = (layer: Attention | LatentAttention) =>
  layer.kind === 'attention' && layer.softcap !== undefined ? 2 : 1;

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
    const inside = withoutInput(keptBy(block, model.norm.weight.elements));
    const key = JSON.stringify([inside, walk(block).flatMap(({ layer }) => scoresOf(layer))]);
    if (distinct.has(key)) continue;
    const parts = partsOf(inside, [block], setting);
    distinct.set(key, sumOf(`activations: ${OTHER_PARTS.oneBlock}`, parts));
  }
  return [...distinct.values()].reduce((a, b) => (b.value > a.value ? b : a));
}

const spansOf = (layer: Attention | LatentAttention): readonly HeadSpan[] =>
  layer.kind === 'attention' ? layer.spans : [{ heads: layer.heads, window: undefined }];

/** What decides how many scores are kept. */
const scoresOf = (layer: Layer) =>
  layer.kind === 'attention' || layer.kind === 'latentAttention'
    ? [spansOf(layer), squaresPerHead(layer)]
    : [];

/** The loss is taken over logits in float32, whatever the model computes in. */
function logits(model: LanguageModel, { batch, context }: ActivationSetting): Figure {
  return figure({
    label: `activations: ${OTHER_PARTS.logits}`,
    unit: 'bytes',
    formula: '4 * batch * context * vocabulary',
    inputs: { batch, context, vocabulary: outputWidth(model.head) },
    source: 'log-softmax in float32',
  });
}
