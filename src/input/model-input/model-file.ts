/** A config and the model that it describes. */

import { type Problem, type PropertyPath, usageError } from '../../base/errors.js';
import { commandText } from '../../base/text/setting.js';
import { joined } from '../../base/text/words.js';
import { isRecord } from '../../base/values.js';
import { checkDocument } from '../../config/check-document.js';
import type { ConfigDocument } from '../../config/document.js';
import { withFindings } from '../../config/document.js';
import { invalidConfig } from '../../config/document-problems.js';
import { nearest } from '../../config/nearest.js';
import { applyOverrides, correctedOverrides, splitOverride } from '../../config/overrides.js';
import { describeValue } from '../../config/quote.js';
import { keyPaths } from '../../config/schema-structure.js';
import type { FamilyName } from '../../model/architecture/families.js';
import {
  DEFAULT_FAMILY,
  FAMILY_NAMES,
  isFamilyName,
  loadFamily,
} from '../../model/architecture/families.js';
import type { DocumentOf, Family, FamilyDocument } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { LimitError } from '../../model/architecture/param.js';
import type { PartBeside } from '../../model/architecture/towers/towers.js';
import { describedLayer, memoizedBy } from '../../model/architecture/walk.js';
import type { Quantization } from '../../model/quantization/quantization-config.js';
import { storedBits } from '../../model/quantization/stored-weights.js';
import type { DecidedFamily } from './hugging-face/family-of-keys.js';
import { asOfFamily, inSettingNames, withSettingNames } from './hugging-face/setting-names.js';
import type { LeftOutPart } from './parts-left-out.js';
import { UndescribedModel } from './undescribed-model.js';

/** A valid config and the model that it describes. */
export interface ModelFile<F extends Family = Family> {
  /** Path as given; `<stdin>` for `-`. */
  readonly file: string;
  readonly family: F;
  /** The parsed document with defaults. */
  readonly document: DocumentOf<F>;
  readonly model: LanguageModel;
  readonly warnings: readonly Problem[];
  /** The entry of `warnings` which says that no engine runs the model. The file is valid all the same. */
  readonly notRun?: Problem;
  /** Kind of the whole model, where only its language model is described. */
  readonly textOf?: string;
  /** Parts beside the language model that the config describes. */
  readonly beside?: readonly PartBeside[];
  /** Other parts of the checkpoint. */
  readonly leftOut?: readonly LeftOutPart[];
  /** Class that a `config.json` names, where it has the same kind of model. */
  readonly className?: string;
  /** Quantization of the weights in a `config.json`. */
  readonly quantization?: Quantization;
  /** Type of the weights in a GGUF file, as `q4_k_m`. */
  readonly storedType?: string;
}

/** A model file with the places of its values. */
export interface LocatedModelFile extends ModelFile {
  /** Place of a value in the file, or of the nearest section above it. */
  locate(path: PropertyPath): Pick<Problem, 'file' | 'line' | 'column' | 'excerpt'>;
}

/**
 * The document of a loaded file in one family's type, for commands of that family only.
 * @param advice What to do with a file of another family.
 * @throws UserError when the file is of another family.
 */
export function documentOf<F extends Family>(
  loaded: ModelFile,
  family: F,
  advice: string,
): DocumentOf<F> {
  if (isOfFamily(loaded, family)) return loaded.document;
  throw usageError(
    `${loaded.file} describes a ${loaded.family.name} model; this command is for ${family.name}`,
    advice,
  );
}

/** Whether a file is of a family, whose schema its document was then parsed with. */
const isOfFamily = <F extends Family>(loaded: ModelFile, family: F): loaded is ModelFile<F> =>
  loaded.family.name === family.name;

export interface ModelLoadOptions {
  /** Overrides in the form `model.key=value`. */
  readonly set?: readonly string[] | undefined;
  /** Whether warnings count as errors. */
  readonly strict?: boolean;
  /** Family to read a config as, regardless of its own. */
  readonly family?: string | undefined;
}

/**
 * Checks a document with overrides, and describes its model.
 * @throws UserError with every problem.
 */
