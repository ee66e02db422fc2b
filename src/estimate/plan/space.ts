/** Models of a family by size; each is a document checked by the family's schema and rules. */

import type { UserError } from '../../base/errors.js';
import { isRecord } from '../../base/values.js';
import { checkDocument, unreadKeys } from '../../config/check-document.js';
import { documentOfData } from '../../config/document.js';
import { invalidConfig, toProblems } from '../../config/document-problems.js';
import { applyOverrides, correctedOverrides } from '../../config/overrides.js';
import type { Dimensions, Family } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { JsonObject } from '../../model/architecture/transformer/config-keys.js';

// Sizes to try: depths, widths and head layouts.

/** Sizes of a model that the search chooses. Null if the family does not have the choice. */
export interface Sizes {
  /** Number of blocks. @integer @minimum 1 */
  readonly depth: number;
  /** Width of the residual stream. @integer @minimum 1 */
  readonly width: number;
  /** Query heads. @integer @minimum 1 */
  readonly heads: number;
  /** Heads of keys and values; null where every head has its own. @integer @minimum 1 */
  readonly keyValueHeads: number | null;
  /** Width of a head. @integer @minimum 1 */
  readonly headDim: number;
  /** Width of the feed-forward network. @integer @minimum 1 */
  readonly feedForward: number | null;
  /** Rank of the SRTE; null where the family has none. @integer @minimum 1 */
  readonly rank: number | null;
}

/** Range with both ends included. */
export interface SizeRange {
  readonly least: number;
  readonly most: number;
}

/** Depths per doubling: all up to 32, every second up to 64, and so on. One block matters less in deep models. */
const DEPTHS_PER_DOUBLING = 16;
/** Widths per doubling: multiples of 64 up to 1024, of 128 up to 2048, and so on. */
const WIDTHS_PER_DOUBLING = 8;
/** Divisor of widths, for head dimensions and matrix units. */
const WIDTH_UNIT = 64;

/** Depths of a range, including both ends. */
export function depthsIn(range: SizeRange): number[] {
  const depths = multiples(range, 1, DEPTHS_PER_DOUBLING);
  return depths.at(-1) === range.most ? depths : [...depths, range.most];
}

/** Widths of a range; a single width is kept as given. */
export const widthsIn = (range: SizeRange): number[] =>
  range.least === range.most ? [range.least] : multiples(range, WIDTH_UNIT, WIDTHS_PER_DOUBLING);

/** Multiples of `unit`, at most `perDoubling` per doubling. */
function multiples({ least, most }: SizeRange, unit: number, perDoubling: number): number[] {
  const found: number[] = [];
  let value = Math.max(unit, Math.ceil(least / unit) * unit);
  while (value <= most) {
    found.push(value);
    const step = unit * 2 ** Math.max(0, Math.floor(Math.log2(value / unit / perDoubling)));
    value = (Math.floor(value / step) + 1) * step;
  }
  return found;
}

export type HeadLayout = Pick<Sizes, 'heads' | 'keyValueHeads' | 'headDim'>;

export interface HeadRequest {
  /** Head dimensions, preferred ones first; undefined: usual ones. */
  readonly headDims?: readonly number[] | undefined;
  /** Values fixed by the document. */
  readonly heads?: number | undefined;
  readonly keyValueHeads?: number | undefined;
  readonly headDim?: number | undefined;
  /** Whether heads can share keys and values. */
  readonly canShare: boolean;
}

/** Usual head dimensions: 64 in small models, 128 in most from a width of 2048 on, and 32 if 64 gives few heads. */
function usualHeadDims(width: number): readonly number[] {
  if (width >= 2048) return [128, 64, 96, 80];
  return width < 256 ? [64, 32] : [64, 128, 96, 80];
}

/** Limit of query heads per key-value head, as in MiniMind 2, Llama 3 8B and SmolLM2. */
const MOST_QUERIES_PER_KEY = 4;

/** Head layouts of a width; the first of those with the same parameters and KV cache. */
export function headLayouts(width: number, request: HeadRequest): HeadLayout[] {
  const layouts = queryHeads(width, request)
    .filter(({ headDim }) => headDim > 0 && headDim % 2 === 0)
    .flatMap((layout) =>
      keyHeads(layout.heads, request).map((keyValueHeads) => ({ ...layout, keyValueHeads })),
    );
  const distinct = new Map<string, HeadLayout>();
  for (const layout of layouts) {
    const { heads, keyValueHeads, headDim } = layout;
    const key = `${heads * headDim} ${(keyValueHeads ?? heads) * headDim}`;
    if (!distinct.has(key)) distinct.set(key, layout);
  }
  return [...distinct.values()];
}

