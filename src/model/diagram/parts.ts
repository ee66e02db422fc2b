/** Layers as drafts of nodes: which are boxes, and which have parts side by side or in turn. */

import { counted } from '../../base/text/words.js';
import { sumOf } from '../../base/values.js';
import type {
  AltUpBlock,
  Component,
  Cycles,
  HybridBlock,
  Layer,
  MixtureOfExperts,
} from '../architecture/layer.js';
import {
  computingExperts,
  countedTensors,
  expertLayers,
  expertTensors,
} from '../architecture/walk.js';
import { widthAfter } from '../operations/lower.js';
import { type Draft, draft, type Ownership, series } from './draft.js';
import { type Fold, folded } from './fold.js';
import { foldedBlocks } from './fold-blocks.js';
import { layerLabel } from './labels.js';

/** Surroundings of a layer. */
export interface Around {
  readonly ownership: Ownership;
  /** Component where the layer has none. */
  readonly component: Component;
  /** Input values per token. */
  readonly width: number;
  /** Whether the layer is drawn apart from the blocks that use it. */
  readonly isShared: boolean;
}

/** The draft of a layer and all below it. */
export function layerDraft(layer: Layer, outside: Around): Draft {
  const around = { ...outside, component: layer.component ?? outside.component };
  const { ownership, isShared } = around;
  if (!isShared && ownership.isElsewhere(layer)) {
    if (!ownership.isDefined(layer)) {
      ownership.shared.push(layerDraft(layer, { ...around, isShared: true }));
    }
    return boxOf(layer, around);
  }
  switch (layer.kind) {
    case 'sequence':
      return layer.layers.some(hasParts) || layer.layers.some(isNorm)
        ? seriesOf(layer.layers, around)
        : boxOf(layer, around);
    case 'residual':
    case 'sum': {
      const branches = layer.branches.map((branch) => layerDraft(branch, around));
      if (layer.kind === 'sum' && !layer.branches.some(hasParts)) return boxOf(layer, around);
      const unread = layer.kind === 'sum' ? (layer.unread ?? []) : [];
      return draft({
        kind: layer.kind === 'residual' ? 'residual' : 'parallel',
        label: '+',
        component: around.component,
        children: [...branches, ...unread.map((each) => unreadBox(each, around))],
        width: branches[0]?.width || around.width,
      });
    }
    case 'mixtureOfExperts':
      return mixture(layer, around);
    case 'hybridBlock':
      return hybridBlock(layer, around);
    case 'altUpBlock':
      return altUpBlock(layer, around);
    case 'cycles':
      return cycles(layer, around);
    default:
      return boxOf(layer, around);
  }
}

/** Layers in turn. */
export function seriesOf(layers: readonly Layer[], around: Around): Draft {
  let { width } = around;
  const parts = layers.map((layer) => {
    const part = layerDraft(layer, { ...around, width });
    ({ width } = part);
    return part;
  });
  return { ...series(around.component, parts), width };
}

const isNorm = ({ kind }: Layer): boolean => kind === 'rmsNorm' || kind === 'layerNorm';

/** Whether a layer is drawn as more than one box. */
function hasParts(layer: Layer): boolean {
  switch (layer.kind) {
    case 'residual':
    case 'mixtureOfExperts':
    case 'hybridBlock':
    case 'altUpBlock':
    case 'cycles':
      return true;
    case 'sum':
      return layer.branches.some(hasParts);
    case 'sequence':
      return layer.layers.some((each) => isNorm(each) || hasParts(each));
    case 'linear':
    case 'transposedLinear':
    case 'activation':
    case 'xielu':
    case 'scale':
    case 'shift':
    case 'weightedScale':
    case 'softcap':
      return false;
    default:
      return true;
  }
}