export async function modelOf(
  document: ConfigDocument,
  { set = [], strict = false, family: as }: ModelLoadOptions = {},
): Promise<LocatedModelFile> {
  const { ours, quantization, textOf } = await translated(document, as);
  const { written, family, problem } = await overridden(ours, set);
  const checked = checkDocument(written, family);
  const found = checked.problems.map((each) => (problem && isFamily(each) ? problem : each));
  const problems = strict ? found.map(asError) : found;
  const errors = checked.errors + (strict ? checked.warnings : 0);
  const { value } = checked;
  if (value === undefined || errors > 0) {
    const error = invalidConfig(written.file, problems, errors);
    const isOwn = !isRecord(document.value.model) && set.length === 0 && !strict;
    // Weights next to a config.json are counted even so.
    const isCounted = family.hasEncoder || Object.hasOwn(document.value, 'model_type');
    throw isCounted && isOwn ? new UndescribedModel(error) : error;
  }
  const described = describe(written, family, value, problems);
  const model = quantization?.served ? withStoredBits(described, quantization) : described;
  const notRun = await describedNote(written, described);
  return {
    file: written.file,
    family,
    document: value,
    model,
    warnings: [...problems, ...(notRun ? [notRun] : [])],
    ...(notRun && { notRun }),
    locate: (path) => written.locate(path),
    ...(textOf !== undefined && { textOf, ...(await besideIn(document, model)) }),
    ...(quantization && { quantization }),
    ...(textOf === undefined && classOf(document)),
  };
}

function classOf({ value }: ConfigDocument): Pick<ModelFile, 'className'> {
  const { architectures } = value;
  const [first] = Array.isArray(architectures) ? architectures : [];
  return typeof first === 'string' ? { className: first } : {};
}

/** The parts beside a language model, where they are described. */
async function besideIn(
  document: ConfigDocument,
  { hidden }: LanguageModel,
): Promise<Pick<ModelFile, 'beside'>> {
  const { partsBeside } = await import('../../model/architecture/towers/towers.js');
  const parts = partsBeside(document.value);
  if (parts === undefined || !('of' in parts)) return {};
  try {
    return { beside: parts.of(hidden) };
  } catch (error) {
    if (!(error instanceof LimitError)) throw error;
    const [section = ''] = parts.sections;
    const problem: Problem = {
      severity: 'error',
      ...document.locate([section]),
      path: section,
      message: error.message,
    };
    throw invalidConfig(document.file, [problem], 1);
  }
}

/** A note on a model that no engine runs, without a place: nothing in the file is wrong. */
async function describedNote(
  document: ConfigDocument,
  model: LanguageModel,
): Promise<Problem | undefined> {
  const layer = describedLayer(model);
  if (layer === undefined) return undefined;
  const { generationOf, uncountedTower } = await import('../../model/budget/generation.js');
  const tower = uncountedTower(model);
  const caches = generationOf(model) === 'none' ? [] : ['caches'];
  const counted = tower
    ? `${joined(['parameters', ...caches])} are counted, and FLOPs without those of the ${tower}`
    : `${joined(['parameters', ...caches, 'FLOPs'])} are counted`;
  return {
    severity: 'warning',
    file: document.file,
    path: 'model.family',
    message: `described, not run: ${counted}; no engine computes ${pluralTitle(layer.title)}`,
  };
}

/** `encoder blocks`, `blocks with hyper-connections`: titles name one layer. */
const pluralTitle = (title: string): string => title.replace(/\bblock(?=$| with| of)/, 'blocks');

/** The description with the bits of its stored tensors, counted once when they are asked for. */
function withStoredBits(described: LanguageModel, quantization: Quantization): LanguageModel {
  let known: ReadonlyMap<Param, number> | undefined;
  return {
    ...described,
    storedBits: () => {
      known ??= storedBits(described, quantization);
      return known;
    },
  };
}

/** Section of a `config.json` that describes how the weights are stored; a YAML file can have it too. */
const QUANTIZATION = 'quantization_config';

/**
 * A document with a `model` section, and further facts of a `config.json`. The reader of each kind is loaded only for
 * it.
 */
const translated = memoizedBy(
  (as: string | undefined) => as,
  (document: ConfigDocument, as) => translate(document, as),
);

