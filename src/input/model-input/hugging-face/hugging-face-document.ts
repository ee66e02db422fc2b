/** A Hugging Face `config.json` as a minimind document. */

import type { ProblemText, PropertyPath, UserError } from '../../../base/errors.js';
import { formatJson, jsonOrUndefined } from '../../../base/text/json.js';
import { commandText, setting } from '../../../base/text/setting.js';
import { joined } from '../../../base/text/words.js';
import { asText, isEqualData, isRecord } from '../../../base/values.js';
import { suggestedKey } from '../../../config/check-document.js';
import {
  type ConfigDocument,
  documentOfSection,
  editedText,
  parseDocument,
} from '../../../config/document.js';
import type { LocatedFinding } from '../../../config/document-problems.js';
import { invalidConfig } from '../../../config/document-problems.js';
import { applyOverrides, splitOverride } from '../../../config/overrides.js';
import { describeValue, formatPath, quote, valueAt } from '../../../config/quote.js';
import {
  COPIES,
  type Copy,
  FAMILY_NAMES,
  type FamilyName,
  isCopy,
  isFamilyName,
  loadFamily,
} from '../../../model/architecture/families.js';
import type { Family, KeyRemark, LargerModel } from '../../../model/architecture/family.js';
import { missingTower, partsBeside } from '../../../model/architecture/towers/towers.js';
import type { JsonObject } from '../../../model/architecture/transformer/config-keys.js';
import { isOfMlx } from '../../../model/quantization/mlx-settings.js';
import type { QuantizationReading } from '../../../model/quantization/quantization-config.js';
import {
  KNOWN_METHODS,
  readQuantization,
} from '../../../model/quantization/quantization-config.js';
import { UndescribedModel } from '../undescribed-model.js';
import { type TextPart, textKeyOf, textPartOf, unknownTextPart } from './text-part.js';

type Reader = NonNullable<Family['fromHuggingFace']>;

/** Key of the kind of model. */
const KIND = 'model_type';

/** Keys of nearly every `config.json`, absent from minimind documents. */
const TELLING = [
  'architectures',
  'num_hidden_layers',
  'num_attention_heads',
  'num_kv_heads',
  'n_layer',
  'n_head',
];

const HOW_TO_ADD = 'docs/adding-a-model.md says how to describe another';

/** Whether a document has a `model_type`, and no `model` section. */
export const isHuggingFace = ({ value }: ConfigDocument): boolean =>
  Object.hasOwn(value, KIND) && !isRecord(value.model);

/**
 * Translates a `config.json`; returns any other document unchanged. Problems point to their source value in the
 * `config.json`.
 * @throws UserError when its kind of model is missing or belongs to no known family.
 */
export async function asOurDocument(
  document: ConfigDocument,
  family?: string,
): Promise<ConfigDocument> {
  // Sizes under names of ours, such as num_layers, do not make it a model of ours.
  if (family === undefined && !isHuggingFace(document) && isOfOtherLibrary(document)) {
    throw otherLibrary(document);
  }
  if (!isHuggingFace(document) && (family === undefined || !isWithoutKind(document))) {
    if (isWithoutKind(document)) throw await withoutKind(document);
    const { asSections } = await import('./document-sections.js');
    const sectioned = await asSections(document, family);
    if (isOfOtherLibrary(sectioned)) throw otherLibrary(document);
    return sectioned;
  }
  const { config, path, part, reader, larger } = await readingOf(document, family);
  const { settings, remarks } = reader.read(config);
  const own = { family: config[KIND], ...settings, ...(await prefixOfPart(part, settings)) };
  const inFile = new Set(Object.keys(part ? (valueAt(document.value, path) as object) : config));
  return documentOfSection(document, 'model', own, {
    of: placed(originsOf(config, settings, reader), path),
    otherwise: [KIND],
    found: [
      ...[...remarks, ...(part?.remarks ?? [])]
        .filter(({ path: [key] }) =>
          key === undefined ? !part?.isAbsent : inFile.has(String(key)),
        )
        .map((remark) => foundOf(remark, document, path, reader)),
      ...leftOutFound(document, part),
      ...(part ? towersFound(document, part, reader) : []),
      ...notesFound(document, part),
      ...copyFound(document, config),
      ...unsaidFound(document, larger, path),
      ...quantizationFound(document),
    ],
  });
}

/** The part of a config that is read: the whole file, or its text part. */
interface Described {
  readonly config: JsonObject;
  readonly path: PropertyPath;
  readonly part?: TextPart;
}

