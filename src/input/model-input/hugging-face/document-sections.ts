/** A document in the sections `model` and `training`, for files that have their keys elsewhere. */

import { setting } from '../../../base/text/setting.js';
import { asText, isRecord } from '../../../base/values.js';
import { ConfigDocument, withRenamedKey } from '../../../config/document.js';
import type { LocatedFinding } from '../../../config/document-problems.js';
import { nearest, sizeNamed } from '../../../config/nearest.js';
import { quote, valueAt } from '../../../config/quote.js';
import type { LocatedValue } from '../../../config/source.js';
import { FAMILY_NAMES, isFamilyName, loadFamily } from '../../../model/architecture/families.js';
import {
  INNER_SECTIONS,
  isTrainingKey,
  SECTIONS_OF_TRAINING,
  TRAINING_SECTIONS,
} from '../../../model/architecture/training-section.js';
import { modelKeys } from './setting-names.js';

/**
 * A document with its keys in their sections: sizes at the top level belong to `model`, if there is none, and the
 * settings of an optimizer, a schedule or a scaler to `training`.
 * @param family Family to read it as.
 */
export async function asSections(
  document: ConfigDocument,
  family?: string,
): Promise<ConfigDocument> {
  const sectioned = withKind(withTraining(await withModel(document)));
  return family === undefined ? sectioned : asFamily(sectioned, family);
}

/** The family by the name that a `config.json` has for it. */
const withKind = (document: ConfigDocument): ConfigDocument =>
  isFamilyName(valueAt(document.value, ['model', 'model_type']))
    ? withRenamedKey(document, ['model', 'model_type'], 'family')
    : document;

/** A document without one of its sections, with findings about it. */
export function withoutSection(
  document: ConfigDocument,
  section: string,
  found: readonly LocatedFinding[],
): ConfigDocument {
  const parts = rootSections(document);
  parts.delete(section);
  return withParts(document, parts, found);
}

type Parts = Map<string, LocatedValue>;

const rootSections = ({ root }: ConfigDocument): Parts => new Map(root.parts ?? []);

const isMapping = ({ value, parts }: LocatedValue) => isRecord(value) && parts !== undefined;

/** A mapping of located values, at the place of another. */
const mappingOf = (parts: Parts, at: LocatedValue): LocatedValue => ({
  ...at,
  value: Object.fromEntries([...parts].map(([key, { value }]) => [key, value])),
  parts,
});

const withParts = (
  { file, root, found }: ConfigDocument,
  parts: Parts,
  more: readonly LocatedFinding[] = [],
) => new ConfigDocument(file, mappingOf(parts, root), [...found, ...more]);

/** Sizes that only a model has. */
const SHAPE: ReadonlySet<string | undefined> = new Set([
  'hidden_size',
  'num_hidden_layers',
  'num_attention_heads',
]);

const isShape = (key: string) => SHAPE.has(sizeNamed(key));

/** The keys of a flat file under `model`. */
async function withModel(document: ConfigDocument): Promise<ConfigDocument> {
  const parts = rootSections(document);
  if (parts.has('model') || ![...parts.keys()].some(isShape)) return document;
  const isElsewhere = (key: string) =>
    Object.hasOwn(TRAINING_SECTIONS, key) ||
    SECTIONS_OF_TRAINING.has(key) ||
    (isTrainingKey(key) && sizeNamed(key) === undefined);
  const families = await Promise.all(FAMILY_NAMES.map(loadFamily));
  const known = new Set(
    families.flatMap((each) => [...modelKeys(each), ...Object.keys(each.settingNames ?? {})]),
  );
  // A misspelled key of the model is an error there; a key of another program only a warning.
  const isOfModel = (key: string) =>
    !isElsewhere(key) &&
    (known.has(key) || sizeNamed(key) !== undefined || nearest(key, known) !== undefined);
  const own = [...parts].filter(([key]) => isOfModel(key));
  const [, first] = own[0] ?? [];
  const model = mappingOf(new Map(own), {
    ...document.root,
    ...(first?.key && { key: first.key }),
  });
  const rest = [...parts].filter(([key]) => !isOfModel(key));
  return withParts(document, new Map([['model', model], ...rest]));
}

