/** `compare` as a function: models side by side. */
import { usageError } from '../base/errors.js';
import {
  type ComparisonRequest,
  type ComparisonResult,
  comparisonOf,
  comparisonWarnings,
  type ModelCandidates,
} from '../estimate/comparison/compare-models.js';
import { settingFacts } from '../model/architecture/training-hints.js';
import { DEFAULT_OPTIMIZER } from '../model/budget/optimizers.js';
import { type AnswerNotes, type Model, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireModel } from './arguments.js';
import { SETTING_KINDS, type SettingOptions } from './setting-options.js';

export interface CompareOptions extends SettingOptions {
  /** Columns to show: names of figures, or keys of the configs such as `model.num_layers`. Default: the main costs. */
  readonly columns?: readonly string[] | undefined;
  /** Column of the order; with a `-` before it the largest first. Default: the given order. */
  readonly sort?: string | undefined;
  /** Model that changes are against: its name, or its number from 1. Default: the first one. */
  readonly baseline?: string | undefined;
}

const COMPARE_KINDS: OptionKinds<CompareOptions> = {
  ...SETTING_KINDS,
  columns: 'list',
  sort: 'text',
  baseline: 'text',
};

/**
 * Compares models at one length and precision.
 * @example
 * const models = await Promise.all(['minimind2-small', 'minimind2'].map((name) => loadModel(name)));
 * const { rows } = await compare(models, { context: 4096 });
 * @throws UserError for an unknown column or baseline.
 */
export async function compare(
  models: readonly Model[],
  options: CompareOptions = {},
): Promise<ComparisonResult & AnswerNotes> {
  if (!Array.isArray(models)) {
    throw usageError(
      'compare: expected a list of models, found something else',
      "write compare([await loadModel('minimind2-small'), await loadModel('minimind2')])",
    );
  }
  for (const model of models) requireModel(model, 'compare');
  checkOptions('compare', options, COMPARE_KINDS);
  const { measure, table } = await comparisonOf(candidatesOf(models), comparisonRequest(options));
  const comparison = await table(measure);
  return withNotes(
    { schema: 'minimind/compare@1', ...comparison },
    {
      warnings: comparisonWarnings(comparison),
      references: models.flatMap(({ references = [] }) => references),
    },
  );
}

/** Options with their usual values. */
export const comparisonRequest = <Options extends CompareOptions>(
  options: Options,
): Options & ComparisonRequest => ({
  ...options,
  causal: options.causal ?? false,
  optimizer: options.optimizer ?? DEFAULT_OPTIMIZER,
});

const candidatesOf = (models: readonly Model[]): ModelCandidates => ({
  count: models.length,
  swept: [],
  sample: [...models.keys()],
  async candidate(index) {
    const loaded = models[index];
    if (loaded === undefined) throw new RangeError(`no model ${index}`);
    return { file: loaded.file, chosen: [], loaded, problems: loaded.warnings };
  },
  async brief(index) {
    const loaded = models[index];
    return { facts: loaded && settingFacts(loaded) };
  },
});