function described({ value }: ConfigDocument, family: string | undefined): Described {
  const part = textPartOf(value, family);
  if (part) return { config: part.config, path: part.path, part };
  const kind = value[KIND];
  if (family === undefined && isCopy(kind))
    return { config: asOriginal(value, COPIES[kind]), path: [] };
  return { config: family === undefined ? value : { ...value, [KIND]: family }, path: [] };
}

/** The described part, its reader, and the model around it where that is not described. */
async function readingOf(document: ConfigDocument, family: string | undefined) {
  const part = described(document, family);
  const reader = await readerOf(part.config[KIND]);
  if (reader === undefined) throw await unknownKind(document);
  const larger = reader.largerModel?.(part.config);
  if (larger === undefined || larger.isUnsaid) return { ...part, reader, larger };
  const whole = await readerOf(larger.family);
  if (whole === undefined) throw largerModel(document, larger, part.path);
  const config = { ...part.config, [KIND]: larger.family };
  return { ...part, config, reader: whole, larger: undefined };
}

/** A config of a copy with the keys that its code has by default, as one of the original. */
function asOriginal(config: JsonObject, { family, keys, scaling }: Copy): JsonObject {
  const { rope_scaling: given } = config;
  return {
    ...keys,
    ...config,
    ...(scaling && { rope_scaling: { ...scaling, ...(isRecord(given) ? given : {}) } }),
    [KIND]: family,
  };
}

/** Kind of the model around a described language model. */
export const wholeKindOf = (document: ConfigDocument, family?: string): string | undefined =>
  isHuggingFace(document) ? described(document, family).part?.of : undefined;

/** Prefix of a text part's names as a setting, if the family has one for it. */
async function prefixOfPart(part: TextPart | undefined, settings: JsonObject): Promise<JsonObject> {
  const family = part?.config.model_type;
  if (part?.prefix === undefined || !isFamilyName(family)) return {};
  const stored = { stored_prefix: part.prefix };
  const { schema } = await loadFamily(family);
  return schema.safeParse({ model: { family, ...settings, ...stored } }).success ? stored : {};
}

const placed = (origins: ReadonlyMap<string, PropertyPath>, path: PropertyPath) =>
  new Map([...origins].map(([key, place]) => [key, [...path, ...place]] as const));

function leftOutFound(document: ConfigDocument, part: TextPart | undefined): LocatedFinding[] {
  const towers = part && partsBeside(document.value);
  const sections = towers && 'sections' in towers ? towers.sections : [];
  const leftOut = (part?.leftOut ?? []).filter((key) => !sections.includes(key));
  const why = towers && 'problem' in towers ? `: ${towers.problem}` : '';
  if (part === undefined || (leftOut.length === 0 && why === '')) return [];
  const path = [leftOut[0] ?? KIND];
  // A part without a section has sizes of the whole.
  const names = leftOut.length > 0 ? joined(leftOut) : 'its other parts';
  const finding = {
    message: `${names} ${leftOut.length === 1 ? 'is' : 'are'} left out: only the language model of ${part.of} is described (${part.config.model_type})${why}`,
    suggestion: 'give the checkpoint in place of its config to count what is left out',
  };
  return [{ severity: 'warning', place: document.place(path, 'key'), path, finding }];
}

/** Names of parts beside a language model, by the keys of their sizes; parts with other keys are vision towers. */
const BESIDE: Readonly<Record<string, string>> = {
  audio_config: 'audio encoder',
  patch_size: 'embedding of image patches',
};

/** A note on the towers of a whole model, and on keys of theirs that have no effect. */
function towersFound(document: ConfigDocument, part: TextPart, reader: Reader): LocatedFinding[] {
  const missing = missingTower(document.value);
  if (missing !== undefined) return [withoutTower(document, part, missing)];
  const towers = partsBeside(document.value);
  if (towers === undefined || 'problem' in towers) return [];
  const [section = KIND] = towers.sections;
  const path = [Object.hasOwn(document.value, section) ? section : KIND];
  const finding = {
    message: `the ${BESIDE[section] ?? 'vision tower'} of ${part.of} is described, not run: its weights are counted, and FLOPs, cache and speed are those of the language model (${part.config.model_type})`,
    suggestion: 'docs/models.md says what is counted of such a model',
  };
  return [
    { severity: 'warning', place: document.place(path, 'key'), path, finding },
    ...towers.remarks.map((remark) => foundOf(remark, document, [], reader)),
  ];
}

/** A warning about a whole model without the section of its tower. */
function withoutTower(document: ConfigDocument, { of }: TextPart, section: string): LocatedFinding {
  const finding = {
    message: `has no ${section}: the tower and the projector of ${of} are not counted`,
    suggestion: `add its ${section}, or give the checkpoint in place of its config`,
  };
  return { severity: 'warning', place: document.place([KIND], 'key'), path: [KIND], finding };
}

