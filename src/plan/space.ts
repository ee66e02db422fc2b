/** All models of a family, by their sizes: each is a document that the family's schema and rules judge. */
import type { Dimensions, Family } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { checkDocument, unreadKeys } from '../config/check.js';
import { documentOfData } from '../config/document.js';
import { applyOverrides, meantOverrides } from '../config/overrides.js';
import { invalidConfig, toProblems } from '../config/problems.js';
import type { UserError } from '../errors.js';
import { isRecord } from '../text/values.js';
import type { Sizes } from './sizes.js';

export interface SpaceWish {
  readonly vocabulary?: number | undefined;
  /** Tokens that the model takes. */
  readonly context: number;
  /** Overrides, `model.key=value`. A size among them is no choice any more. */
  readonly set: readonly string[];
}

type Values = Readonly<Record<string, unknown>>;

/** What messages call a document that stands in no file. */
const NAME = 'the plan';

export class ModelSpace {
  readonly family: Family;
  readonly dimensions: Dimensions;
  readonly #wish: SpaceWish;
  /** What the overrides say beside `model`, and in it. */
  readonly #sections: Values;
  readonly #model: Values;

  /** @throws UserError when an override cannot be read, or leaves no model. */
  constructor(family: Family, dimensions: Dimensions, wish: SpaceWish) {
    this.family = family;
    this.dimensions = dimensions;
    const set = meantOverrides(family.schema, wish.set);
    this.#wish = { ...wish, set };
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

  /** The size that the overrides give to a key. */
  fixed(key: string | undefined): number | undefined {
    if (key === undefined || !Object.hasOwn(this.#model, key)) return undefined;
    const value = this.#model[key];
    return typeof value === 'number' && value > 0 ? value : undefined;
  }

  /** The document that a user would write. */
  document(sizes: Sizes): Record<string, unknown> {
    return { ...this.#sections, model: { ...this.#written(sizes), ...this.#model } };
  }

  #written(sizes: Sizes): Values {
    const { dimensions } = this;
    const { vocabulary, context } = this.#wish;
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
   * The model of such sizes; undefined when its document is not valid.
   * @throws LimitError when it is beyond what can be described.
   */
  model(sizes: Sizes): LanguageModel | undefined {
    const document = documentOfData(this.document(sizes), NAME);
    const { value } = checkDocument(document, this.family);
    return value === undefined ? undefined : this.family.build(value);
  }

  /** What is wrong with the overrides, when a model of such sizes is not valid; undefined when it is. */
  complaint(sizes: Sizes): UserError | undefined {
    const plain = documentOfData({ model: this.#written(sizes) }, NAME);
    const { problems, errors } = checkDocument(applyOverrides(plain, this.#wish.set), this.family);
    return errors > 0 ? invalidConfig(NAME, problems, errors) : undefined;
  }
}
