/** A plan as work on single widths, and the steps that continue with what was found in them. */
import { nextTurn } from '../../base/next-turn.js';
import { ANY_BACKEND, type Sweep } from '../../base/sweep.js';
import type { Family } from '../../model/architecture/family.js';
import { type Plan, type PlanRequest, planning, searchRequest, spaceOf } from './plan-models.js';
import {
  searchedBy,
  searchedWidths,
  type WidthRequest,
  type WidthSearch,
  WidthSearcher,
} from './search.js';
import {
  comparingVocabularies,
  type SquareRootRule,
  type TokenizedText,
  type VocabularyComparison,
} from './vocabulary.js';

export interface VocabularyPlan {
  readonly plan: Plan;
  /** Undefined without texts. */
  readonly vocabularies: VocabularyComparison | undefined;
}

/**
 * The best shapes of a model for a budget, with the vocabularies and the rule that the user asked about.
 * @answer minimind plan --json
 */
export interface PlanResult extends Plan {
  readonly schema: 'minimind/plan@1';
  /** The best plan of each tokenizer; absent without `--tokenizer`. */
  readonly vocabularies?: VocabularyComparison;
  /** Sizes by the rule of the square root; absent without `--sqrt-rule`. */
  readonly squareRootRule?: SquareRootRule;
  /** The config of the best model; absent without `--save -`. */
  readonly text?: string;
}

/** Seconds of a head layout and rank, and of a measured model, on a slow machine. */
const COLUMN_SECONDS = 0.01;
const MODEL_SECONDS = 0.01;

/** Memory of a search and its models. */
const SEARCH_BYTES = 350e6;

/** Result of a search where all models are too large. */
const BEYOND: WidthSearch = {
  found: [],
  smallest: undefined,
  largest: undefined,
  leanest: undefined,
  isBeyond: true,
  isInvalid: false,
};

/**
 * The widths of a plan, for each vocabulary of the texts. A search that the plan needs beyond them runs in its last step:
 * one with a lower limit, where the budget has no models nearby.
 * @throws UserError when the sizes of the family are not known, or an override or a limit is wrong.
 */
export function planSweep(
  family: Family,
  request: PlanRequest,
  texts: readonly TokenizedText[] | undefined,
): Sweep<WidthSearch, VocabularyPlan> {
  const vocabularies = texts?.map(({ vocabulary }) => vocabulary) ?? [request.vocabulary];
  const searched = searchRequest(request);
  const searches = vocabularies.map((vocabulary) => {
    const space = spaceOf(family, { ...request, vocabulary });
    return {
      searcher: new WidthSearcher(space, searched),
      widths: searchedWidths(space, searched),
    };
  });
  const widths = searches[0]?.widths.length ?? 0;
  /** Index of the first width that this process found to be too wide. */
  const beyond = new Map<number, number>();
  const unitOf = ({ vocabulary, minParameters, isFolded, index }: WidthRequest) => {
    const number = vocabularies.indexOf(vocabulary);
    const isUnit = number >= 0 && isFolded && minParameters === searched.minParameters;
    return isUnit ? number * widths + index : undefined;
  };
  return {
    units: {
      name: 'widths',
      count: widths * searches.length,
      costs: () =>
        searches.flatMap(({ searcher, widths: own }) =>
          [...searcher.work(own)].map(
            ({ columns, models }) => COLUMN_SECONDS * columns + MODEL_SECONDS * models,
          ),
        ),
      identity: () => [vocabularies, searches[0]?.widths, searched.minParameters],
    },
    memoryBytes: () => SEARCH_BYTES,
    backend: ANY_BACKEND,
    async compute(unit) {
      const number = Math.floor(unit / widths);
      const index = unit % widths;
      // Leaves time for Ctrl-C and timers.
      await nextTurn();
      // The fold ends at the first of them.
      if (index > (beyond.get(number) ?? widths)) return BEYOND;
      const { searcher, widths: own } = searches[number] ?? {};
      const found = searcher?.width(own?.[index] ?? 0) ?? BEYOND;
      if (found.isBeyond) beyond.set(number, index);
      return found;
    },
    fold: (found) =>
      searchedBy(vocabularyPlan(family, request, texts), async (asked) => {
        const unit = unitOf(asked);
        return unit === undefined ? asked.compute() : found(unit);
      }),
  };
}

function* vocabularyPlan(
  family: Family,
  request: PlanRequest,
  texts: readonly TokenizedText[] | undefined,
): Generator<WidthRequest, VocabularyPlan, WidthSearch> {
  const vocabularies = texts && (yield* comparingVocabularies(family, request, texts));
  const best = vocabularies ? { vocabulary: vocabularies.best.vocabulary } : {};
  return { plan: yield* planning(family, { ...request, ...best }), vocabularies };
}
