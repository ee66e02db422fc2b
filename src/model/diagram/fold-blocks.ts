import { layerPattern } from '../budget/parameters.js';
import { type Draft, draft, type Ownership } from './draft.js';
import { type Fold, folded } from './fold.js';

/** Facts of a block by which it is equal to others: all but the names and values of its tensors. */
function shapeOf(node: Draft, ownership: Ownership): unknown {
  return [
    node.kind,
    node.label,
    node.notes,
    node.count,
    node.width,
    String(node.flops),
    node.tensors.map(({ name, shape, count, role }) => [layerPattern(name), shape, count, role]),
    // Tensors of the block itself differ from those of another block, others are the same.
    [...node.uses].flatMap((tensor) => {
      const owner = ownership.owners.get(tensor);
      return owner !== undefined && ownership.shared.some((each) => isWithin(owner, each))
        ? [tensor.name]
        : [];
    }),
    node.children.map((child) => shapeOf(child, ownership)),
  ];
}

const isWithin = (node: Draft, whole: Draft): boolean =>
  node === whole || whole.children.some((child) => isWithin(node, child));

/** Blocks as groups: neighbours that are equal, and patterns of them that repeat, are drawn once. */
export function foldedBlocks(blocks: readonly Draft[], ownership: Ownership): Draft[] {
  const keys = blocks.map((block) => JSON.stringify(shapeOf(block, ownership)));
  return folded(blocks, keys).map(blockGroup);
}

/** Each block as a group of its own. */
export const singleBlocks = (blocks: readonly Draft[]): Draft[] =>
  blocks.map((of, at) => blockGroup({ count: 1, at, length: 1, of }));

/** A fold as a group of blocks. */
function blockGroup({ count, at, length, of }: Fold<Draft>): Draft {
  const blocks = Array.from({ length }, (_, index) => at + index);
  const inner = Array.isArray(of) ? (of as Fold<Draft>[]).map(blockGroup) : undefined;
  const children = inner ?? (of as Draft).children;
  return draft({
    kind: 'group',
    label: inner ? 'blocks' : 'block',
    component: 'other',
    count,
    blocks,
    children,
    width: children.at(-1)?.width ?? 0,
  });
}