function boxOf(layer: Layer, around: Around, facts: Partial<Draft> = {}): Draft {
  const box = draft({
    kind: countedTensors(layer).length === 0 ? 'operation' : 'box',
    ...layerLabel(layer),
    component: around.component,
    layers: [layer],
    width: widthAfter(layer, around.width),
    ...facts,
  });
  around.ownership.claim(box, countedTensors(layer), around.isShared);
  return box;
}

/** Layers that the original stores and does not read. */
const unreadBox = (layer: Layer, around: Around): Draft =>
  boxOf(layer, around, { label: 'Unread weights', notes: ['stored, not computed'] });

/** Router, then the experts that it chooses beside those of every token. */
function mixture(layer: MixtureOfExperts, around: Around): Draft {
  const { router, shared, sharedGate, latent, expertNorm } = layer;
  const { component } = around;
  const box = (part: Layer, facts: Partial<Draft> = {}) =>
    boxOf(part, { ...around, component: part.component ?? component }, facts);
  const [into, outOf] = latent;
  const routerBox = box(router, { width: around.width });
  const routed = series(component, [
    ...[expertNorm, into].flatMap((each) => (each ? [box(each)] : [])),
    expertsBox(layer, around),
    ...(outOf ? [box(outOf)] : []),
  ]);
  const common = shared.map((each) =>
    box(each, { label: 'Shared expert', notes: labelTexts(each) }),
  );
  const ofEveryToken = sharedGate
    ? [series(component, [...common, box(sharedGate, { label: '× σ', width: around.width })])]
    : common;
  const branches = [routed, ...ofEveryToken];
  const joined =
    branches.length === 1
      ? routed.children
      : [
          draft({
            kind: 'parallel',
            label: '+',
            component,
            children: branches,
            width: around.width,
          }),
        ];
  return draft({
    kind: 'group',
    label: 'Mixture of experts',
    component,
    width: around.width,
    children: [routerBox, ...joined],
  });
}

const labelTexts = (layer: Layer): string[] => {
  const { label, notes } = layerLabel(layer);
  return [label, ...notes];
};

/** All experts as one box. One of them stands for all, and the FLOPs are those of the chosen ones. */
function expertsBox(layer: MixtureOfExperts, around: Around): Draft {
  const { experts, router, zeroExperts } = layer;
  const all = expertLayers(experts);
  const [first] = all;
  const box = draft({
    kind: 'box',
    label: counted(computingExperts(layer), 'expert'),
    notes: [
      `${router.expertsPerToken} per token`,
      ...(first ? labelTexts(first) : []),
      ...(zeroExperts ? [`${zeroExperts} more return their input`] : []),
    ],
    component: first?.component ?? around.component,
    layers: all.slice(0, Math.max(1, router.expertsPerToken)),
    width: around.width,
  });
  around.ownership.claim(box, expertTensors(layer), around.isShared);
  return box;
}

/** See `HybridBlock`: Mamba and attention side by side, then what joins them. */
function hybridBlock(layer: HybridBlock, around: Around): Draft {
  const { inputNorm, mamba, attention, srte, alignment, gate, fusion, mlp, outputNorm } = layer;
  const { component, width } = around;
  const part = (each: Layer) =>
    layerDraft(each, { ...around, component: each.component ?? component });
  const side = (label: string, ...children: Draft[]) =>
    draft({
      kind: 'parallel',
      label,
      component,
      children,
      width: label === 'concat' ? sumOf(children, (each) => each.width) : width,
    });
  const box = (each: Layer, label: string, notes: readonly string[]) =>
    boxOf(each, { ...around, component: each.component ?? component }, { label, notes, width });
  const srteBox = box(srte, '+ SRTE', layerLabel(srte).notes);
  return series(component, [
    draft({
      kind: 'residual',
      label: '+',
      component,
      width,
      children: [
        series(component, [
          part(inputNorm),
          side(
            alignment ? 'concat' : 'z = (m + a) / 2',
            box(attention, 'Attention', [...layerLabel(attention).notes, 'a']),
            series(component, [
              srteBox,
              box(mamba, layerLabel(mamba).label, [...layerLabel(mamba).notes, 'm']),
            ]),
          ),
          ...(alignment
            ? [box(alignment, 'Alignment', [...layerLabel(alignment).notes, 'z'])]
            : []),
          side(
            '+',
            series(component, [
              box(gate, 'Gate', [...layerLabel(gate).notes, 'g · m + (1 − g) · a']),
              box(fusion, 'Fusion', layerLabel(fusion).notes),
            ]),
            box(mlp, 'MLP of z', layerLabel(mlp).notes),
          ),
        ]),
      ],
    }),
    part(outputNorm),
  ]);
}

