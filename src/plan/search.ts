/** Searches the sizes of a family for models within a budget. */
import type { Exact } from '../budget/figure.js';
import { bodyIn, countParameters, type ParameterBudget } from '../budget/parameters.js';
import { inferenceBytes, requirePositions } from '../budget/profile-model.js';
import type { Bounds, Quantity } from '../budget/quantity.js';
import { type StateSetting, stateOf } from '../budget/state.js';
import { sumOf } from '../text/words.js';
import { type Measures, offBalance, widthPerLayer } from './criteria.js';
import type { Counts, FoldedModel } from './folding.js';
import {
  describedCounts,
  Folding,
  foreseenCounts,
  mostStepsWithin,
  positionsOf,
  sumOver,
} from './folding.js';
import type { HeadLayout, ModelSpace, SizeRange, Sizes } from './space.js';
import { depthsIn, headLayouts, widthsIn } from './space.js';

/** Decoding on a GPU, in tokens per second of all sequences together. */
export interface DecodingTarget {
  readonly rates: (model: FoldedModel) => Bounds;
  /** Expected rate only. */
  readonly expected: (model: FoldedModel) => number;
  /** Usable memory of that GPU. */
  readonly capacity: Quantity;
}

/** Whether inference fits in the GPU's memory. */
export const isWithin = (memory: Exact, { capacity }: Pick<DecodingTarget, 'capacity'>): boolean =>
  memory <= capacity.value;

export interface SearchRequest {
  readonly depth: SizeRange;
  readonly width: SizeRange;
  /** Divisor of the feed-forward width. */
  readonly align: number;
  /** Head dimensions; undefined: usual ones for the width. */
  readonly headDims: readonly number[] | undefined;
  readonly minParameters: number;
  readonly maxParameters: number;
  readonly maxMemory: number;
  /** Whether one block of each kind represents all; otherwise each model is described whole. */
  readonly isFolded: boolean;
  /** Setting at which models are measured. */
  readonly inference: StateSetting;
  readonly decode?: DecodingTarget | undefined;
  /** Called with the number of searched widths and of all widths. */
  readonly onSearched?: ((done: number, of: number) => void) | undefined;
}

export interface MeasuredModel {
  readonly sizes: Sizes;
  readonly measures: Measures;
}

/** Counted model outside the budget. */
export interface NearestModel {
  readonly sizes: Sizes;
  readonly value: number;
}

export interface SearchResult {
  /** Models with the widest feed-forward network, one per depth, width, head layout and rank. */
  readonly found: readonly MeasuredModel[];
  /** Model with the fewest parameters. */
  readonly smallest: NearestModel | undefined;
  /** Largest model with at most the maximum number of parameters. */
  readonly largest: NearestModel | undefined;
  /** Model with the least memory, among those with the requested parameters. */
  readonly leanest: NearestModel | undefined;
}

/** Models that differ only in depth and feed-forward width. */
interface ShapeColumn {
  readonly width: number;
  readonly layout: HeadLayout;
  readonly rank: number | null;
  /** Narrowest feed-forward network, and the number of steps to the widest. */
  readonly feedForward: {
    readonly least: number;
    readonly step: number;
    readonly most: number;
  } | null;
}

/** @throws UserError when no model of the first width is valid, or one does not support the context. */
export function search(space: ModelSpace, wish: SearchRequest): SearchResult {
  const run = new Search(space, wish);
  const widths = widthsIn(fixedOr(space.fixed(space.dimensions.width), wish.width));
  for (const [index, width] of widths.entries()) {
    if (run.width(width) === 'beyond') break;
    wish.onSearched?.(index + 1, widths.length);
  }
  return run.result;
}

const fixedOr = (fixed: number | undefined, range: SizeRange): SizeRange =>
  fixed === undefined ? range : { least: fixed, most: fixed };

class Search {
  readonly #space: ModelSpace;
  readonly #wish: SearchRequest;
  readonly #models: Folding;
  readonly #depths: readonly number[];
  readonly #found: MeasuredModel[] = [];
  #smallest: NearestModel | undefined;
  #largest: NearestModel | undefined;
  #leanest: NearestModel | undefined;

  constructor(space: ModelSpace, wish: SearchRequest) {
    this.#space = space;
    this.#wish = wish;
    this.#models = wish.isFolded ? new Folding(space) : new Folding(space, 0);
    this.#depths = depthsIn(fixedOr(space.fixed(space.dimensions.depth), wish.depth));
  }

  get result(): SearchResult {
    return {
      found: this.#found,
      smallest: this.#smallest,
      largest: this.#largest,
      leanest: this.#leanest,
    };
  }

