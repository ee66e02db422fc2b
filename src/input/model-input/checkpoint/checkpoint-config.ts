/** The config of a checkpoint, and the description to compare it with. */

import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Problem, UserError, usageError } from '../../../base/errors.js';
import { configIn, ownConfigNames } from '../../../base/files/config-names.js';
import { linkedPaths } from '../../../base/files/input-registry.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import { jsonOrUndefined } from '../../../base/text/json.js';
import { setting } from '../../../base/text/setting.js';
import { isRecord } from '../../../base/values.js';
import type { Checkpoint, CheckpointPath } from '../../../checkpoint/checkpoint.js';
import { firstOfPattern, type StoredNames, storedNames } from '../../../checkpoint/names.js';
import { parameterNames, quantizedPart, shapesOf } from '../../../checkpoint/reconcile/faults.js';
import type { IgnoredTensors } from '../../../checkpoint/reconcile/ignored-tensors.js';
import {
  type ConfigDifference,
  type Description,
  ignoredInIndex,
} from '../../../checkpoint/reconcile/reconcile.js';
import { equalByLocation } from '../../../checkpoint/sharing.js';
import {
  type JsonLike,
  type JsonLikeLimits,
  jsonLikeOf,
  typeName,
} from '../../../checkpoint/summary-content.js';
import { isKind } from '../../../checkpoint/torch/pickle/values.js';
import { type ConfigDocument, documentOfData } from '../../../config/document.js';
import { splitDotted, valueAt } from '../../../config/quote.js';
import { readDocument } from '../../../config/read.js';
import { noHead } from '../../../model/architecture/constructors/basic-layers.js';
import type { Ignored, Setting } from '../../../model/architecture/family.js';
import { LimitError, type Param } from '../../../model/architecture/param.js';
import { type SrteLayout, srteLayoutOf } from '../../../model/architecture/srte-layout.js';
import { isHeadless } from '../../../model/architecture/transformer/config-keys.js';
import { stateDictOf, tensorsOf } from '../../../model/architecture/walk.js';
import { ggufConfigIn, openModelCheckpoint } from '../gguf/gguf-checkpoint.js';
import { locateModel, type ModelReference } from '../locate.js';
import { type ModelFile, modelOf } from '../model-file.js';
import { ignoredAround, partsLeftOut } from '../parts-left-out.js';
import { readConfig } from '../read-model-file.js';
import { modelAsStored, namesOnLoad } from './published-names.js';

/** Origin of a checkpoint's config. */
export type ConfigOrigin = 'flag' | 'inside' | 'beside';

/** The entry of a training checkpoint that holds its config. */
const CONTENT_KEY = 'config';

/** Far above any config, and far below slow sizes. */
const CONFIG_LIMITS: JsonLikeLimits = { nodes: 100_000, depth: 100, text: 2 ** 20 };

export interface LocatedConfig {
  readonly document: ConfigDocument;
  readonly origin: ConfigOrigin;
}

/**
 * The config of a checkpoint: the one named by the user, the one in the file, or the one in its folder; undefined without
 * one.
 * @param named Value of `--config`.
 */
export async function findConfig(
  checkpoint: Checkpoint,
  named: ModelReference | undefined,
): Promise<LocatedConfig | undefined> {
  const document = named === undefined ? configInside(checkpoint) : await readConfig(named);
  if (document) return { document, origin: named === undefined ? 'inside' : 'flag' };
  const neighbour = neighbourOf(checkpoint);
  return neighbour === undefined
    ? undefined
    : { document: await readDocument(neighbour, { isFound: true }), origin: 'beside' };
}

/**
 * The config inside a training checkpoint; undefined when it has none.
 * @throws UserError when it is not a mapping, or too large.
 */
