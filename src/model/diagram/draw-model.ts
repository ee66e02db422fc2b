/** A model as a diagram. */
import { sumOf } from '../../base/values.js';
import type { LanguageModel, Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { sharedTensors, tensorsOf, walkCounted } from '../architecture/walk.js';
import { exact } from '../budget/figure.js';
import {
  type ForwardSetting,
  forwardFlopsOf,
  type Operation,
  operationsIn,
} from '../budget/flops.js';
import { layerPattern } from '../budget/parameters.js';
import type { Diagram, DiagramLink, DiagramNode } from './diagram.js';
import { type Draft, draftsFrom, Ownership, series } from './draft.js';
import { foldedBlocks, singleBlocks } from './fold-blocks.js';
import { type Around, layerDraft, seriesOf } from './parts.js';

export interface DrawOptions {
  /** Whether equal blocks are drawn once; default true. */
  readonly isFolded?: boolean;
  /** Element type of a tensor; undefined where it is unknown. */
  readonly typeOf?: ((tensor: Param) => string | undefined) | undefined;
}

/** Draws a model. FLOPs are those of one forward pass. */
export function drawModel(
  model: LanguageModel,
  setting: ForwardSetting,
  { isFolded = true, typeOf }: DrawOptions = {},
): Diagram {
  const types = typesOf(model, typeOf, isFolded);
  const ownership = new Ownership(sharedTensors(model.blocks), types);
  const around: Around = { ownership, component: 'other', width: model.hidden, isShared: false };
  const first = [model.embedding, ...model.embeddingSteps];
  // The first boxes have their tensors, also those that blocks use again.
  const before = seriesOf(first, { ...around, isShared: true });
  countFlops(before, first, setting);
  for (const layer of model.shared) {
    if (ownership.isDefined(layer)) continue;
    ownership.shared.push(layerDraft(layer, { ...around, isShared: true }));
  }
  const width = before.width || model.hidden;
  const blocks = model.blocks.map((block) => {
    const part = layerDraft(block, { ...around, width });
    countFlops(part, [block], setting);
    return part.kind === 'series' ? part : series(part.component, [part]);
  });
  const folds = isFolded ? foldedBlocks(blocks, ownership) : singleBlocks(blocks);
  const after = seriesOf([model.norm], { ...around, width });
  countFlops(after, [model.norm], setting);
  const end = seriesOf([model.head, ...model.logitSteps], {
    ...around,
    width: after.width || width,
  });
  nameHead(end, model.head);
  countFlops(end, [model.head, ...model.logitSteps], setting);
  const root = series('other', [before, ...folds, after, end]);
  return placed(root, ownership, model);
}

/** Element types as texts: of one tensor, or of those at its place in all blocks. */
function typesOf(
  model: LanguageModel,
  typeOf: DrawOptions['typeOf'],
  isFolded: boolean,
): (tensor: Param) => string | null {
  if (typeOf === undefined) return () => null;
  if (!isFolded) return (tensor) => typeOf(tensor) ?? null;
  const types = new Map<string, Set<string>>();
  for (const tensor of tensorsOf(model)) {
    const [type, place] = [typeOf(tensor), layerPattern(tensor.name)];
    if (type !== undefined) types.set(place, (types.get(place) ?? new Set()).add(type));
  }
  return ({ name }) => [...(types.get(layerPattern(name)) ?? [])].join(', ') || null;
}

/** Says which product gives the logits. */
function nameHead(end: Draft, head: Layer): void {
  for (const node of draftsFrom(end)) {
    if (node.layers.includes(head))
      Object.assign(node, { label: node.uses.size > 0 ? 'Head, tied' : 'Head' });
  }
}

/** Adds the FLOPs of some layers to the boxes that have them. */
function countFlops(part: Draft, layers: readonly Layer[], setting: ForwardSetting): void {
  const [byParam, byName] = [new Map<Param, Draft>(), new Map<string, Draft>()];
  const times = timesWithin(part);
  const boxes = [...times.keys()].filter((each) => each.layers.length > 0);
  for (const box of boxes) {
    for (const { layer, tensors } of box.layers.flatMap(walkCounted)) {
      if (!byName.has(layer.name)) byName.set(layer.name, box);
      for (const tensor of tensors) if (!byParam.has(tensor)) byParam.set(tensor, box);
    }
  }
  const work = new Map<Draft, Operation[]>();
  for (const operation of layers.flatMap((layer) => operationsIn(layer))) {
    const owner = operation.params.map((tensor) => byParam.get(tensor)).find(Boolean);
    const box = owner ?? byName.get(operation.layer) ?? boxes[0];
    if (box === undefined) throw new Error(`no box for the work of ${operation.layer}`);
    const list = work.get(box);
    if (list) list.push(operation);
    else work.set(box, [operation]);
  }
  for (const [box, operations] of work) {
    const flops = BigInt(forwardFlopsOf(operations, setting).total.value);
    // Boxes with the same tensors are uses of one stack, and cost the same. A group has several of them in one box.
    const uses = boxes.filter((each) => isSameUse(each, box));
    const number = BigInt(sumOf(uses, (each) => times.get(each) ?? 1));
    for (const each of uses) each.flops += flops / number;
  }
}

/** How often each node is repeated in one pass through a part. */
function timesWithin(part: Draft): ReadonlyMap<Draft, number> {
  const times = new Map<Draft, number>();
  const visit = (node: Draft, own: number): void => {
    times.set(node, own);
    for (const child of node.children) visit(child, own * child.count);
  };
  visit(part, 1);
  return times;
}

const isSameUse = (a: Draft, b: Draft): boolean =>
  a === b ||
  (a.label === b.label && a.uses.size > 0 && [...a.uses].every((each) => b.uses.has(each)));

/** The diagram of finished drafts: with sums, ids and links. */
function placed(root: Draft, ownership: Ownership, model: LanguageModel): Diagram {
  const ids = new Map<Draft, string>();
  let next = 0;
  for (const top of [root, ...ownership.shared]) {
    for (const node of draftsFrom(top)) ids.set(node, `n${next++}`);
  }
  const nodeOf = (node: Draft): DiagramNode => {
    const children = node.children.map(nodeOf);
    const own = (role: 'parameter' | 'buffer') =>
      sumOf(node.tensors, (each) =>
        each.role === role ? each.count * each.shape.reduce((size, length) => size * length, 1) : 0,
      );
    const { kind, label, notes, component, count, blocks, width, tensors } = node;
    const flops = children.reduce(
      (sum, child) => sum + BigInt(child.flops) * BigInt(child.count),
      node.flops,
    );
    return {
      id: ids.get(node) ?? '',
      kind,
      label,
      notes,
      component,
      count,
      blocks,
      width,
      parameters: own('parameter') + sumOf(children, (child) => child.count * child.parameters),
      buffers: own('buffer') + sumOf(children, (child) => child.count * child.buffers),
      flops: exact(flops),
      tensors,
      children,
      change: 'same',
      before: [],
    };
  };
  const links: DiagramLink[] = [];
  for (const node of ids.keys()) {
    const froms = new Map<Draft, Param>();
    for (const tensor of node.uses) {
      const owner = ownership.owners.get(tensor);
      if (owner && !froms.has(owner)) froms.set(owner, tensor);
    }
    for (const [owner, tensor] of froms) {
      const from = ids.get(owner);
      if (from === undefined) continue;
      const isHead = node.layers.includes(model.head);
      links.push({
        from,
        to: ids.get(node) ?? '',
        kind: isHead ? 'tied' : 'shared',
        tensor: tensor.name,
      });
    }
  }
  return { root: nodeOf(root), shared: ownership.shared.map(nodeOf), links };
}