function queryHeads(
  width: number,
  { headDims = usualHeadDims(width), heads, headDim }: HeadRequest,
) {
  if (heads !== undefined) {
    const each = headDim ?? width / heads;
    return Number.isInteger(each) ? [{ heads, headDim: each }] : [];
  }
  const dims = headDim === undefined ? headDims : [headDim];
  return dims
    .filter((dim) => width % dim === 0)
    .map((dim) => ({ heads: width / dim, headDim: dim }));
}

function keyHeads(heads: number, { keyValueHeads, canShare }: HeadRequest): (number | null)[] {
  if (!canShare) return [null];
  if (keyValueHeads !== undefined) return heads % keyValueHeads === 0 ? [keyValueHeads] : [];
  const groups = Array.from({ length: MOST_QUERIES_PER_KEY }, (_, index) => index + 1);
  return groups.filter((group) => heads % group === 0).map((group) => heads / group);
}

export interface SpaceRequest {
  readonly vocabulary?: number | undefined;
  /** Tokens that the model supports. */
  readonly context: number;
  /** Overrides, `model.key=value`. The search does not change sizes that they fix. */
  readonly set: readonly string[];
}

/** Name of a document without a file, in messages. */
const NAME = 'the plan';

export class ModelSpace {
  readonly family: Family;
  readonly dimensions: Dimensions;
  readonly #request: SpaceRequest;
  /** Overrides outside and inside `model`. */
  readonly #sections: JsonObject;
  readonly #model: JsonObject;

  /** @throws UserError when an override cannot be read, or removes the model. */
  constructor(family: Family, dimensions: Dimensions, request: SpaceRequest) {
    this.family = family;
    this.dimensions = dimensions;
    const set = correctedOverrides(family.schema, request.set);
    this.#request = { ...request, set };
    const overridden = applyOverrides(documentOfData({ model: {} }, NAME), set);
    const unread = unreadKeys(overridden, family.schema);
    const { problems, errors } = toProblems([...overridden.found, ...unread]);
    if (errors > 0) throw invalidConfig(NAME, problems, errors);
    const { model, ...sections } = overridden.value;
    this.#sections = sections;
    if (!isRecord(model)) {
      const wrong = checkDocument(overridden, family);
      throw invalidConfig(NAME, wrong.problems, wrong.errors);
    }
    this.#model = model;
  }

  /** The requested vocabulary. */
  get vocabulary(): number | undefined {
    return this.#request.vocabulary;
  }

  /** Size that the overrides fix for a key. */
  fixed(key: string | undefined): number | undefined {
    if (key === undefined || !Object.hasOwn(this.#model, key)) return undefined;
    const value = this.#model[key];
    return typeof value === 'number' && value > 0 ? value : undefined;
  }

  /** Document as a user would write it. */
  document(sizes: Sizes): Record<string, unknown> {
    return { ...this.#sections, model: { ...this.#written(sizes), ...this.#model } };
  }

  #written(sizes: Sizes): JsonObject {
    const { dimensions } = this;
    const { vocabulary, context } = this.#request;
    const { keyValueHeads, headDim, feedForward, rank } = dimensions;
    const entries: [string | undefined, unknown][] = [
      ['family', this.family.name],
      [dimensions.vocabulary, vocabulary],
      [dimensions.positions, context],
      [dimensions.depth, sizes.depth],
      [dimensions.width, sizes.width],
      [dimensions.heads, sizes.heads],
      [keyValueHeads, sizes.keyValueHeads],
      ...(headDim ?? []).map((key): [string, number] => [key, sizes.headDim]),
      [feedForward?.key, sizes.feedForward],
      [rank?.key, sizes.rank],
      ...Object.entries(dimensions.follows?.(sizes.width) ?? {}),
    ];
    return Object.fromEntries(entries.filter(([key, value]) => key !== undefined && value != null));
  }

  /**
   * Model of given sizes; undefined if its document is invalid.
   * @throws LimitError when it is too large to describe.
   */
  model(sizes: Sizes): LanguageModel | undefined {
    const document = documentOfData(this.document(sizes), NAME);
    const { value } = checkDocument(document, this.family);
    return value === undefined ? undefined : this.family.build(value);
  }

  /** Error of the overrides if a model of these sizes is invalid; undefined if it is valid. */
  complaint(sizes: Sizes): UserError | undefined {
    const plain = documentOfData({ model: this.#written(sizes) }, NAME);
    const { problems, errors } = checkDocument(
      applyOverrides(plain, this.#request.set),
      this.family,
    );
    return errors > 0 ? invalidConfig(NAME, problems, errors) : undefined;
  }
}
