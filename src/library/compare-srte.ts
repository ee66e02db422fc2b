/** `compare-srte` as a function: the SRTE strategies of a hybrid model. */
import { DTYPE_NAMES, type Dtype } from '../base/tensor/dtype.js';
import { commandText } from '../base/text/setting.js';
import { documentOf } from '../input/model-input/model-file.js';
import { type HybridConfig, hybrid } from '../model/architecture/models/hybrid.js';
import {
  compareSrte as compareStrategies,
  PUBLISHED_RANKS,
  type SrteComparison,
  type SrteOptions,
  type SrteResult,
} from '../model/budget/srte-comparison.js';
import { type AnswerNotes, type Model, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireModel } from './arguments.js';

export interface CompareSrteOptions {
  /** Element type of the bytes. Default: `bf16`. */
  readonly dtype?: Dtype | undefined;
  /** Ranks to compare. Default: those of the published report. */
  readonly ranks?: readonly number[] | undefined;
  /** Numbers of positions, a row each. */
  readonly maxPositions?: readonly number[] | undefined;
  /** Vocabulary sizes, a row each. */
  readonly vocabSizes?: readonly number[] | undefined;
  /** Whether a row has a tied head. */
  readonly tie?: boolean | undefined;
  /** Whether each preset of the published report has a row. */
  readonly presets?: boolean | undefined;
}

const COMPARE_SRTE_KINDS: OptionKinds<CompareSrteOptions & SrteOptions> = {
  dtype: DTYPE_NAMES,
  ranks: 'list',
  maxPositions: 'list',
  vocabSizes: 'list',
  tie: 'flag',
  presets: 'flag',
  trainedContext: 'count',
};

/** Options by default. */
export const SRTE_DEFAULTS = { dtype: 'bf16', ranks: PUBLISHED_RANKS } as const;

/**
 * Compares the SRTE strategies of a hybrid model. Also takes the bare `model` section of a config, which has no file.
 * @throws UserError for a model of another family.
 */
export function compareSrte(model: Model, options?: CompareSrteOptions): SrteResult & AnswerNotes;
export function compareSrte(model: HybridConfig, options: SrteOptions): SrteComparison;
export function compareSrte(
  model: Model | HybridConfig,
  options: CompareSrteOptions = {},
): (SrteResult & AnswerNotes) | SrteComparison {
  // A bare config has no model inside.
  if (typeof model !== 'object' || model instanceof Promise) requireModel(model, 'compareSrte');
  checkOptions('compareSrte', options, COMPARE_SRTE_KINDS);
  const { dtype = SRTE_DEFAULTS.dtype, ranks = SRTE_DEFAULTS.ranks } = options;
  const { maxPositions = [], vocabSizes = [], tie = false, presets = false } = options;
  const asked = { ...options, dtype, ranks, maxPositions, vocabSizes, tie, presets };
  if (!('document' in model)) return compareStrategies(model, asked);
  const { model: config, training } = documentOf(
    model,
    hybrid,
    `only hybrid models have an SRTE; write ${commandText('profile', [model.file])}`,
  );
  const comparison = compareStrategies(config, {
    ...asked,
    trainedContext: training?.max_seq_length,
  });
  const result: SrteResult = { schema: 'minimind/compare-srte@1', file: model.file, ...comparison };
  return withNotes(result, model);
}
