/** Folded models: many blocks, described by one block of each kind. */

import { sumOf } from '../../base/values.js';
import { areEqualButNames } from '../../model/architecture/equal-blocks.js';
import type { LanguageModel, Layer } from '../../model/architecture/layer.js';
import { LimitError } from '../../model/architecture/param.js';
import { memoized, memoizedBy } from '../../model/architecture/walk.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { ModelSpace, Sizes } from './space.js';

// Parameters of the models of one width, extrapolated from a few small ones if possible.

/** Parameters of `depth` blocks with the feed-forward width `steps` above the least; undefined if invalid. */
export type Counts = (depth: number, steps: number) => number | undefined;

/** Counts from a description of each model. */
export const describedCounts =
  (models: Folding, sizesAt: (depth: number, steps: number) => Sizes): Counts =>
  (depth, steps) =>
    models.parameters(sizesAt(depth, steps));

/**
 * Counts extrapolated from models of one to three blocks, per further block and per further step in each block.
 * Undefined if a fifth model shows that blocks differ in size. Callers still count the models that they find.
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
  const isLinear = foreseen(2, 1) === twoWider && foreseen(3, 2) === third;
  return isLinear ? foreseen : undefined;
}

/** Most steps, up to `most`, with at most `limit` parameters; undefined if there are none. */
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
 * Model as a weighted sum of smaller ones, for values that add up over blocks. For example, a model of 32 equal blocks
 * is 32 times the model with one block, and −31 times the model without blocks.
 */
export type FoldedModel = readonly Folded[];

interface Folded {
  readonly model: LanguageModel;
  readonly times: number;
}

export const unfoldedModel = (model: LanguageModel): FoldedModel => [{ model, times: 1 }];

/** Positions, the same for all parts of a model. */
export const positionsOf = ([first]: FoldedModel): number => first?.model.positions ?? 0;

/** Sum of an additive value over a folded model. */
export const sumOver = (folded: FoldedModel, of: (model: LanguageModel) => number): number =>
  sumOf(folded, ({ model, times }) => times * of(model));

/** Limit of block kinds; with more, folding saves little. */
const MOST_KINDS = 8;
/** Cache size for small models: those that a column needs in turn. */
const MOST_KEPT = 64;

/** Representative block, and the depth of a model that contains it. */
interface RepeatedBlock {
  readonly block: Layer;
  readonly depth: number;
  readonly index: number;
}

/** Kinds of a model's blocks in order; null if there are too many. */
type RepeatedBlocks = readonly RepeatedBlock[] | null;

/**
 * Describes the models of a space by few of their blocks. The block kinds of a depth come from the first requested
 * sizes and are assumed for all others. Callers must check results against whole models.
 */
export class Folding {
  readonly #space: ModelSpace;
  readonly #mostKinds: number;
  readonly #kinds: RepeatedBlock[] = [];
  readonly #patterns = new Map<number, RepeatedBlocks>();
  readonly #kept = new Map<string, LanguageModel | undefined>();
  #first: Sizes | undefined;

  /** @param mostKinds Limit of block kinds; with 0, each model is described whole. */
  constructor(space: ModelSpace, mostKinds = MOST_KINDS) {
    this.#space = space;
    this.#mostKinds = mostKinds;
  }

  /**
   * Model of given sizes; undefined if its document is invalid.
   * @throws LimitError when it is too large to describe.
   */
  model(sizes: Sizes): FoldedModel | undefined {
    if (this.#mostKinds === 0) return this.#whole(sizes);
    if (!this.#first) {
      if (!this.#space.model(sizes)) return undefined;
      this.#first = sizes;
    }
    const pattern = this.#patternOf(sizes.depth);
    if (!pattern) return this.#whole(sizes);
    const parts: Folded[] = [];
    let ends: LanguageModel | undefined;
    for (const [{ depth, index }, times] of timesOf(pattern)) {
      const model = this.#small({ ...sizes, depth });
      const block = model?.blocks[index];
      if (!model || !block) return this.#whole(sizes);
      parts.push({ model: withBlock(model, block), times });
      ends ??= withoutBlocks(model);
    }
    if (!ends) return this.#whole(sizes);
    return [{ model: ends, times: 1 - pattern.length }, ...parts];
  }

  /** Parameters of a model; infinite if it is too large to describe. */
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
    return model && unfoldedModel(model);
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
   * Block kinds of a depth. If the model at the next power of two begins like the one at the previous power, its prefix
   * is used; otherwise the model of the depth itself. Null if the first sizes have no such model.
   */
  #patternOf(depth: number): RepeatedBlocks {
    const above = 2 ** Math.ceil(Math.log2(depth));
    const [smaller, larger] = [this.#patternAt(above / 2), this.#patternAt(above)];
    const isPrefix =
      smaller?.length === above / 2 &&
      larger?.length === above &&
      smaller.every((kind, index) => kind === larger[index]);
    return isPrefix ? larger.slice(0, depth) : this.#patternAt(depth);
  }

  #patternAt(depth: number): RepeatedBlocks {
    const known = this.#patterns.get(depth);
    if (known !== undefined) return known;
    const blocks = this.#blocksAt(depth);
    const pattern = blocks.length > 0 ? this.#patternIn(blocks, depth) : null;
    this.#patterns.set(depth, pattern);
    return pattern;
  }

  /** Blocks of the first sizes at a depth; empty without such a model. */
  #blocksAt(depth: number): readonly Layer[] {
    if (!this.#first || depth < 1) return [];
    try {
      return this.#space.model({ ...this.#first, depth })?.blocks ?? [];
    } catch (error) {
      if (error instanceof LimitError) return [];
      throw error;
    }
  }

  #patternIn(blocks: readonly Layer[], depth: number): RepeatedBlocks {
    const pattern: RepeatedBlock[] = [];
    for (const [index, block] of blocks.entries()) {
      const kind =
        this.#kinds.find((each) => areEqualButNames(each.block, block)) ??
        this.#newKind(block, depth, index);
      if (!kind) return null;
      pattern.push(kind);
    }
    return pattern;
  }

  /** Adds a kind, from the model that ends with its block if possible. Undefined if there are too many. */
  #newKind(block: Layer, depth: number, index: number): RepeatedBlock | undefined {
    if (this.#kinds.length >= this.#mostKinds) return undefined;
    const inSmallest = this.#blocksAt(index + 1)[index];
    const isInSmallest = inSmallest !== undefined && areEqualButNames(inSmallest, block);
    const kind = { block, index, depth: isInSmallest ? index + 1 : depth };
    this.#kinds.push(kind);
    return kind;
  }
}

/** Parts of small models, which are asked for at many depths. */
const withoutBlocks = memoized((model: LanguageModel): LanguageModel => ({ ...model, blocks: [] }));

const withBlock = memoizedBy(
  (block: Layer) => block,
  (model: LanguageModel, block): LanguageModel => ({ ...model, blocks: [block] }),
);

function timesOf(pattern: readonly RepeatedBlock[]): Map<RepeatedBlock, number> {
  const times = new Map<RepeatedBlock, number>();
  for (const kind of pattern) times.set(kind, (times.get(kind) ?? 0) + 1);
  return times;
}
