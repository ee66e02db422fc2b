/**
 * minimind as a library: each function does what the command of its name does, and returns the object that its `--json`
 * prints. Functions of a loaded model compute at once; those that read something return a promise. A mistake of the user
 * is a `UserError`, with every problem in `problems`.
 *
 * @example
 * const model = await loadModel('hybrid/original', { set: { 'model.num_layers': 24 } });
 * profile(model, { context: 8192 }).parameters.total.value;
 * fit(model, { gpu: 'h100-80gb' }).serving?.fit.verdict;
 */

export { type Problem, problemsOf, UserError } from './base/errors.js';
export { bytesIn, DTYPE_NAMES, DTYPES, type Dtype, parseDtype } from './base/tensor/dtype.js';
export { GPUS } from './estimate/hardware/gpus.js';
export { MACHINES } from './estimate/hardware/machines.js';
export type { AnswerNotes, Model } from './library/answer.js';
export { type CompareOptions, compare } from './library/compare.js';
export { type CompareSrteOptions, compareSrte } from './library/compare-srte.js';
export { type ConvertOptions, convert } from './library/convert.js';
export { type DiffOptions, diff } from './library/diff.js';
export { explainPublished } from './library/explain-published.js';
export { type FitTableOptions, fit, type NamedFitOptions } from './library/fit.js';
export { type InspectOptions, inspect } from './library/inspect.js';
export {
  type ConfigOptions,
  type DescribedModel,
  type DescribeOptions,
  describeModel,
  type GivenConfig,
  type SetOptions,
} from './library/models/describe-model.js';
export { type HubOptions, type LoadOptions, loadModel } from './library/models/load-model.js';
export { type NamedPlanOptions, type PlanOptions, plan } from './library/plan.js';
export { type ProfileOptions, profile } from './library/profile.js';
export type { EngineOptions } from './library/run/engine-options.js';
export { type EvaluateOptions, evaluate, type WeightOptions } from './library/run/evaluate.js';
export { type GenerateOptions, generate } from './library/run/generate.js';
export { type QuickTestOptions, quickTest } from './library/run/quick-test.js';
export type { SettingOptions } from './library/setting-options.js';
export { type ValidateOptions, validateConfig as validate } from './library/validate/validate.js';
export { type ValidateFilesOptions, validateFiles } from './library/validate/validate-files.js';
export { type VerifyOptions, verify } from './library/verify.js';
export {
  DEFAULT_FAMILY,
  FAMILY_NAMES,
  type FamilyName,
  isFamilyName,
  loadFamily,
} from './model/architecture/families.js';
export {
  type DocumentOf,
  type Family,
  jsonSchemaOf,
  type Preset,
} from './model/architecture/family.js';
export {
  COMPONENTS,
  type Component,
  type LanguageModel,
  type Layer,
} from './model/architecture/layer.js';
export type { Param } from './model/architecture/param.js';
export { LimitError, MAX_TENSORS } from './model/architecture/param.js';
export { presetsOf } from './model/architecture/presets.js';
export { ownedTensors, tensorsOf, walk } from './model/architecture/walk.js';
export { countParameters, type ParameterBudget } from './model/budget/parameters.js';
export type { SrteComparison, SrteOptions, SrteRow } from './model/budget/srte-comparison.js';
