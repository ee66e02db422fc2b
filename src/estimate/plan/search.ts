/** Searches the sizes of a family for models within a budget. */

import { sumOf } from '../../base/values.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { memoizedBy } from '../../model/architecture/walk.js';
import type { Bounds, Exact, Quantity } from '../../model/budget/figure.js';
import {
  bodyIn,
  bufferBytes,
  countParameters,
  type ParameterBudget,
} from '../../model/budget/parameters.js';
import { inferenceBytes, requirePositions } from '../../model/budget/profile-model.js';
import { type StateSetting, stateOf } from '../../model/budget/state.js';
import { isQuantized, servedFormat } from '../fit/model-memory.js';
import { servedParameters } from '../fit/serving/quantized.js';
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

/** The models of one width. */
export interface WidthSearch extends SearchResult {
  /** Whether even the smallest is too large, and so are those of all wider ones. */
  readonly isBeyond: boolean;
  /** Whether there are heads for the width, but no valid model. */
  readonly isInvalid: boolean;
}

/** A width to search, at the limits and the vocabulary of one search. */
export interface WidthRequest {
  readonly vocabulary: number | undefined;
  readonly minParameters: number;
  readonly isFolded: boolean;
  /** Place among all widths of the search. */
  readonly index: number;
  /** Searches it here. */
  readonly compute: () => WidthSearch;
}

/** Steps that ask for widths, and continue with what was found in each. */
export type Searching<Result> = Generator<WidthRequest, Result, WidthSearch>;

/** Runs steps, and searches each width here. */
export function searchedHere<Result>(steps: Searching<Result>): Result {
  for (let step = steps.next(); ; ) {
    if (step.done) return step.value;
    step = steps.next(step.value.compute());
  }
}

/** Runs steps with what others found. */
export async function searchedBy<Result>(
  steps: Searching<Result>,
  find: (request: WidthRequest) => Promise<WidthSearch>,
): Promise<Result> {
  for (let step = steps.next(); ; ) {
    if (step.done) return step.value;
    step = steps.next(await find(step.value));
  }
}

/** Widths of a search, in order. */
export const searchedWidths = (space: ModelSpace, { width }: Pick<SearchRequest, 'width'>) =>
  widthsIn(fixedOr(space.fixed(space.dimensions.width), width));

/** @throws UserError when no model of the first width is valid, or one does not support the context. */
export function* search(space: ModelSpace, request: SearchRequest): Searching<SearchResult> {
  const run = new WidthSearcher(space, request);
  const { minParameters, isFolded } = request;
  const { vocabulary } = space;
  const widths = searchedWidths(space, request);
  const found: MeasuredModel[] = [];
  let nearest: Omit<SearchResult, 'found'> = {
    ...{ smallest: undefined, largest: undefined, leanest: undefined },
  };
  for (const [index, width] of widths.entries()) {
    const compute = () => run.width(width);
    const each = yield { vocabulary, minParameters, isFolded, index, compute };
    found.push(...each.found);
    nearest = {
      smallest: nearer(nearest.smallest, each.smallest, (a, b) => a < b),
      largest: nearer(nearest.largest, each.largest, (a, b) => a > b),
      leanest: nearer(nearest.leanest, each.leanest, (a, b) => a < b),
    };
    if (each.isInvalid && nearest.smallest === undefined) run.refuse(width);
    if (each.isBeyond) break;
    request.onSearched?.(index + 1, widths.length);
  }
  return { found, ...nearest };
}

/** The better of two models; the first of equal ones. */
const nearer = (
  one: NearestModel | undefined,
  other: NearestModel | undefined,
  isBetter: (a: number, b: number) => boolean,
) => (one === undefined || (other && isBetter(other.value, one.value)) ? other : one);

const fixedOr = (fixed: number | undefined, range: SizeRange): SizeRange =>
  fixed === undefined ? range : { least: fixed, most: fixed };

/** Searches single widths. */
export class WidthSearcher {
  readonly #space: ModelSpace;
  readonly #request: SearchRequest;
  readonly #models: Folding;
  readonly #depths: readonly number[];
  #found: MeasuredModel[] = [];
  #smallest: NearestModel | undefined;
  #largest: NearestModel | undefined;
  #leanest: NearestModel | undefined;

  constructor(space: ModelSpace, request: SearchRequest) {
    this.#space = space;
    this.#request = request;
    this.#models = request.isFolded ? new Folding(space) : new Folding(space, 0);
    this.#depths = depthsIn(fixedOr(space.fixed(space.dimensions.depth), request.depth));
  }

