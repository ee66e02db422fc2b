/** A model that splits its parameters by a rule of shares, to compare it with the best of a plan. */
import type { LanguageModel } from '../../model/architecture/layer.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { HeadLayout, ModelSpace, SizeRange, Sizes } from './space.js';
import { headLayouts, widthsIn } from './space.js';

/** Parts of all parameters. */
export interface Shares {
  /** Embedding, learned positions and head. @minimum 0 @maximum 1 */
  readonly embedding: number;
  /** Share of the attention. @minimum 0 @maximum 1 */
  readonly attention: number;
  /** Share of the feed-forward layers. @minimum 0 @maximum 1 */
  readonly feedForward: number;
}

/** A rule that courses teach; it has no published source. */
export const ALLOCATION_RULE: Shares = { embedding: 0.15, attention: 0.25, feedForward: 0.6 };

export function sharesOf(model: LanguageModel): Shares {
  const { parameters, byComponent } = countParameters(model);
  const { embedding, positions, head, attention, feedForward } = byComponent;
  return {
    embedding: (embedding + positions + head) / parameters,
    attention: attention / parameters,
    feedForward: feedForward / parameters,
  };
}

interface AllocationRequest {
  readonly maxParameters: number;
  readonly align: number;
  readonly depth: SizeRange;
  readonly width: SizeRange;
  readonly headDims: readonly number[] | undefined;
}

/**
 * Sizes whose shares are nearest to the rule, within the budget. Undefined for a family whose feed-forward width is not
 * free, for a mixture, and where no model is valid.
 */
export function allocatedSizes(space: ModelSpace, request: AllocationRequest): Sizes | undefined {
  if (!space.dimensions.feedForward) return undefined;
  const candidates: { readonly sizes: Sizes; readonly shares: Shares }[] = [];
  for (const [index, width] of candidateWidths(space, request).entries()) {
    if (index >= NEAREST && candidates.length > 0) break;
    const layouts = layoutsOf(space, width, request.headDims);
    candidates.push(...layouts.flatMap((layout) => sizesFor(space, { width, layout }, request)));
  }
  const deviation = ({ shares }: (typeof candidates)[number]) =>
    Math.abs(shares.embedding - ALLOCATION_RULE.embedding) +
    Math.abs(shares.attention - ALLOCATION_RULE.attention) +
    Math.abs(shares.feedForward - ALLOCATION_RULE.feedForward);
  return candidates.toSorted((a, b) => deviation(a) - deviation(b))[0]?.sizes;
}

/** The widths on either side of the one whose embeddings have their share; narrower ones if neither has a model. */
const NEAREST = 2;

/** Widths from the first whose embeddings have their share downwards. */
function candidateWidths(
  space: ModelSpace,
  { maxParameters, width, headDims }: AllocationRequest,
): number[] {
  const fixed = space.fixed(space.dimensions.width);
  const widths = widthsIn(fixed === undefined ? width : { least: fixed, most: fixed });
  const [least = 0] = widths;
  const [layout] = layoutsOf(space, least, headDims);
  const model = layout && space.model(sizesIn({ width: least, layout }, 1, least));
  if (!model) return [];
  const perChannel = (sharesOf(model).embedding * countParameters(model).parameters) / least;
  const wanted = (ALLOCATION_RULE.embedding * maxParameters) / perChannel;
  const above = widths.findIndex((each) => each >= wanted);
  return widths.slice(0, above < 0 ? widths.length : above + 1).toReversed();
}

/** Head layouts of a width that the overrides leave. */
function layoutsOf(space: ModelSpace, width: number, headDims?: readonly number[]) {
  const { dimensions } = space;
  return headLayouts(width, {
    headDims,
    heads: space.fixed(dimensions.heads),
    keyValueHeads: space.fixed(dimensions.keyValueHeads),
    headDim: space.fixed(dimensions.headDim?.[0]),
    canShare: dimensions.keyValueHeads !== undefined,
  });
}

interface Shape {
  readonly width: number;
  readonly layout: HeadLayout;
}

const sizesIn = ({ width, layout }: Shape, depth: number, feedForward: number): Sizes => ({
  depth,
  width,
  ...layout,
  feedForward,
  rank: null,
});

/** Feed-forward width and depth of the rule; empty without a valid model within the budget. */
function sizesFor(
  space: ModelSpace,
  shape: Shape,
  { maxParameters, align, depth: depths }: AllocationRequest,
) {
  const countsAt = (sizes: Sizes) => {
    const model = space.model(sizes);
    return model && countParameters(model).byComponent;
  };
  const first = align * Math.max(1, Math.round(shape.width / align));
  const one = countsAt(sizesIn(shape, 1, first));
  if (!one || one.attention === 0 || one.feedForward === 0) return [];
  const { attention, feedForward } = ALLOCATION_RULE;
  const wanted = (feedForward / attention) * one.attention * (first / one.feedForward);
  const inner = fixedFeedForward(space) ?? align * Math.max(1, Math.round(wanted / align));
  const block = one.attention + (one.feedForward * inner) / first;
  const wantedDepth = Math.round(((attention + feedForward) * maxParameters) / block);
  const most = Math.min(depths.most, Math.max(depths.least, wantedDepth));
  const fixed = space.fixed(space.dimensions.depth);
  for (const depth of fixed === undefined
    ? [most, most - 1, most - 2].filter((depth) => depth >= depths.least)
    : [fixed]) {
    const sizes = sizesIn(shape, depth, inner);
    const model = space.model(sizes);
    if (model && countParameters(model).parameters <= maxParameters) {
      return [{ sizes, shares: sharesOf(model) }];
    }
  }
  return [];
}

const fixedFeedForward = (space: ModelSpace) => space.fixed(space.dimensions.feedForward?.key);
