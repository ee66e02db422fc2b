/**
 * Blocks that differ only in names. Most blocks of a model are equal, and so are those of models in a sweep that differ
 * in depth: what is counted for one of them holds for all.
 */
import { sumOf } from '../../base/values.js';
import type { LanguageModel, Layer } from './layer.js';
import type { Param } from './param.js';
import { countedTensors, memoized, type OwnedTensor, sharedTensors } from './walk.js';

/** Keys in which equal blocks may differ. */
const NAMES: ReadonlySet<string> = new Set(['name', 'aliases']);

/** Whether two parts of a description are the same except for names. */
export function areEqualButNames(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isComposite(a) || !isComposite(b)) return Object.is(a, b);
  if (Array.isArray(a)) return isEqualList(a, b);
  let keys = 0;
  for (const key in a) {
    keys++;
    if (NAMES.has(key)) continue;
    if (!(key in b) || !areEqualButNames(a[key], b[key])) return false;
  }
  for (const _ in b) keys--;
  return keys === 0;
}

const isEqualList = (a: readonly unknown[], b: unknown): boolean =>
  Array.isArray(b) && a.length === b.length && a.every((each, at) => areEqualButNames(each, b[at]));

const isComposite = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Blocks seen so far that differ from each other, by what is known of them at once: kind, tensors, elements. */
const examples = new Map<string, Layer[]>();

/** Examples with the same key; more are not compared, so that a model of unlike blocks takes linear time. */
const MOST_ALIKE = 8;

/** Keys of examples: with what folds remember of them, some 10 MB. */
const MOST_KEYS = 500;

/**
 * A block that is equal to `block` but for names, of any model: folds that read no names, and no tensor by identity, need
 * to compute their value for this one only. Equal blocks usually have the same example, and always equal ones.
 */
export const exampleOf: (block: Layer) => Layer = memoized((block) => {
  const tensors = countedTensors(block);
  const elements = tensors.reduce((sum, { tensor, count }) => sum + count * tensor.elements, 0);
  const key = `${block.kind} ${tensors.length} ${elements}`;
  const known = examples.get(key);
  const found = known?.find((each) => areEqualButNames(each, block));
  if (found) return found;
  if (known && known.length < MOST_ALIKE) known.push(block);
  if (known) return block;
  if (examples.size >= MOST_KEYS) examples.clear();
  examples.set(key, [block]);
  return block;
});

/** A block, and the number of blocks that it represents. */
export interface EqualBlocks {
  readonly block: Layer;
  readonly times: number;
}

/** Examples of a model's blocks, in order of first appearance. */
export const equalBlocks: (blocks: readonly Layer[]) => readonly EqualBlocks[] = memoized(
  (blocks) => {
    const times = new Map<Layer, number>();
    for (const block of blocks) {
      const example = exampleOf(block);
      times.set(example, (times.get(example) ?? 0) + 1);
    }
    return [...times].map(([block, count]) => ({ block, times: count }));
  },
);

/**
 * `countedTensors` of a model with those of one block for all equal ones, for sums over its tensors. Names are those of
 * the first block.
 */
export const tensorsOfKinds = (layer: Layer): readonly OwnedTensor[] =>
  layer.kind === 'languageModel' ? kindsOfTensors(layer) : countedTensors(layer);

/** Sum of a value over all tensors below `layer`. */
export const sumOfTensors = (layer: Layer, of: (tensor: Param) => number): number =>
  sumOf(tensorsOfKinds(layer), ({ tensor, count }) => count * of(tensor));

const kindsOfTensors = memoized((model: LanguageModel): readonly OwnedTensor[] => {
  const { before, kinds, after, inSeveral } = partsOf(model);
  const owned = new Map<Param, OwnedTensor>();
  const own = (layer: Layer, times = 1) => {
    for (const each of countedTensors(layer)) {
      if (owned.has(each.tensor)) continue;
      // A tensor that several places hold is one, however many blocks are equal.
      const isOne = times === 1 || inSeveral.has(each.tensor);
      owned.set(each.tensor, isOne ? each : { ...each, count: each.count * times });
    }
  };
  for (const layer of before) own(layer);
  for (const { block, times } of kinds) own(block, times);
  for (const layer of after) own(layer);
  return [...owned.values()];
});

/** The first block of each kind, as `tensorsOfKinds` has its tensors. */
export const firstOfKinds = (model: LanguageModel): readonly Layer[] =>
  partsOf(model).kinds.map(({ block }) => block);

/** Layers around the blocks, the kinds of blocks, and the tensors that several of all these hold. */
const partsOf = memoized(
  ({ embedding, embeddingSteps, shared, blocks, norm, head, logitSteps }: LanguageModel) => {
    const [before, after] = [
      [embedding, ...embeddingSteps, ...shared],
      [norm, head, ...logitSteps],
    ];
    const inSeveral = sharedTensors([...before, ...blocks, ...after]);
    return { before, kinds: ownKinds(blocks, inSeveral), after, inSeveral };
  },
);

/** Equal blocks of a model whose tensors also have the same patterns of names, and are shared in the same places. */
function ownKinds(blocks: readonly Layer[], shared: ReadonlySet<Param>): EqualBlocks[] {
  const kinds = new Map<Layer, { readonly block: Layer; times: number }[]>();
  for (const block of blocks) {
    const example = exampleOf(block);
    const alike = kinds.get(example) ?? [];
    kinds.set(example, alike);
    const kind = alike.find((each) => holdAlike(each.block, block, shared));
    if (kind) kind.times++;
    else alike.push({ block, times: 1 });
  }
  return [...kinds.values()].flat();
}

/** Whether the tensors of equal blocks have the same names below the block, and the shared ones are the same. */
function holdAlike(some: Layer, other: Layer, shared: ReadonlySet<Param>): boolean {
  const others = countedTensors(other);
  return countedTensors(some).every(({ tensor: a }, at) => {
    const b = others[at]?.tensor;
    if (a === b) return true;
    if (b === undefined || shared.has(a) || shared.has(b)) return false;
    return b.name.startsWith(other.name) && b.name.endsWith(below(a.name, some.name));
  });
}

/** The part of a tensor's name after that of its block, or all of a name from elsewhere. */
const below = (name: string, block: string): string =>
  name.startsWith(block) ? name.slice(block.length) : name;