function configInside(checkpoint: Checkpoint): ConfigDocument | undefined {
  const { path: file, content } = checkpoint;
  const ofGguf = ggufConfigIn(checkpoint);
  if (ofGguf) return documentOfData(ofGguf, `${file}: metadata`);
  const ofOnnx = checkpoint.onnx && configOfOnnx(checkpoint.metadata.get(CONTENT_KEY));
  if (ofOnnx) return documentOfData(ofOnnx, `${file}: metadata`);
  const value = content.get(CONTENT_KEY);
  if (value === undefined) return undefined;
  const refuse = (what: string) =>
    new UserError('refused-file', `the config in ${file} ${what}`, {
      suggestion: `name another with ${setting('config', 'FILE')}`,
    });
  // Arguments parsed by argparse are a mapping too.
  const isArguments = isKind(value, 'opaque') && value.type === 'argparse.Namespace';
  const mapping = isArguments ? (value.state ?? null) : value;
  if (!isKind(mapping, 'dict')) throw refuse(`is not a mapping, but of type ${typeName(mapping)}`);
  const config = numbersRead(jsonLikeOf(mapping, CONFIG_LIMITS));
  if (config === undefined) throw refuse('is larger than a config should be');
  if (!isRecord(config)) throw refuse('has keys that are not names');
  return documentOfData(config, `${file}: ${CONTENT_KEY}`);
}

/** The config that `export` writes into the metadata of a graph; undefined for other texts. */
function configOfOnnx(text: string | undefined): Record<string, unknown> | undefined {
  const value = jsonOrUndefined(text ?? '');
  return isRecord(value) ? value : undefined;
}

/**
 * Model values of the config inside a checkpoint that differ from `loaded`. Empty without a valid config of the same
 * family inside.
 */
export async function embeddedConfigDifferences(
  { family, document }: ModelFile,
  checkpoint: Checkpoint,
): Promise<ConfigDifference[]> {
  const inside = await validInside(checkpoint);
  if (inside?.family.name !== family.name) return [];
  const [here, there] = [document, inside.document].map((each) => valueAt(each, ['model']));
  if (!isRecord(here) || !isRecord(there)) return [];
  return Object.keys(here)
    .filter((key) => !isDeepStrictEqual(here[key], there[key]))
    .map((key) => ({ path: `model.${key}`, config: here[key], checkpoint: there[key] }));
}

async function validInside(checkpoint: Checkpoint): Promise<ModelFile | undefined> {
  try {
    const document = configInside(checkpoint);
    return document && adjustedToCheckpoint(await modelOf(document), checkpoint);
  } catch (error) {
    // Private data of a training program need not be a config.
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Numbers of YAML 1.2 that the YAML reader of most training scripts reads as text. */
const NUMBER_WITHOUT_DOT = /^[-+]?\d+e[-+]?\d+$/i;

/** A copy with numbers for texts such as `1e-5`. The data is small and shallow. */
function numbersRead(data: JsonLike | undefined): unknown {
  if (typeof data === 'string') return NUMBER_WITHOUT_DOT.test(data) ? Number(data) : data;
  if (Array.isArray(data)) return data.map(numbersRead);
  if (!isRecord(data)) return data;
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, numbersRead(value as JsonLike)]),
  );
}

