/** Models of many blocks, described by one block of each kind. */
import type { LanguageModel, Layer } from '../architecture/layer.js';
import { LimitError } from '../architecture/limits.js';
import { countParameters } from '../budget/parameters.js';
import type { ModelSpace, Sizes } from './space.js';

// How many parameters the models of one width have: told from a few small ones, where that can be told.

/** Of `depth` blocks whose feed-forward network is `steps` steps wider than the least; undefined when not valid. */
export type Counts = (depth: number, steps: number) => number | undefined;

/** By describing each model. */
export const describedCounts =
  (models: Folding, sizesAt: (depth: number, steps: number) => Sizes): Counts =>
  (depth, steps) =>
    models.parameters(sizesAt(depth, steps));

/**
 * By what a further block, and a further step in each, add in models of one to three blocks. Undefined where a
 * fifth model shows that blocks do not all add the same; whoever relies on it still counts what it finds.
 */
export function foreseenCounts(described: Counts): Counts | undefined {
  const [one, wider, two, twoWider, third] = [
    described(1, 0),
    described(1, 1),
    described(2, 0),
    described(2, 1),
    described(3, 2),
  ];
  if (one === undefined || wider === undefined) return undefined;
  if (two === undefined || twoWider === undefined) return undefined;
  const perBlock = two - one;
  const around = one - perBlock;
  const perStep = wider - one;
  const foreseen = (depth: number, steps: number) => around + depth * (perBlock + steps * perStep);
  const isTold = foreseen(2, 1) === twoWider && foreseen(3, 2) === third;
  return isTold ? foreseen : undefined;
}

/** The most steps, up to `most`, with which there are at most `limit` parameters; undefined when there are none. */
export function mostStepsWithin(
  counts: Counts,
  depth: number,
  { most, limit }: { readonly most: number; readonly limit: number },
): number | undefined {
  const fits = (steps: number) => (counts(depth, steps) ?? Number.POSITIVE_INFINITY) <= limit;
  if (!fits(0)) return undefined;
  let [fitting, tooMany] = [0, most + 1];
  while (tooMany - fitting > 1) {
    const middle = Math.floor((fitting + tooMany) / 2);
    if (fits(middle)) fitting = middle;
    else tooMany = middle;
  }
  return fitting;
}

/**
 * A model as a sum of smaller ones, of which some are taken away: what adds up over blocks, it has of each as often as
 * that is in it. A model without blocks, −31 times, and the same with one block, 32 times, are one of 32 such blocks.
 */
export type FoldedModel = readonly Folded[];

interface Folded {
  readonly model: LanguageModel;
  readonly times: number;
}

export const unfolded = (model: LanguageModel): FoldedModel => [{ model, times: 1 }];

/** What is the same for all parts of a model. */
export const positionsOf = ([first]: FoldedModel): number => first?.model.positions ?? 0;

/** What a model has of something that adds up over its blocks. */
export const sumOver = (folded: FoldedModel, of: (model: LanguageModel) => number): number =>
  folded.reduce((total, { model, times }) => total + times * of(model), 0);

/** Where a model has more, folding it saves little. */
const MOST_KINDS = 8;
/** Small models that are kept: as many as a column asks for in turn. */
const MOST_KEPT = 64;

/** A block that others are like, and the depth of a model that has it there. */
interface Kind {
  readonly block: Layer;
  readonly depth: number;
  readonly index: number;
}

/** The kinds of a model's blocks, one after the other; null where there are too many. */
type Pattern = readonly Kind[] | null;

/**
 * Describes the models of a space by few of their blocks. Which blocks of a depth are alike is read off the first
 * sizes that are asked for, and taken to be so for all others: what comes of it is to be held against models that
 * are described whole.
 */
export class Folding {
  readonly #space: ModelSpace;
  readonly #mostKinds: number;
  readonly #kinds: Kind[] = [];
  readonly #patterns = new Map<number, Pattern>();
  readonly #kept = new Map<string, LanguageModel | undefined>();
  #first: Sizes | undefined;

  /** @param mostKinds With 0, each model is described whole. */
  constructor(space: ModelSpace, mostKinds = MOST_KINDS) {
    this.#space = space;
    this.#mostKinds = mostKinds;
  }