  /** Searches the models of a width. @throws UserError when a model does not support the context. */
  width(width: number): WidthSearch {
    this.#found = [];
    this.#smallest = undefined;
    this.#largest = undefined;
    this.#leanest = undefined;
    const columns = this.#columns(width);
    const smallest = columns.map((column) => this.#column(column));
    const valid = smallest.filter((each) => each !== undefined);
    return {
      found: this.#found,
      smallest: this.#smallest,
      largest: this.#largest,
      leanest: this.#leanest,
      isBeyond: valid.length > 0 && valid.every((each) => each > this.#request.maxParameters),
      isInvalid: columns.length > 0 && valid.length === 0,
    };
  }

  /** @throws UserError with the problems of the smallest model of a width. */
  refuse(width: number): void {
    const [first] = this.#columns(width);
    const sizes = first && sizesIn(first, this.#depths[0] ?? 1, 0);
    const complaint = sizes && this.#space.complaint(sizes);
    if (complaint) throw complaint;
  }

  /** Work of each width: its columns of shapes, and the models that are measured. None for those that are too wide. */
  *work(
    widths: readonly number[],
  ): Generator<{ readonly columns: number; readonly models: number }> {
    let isBeyond = false;
    for (const width of widths) {
      const columns: readonly ShapeColumn[] = isBeyond ? [] : this.#columns(width);
      let models = 0;
      const least: readonly number[] = columns.flatMap((column) => {
        const described = describedCounts(this.#models, (depth, steps) =>
          sizesIn(column, depth, steps),
        );
        const counts = foreseenCounts(described) ?? described;
        for (const { widest } of this.#depthsOf(column, counts)) {
          if (widest && widest.value >= this.#request.minParameters) models++;
        }
        return described(this.#depths[0] ?? 1, 0) ?? [];
      });
      yield { columns: columns.length, models };
      isBeyond ||= least.length > 0 && least.every((each) => each > this.#request.maxParameters);
    }
  }

  #columns(width: number): ShapeColumn[] {
    const { dimensions } = this.#space;
    const fixed = (key: string | undefined) => this.#space.fixed(key);
    const layouts = headLayouts(width, {
      headDims: this.#request.headDims,
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
    const { align: step } = this.#request;
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
    const { minParameters, maxMemory } = this.#request;
    const models: MeasuredModel[] = [];
    let fewest: number | undefined;
    for (const { depth, least, widest } of this.#depthsOf(column, counts)) {
      if (fewest === undefined) {
        fewest = least;
        this.#note('smallest', sizesIn(column, depth, 0), least);
      }
      if (widest === undefined) break;
      const { sizes, value: foreseen } = widest;
      this.#note('largest', sizes, foreseen);
      if (foreseen < minParameters) continue;
      const measures = this.#measure(sizes, sizesIn(column, depth, 0));
      if (measures?.parameters !== foreseen) return undefined;
      this.#note('leanest', sizes, measures.memory);
      if (measures.memory <= maxMemory) models.push({ sizes, measures });
    }
    return { models, fewest };
  }

  /**
   * Fewest parameters of each valid depth of a column, and its widest model within the budget. The first depth without one
   * is the last.
   */
  *#depthsOf(
    column: ShapeColumn,
    counts: Counts,
  ): Generator<{
    readonly depth: number;
    readonly least: number;
    readonly widest: NearestModel | undefined;
  }> {
    const most = column.feedForward?.most ?? 0;
    for (const depth of this.#depths) {
      const least = counts(depth, 0);
      if (least === undefined) continue;
      const steps = mostStepsWithin(counts, depth, { most, limit: this.#request.maxParameters });
      if (steps === undefined) {
        yield { depth, least, widest: undefined };
        return;
      }
      const widest = { sizes: sizesIn(column, depth, steps), value: counts(depth, steps) ?? 0 };
      yield { depth, least, widest };
    }
  }

  /** @param narrowest The same sizes with the narrowest feed-forward network, which many models of a column share. */
  #measure(sizes: Sizes, narrowest: Sizes): Measures | undefined {
    const { inference, decode, isFolded } = this.#request;
    const model = this.#models.model(sizes);
    if (!model) return undefined;
    requirePositions(inference.context, positionsOf(model));
    // A feed-forward network is assumed to keep no state, which callers check on whole models.
    const keeping = isFolded && model.length > 1 ? this.#models.model(narrowest) : model;
    return measuresOf(model, sizes, inference, decode, keeping);
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

/** @param keeping A model that keeps the same state. */
export function measuresOf(
  model: FoldedModel,
  sizes: Sizes,
  inference: StateSetting,
  decode?: DecodingTarget,
  keeping = model,
): Measures {
  const counted = model.map(({ model: part, times }) => ({ times, ...countParameters(part) }));
  const sum = (of: (count: ParameterBudget) => number) =>
    sumOf(counted, ({ times, ...count }) => times * of(count));
  const parameters = sum((each) => each.parameters);
  const kept = {
    buffers: sum(({ buffers }) => buffers),
    state: sumOver(keeping, (part) => stateBytes(part, inference)),
  };
  const format = servedFormat(inference.dtype, undefined);
  const memory =
    format && isQuantized(format)
      ? sumOver(model, (part) => Number(servedParameters(part, format).value)) +
        Number(bufferBytes(kept.buffers).value) +
        kept.state
      : inferenceBytes({ ...kept, parameters, dtype: inference.dtype });
  return {
    parameters,
    body: sum(bodyIn),
    memory,
    decode: decode && isWithin(memory, decode) ? decode.expected(model) : null,
    widthPerLayer: widthPerLayer(sizes).value,
    offBalance: offBalance(sizes).value,
  };
}

const stateBytes = memoizedBy(
  (setting: StateSetting) => setting,
  (part: LanguageModel, setting) => Number(stateOf(part, setting).total.value),
);