/** Notes on a text part, where it begins. */
function notesFound(document: ConfigDocument, part: TextPart | undefined): LocatedFinding[] {
  const path = [part?.path[0] ?? KIND];
  const place = document.place(path, 'key');
  return (part?.notes ?? []).map(({ severity, ...finding }) => ({
    severity,
    place,
    path,
    finding,
  }));
}

/** A warning about the formula of a copy, where the settings switch it on. */
function copyFound(document: ConfigDocument, config: JsonObject): LocatedFinding[] {
  const kind = document.value[KIND];
  const isStretched = isCopy(kind) && 'scaling' in COPIES[kind];
  if (!isStretched || config.inference_rope_scaling !== true) return [];
  const path = ['inference_rope_scaling'];
  const finding = {
    message: `YaRN is computed as the code of ${kind} does: by the formula ${quote(asText(valueAt(config, ['rope_scaling', 'formula'])))}`,
    suggestion: `write ${setting('set', 'model.rope_scaling.formula=ramp')} for that of MiniMind since December 2025`,
  };
  return [{ severity: 'warning', place: document.place(path, 'key'), path, finding }];
}

/** A warning where a file does not name its class, and only a part of a larger model is described. */
function unsaidFound(
  document: ConfigDocument,
  larger: LargerModel | undefined,
  outer: PropertyPath,
): LocatedFinding[] {
  if (larger === undefined) return [];
  const path = [...outer, KIND];
  const finding = {
    message: `names no class: only the decoder is described (${larger.decoder})`,
    suggestion: `write "architectures": [${quote(larger.decoder)}] if that is the model`,
  };
  return [{ severity: 'warning', place: document.place(path, 'key'), path, finding }];
}

/** The quantization of a `config.json`, or of a document with a `model` section; empty for any other document. */
export function quantizationOf(document: ConfigDocument): QuantizationReading {
  const { value } = document;
  if (!isHuggingFace(document) && !isRecord(value.model)) return { doubts: [] };
  return readQuantization(quantizedPart(document).config);
}

const QUANTIZATION = 'quantization_config';

/**
 * The part of a config that has its quantization: the whole, or the text part alone, as in Kimi K2.5 (huggingface.js, pull
 * request 2003).
 */
function quantizedPart({ value }: ConfigDocument): { config: JsonObject; path: PropertyPath } {
  const key = textKeyOf(value) ?? '';
  const text = value[key];
  if (isOfMlx(value)) return { config: value, path: ['quantization'] };
  if (value[QUANTIZATION] != null || !isRecord(text) || text[QUANTIZATION] == null) {
    return { config: value, path: [QUANTIZATION] };
  }
  const { dtype, torch_dtype } = value;
  return { config: { dtype, torch_dtype, ...text }, path: [key, QUANTIZATION] };
}

/** Warnings about unsupported parts of a quantization. */
export function quantizationFound(document: ConfigDocument): LocatedFinding[] {
  const { path } = quantizedPart(document);
  const place = document.place(path, 'key');
  const { quantization, doubts } = quantizationOf(document);
  const effect = quantization
    ? 'the size of the stored weights is an estimate'
    : 'the size of the stored weights is not counted';
  return doubts.map((doubt) => ({
    severity: 'warning',
    place,
    path,
    finding: {
      message: `${doubt}: ${effect}`,
      suggestion: `methods whose sizes are counted: ${KNOWN_METHODS.join(', ')}`,
    },
  }));
}

/** A remark on a key, with its location and text. */
function foundOf(
  remark: KeyRemark,
  document: ConfigDocument,
  outer: PropertyPath,
  reader: Reader,
): LocatedFinding {
  const isWhole = remark.path.length === 0;
  // Published files of LLaVA leave out the sizes of a text part where they are those of its class.
  const severity = isWhole && outer.length > 0 ? 'warning' : remark.severity;
  const path = [...outer, ...remark.path];
  const place = document.place(isWhole ? [KIND] : path, 'key');
  const finding = () =>
    isWhole
      ? aboutWhole(remark, outer, document.value)
      : aboutKey({ ...remark, path }, document.value, reader);
  return { severity, place, ...(isWhole ? {} : { path }), finding };
}