  /** Searches the models of a width; `beyond` if even the smallest is too large, and so are all wider ones. */
  width(width: number): 'searched' | 'beyond' {
    const columns = this.#columns(width);
    const smallest = columns.map((column) => this.#column(column));
    const valid = smallest.filter((each) => each !== undefined);
    const [first] = columns;
    if (first && valid.length === 0 && this.#smallest === undefined) {
      const complaint = this.#space.complaint(sizesIn(first, this.#depths[0] ?? 1, 0));
      if (complaint) throw complaint;
    }
    const isBeyond = valid.length > 0 && valid.every((each) => each > this.#wish.maxParameters);
    return isBeyond ? 'beyond' : 'searched';
  }

  #columns(width: number): ShapeColumn[] {
    const { dimensions } = this.#space;
    const fixed = (key: string | undefined) => this.#space.fixed(key);
    const layouts = headLayouts(width, {
      headDims: this.#wish.headDims,
      heads: fixed(dimensions.heads),
      keyValueHeads: fixed(dimensions.keyValueHeads),
      headDim: fixed(dimensions.headDim?.[0]),
      canShare: dimensions.keyValueHeads !== undefined,
    });
    const { rank } = dimensions;
    const fixedRank = fixed(rank?.key);
    const ranks = !rank ? [null] : fixedRank === undefined ? rank.choices : [fixedRank];
    const below = ranks.filter((each) => each === null || each < width || each === fixedRank);
    const feedForward = this.#feedForwards(width);
    return layouts.flatMap((layout) =>
      below.map((each) => ({ width, layout, rank: each, feedForward })),
    );
  }

  #feedForwards(width: number): ShapeColumn['feedForward'] {
    const { feedForward } = this.#space.dimensions;
    if (!feedForward) return null;
    const fixed = this.#space.fixed(feedForward.key);
    if (fixed !== undefined) return { least: fixed, step: 0, most: 0 };
    const { align: step } = this.#wish;
    const [fewest, most] = feedForward.perChannel;
    const least = step * Math.max(1, Math.ceil((fewest * width) / step));
    return { least, step, most: Math.max(0, Math.floor((most * width - least) / step)) };
  }

  /** Adds the models of a column within the budget. Returns its fewest parameters; undefined if none is valid. */
  #column(column: ShapeColumn): number | undefined {
    const sizesAt = (depth: number, steps: number) => sizesIn(column, depth, steps);
    const described = describedCounts(this.#models, sizesAt);
    const foreseen = foreseenCounts(described);
    const found = foreseen && this.#foundIn(column, foreseen);
    // Extrapolated counts are checked against each model found.
    const { models, fewest } = found ??
      this.#foundIn(column, described) ?? { models: [], fewest: undefined };
    this.#found.push(...models);
    return fewest;
  }

  /** Models of a column; undefined if a count differs from a model's parameters. */
  #foundIn(
    column: ShapeColumn,
    counts: Counts,
  ): { models: MeasuredModel[]; fewest: number | undefined } | undefined {
    const { minParameters, maxParameters, maxMemory } = this.#wish;
    const most = column.feedForward?.most ?? 0;
    const models: MeasuredModel[] = [];
    let fewest: number | undefined;
    for (const depth of this.#depths) {
      const least = counts(depth, 0);
      if (least === undefined) continue;
      if (fewest === undefined) {
        fewest = least;
        this.#note('smallest', sizesIn(column, depth, 0), least);
      }
      const steps = mostStepsWithin(counts, depth, { most, limit: maxParameters });
      if (steps === undefined) break;
      const sizes = sizesIn(column, depth, steps);
      const foreseen = counts(depth, steps) ?? 0;
      this.#note('largest', sizes, foreseen);
      if (foreseen < minParameters) continue;
      const measures = this.#measure(sizes);
      if (measures?.parameters !== foreseen) return undefined;
      this.#note('leanest', sizes, measures.memory);
      if (measures.memory <= maxMemory) models.push({ sizes, measures });
    }
    return { models, fewest };
  }

  #measure(sizes: Sizes): Measures | undefined {
    const { inference, decode } = this.#wish;
    const model = this.#models.model(sizes);
    if (!model) return undefined;
    requirePositions(inference.context, positionsOf(model));
    return measuresOf(model, sizes, inference, decode);
  }

  #note(which: 'smallest' | 'largest' | 'leanest', sizes: Sizes, value: number): void {
    const near = { sizes, value };
    switch (which) {
      case 'smallest':
        if (!this.#smallest || value < this.#smallest.value) this.#smallest = near;
        break;
      case 'largest':
        if (!this.#largest || value > this.#largest.value) this.#largest = near;
        break;
      case 'leanest':
        if (!this.#leanest || value < this.#leanest.value) this.#leanest = near;
        break;
    }
  }
}

const sizesIn = (
  { width, layout, rank, feedForward }: ShapeColumn,
  depth: number,
  steps: number,
): Sizes => ({
  depth,
  width,
  ...layout,
  feedForward: feedForward && feedForward.least + steps * feedForward.step,
  rank,
});

export function measuresOf(
  model: FoldedModel,
  sizes: Sizes,
  inference: StateSetting,
  decode?: DecodingTarget,
): Measures {
  const counted = model.map(({ model: part, times }) => ({ times, ...countParameters(part) }));
  const sum = (of: (count: ParameterBudget) => number) =>
    sumOf(counted, ({ times, ...count }) => times * of(count));
  const parameters = sum((each) => each.parameters);
  const memory = inferenceBytes({
    parameters,
    buffers: sum(({ buffers }) => buffers),
    state: sumOver(model, (part) => Number(stateOf(part, inference).total.value)),
    dtype: inference.dtype,
  });
  return {
    parameters,
    body: sum(bodyIn),
    memory,
    decode: decode && isWithin(memory, decode) ? decode.expected(model) : null,
    widthPerLayer: widthPerLayer(sizes).value,
    offBalance: offBalance(sizes).value,
  };
}
