/**
 * The pure core as a library: describe a model and count it.
 *
 * @example
 * const family = await loadFamily('hybrid');
 * const model = family.build(family.schema.parse({ model: { num_layers: 24 } }));
 * countParameters(model).parameters;
 */
export {
  DEFAULT_FAMILY,
  FAMILY_NAMES,
  type FamilyName,
  isFamilyName,
  loadFamily,
} from './architecture/families.js';
export { type DocumentOf, type Family, jsonSchemaOf, type Preset } from './architecture/family.js';
export {
  COMPONENTS,
  type Component,
  type LanguageModel,
  type Layer,
} from './architecture/layer.js';
export type { Param } from './architecture/param.js';
export { LimitError, MAX_TENSORS } from './architecture/param.js';
export { ownedTensors, tensorsOf, walk } from './architecture/walk.js';
export { countParameters, type ParameterBudget } from './budget/parameters.js';
export {
  compareSrte,
  type SrteComparison,
  type SrteOptions,
  type SrteRow,
} from './budget/srte-comparison.js';
export { bytesIn, DTYPE_NAMES, DTYPES, type Dtype, parseDtype } from './tensor/dtype.js';