/** Remark on a file without sizes. */
function aboutWhole({ why }: KeyRemark, outer: PropertyPath, config: JsonObject): ProblemText {
  if (outer.length > 0) {
    return {
      message: `its ${formatPath(outer)} ${why}: all sizes are the defaults of its class`,
      suggestion: 'check that these are the sizes of the model',
    };
  }
  const inside = textKeyOf(config);
  return {
    message: `${why}: all sizes would be the defaults of the class`,
    suggestion: inside
      ? `its ${inside} may give them: save that part as a config.json of its own, with its model_type`
      : 'write the sizes of the model',
  };
}

function aboutKey(
  { path, severity, why, advice = 'remove it' }: KeyRemark,
  config: JsonObject,
  { keys }: Reader,
): ProblemText {
  const key = String(path.at(-1));
  if (why === undefined) {
    const meant = suggestedKey(key, [...keys], config);
    return {
      message: `unknown key ${quote(key)}: it is ignored`,
      suggestion: meant ? `did you mean ${quote(meant)}?` : 'check that the model works without it',
    };
  }
  const given = valueAt(config, path);
  // The class in `architectures` is the only item of a list.
  const value = describeValue(Array.isArray(given) && given.length === 1 ? given[0] : given);
  return severity === 'error'
    ? {
        message: `${key} ${value} is not supported: ${why}`,
        suggestion: 'no other value of it describes this model; see docs/adding-a-model.md',
      }
    : {
        message: `${isRecord(given) ? key : `${key} ${value}`} has no effect: ${why}`,
        suggestion: advice,
      };
}

/** A changed `config.json`. */
export interface ChangedHuggingFace {
  readonly value: Record<string, unknown>;
  readonly text: string;
}

/**
 * A `config.json` with overrides of the translated values: each is written to its source key, everything else is
 * unchanged. Undefined when the result would differ.
 * @param sets `model.key=value`.
 * @param family Family to read it as, regardless of its kind.
 * @throws UserError as `asOurDocument`.
 */
export async function changedHuggingFace(
  document: ConfigDocument,
  sets: readonly string[],
  family?: string,
): Promise<ChangedHuggingFace | undefined> {
  const { config, path: outer, reader } = await readingOf(document, family);
  const origins = placed(originsOf(config, reader.read(config).settings, reader), outer);
  const moved = sets.flatMap((text): { path: PropertyPath; value: string }[] => {
    const override = splitOverride(text);
    if ('mistake' in override) return [];
    const [section, key, ...rest] = override.path;
    if (section !== 'model' || key === undefined) return [];
    return [
      { path: [...(origins.get(String(key)) ?? [...outer, key]), ...rest], value: override.value },
    ];
  });
  const changed = applyOverrides(
    document,
    moved.map(({ path, value }) => `${formatPath(path)}=${value}`),
  );
  const overridden = applyOverrides(await asOurDocument(document, family), sets);
  const isSame = async (other: ConfigDocument) =>
    isEqualData((await asOurDocument(other, family)).value, overridden.value);
  if (!(await isSame(changed))) return undefined;
  const { value } = changed;
  const edits = moved.map(({ path }) => ({ path, value: valueAt(value, path) }));
  const text = editedText(document, edits);
  const isRight =
    text !== undefined &&
    jsonOrUndefined(text) !== undefined &&
    (await isSame(parseDocument(text, '')));
  return { value, text: isRight ? text : `${formatJson(value, 2)}\n` };
}

const readerOf = async (kind: unknown): Promise<Reader | undefined> =>
  isFamilyName(kind) ? (await loadFamily(kind)).fromHuggingFace : undefined;

/** Names of the supported kinds of models. */
async function knownKinds(): Promise<string[]> {
  const known = await Promise.all(
    FAMILY_NAMES.map(async (name) => ((await readerOf(name)) ? [name] : [])),
  );
  return [...known.flat(), ...Object.keys(COPIES)].sort();
}

// ── Unsupported files ────────────────────────────────────────────────────────────────────────────

const isWithoutKind = ({ file, value }: ConfigDocument): boolean =>
  value.model === undefined &&
  /\.json$/i.test(file) &&
  TELLING.some((key) => Object.hasOwn(value, key));

/** Keys with the class of a model in configs of other libraries: diffusers, timm, and `library_name` of the hub. */
const OF_OTHER_LIBRARIES = ['_class_name', 'architecture', 'library_name', 'auto_map'];

const isOfOtherLibrary = ({ file, value }: ConfigDocument): boolean =>
  value.model === undefined &&
  /\.json$/i.test(file) &&
  OF_OTHER_LIBRARIES.some((key) => Object.hasOwn(value, key));

const otherLibrary = (document: ConfigDocument): UserError =>
  documentRefusal(document, {
    path: [],
    message: `has no ${KIND}: it is the config of another library`,
    suggestion: `${commandText('list')} shows the kinds of models that are described`,
  });

