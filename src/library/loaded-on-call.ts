/** Functions whose code is loaded by their first call, so that a page that calls none of them is smaller. */
import type { ComparisonResult } from '../estimate/comparison/compare-models.js';
import type { PlanResult } from '../estimate/plan/plan-sweep.js';
import type { SrteResult } from '../model/budget/srte-comparison.js';
import type { ValidationResult } from '../report/command-results.js';
import type { AnswerNotes, Model } from './answer.js';
import type { CompareOptions } from './compare.js';
import type { CompareSrteOptions } from './compare-srte.js';
import type {
  ConfigOptions,
  DescribedModel,
  DescribeOptions,
  GivenConfig,
} from './models/describe-model.js';
import type { NamedPlanOptions } from './plan.js';
import type { ValidateOptions } from './validate/validate.js';

/** See `compare` of compare.ts. */
export const compare = async (
  models: readonly Model[],
  options?: CompareOptions,
): Promise<ComparisonResult & AnswerNotes> =>
  (await import('./compare.js')).compare(models, options);

/** See `compareSrte` of compare-srte.ts. */
export const compareSrte = async (
  model: Model,
  options?: CompareSrteOptions,
): Promise<SrteResult & AnswerNotes> =>
  (await import('./compare-srte.js')).compareSrte(model, options);

/** See `plan` of plan.ts. */
export const plan = async (options: NamedPlanOptions): Promise<PlanResult> =>
  (await import('./plan.js')).plan(options);

/** See `describeModel` of describe-model.ts. */
export const describeModel = async (
  config: GivenConfig,
  options?: DescribeOptions,
): Promise<DescribedModel> =>
  (await import('./models/describe-model.js')).describeModel(config, options);

/** See `loadPreset` of load-preset.ts. */
export const loadPreset = async (name: string, options?: ConfigOptions): Promise<DescribedModel> =>
  (await import('./models/load-preset.js')).loadPreset(name, options);

/** See `validateConfig` of validate.ts. */
export const validateConfig = async (
  config: GivenConfig,
  options?: ValidateOptions,
): Promise<ValidationResult & AnswerNotes> =>
  (await import('./validate/validate.js')).validateConfig(config, options);
