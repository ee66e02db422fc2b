/** A model from a config that is already read. */
import { isRecord } from '../../base/values.js';
import { documentOfData, parseDocument } from '../../config/document.js';
import type { LocatedModelFile } from '../../input/model-input/model-file.js';
import { modelOf } from '../../input/model-input/model-file.js';
import { FAMILY_NAMES, type FamilyName } from '../../model/architecture/families.js';
import type { Model } from '../answer.js';
import { checkOptions, type OptionKinds } from '../arguments.js';

/** Values by dotted key: `{ 'model.num_layers': 24 }`. */
export type SetOptions = Readonly<Record<string, unknown>>;

/** Changes of a config before it is checked. */
export interface ConfigOptions {
  /** Values that replace those of the config. */
  readonly set?: SetOptions | undefined;
  /** Family to read a config as that names none, or an unknown one. */
  readonly family?: FamilyName | undefined;
}

/** Kinds of the values of `ConfigOptions`. */
export const CONFIG_KINDS: OptionKinds<ConfigOptions> = {
  set: {
    expected: "values by dotted key, as in { 'model.num_layers': 24 }",
    is: (value) => isRecord(value) && !Array.isArray(value),
  },
  family: FAMILY_NAMES,
};

export interface DescribeOptions extends ConfigOptions {
  /** Name of the config in messages and results. Default: `<config>`. */
  readonly file?: string | undefined;
}

/** Kinds of the values of `DescribeOptions`. */
export const DESCRIBE_KINDS: OptionKinds<DescribeOptions> = { ...CONFIG_KINDS, file: 'text' };

/** A config: a value, or a text in YAML or JSON. */
export type GivenConfig = string | Uint8Array | Readonly<Record<string, unknown>>;

/** A model with the places of its values. */
export type DescribedModel = Model & Pick<LocatedModelFile, 'locate'>;

const NAME = '<config>';

/**
 * Describes the model of a config: a value, or a text in YAML or JSON. A `config.json` of Hugging Face works too.
 * @example
 * const model = await describeModel({ model: { family: 'minimind', hidden_size: 512, num_hidden_layers: 8 } });
 * profile(model).parameters.total.value;
 * @throws UserError with every problem of the config.
 */
export async function describeModel(
  config: GivenConfig,
  options: DescribeOptions = {},
): Promise<DescribedModel> {
  checkOptions('describeModel', options, DESCRIBE_KINDS);
  const { file = NAME, set, family } = options;
  const isText = typeof config === 'string' || config instanceof Uint8Array;
  const document = isText ? parseDocument(config, file) : documentOfData(plainData(config), file);
  return modelOf(document, { set: overridesOf(set), family });
}

/** Overrides as the command line writes them: values in JSON, which is YAML. */
export const overridesOf = (set: SetOptions = {}): string[] =>
  Object.entries(set).map(([key, value]) => `${key}=${JSON.stringify(value)}`);

/** Plain data of a value: what JSON keeps of it. */
function plainData(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const data: unknown = JSON.parse(JSON.stringify(value));
  return isRecord(data) ? data : {};
}