/** The streams before and after the block that computes on one of them. */
function altUpBlock(layer: AltUpBlock, around: Around): Draft {
  const { routerNorm, router, prediction, correction, outputScale, inner, perLayer } = layer;
  const { component, width } = around;
  const hidden = routerNorm.size;
  const streams = { component, width };
  const predict = draft({
    kind: 'box',
    label: 'AltUp predict',
    notes: [`${width / hidden} streams`],
    layers: [routerNorm, router, prediction],
    ...streams,
  });
  const correct = draft({ kind: 'box', label: 'AltUp correct', layers: [correction], ...streams });
  const claim = (box: Draft, ...layers: Layer[]) =>
    around.ownership.claim(box, layers.flatMap(countedTensors), around.isShared);
  claim(predict, routerNorm, router, prediction);
  const inside = layerDraft(inner, { ...around, width: hidden });
  claim(correct, correction);
  around.ownership.claim(correct, [{ tensor: outputScale, count: 1 }], around.isShared);
  // The input of the layer is computed from one stream and added to the others.
  const others = draft({
    kind: 'residual',
    label: '+',
    notes: ['to the other streams'],
    children: [{ ...layerDraft(perLayer, { ...around, width: hidden }), width }],
    ...streams,
  });
  return series(component, [predict, inside, correct, others]);
}

/** Stacks that are applied in turn: a group for each run of uses. */
function cycles(layer: Cycles, around: Around): Draft {
  const { stacks, initial } = layer;
  const { component, width, ownership } = around;
  const start = draft({ kind: 'box', label: 'Initial state', component, width });
  ownership.claim(start, [{ tensor: initial, count: 1 }], around.isShared);
  for (const stack of stacks) {
    if (!ownership.isDefined(stack)) ownership.shared.push(stackOf(stack, around));
  }
  const parts = stacks.map((stack) => {
    const label = stackName(stack);
    // A box stands for all uses of its stack, whose layers differ in their names.
    return boxOf(stack, around, {
      label,
      layers: stacks.filter((each) => stackName(each) === label),
    });
  });
  const uses = folded(
    parts,
    parts.map(({ label }) => label),
  );
  return series(component, [start, ...uses.map((use) => cycleGroup(use, component))]);
}

/** Last part of the name: `L_module`. */
const stackName = ({ name }: Layer) => name.split('.').at(-1) ?? name;

/** The blocks of a stack, which its uses refer to. */
function stackOf(stack: Layer, around: Around): Draft {
  const inside = { ...around, isShared: true };
  const layers = stack.kind === 'sequence' ? stack.layers : [stack];
  const blocks = layers.map((layer) => series(around.component, [layerDraft(layer, inside)]));
  return draft({
    kind: 'group',
    label: stackName(stack),
    component: around.component,
    width: around.width,
    children: foldedBlocks(blocks, around.ownership),
  });
}

function cycleGroup(use: Fold<Draft>, component: Component): Draft {
  const children = Array.isArray(use.of)
    ? (use.of as Fold<Draft>[]).map((each) => cycleGroup(each, component))
    : [use.of as Draft];
  return draft({
    kind: 'group',
    label: 'cycle',
    component,
    count: use.count,
    children,
    width: children.at(-1)?.width ?? 0,
  });
}