/** The config next to a checkpoint, or next to the file that a link leads to. */
function neighbourOf({ path: place, listing }: Checkpoint): string | undefined {
  if (listing !== 'file') return configIn(place, [], listing);
  for (const file of linkedPaths(place)) {
    const found = configIn(path.dirname(file), ownConfigNames(file));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Warnings about the file itself. */
export const checkpointWarnings = ({ path: file, warnings }: Checkpoint): Problem[] =>
  warnings.map((message) => ({ severity: 'warning', file, message }));

/**
 * A loaded config adjusted to the program that wrote the checkpoint, so that its names match the stored ones. Call it
 * before any comparison.
 */
export function adjustedToCheckpoint<Loaded extends ModelFile>(
  loaded: Loaded,
  checkpoint: Checkpoint,
): Loaded {
  const adjusted = asNamed(loaded, checkpoint);
  if (adjusted.textOf === undefined) return adjusted;
  const own = new Set(stateDictOf(adjusted.model).map(({ name }) => name));
  return { ...adjusted, leftOut: partsLeftOut(checkpoint, own, ofFamily(adjusted)) };
}

function asNamed<Loaded extends ModelFile>(loaded: Loaded, checkpoint: Checkpoint): Loaded {
  const { family, document } = loaded;
  const changes = family.namesOnLoad?.(document) ?? [];
  if (family.storedSettings === undefined && changes.length === 0) return loaded;
  const names = storedNames(checkpoint);
  const stored = shapesOf(
    changes.length > 0 ? namesOnLoad(names, changes) : names,
    (a, b) => equalByLocation(a, b) === true,
  );
  const settings = (family.storedSettings?.(stored) ?? []).filter(
    ({ path: dotted, value }) => valueAt(document, splitDotted(dotted)) !== value,
  );
  const changed = settings.length > 0 ? changedTo(loaded, settings) : undefined;
  const adjusted = changed ? { ...loaded, ...changed } : loaded;
  return changes.length > 0
    ? { ...adjusted, model: modelAsStored(adjusted.model, names, changes) }
    : adjusted;
}

/** A loaded config of a class without a head, `MistralModel`, whose checkpoint has none either. */
export function withoutHead<Loaded extends ModelFile>(
  loaded: Loaded,
  checkpoint: Checkpoint,
): Loaded {
  const { className, family, model } = loaded;
  if (className === undefined || family.hasEncoder || !isHeadless(className)) return loaded;
  const { weight } = model.head;
  const leaves = parameterNames(weight).map((name) => name.split('.').slice(-2).join('.'));
  const isStored = [...storedNames(checkpoint).keys()].some((name) =>
    leaves.some((leaf) => name === leaf || name.endsWith(`.${leaf}`)),
  );
  if (weight === model.embedding.weight || isStored) return loaded;
  return { ...loaded, model: { ...model, head: noHead(model.hidden) } };
}

/** The description of a loaded config, for comparison with a checkpoint. */
export function descriptionOf(loaded: ModelFile): Description {
  const { family, model } = loaded;
  return {
    model,
    ignored: ignoredTensors(loaded),
    readOff: (stored) => family.readOff?.(stored) ?? [],
    rebuild: (readings) => (readings.length === 0 ? model : changedTo(loaded, readings)?.model),
  };
}

/** Tensors that a checkpoint may hold but the model does not need: other parts first, where patterns could match too. */
export const ignoredTensors = (loaded: ModelFile): readonly Ignored[] => [
  ...besideText(loaded),
  ...ofFamily(loaded),
];

/** Those of the family, or, where its model is a part of another, of the class around it. */
const ofFamily = ({ family, document, textOf }: ModelFile): readonly Ignored[] =>
  ignoredAround(textOf, family.ignored?.(document) ?? []);

const besideText = ({ textOf, leftOut = [] }: ModelFile): Ignored[] =>
  leftOut.map(({ name, pattern }) => ({ pattern, what: `${name} of ${textOf} is not described` }));

/** Undefined when the changed values are not a valid config. */
function changedTo(
  { family, document }: ModelFile,
  settings: readonly Setting[],
): Pick<ModelFile, 'document' | 'model'> | undefined {
  const parsed = family.schema.safeParse(withSettings(document, settings));
  if (!parsed.success) return undefined;
  // Other sections of the file, such as training, may become invalid when its model changes.
  const isWrong = family.rules.some(
    ({ severity, reads, check }) =>
      severity === 'error' &&
      reads.every((read) => read.startsWith('model.')) &&
      check(parsed.data) !== undefined,
  );
  const model = isWrong ? undefined : builtWithin(() => family.build(parsed.data));
  return model && { document: parsed.data, model };
}

function builtWithin<Model>(build: () => Model): Model | undefined {
  try {
    return build();
  } catch (error) {
    if (error instanceof LimitError) return undefined;
    throw error;
  }
}

function withSettings(document: unknown, settings: readonly Setting[]): unknown {
  const changed = structuredClone(document);
  for (const { path: dotted, value } of settings) {
    const keys = splitDotted(dotted);
    const parent = valueAt(changed, keys.slice(0, -1));
    if (isRecord(parent)) parent[keys.at(-1) ?? ''] = value;
  }
  return changed;
}

// Checkpoint with the weights of a model: the one of --checkpoint, or the argument itself.

interface WeightsFlags {
  readonly checkpoint?: string | undefined;
  readonly stateDict?: string | undefined;
}

/**
 * Opens a checkpoint given in place of a config.
 * @throws UserError when it is refused, or another is given too.
 */
export function checkpointAsConfig(
  reference: ModelReference,
  flags: WeightsFlags,
): Checkpoint | undefined {
  const place = locateModel(reference);
  if (place.kind !== 'checkpoint') return undefined;
  if (flags.checkpoint === undefined) return openedCheckpoint(place, flags);
  throw usageError(
    `${place.path} is a checkpoint, and so is ${setting('checkpoint')}`,
    `leave ${setting('checkpoint')} out, or name a config in its place`,
  );
}

export const openFlaggedCheckpoint = (flags: WeightsFlags): Checkpoint | undefined =>
  flags.checkpoint === undefined ? undefined : openedCheckpoint({ path: flags.checkpoint }, flags);

const openedCheckpoint = ({ path, listing }: CheckpointPath, flags: WeightsFlags): Checkpoint =>
  openModelCheckpoint(path, { stateDict: flags.stateDict, listing });

// The model in a checkpoint, according to its config and the names of its tensors.

export interface StoredModel {
  /** Null without a usable config. */
  readonly family: string | null;
  /** Path of the config; null without one. */
  readonly config: string | null;
  /** Layout of the SRTE; null without one. */
  readonly srte: Pick<SrteLayout, 'sharing' | 'form'> | null;
  /** Names in the file of the config's parameters that are stored with all their values. */
  readonly parameters: ReadonlySet<string>;
  /** Whether no parameter is missing. */
  readonly isWhole: boolean;
  /** Names in the file of tensors that are not parameters: buffers, and scales of quantized weights. */
  readonly others: ReadonlySet<string>;
  /** Tensors that transformers ignores, where there are some. */
  readonly ignored?: IgnoredTensors;
}

const SRTE_TABLE = /(?:^|\.)(?:(shared_srte)|layers\.\d{1,5}\.srte)\.(freqs|lowrank)$/;

/**
 * Null when neither a config nor a name describes the model. A config that cannot be read is ignored.
 * @param as Family to read the config as, regardless of its kind.
 * @throws UserError when it cannot be read as that family.
 */
export async function storedModel(
  checkpoint: Checkpoint,
  as?: string,
): Promise<StoredModel | null> {
  const described = await describedModel(checkpoint, as);
  const srte = described?.srte ?? srteByNames(checkpoint.tensors.keys());
  if (described === null && srte === null) return null;
  const unknown = { parameters: new Set<string>(), isWhole: false, others: new Set<string>() };
  return { family: null, config: null, ...unknown, ...described, srte };
}

async function describedModel(
  checkpoint: Checkpoint,
  as: string | undefined,
): Promise<StoredModel | null> {
  try {
    const found = await findConfig(checkpoint, undefined);
    if (found === undefined) return null;
    const loaded = adjustedToCheckpoint(await modelOf(found.document, { family: as }), checkpoint);
    const layout = srteLayoutOf(loaded.model);
    const ignored = ignoredInIndex(descriptionOf(loaded), checkpoint);
    return {
      family: loaded.family.name,
      config: loaded.file,
      srte: layout ? { sharing: layout.sharing, form: layout.form } : null,
      ...roles(loaded, storedNames(checkpoint)),
      ...(ignored && { ignored }),
    };
  } catch (error) {
    if (error instanceof UserError && as === undefined) return null;
    throw error;
  }
}

type Roles = Pick<StoredModel, 'parameters' | 'isWhole' | 'others'>;

/** Roles of the tensors of a checkpoint, from its config. */
function roles(loaded: ModelFile, stored: StoredNames): Roles {
  const described = tensorsOf(loaded.model);
  const names = new Set(described.flatMap(parameterNames));
  const isWholeIn =
    ({ elements }: Param) =>
    (name: string) =>
      stored.get(name)?.tensor.elements === elements;
  const parameters = described.filter(({ role }) => role !== 'buffer');
  const buffers = described.filter(({ role }) => role === 'buffer').flatMap(parameterNames);
  const old = ofFamily(loaded).filter(({ isBuffer }) => isBuffer);
  const additional = [...stored].filter(
    ([name, { tensor }]) =>
      !names.has(name) &&
      (firstOfPattern(name, old) ||
        (quantizedPart(name) && STORED_DTYPES[tensor.dtype].kind === 'float')),
  );
  const ownOf = (all: readonly string[]) => all.flatMap((name) => stored.get(name)?.own ?? []);
  return {
    parameters: new Set(
      parameters.flatMap((each) => ownOf(parameterNames(each).filter(isWholeIn(each)))),
    ),
    isWhole: parameters.every((each) => parameterNames(each).some(isWholeIn(each))),
    others: new Set([...ownOf(buffers), ...additional.map(([, { own }]) => own)]),
  };
}

function srteByNames(names: Iterable<string>): StoredModel['srte'] {
  for (const name of names) {
    const [, shared, part] = SRTE_TABLE.exec(name) ?? [];
    if (part === undefined) continue;
    const form = part === 'freqs' ? 'table' : 'low-rank';
    return { sharing: shared === undefined ? 'per-layer' : 'shared', form };
  }
  return null;
}
