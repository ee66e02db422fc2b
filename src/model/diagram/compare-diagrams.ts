/** Differences of two diagrams, as marks on the nodes of the second. */
import { formatInteger, shortCount } from '../../base/text/units.js';
import type { Diagram, DiagramNode } from './diagram.js';

/**
 * A diagram with the differences from another one: its nodes are the same, added or changed, and those that only the
 * other one has are removed.
 */
export function comparedDiagram(diagram: Diagram, other: Diagram): Diagram {
  const [root] = comparedLists([diagram.root], [other.root]);
  return {
    root: root ?? diagram.root,
    shared: comparedLists(diagram.shared, other.shared),
    links: diagram.links,
  };
}

/** Boxes and groups by their change; a part of an added or removed group is not counted again. */
export function countChanges(diagram: Diagram) {
  const counts = { added: 0, removed: 0, changed: 0 };
  const count = (node: DiagramNode): void => {
    if (node.change !== 'same') counts[node.change] += 1;
    if (node.change === 'same' || node.change === 'changed') node.children.forEach(count);
  };
  [diagram.root, ...diagram.shared].forEach(count);
  return counts;
}

/** Both lists in one order. Nodes of the same kind and name in the same order are the same node. */
function comparedLists(
  nodes: readonly DiagramNode[],
  others: readonly DiagramNode[],
): DiagramNode[] {
  const lengths = commonLengths(nodes, others);
  const merged: DiagramNode[] = [];
  let [a, b] = [0, 0];
  while (a < nodes.length || b < others.length) {
    const [node, other] = [nodes[a], others[b]];
    if (node && other && nodeKey(node) === nodeKey(other)) {
      merged.push(compared(node, other));
      a += 1;
      b += 1;
    } else if (other && (!node || at(lengths, a, b + 1) >= at(lengths, a + 1, b))) {
      merged.push(marked(other, 'removed'));
      b += 1;
    } else if (node) {
      merged.push(marked(node, 'added'));
      a += 1;
    }
  }
  return merged;
}

const at = (lengths: readonly (readonly number[])[], a: number, b: number) => lengths[a]?.[b] ?? 0;

/** Length of the longest common subsequence of the rest of both lists, from each pair of places. */
function commonLengths(nodes: readonly DiagramNode[], others: readonly DiagramNode[]): number[][] {
  const lengths = Array.from({ length: nodes.length + 1 }, () =>
    new Array<number>(others.length + 1).fill(0),
  );
  for (let a = nodes.length - 1; a >= 0; a--) {
    for (let b = others.length - 1; b >= 0; b--) {
      const isSame = nodeKey(nodes[a] as DiagramNode) === nodeKey(others[b] as DiagramNode);
      const row = lengths[a] as number[];
      row[b] = isSame
        ? 1 + at(lengths, a + 1, b + 1)
        : Math.max(at(lengths, a + 1, b), at(lengths, a, b + 1));
    }
  }
  return lengths;
}

/** The number of experts and a tie are facts, not names. */
const nodeKey = ({ kind, label, component }: DiagramNode) =>
  `${kind} ${component} ${label.replace(/^\d+ |, tied$/g, '')}`;

const marked = (node: DiagramNode, change: 'added' | 'removed'): DiagramNode => ({
  ...node,
  // Ids of the other diagram would repeat those of this one.
  id: change === 'removed' ? `other${node.id}` : node.id,
  change,
  children: node.children.map((child) => marked(child, change)),
});

function compared(node: DiagramNode, other: DiagramNode): DiagramNode {
  const children = comparedLists(node.children, other.children);
  const before =
    node.kind === 'box' || node.kind === 'operation'
      ? boxBefore(node, other)
      : groupBefore(node, other);
  return { ...node, children, change: before.length > 0 ? 'changed' : 'same', before };
}

function boxBefore(node: DiagramNode, other: DiagramNode): string[] {
  const notes = other.notes.filter((note) => !node.notes.includes(note));
  return [
    ...(node.label === other.label ? [] : [other.label]),
    ...notes,
    ...(node.notes.length < other.notes.length || notes.length > 0 || node.width === other.width
      ? []
      : [formatInteger(other.width)]),
    ...(node.parameters === other.parameters
      ? []
      : [other.parameters === 0 ? 'no parameters of its own' : shortCount(other.parameters)]),
  ];
}

const groupBefore = (node: DiagramNode, other: DiagramNode): string[] =>
  node.kind === 'group' && node.count !== other.count ? [`${other.count} ×`] : [];
