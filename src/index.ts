/**
 * The pure core as a library: describe a model and count it.
 *
 * @example
 * const family = await loadFamily('hybrid');
 * const model = family.build(family.schema.parse({ model: { num_layers: 24 } }));
 * countParameters(model).parameters;
 */

export { bytesIn, DTYPE_NAMES, DTYPES, type Dtype, parseDtype } from './base/tensor/dtype.js';
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
export {
  compareSrte,
  type SrteComparison,
  type SrteOptions,
  type SrteRow,
} from './model/budget/srte-comparison.js';
