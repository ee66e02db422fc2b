import { usageError } from '../../base/errors.js';
import { documentOfData } from '../../config/document.js';
import { nearest } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { modelOf } from '../../input/model-input/model-file.js';
import { FAMILY_NAMES } from '../../model/architecture/families.js';
import { presetDocument, presetsOf } from '../../model/architecture/presets.js';
import { checkOptions, requireReference } from '../arguments.js';
import {
  CONFIG_KINDS,
  type ConfigOptions,
  type DescribedModel,
  overridesOf,
} from './describe-model.js';

const PRESETS = FAMILY_NAMES.flatMap((family) =>
  presetsOf(family).map(({ name }) => ({ family, name, preset: `${family}/${name}` })),
);

/**
 * Describes the model of a preset.
 * @param name `hybrid/original`, or `original` when only one family has it.
 * @throws UserError for an unknown or ambiguous name, and with every problem of the overrides.
 */
export async function loadPreset(
  name: string,
  options: ConfigOptions = {},
): Promise<DescribedModel> {
  requireReference(name, 'loadModel');
  checkOptions('loadModel', options, CONFIG_KINDS);
  const { set, family: as } = options;
  const found = PRESETS.filter((each) => each.preset === name || each.name === name);
  const [only, ...others] = found;
  if (only === undefined || others.length > 0) {
    const close = nearest(
      name,
      PRESETS.flatMap((each) => [each.preset, each.name]),
    );
    throw only === undefined
      ? usageError(`unknown preset ${quote(name)}`, close && `did you mean ${close}?`)
      : usageError(
          `expected one preset, found ${found.length} of the name ${quote(name)}`,
          `write ${found.map(({ preset }) => preset).join(' or ')}`,
        );
  }
  const { family, preset } = only;
  const document = documentOfData(presetDocument(family, only.name), preset);
  return modelOf(document, { set: overridesOf(set), family: as });
}