  /**
   * The model of such sizes; undefined when its document is not valid.
   * @throws LimitError when it is beyond what can be described.
   */
  model(sizes: Sizes): FoldedModel | undefined {
    if (this.#mostKinds === 0) return this.#whole(sizes);
    if (!this.#first) {
      if (!this.#space.model(sizes)) return undefined;
      this.#first = sizes;
    }
    const pattern = this.#patternOf(sizes.depth);
    if (!pattern) return this.#whole(sizes);
    const parts: { readonly model: LanguageModel; readonly times: number }[] = [];
    for (const [{ depth, index }, times] of timesOf(pattern)) {
      const model = this.#small({ ...sizes, depth });
      const block = model?.blocks[index];
      if (!model || !block) return this.#whole(sizes);
      parts.push({ model: { ...model, blocks: [block] }, times });
    }
    const [first] = parts;
    if (!first) return this.#whole(sizes);
    return [{ model: { ...first.model, blocks: [] }, times: 1 - pattern.length }, ...parts];
  }

  /** Its parameters: infinitely many of a model beyond what can be described. */
  parameters(sizes: Sizes): number | undefined {
    try {
      const folded = this.model(sizes);
      const count = folded && sumOver(folded, (model) => countParameters(model).parameters);
      if (count === undefined || Number.isSafeInteger(count)) return count;
    } catch (error) {
      if (!(error instanceof LimitError)) throw error;
    }
    return Number.POSITIVE_INFINITY;
  }

  #whole(sizes: Sizes): FoldedModel | undefined {
    const model = this.#space.model(sizes);
    return model && unfolded(model);
  }

  #small(sizes: Sizes): LanguageModel | undefined {
    const key = JSON.stringify(sizes);
    if (!this.#kept.has(key)) {
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
      this.#kept.set(key, this.#space.model(sizes));
    }
    return this.#kept.get(key);
  }

  /**
   * Read off the models whose depths are powers of two, where the larger of two begins as the smaller; else off one of
   * just that depth. Null too where the first sizes have no such model.
   */
  #patternOf(depth: number): Pattern {
    const above = 2 ** Math.ceil(Math.log2(depth));
    const [smaller, larger] = [this.#patternAt(above / 2), this.#patternAt(above)];
    const isTold =
      smaller?.length === above / 2 &&
      larger?.length === above &&
      smaller.every((kind, index) => kind === larger[index]);
    return isTold ? larger.slice(0, depth) : this.#patternAt(depth);
  }

  #patternAt(depth: number): Pattern {
    const known = this.#patterns.get(depth);
    if (known !== undefined) return known;
    const blocks = this.#blocksAt(depth);
    const pattern = blocks.length > 0 ? this.#patternIn(blocks, depth) : null;
    this.#patterns.set(depth, pattern);
    return pattern;
  }

  /** None where there is no such model of the first sizes. */
  #blocksAt(depth: number): readonly Layer[] {
    if (!this.#first || depth < 1) return [];
    try {
      return this.#space.model({ ...this.#first, depth })?.blocks ?? [];
    } catch (error) {
      if (error instanceof LimitError) return [];
      throw error;
    }
  }

  #patternIn(blocks: readonly Layer[], depth: number): Pattern {
    const pattern: Kind[] = [];
    for (const [index, block] of blocks.entries()) {
      const kind =
        this.#kinds.find((each) => areAlike(each.block, block)) ??
        this.#newKind(block, depth, index);
      if (!kind) return null;
      pattern.push(kind);
    }
    return pattern;
  }

  /** In the smallest model, if that has it too: a model that ends with it. Undefined when there are too many. */
  #newKind(block: Layer, depth: number, index: number): Kind | undefined {
    if (this.#kinds.length >= this.#mostKinds) return undefined;
    const inSmallest = this.#blocksAt(index + 1)[index];
    const isInSmallest = inSmallest !== undefined && areAlike(inSmallest, block);
    const kind = { block, index, depth: isInSmallest ? index + 1 : depth };
    this.#kinds.push(kind);
    return kind;
  }
}

function timesOf(pattern: readonly Kind[]): Map<Kind, number> {
  const times = new Map<Kind, number>();
  for (const kind of pattern) times.set(kind, (times.get(kind) ?? 0) + 1);
  return times;
}

/** What two blocks that are alike differ in. */
const NAMES: readonly string[] = ['name', 'aliases'];

/** Whether two parts of a description are the same but for names. */
function areAlike(a: unknown, b: unknown): boolean {
  if (!isObject(a) || !isObject(b)) return Object.is(a, b);
  if (a === b) return true;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => NAMES.includes(key) || (Object.hasOwn(b, key) && areAlike(a[key], b[key])))
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