async function withoutKind(document: ConfigDocument): Promise<UserError> {
  const likely = await likelyKind(document.value);
  return documentRefusal(document, {
    path: [],
    message: `has no ${KIND}: the kind of its model is unknown`,
    suggestion: likely
      ? `its keys are those of ${likely}: add "${KIND}": "${likely}", or write ${setting('family', likely)}`
      : `add "${KIND}", one of those in ${commandText('list')}`,
  });
}

/** Kinds whose own programs write a config without a kind. The keys of any other kind are also those of further ones. */
const WITHOUT_KIND = ['minimind', 'minigpt'] as const satisfies readonly FamilyName[];

/** The only one of these kinds that knows all keys of a file. */
async function likelyKind(config: JsonObject): Promise<string | undefined> {
  const keys = Object.keys(config);
  if (Object.hasOwn(config, 'architectures')) return undefined;
  const readers = await Promise.all(WITHOUT_KIND.map(readerOf));
  const [likely, ...others] = WITHOUT_KIND.filter((_, index) =>
    keys.every((key) => (readers[index]?.useOf(key).use ?? 'unknown') !== 'unknown'),
  );
  return others.length === 0 ? likely : undefined;
}

async function unknownKind(document: ConfigDocument): Promise<UserError> {
  const { value } = document;
  const kinds = await knownKinds();
  const inside = unknownTextPart(value);
  const message = `no family for ${KIND} ${describeValue(value[KIND])} is known here${inside ? `: ${inside}` : ''}`;
  const respelled = kinds.find((kind) => foldedKind(kind) === foldedKind(value[KIND]));
  if (respelled !== undefined) {
    const suggestion = `did you mean ${quote(respelled)}?`;
    return documentRefusal(document, { path: [KIND], message, suggestion });
  }
  return documentRefusal(document, {
    path: [KIND],
    message,
    // Kinds with similar names or with the same keys are other models: phi is not phi3.
    suggestion: `${commandText('list')} shows the ${kinds.length} known kinds. A folder with weights is counted without one. ${HOW_TO_ADD}`,
  });
}

/** A kind in lower case and with underscores; nothing else may differ, because similar names are other models. */
const foldedKind = (kind: unknown) => asText(kind).trim().toLowerCase().replaceAll('-', '_');

const largerModel = (
  document: ConfigDocument,
  { name, decoder }: LargerModel,
  outer: PropertyPath,
): UserError =>
  documentRefusal(document, {
    path: [...outer.map(String), KIND],
    message: `describes ${name}, which has an encoder: only decoders alone are described (${decoder})`,
    suggestion: `a folder with weights is counted without a description; write "architectures": [${quote(decoder)}] for the decoder alone`,
  });

function documentRefusal(
  document: ConfigDocument,
  { path, message, suggestion }: { path: string[]; message: string; suggestion: string },
): UserError {
  const place = document.locate(path);
  const named = path.length === 0 ? {} : { path: path.join('.') };
  return new UndescribedModel(
    invalidConfig(
      document.file,
      [{ severity: 'error', ...place, ...named, message, suggestion }],
      1,
    ),
  );
}

// ── Origins of values ────────────────────────────────────────────────────────────────────────────

/** A file with more keys is not a config, so its keys are not tried one by one. */
const MOST_TRIED = 200;

/** The path in `config` that each setting comes from; its own keys map to themselves. */
function originsOf(
  config: JsonObject,
  settings: JsonObject,
  reader: Reader,
): ReadonlyMap<string, PropertyPath> {
  const origins = new Map<string, PropertyPath>(Object.keys(config).map((key) => [key, [key]]));
  const mappings = Object.keys(config).filter((key) => isRecord(config[key]));
  for (const [key, value] of Object.entries(settings)) {
    const places = [[key], ...mappings.map((outer) => [outer, key])].filter(
      (path) => valueAt(config, path) !== undefined,
    );
    const same = places.find((path) => isEqualData(valueAt(config, path), value));
    const origin = same ?? places[0] ?? triedOrigin(key, config, settings, reader);
    if (origin !== undefined) origins.set(key, origin);
  }
  return origins;
}

/** The key whose removal changes a setting. */
function triedOrigin(
  setting: string,
  config: JsonObject,
  settings: JsonObject,
  reader: Reader,
): PropertyPath | undefined {
  const keys = Object.keys(config);
  if (keys.length > MOST_TRIED) return undefined;
  const origin = keys.find((left) => {
    const { [left]: _, ...rest } = config;
    return !isEqualData(reader.read(rest).settings[setting], settings[setting]);
  });
  return origin === undefined ? undefined : [origin];
}