/** The keys of an optimizer, a schedule and a scaler under `training`. */
function withTraining(document: ConfigDocument): ConfigDocument {
  const parts = rootSections(document);
  const training = parts.get('training');
  // A value of another type is an error of its own.
  if (training && training.value !== null && !isMapping(training)) return document;
  const keys: Parts = new Map(training?.parts ?? []);
  const outside = [...parts].filter(([key]) => SECTIONS_OF_TRAINING.has(key) || isTrainingKey(key));
  const inside = [...keys].filter(([key, at]) => SECTIONS_OF_TRAINING.has(key) && isMapping(at));
  if (outside.length === 0 && inside.length === 0) return document;
  const found: LocatedFinding[] = [];
  const add = (name: string, at: LocatedValue, path: readonly string[]) => {
    const before = keys.get(name);
    if (before === undefined) keys.set(name, at);
    else if (JSON.stringify(before.value) !== JSON.stringify(at.value)) {
      found.push(contradiction(name, at, path));
    }
  };
  const addSection = (section: string, at: LocatedValue, path: readonly string[]) => {
    const names = SECTIONS_OF_TRAINING.get(section) ?? {};
    for (const [key, value] of at.parts ?? []) {
      const name = Object.hasOwn(names, key) ? (names[key] ?? key) : key;
      if (INNER_SECTIONS.has(key) && isMapping(value)) addSection(section, value, [...path, key]);
      else if (SECTIONS_OF_TRAINING.has(key) && isMapping(value)) {
        addSection(key, value, [...path, key]);
      } else add(name, value, [...path, key]);
    }
  };
  for (const [key, at] of inside) {
    keys.delete(key);
    addSection(key, at, ['training', key]);
  }
  for (const [key, at] of outside) {
    parts.delete(key);
    if (SECTIONS_OF_TRAINING.has(key) && isMapping(at)) addSection(key, at, [key]);
    else if (!isUnset(key, at)) add(key, at, [key]);
  }
  const [, first] = outside[0] ?? inside[0] ?? [];
  parts.set(
    'training',
    mappingOf(keys, training ?? { ...document.root, ...(first?.key && { key: first.key }) }),
  );
  return withParts(document, parts, found);
}

/** Whether a setting of a flat file asks for the default, as those of axolotl do with no value. */
const isUnset = (key: string, { value }: LocatedValue) =>
  value === null && !/(?:lr|rate)$/.test(key);

function contradiction(name: string, at: LocatedValue, path: readonly string[]): LocatedFinding {
  return {
    severity: 'warning',
    place: at.key ?? at.place,
    path,
    finding: {
      message: `${quote(path.join('.'))} is not used: the training already has another ${name}`,
      suggestion: 'write one of the two values',
    },
  };
}

/** The document as one of a family, regardless of its own `model.family`. */
function asFamily(document: ConfigDocument, family: string): ConfigDocument {
  const own = valueAt(document.value, ['model', 'family']);
  const model = document.root.parts?.get('model');
  if (own === family || model === undefined || !isMapping(model)) return document;
  const place = model.parts?.get('family') ?? { place: model.key ?? model.place };
  const parts: Parts = new Map([
    ['family', { ...place, value: family }],
    ...[...(model.parts ?? [])].filter(([key]) => key !== 'family'),
  ]);
  const found: LocatedFinding[] =
    own === undefined
      ? []
      : [
          {
            severity: 'warning',
            place: document.place(['model', 'family']),
            path: ['model', 'family'],
            finding: {
              message: `the file says ${quote(asText(own))}: read as ${family}, by ${setting('family')}`,
              suggestion: `leave ${setting('family')} out, or write family: ${family}`,
            },
          },
        ];
  return withParts(document, rootSections(document).set('model', mappingOf(parts, model)), found);
}
