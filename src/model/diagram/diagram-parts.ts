/** Parts of diagrams: one part alone, and all nodes as a list. */
import { nearest } from '../../config/nearest.js';
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

/** A part of a diagram, or why there is none: the parts that a path can mean, or the nearest path. */
export type FoundPart =
  | {
      readonly kind: 'found';
      readonly diagram: Diagram;
      /** The whole path; undefined for the number of a block. */
      readonly path?: string;
      /** Whether the box has other tensors, too. */
      readonly isLarger: boolean;
    }
  | { readonly kind: 'several'; readonly paths: readonly string[] }
  | { readonly kind: 'unknown'; readonly nearest: string | undefined };

/**
 * The diagram of one part, with what it shares with others.
 * @param diagram With each block drawn by itself.
 * @param part Number of a block, or the beginning of tensor names: `model.layers.3.self_attn`. Parts before it can be left
 *   out: `layers.3`.
 */
export function findPart(diagram: Diagram, part: number | string): FoundPart {
  if (typeof part === 'string') return findPath(diagram, part);
  const root = [...nodesFrom(diagram.root)].find(({ blocks }) => blocks.includes(part));
  return root ? { kind: 'found', diagram: diagramOf(diagram, root), isLarger: false } : noPart;
}

const noPart = { kind: 'unknown', nearest: undefined } as const;

function findPath(diagram: Diagram, given: string): FoundPart {
  const tops = [diagram.root, ...diagram.shared];
  const names = tops.flatMap(tensorNames);
  const written = given.replace(/\.$/, '');
  if (TIED_HEAD.test(written) && !names.some((name) => name.startsWith('lm_head.'))) {
    const head = nodeOf(diagram, diagram.links.find(({ kind }) => kind === 'tied')?.to);
    if (head !== undefined) {
      return { kind: 'found', diagram: diagramOf(diagram, head), path: written, isLarger: false };
    }
  }
  const path = pathOfExperts(written, tops, names);
  const paths = new Set(names.flatMap((name) => beginnings(name, path)));
  const whole = paths.has(path) ? [path] : [...paths];
  const [only] = whole;
  if (only === undefined) return { kind: 'unknown', nearest: nearest(path, partPaths(names)) };
  if (whole.length > 1) return { kind: 'several', paths: whole };
  const wanted = names.filter((name) => isBelow(name, only));
  const holders = tops
    .flatMap((top) => [...nodesFrom(top)])
    .filter((node) => {
      const own = new Set(tensorNames(node));
      return wanted.every((name) => own.has(name));
    });
  // Parents come before their children, so the last is the smallest.
  const smallest = holders.at(-1) ?? diagram.root;
  const isLarger = path !== written || tensorNames(smallest).length > wanted.length;
  return {
    kind: 'found',
    diagram: diagramOf(diagram, smallest),
    path: path === written ? only : written,
    isLarger,
  };
}

/** The head of a model that has no tensor for it: its name in transformers. */
const TIED_HEAD = /^lm_head(?:\.weight)?$/;

const nodeOf = ({ root }: Diagram, wanted: string | undefined): DiagramNode | undefined =>
  [...nodesFrom(root)].find(({ id }) => id === wanted);

/** The path of the first expert for that of another one: equal experts are one box, with the names of the first. */
function pathOfExperts(
  path: string,
  tops: readonly DiagramNode[],
  names: readonly string[],
): string {
  const [, before, number, after = ''] = /^(.*\bexperts)\.(\d+)(\..+)?$/.exec(path) ?? [];
  if (number === undefined || names.some((name) => beginnings(name, path).length > 0)) return path;
  const first = `${before}.0${after}`;
  const tensors = tops.flatMap((top) => [...nodesFrom(top)].flatMap((node) => node.tensors));
  const isThere = tensors.some(
    ({ name, count }) => Number(number) < count && beginnings(name, first).length > 0,
  );
  return isThere ? first : path;
}

const isBelow = (name: string, path: string) => name === path || name.startsWith(`${path}.`);

/** The beginnings of a name that end with a path, at its dots. */
function beginnings(name: string, path: string): string[] {
  const found: string[] = [];
  const text = `.${name}.`;
  for (let at = text.indexOf(`.${path}.`); at >= 0; at = text.indexOf(`.${path}.`, at + 1)) {
    found.push(name.slice(0, at + path.length));
  }
  return found;
}

/** Everything that is a part of a name, up to one of its dots. */
function partPaths(names: readonly string[]): Set<string> {
  const paths = new Set<string>();
  for (const name of names) {
    const parts = name.split('.');
    for (let start = 0; start < Math.min(2, parts.length); start++) {
      for (let end = start + 1; end <= parts.length; end++)
        paths.add(parts.slice(start, end).join('.'));
    }
  }
  return paths;
}

const tensorNames = (node: DiagramNode): string[] =>
  [...nodesFrom(node)].flatMap(({ tensors }) => tensors.map(({ name }) => name));

function diagramOf(diagram: Diagram, root: DiagramNode): Diagram {
  const ids = new Set([...nodesFrom(root)].map(({ id }) => id));
  const links = diagram.links.filter(({ to }) => ids.has(to));
  const shared = diagram.shared.filter(
    (each) =>
      each !== root && [...nodesFrom(each)].some(({ id }) => links.some(({ from }) => from === id)),
  );
  return { root, shared, links };
}