async function translate(document: ConfigDocument, as: string | undefined) {
  if (isRecord(document.value.model)) {
    const { asSections, withoutSection } = await import('./hugging-face/document-sections.js');
    if (!Object.hasOwn(document.value, QUANTIZATION))
      return { ours: await asSections(document, as) };
    const { quantizationFound, quantizationOf } = await import(
      './hugging-face/hugging-face-document.js'
    );
    const bare = withoutSection(document, QUANTIZATION, quantizationFound(document));
    return {
      ours: await asSections(bare, as),
      quantization: quantizationOf(document).quantization,
    };
  }
  const { asOurDocument, quantizationOf, wholeKindOf } = await import(
    './hugging-face/hugging-face-document.js'
  );
  return {
    ours: await asOurDocument(document, as),
    quantization: quantizationOf(document).quantization,
    textOf: wholeKindOf(document, as),
  };
}

/**
 * A document with overrides, each resolved in the resulting family.
 * @param document As `asOurDocument` returns it.
 */
export async function overridden(document: ConfigDocument, set: readonly string[]) {
  const isDecided = namesFamily(document) && !set.some(canSetFamily);
  const { family, problem, found } = await familyOf(
    isDecided ? document : applyOverrides(document, set),
  );
  const own = found ? withFindings(asOfFamily(document, family), [found]) : document;
  const meant = correctedOverrides(family.schema, set.map(inSettingNames(family)));
  const renamed = withSettingNames(own, family);
  const written = withSettingNames(applyOverrides(renamed, meant), family);
  return { written, meant, family, problem };
}

const namesFamily = ({ value: { model } }: ConfigDocument): boolean =>
  isRecord(model) && Object.hasOwn(model, 'family') && isFamilyName(model.family);

/** Whether an override sets the family, or the whole section with it. */
function canSetFamily(text: string): boolean {
  const parts = splitOverride(text);
  if ('mistake' in parts) return false;
  const [section, key = 'family'] = parts.path;
  return section === 'model' && key === 'family';
}

const asError = (problem: Problem): Problem => ({ ...problem, severity: 'error' });

/** Whether a problem comes from a family's schema and another family's name. */
const isFamily = ({ path }: Problem) => path === 'model.family';

let familyOfKeys: DecideFamily | undefined;

type DecideFamily = (document: ConfigDocument) => Promise<DecidedFamily>;

/** The family of a document. For an unknown name, the most likely one, so that the rest is checked too. */
async function familyOf(
  document: ConfigDocument,
): Promise<DecidedFamily & { readonly problem?: Problem }> {
  const section = document.value.model;
  if (!isRecord(section) || !Object.hasOwn(section, 'family')) {
    // A sweep asks for thousands of models, and each `import()` takes as long as checking a document.
    familyOfKeys ??= (await import('./hugging-face/family-of-keys.js')).familyOfKeys;
    return familyOfKeys(document);
  }
  const named = section.family;
  // Undefined for an alias without an anchor, which the reader of the file reports.
  if (named === undefined) return { family: await loadFamily(DEFAULT_FAMILY) };
  if (isFamilyName(named)) return { family: await loadFamily(named) };
  const near = typeof named === 'string' ? nearest(named, FAMILY_NAMES) : undefined;
  const close = isFamilyName(near) && (await hasKeysOf(near, section)) ? near : undefined;
  const family = await loadFamily(isFamilyName(close) ? close : DEFAULT_FAMILY);
  const problem: Problem = {
    severity: 'error',
    ...document.locate(['model', 'family']),
    path: 'model.family',
    message: `unknown family ${describeValue(named)}`,
    suggestion: close
      ? `write ${close}`
      : `write one of ${FAMILY_NAMES.join(', ')}; ${commandText('list')} describes them`,
  };
  return { family, problem };
}

/** Whether a family knows all keys of a model section: a similar name alone can be another kind of model. */
async function hasKeysOf(name: FamilyName, section: unknown): Promise<boolean> {
  const { schema } = await loadFamily(name);
  const known = new Set([...keyPaths(schema)].map(([first, key]) => first === 'model' && key));
  return Object.keys(section ?? {}).every((key) => known.has(key));
}

function describe(
  document: ConfigDocument,
  family: Family,
  value: FamilyDocument,
  warnings: readonly Problem[],
): LanguageModel {
  try {
    return family.build(value);
  } catch (error) {
    if (!(error instanceof LimitError)) throw error;
    const { path, message } = error;
    const place = document.locate(path.split('.'));
    const problem: Problem = { severity: 'error', ...place, path, message };
    throw invalidConfig(document.file, [...warnings, problem], 1);
  }
}
