/**
 * The parts of minimind that read no file: for browsers, workers and bundlers.
 *
 * @example
 * const model = await describeModel(yaml, { file: 'model.yaml' });
 * profile(model, { context: 8192 }).parameters.total.value;
 * fit(model, { gpu: 'h100-80gb' }).serving?.fit.verdict;
 */

export { type Problem, problemsOf, UserError } from './base/errors.js';
export { bytesIn, DTYPE_NAMES, DTYPES, type Dtype, parseDtype } from './base/tensor/dtype.js';
export { GPUS } from './estimate/hardware/gpus.js';
export { MACHINES } from './estimate/hardware/machines.js';
export type { AnswerNotes, Model } from './library/answer.js';
export type { CompareOptions } from './library/compare.js';
export type { CompareSrteOptions } from './library/compare-srte.js';
export { type FitTableOptions, fit, type NamedFitOptions } from './library/fit.js';
export {
  compare,
  compareSrte,
  describeModel,
  loadPreset as loadModel,
  plan,
  validateConfig as validate,
} from './library/loaded-on-call.js';
export type {
  ConfigOptions,
  DescribedModel,
  DescribeOptions,
  GivenConfig,
  SetOptions,
} from './library/models/describe-model.js';
export type { NamedPlanOptions, PlanOptions } from './library/plan.js';
export { type ProfileOptions, profile } from './library/profile.js';
export type { SettingOptions } from './library/setting-options.js';
export type { ValidateOptions } from './library/validate/validate.js';
export {
  DEFAULT_FAMILY,
  FAMILY_NAMES,
  type FamilyName,
  isFamilyName,
  loadFamily,
} from './model/architecture/families.js';
export type { Family, Preset } from './model/architecture/family.js';
export { presetsOf } from './model/architecture/presets.js';
export { countParameters, type ParameterBudget } from './model/budget/parameters.js';
