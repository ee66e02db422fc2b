/** Parts of diagrams: one block alone, and all nodes as a list. */
import type { Diagram, DiagramFacts, DiagramNode } from './diagram.js';
import { nodesFrom } from './diagram.js';

/** A node in a list. */
export interface FlatNode extends DiagramFacts, Pick<DiagramNode, 'id' | 'change' | 'before'> {
  readonly parent: string | null;
  readonly isShared: boolean;
}

/** All nodes, parents before their children. */
export function flatNodes({ root, shared }: Diagram): FlatNode[] {
  const list: FlatNode[] = [];
  const add = (node: DiagramNode, parent: string | null, isShared: boolean) => {
    const { children, ...facts } = node;
    list.push({ ...facts, parent, isShared });
    for (const child of children) add(child, node.id, isShared);
  };
  add(root, null, false);
  for (const each of shared) add(each, null, true);
  return list;
}

/** The diagram of one block, with what it shares with others. */
export function blockOf(diagram: Diagram, block: number): Diagram {
  let found: DiagramNode | undefined;
  for (const node of nodesFrom(diagram.root)) {
    if (node.kind !== 'group' || node.blocks.length === 0) continue;
    if (holds(node, diagram.root, block)) found = node;
  }
  if (found === undefined) return diagram;
  const root = { ...found, count: 1, blocks: [block] };
  const ids = new Set([...nodesFrom(root)].map(({ id }) => id));
  const links = diagram.links.filter(({ to }) => ids.has(to));
  const shared = diagram.shared.filter((each) =>
    [...nodesFrom(each)].some(({ id }) => links.some(({ from }) => from === id)),
  );
  return { root, shared, links };
}

/** Whether a group stands for a block. A group in a repeated group stands for its blocks in every repetition. */
function holds(group: DiagramNode, root: DiagramNode, block: number): boolean {
  const path = pathTo(root, group.id);
  let number = block;
  for (const each of path) {
    if (!each.blocks.includes(number)) return false;
    const period = each.blocks.length / each.count;
    number = (each.blocks[0] ?? 0) + ((number - (each.blocks[0] ?? 0)) % period);
  }
  return true;
}

function pathTo(node: DiagramNode, id: string): DiagramNode[] {
  const own = node.blocks.length > 0 ? [node] : [];
  if (node.id === id) return own;
  for (const child of node.children) {
    const path = pathTo(child, id);
    if (path.length > 0) return [...own, ...path];
  }
  return [];
}
