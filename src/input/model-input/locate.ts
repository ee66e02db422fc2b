/** Finds configs and checkpoints by path or name. */

import fs from 'node:fs';
import path from 'node:path';
import { usageError } from '../../base/errors.js';
import { ADAPTER_CONFIG, configIn, isAdapterFolder } from '../../base/files/config-names.js';
import { refuseUnconfined } from '../../base/files/confined-reads.js';
import { packagePath } from '../../base/files/file-system.js';
import { fileNamesIn, mountedPath, pathKind } from '../../base/files/mounted.js';
import { hubSuggestion } from '../../base/text/hub-names.js';
import { commandText } from '../../base/text/setting.js';
import { present } from '../../base/values.js';
import type { Listing } from '../../checkpoint/checkpoint.js';
import {
  FILE_FORMATS,
  hasWeightsExtension,
  isDistributedFolder,
  isIndexName,
  isOnnxName,
  isWeightsName,
} from '../../checkpoint/formats.js';
import { nearestWithDigits } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { FAMILY_NAMES, isFamilyName } from '../../model/architecture/families.js';
import type { FamilyDocument } from '../../model/architecture/family.js';
import { presetDocument, presetsOf } from '../../model/architecture/presets.js';
import {
  publishedDocument,
  publishedModel,
  publishedModels,
  publishedText,
} from '../published/published-file.js';
import {
  hubRepository,
  modelChoice,
  modelsWithWords,
  ownRepository,
  publishedModelNamed,
  publishedSizes,
  withoutType,
} from '../published/published-models.js';

const INDEX_NAME = /\.index\.json$/i;
const CONFIG_NAME = /\.(?:ya?ml|json)$/i;

const MAGIC: readonly string[] = Object.values(FILE_FORMATS).flatMap(({ magic }) => [...magic]);

/** Whether a file begins like a checkpoint, which text never does. */
function beginsLikeCheckpoint(head: Buffer): boolean {
  // Safetensors: the length of the header is far below 2^40, and its first character follows.
  if (head.readUIntBE(5, 3) === 0 && head[8] === '{'.charCodeAt(0)) return true;
  // A pickle, including protocols that the reader refuses.
  if (head[0] === 0x80) return true;
  const text = head.toString('latin1');
  return MAGIC.some((magic) => text.startsWith(magic));
}

const HEAD_BYTES = 9;

/** Where a reference to a model leads, looked up once. */
export type ModelPlace = {
  /** The reference as the user wrote it. */
  readonly path: string;
  /** Path of its config: the file in a folder with one, the file of a preset, else `path`. */
  readonly config: string;
} & (
  | { readonly kind: 'stdin' | 'missing' }
  /** The name of a preset, which no file has: `hybrid/tiny`. */
  | { readonly kind: 'preset'; readonly preset: string }
  /** A config, or a folder with a config and without weights. */
  | { readonly kind: 'config'; readonly listing: Listing | undefined }
  /** A folder with weights, or a file with the name or beginning of a checkpoint. */
  | { readonly kind: 'checkpoint'; readonly listing: Listing | undefined }
);

/** A path, or the place that was found for it. */
export type ModelReference = string | ModelPlace;

/** Looks a reference up. A path that the system cannot look up is missing: its error appears when the file is read. */
export function locateModel(reference: ModelReference): ModelPlace {
  if (typeof reference !== 'string') return reference;
  const here = { path: reference, config: reference };
  if (reference === '-') return { kind: 'stdin', ...here };
  try {
    const kind = pathKind(reference);
    if (kind === 'folder') return folderPlace(reference);
    if (isCheckpointFile(reference, kind)) {
      return { kind: 'checkpoint', listing: kind && 'file', ...here };
    }
    if (kind !== undefined) return { kind: 'config', listing: 'file', ...here };
    const preset = presetNamed(reference);
    if (preset === undefined) return { kind: 'missing', ...here };
    return {
      kind: 'preset',
      preset,
      path: reference,
      config: presetFile(preset) ?? `${preset}.yaml`,
    };
  } catch {
    return { kind: 'missing', ...here };
  }
}

function folderPlace(path: string): ModelPlace {
  const names = listedNames(path);
  const found = configIn(path, [], names);
  const isCheckpoint = names !== undefined && (areWeights(names) || found === undefined);
  return {
    kind: isCheckpoint ? 'checkpoint' : 'config',
    ...{ path, config: found ?? path, listing: names },
  };
}

/** Undefined for a folder that cannot be listed. */
function listedNames(folder: string): readonly string[] | undefined {
  try {
    return fileNamesIn(folder).sort();
  } catch {
    return undefined;
  }
}

function isCheckpointFile(path: string, kind: ReturnType<typeof pathKind>): boolean {
  if (hasWeightsExtension(path) || isOnnxName(path) || INDEX_NAME.test(path)) return true;
  if (mountedPath(path)) return false;
  // Never reads from a pipe, whose data could not be read again.
  return !CONFIG_NAME.test(path) && kind === 'file' && beginsAsCheckpoint(path);
}

/** Whether `path` is a checkpoint: a folder with weights, or a file with the name or beginning of one. */
export const isCheckpointPath = (path: string): boolean => locateModel(path).kind === 'checkpoint';

/** Whether a place is the folder of a LoRA adapter. */
export const isAdapterPlace = (place: ModelPlace): boolean =>
  'listing' in place && Array.isArray(place.listing)
    ? place.listing.includes(ADAPTER_CONFIG)
    : place.kind === 'config' && place.listing === undefined && isAdapterFolder(place.path);

const areWeights = (names: readonly string[]): boolean =>
  names.some((name) => isIndexName(name) || isWeightsName(name)) || isDistributedFolder(names);

/** @throws when the folder does not exist. */
export const hasWeights = (folder: string): boolean => areWeights(fileNamesIn(folder));

function beginsAsCheckpoint(path: string): boolean {
  refuseUnconfined(path);
  const head = Buffer.alloc(HEAD_BYTES);
  const descriptor = fs.openSync(path, 'r');
  try {
    fs.readSync(descriptor, head, 0, HEAD_BYTES, 0);
  } finally {
    fs.closeSync(descriptor);
  }
  return beginsLikeCheckpoint(head);
}

// The model of the working folder, for commands that are given none.

/** Names that take precedence over any other. */
const OWN_NAMES = ['minimind.yaml', 'minimind.yml', 'model.yaml', 'model.yml'];

/** Size up to which a file can be a config. */
const CONFIG_BYTES = 1 << 20;

/**
 * Model files of a folder: the one of a usual name; the folder itself if it has weights and their config; else all
 * configs and checkpoints in it.
 */
export function modelsIn(folder: string): string[] {
  const names = fs.readdirSync(folder).sort();
  const own = OWN_NAMES.find((name) => names.includes(name));
  if (own !== undefined) return [own];
  if (hasWeights(folder) && configIn(folder) !== undefined) return ['.'];
  return names.filter((name) => isConfigFile(path.join(folder, name)));
}

/** Checkpoint files of a folder; the folder itself if it is a checkpoint. */
export function checkpointsIn(folder: string): string[] {
  if (configIn(folder) !== undefined && hasWeights(folder)) return ['.'];
  return fs.readdirSync(folder).filter(hasWeightsExtension).sort();
}

/** The section of a model in YAML, or sizes without one. */
const OWN_KEYS = /^(?:model|hidden_size|num_hidden_layers|num_layers) *:/m;

/** Whether a file has the top-level keys of a config of minimind, or of Hugging Face. */
function isConfigFile(file: string): boolean {
  const isJson = path.basename(file) === 'config.json';
  if (!isJson && !/\.ya?ml$/i.test(file)) return false;
  const status = fs.statSync(file, { throwIfNoEntry: false });
  if (!status?.isFile() || status.size > CONFIG_BYTES) return false;
  refuseUnconfined(file);
  const text = fs.readFileSync(file, 'utf8');
  return isJson ? /"model_type"|"model"/.test(text) : OWN_KEYS.test(text);
}

/**
 * The only model or checkpoint of the working folder.
 * @param line The command line with a model that was found, or an example, for the error.
 * @throws UserError when there is none, or several.
 */
export function onlyOneInFolder(
  what: 'model' | 'checkpoint',
  line: (found: string | undefined) => string,
): string {
  const found = what === 'model' ? modelsIn('.') : checkpointsIn('.');
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw usageError(
    only === undefined
      ? `expected a ${what}, found none on the command line or in this folder`
      : `expected one ${what}, found ${found.length} in this folder: ${found.join(', ')}`,
    `write ${line(only)}`,
  );
}

// Presets: the commented files in the package's configs folder, by name.

export interface PresetFile {
  /** `hybrid/recommended`. */
  readonly preset: string;
  readonly family: string;
  readonly text: string;
}

/** File of a preset in the package. */
const presetFile = (preset: string): string | undefined => packagePath(`configs/${preset}.yaml`);

/** Names of all presets with files and their families, as their files are sorted: `hybrid/original`. */
export function presetNames(): string[] {
  return FAMILY_NAMES.flatMap((family) => {
    const files = presetsOf(family).map(({ name }) => `${name}.yaml`);
    return files.sort().map((name) => `${family}/${path.basename(name, '.yaml')}`);
  });
}

const lastPart = (preset: string) => preset.slice(preset.indexOf('/') + 1);

const foldedName = (name: string) => name.trim().toLowerCase().replaceAll('_', '-');

/** Config files of the published report of the SRTE, and the presets with their models. */
const PUBLISHED_FILES: Readonly<Record<string, string>> = {
  'pretrain-optimized': 'hybrid/recommended',
  'pretrain-v1': 'hybrid/original',
};

/** Preset of a published file, by its name or path: `configs/pretrain_optimized.yaml`. */
function publishedPreset(name: string): string | undefined {
  const file = path.basename(foldedName(name));
  const stem = file.replace(/\.ya?ml$/, '');
  return Object.hasOwn(PUBLISHED_FILES, stem) ? PUBLISHED_FILES[stem] : undefined;
}

/** Presets that a name in any case means, with or without the family. */
export function presetsNamed(name: string): string[] {
  // `minimind-2` is minimind2; a name with other digits would be another model.
  const spelled = (each: string) => foldedName(each).replaceAll('-', '');
  const wanted = spelled(publishedPreset(name) ?? name);
  const found = presetNames().filter((preset) =>
    [preset, lastPart(preset)].some((each) => spelled(each) === wanted),
  );
  if (found.length > 0) return found;
  const published = publishedModelNamed(name);
  return published === undefined ? [] : [published.model.preset];
}

/** The preset that replaces a name of another kind: a file of a published report, or a published model. */
export function presetInstead(name: string): string | undefined {
  const file = publishedPreset(name);
  if (file !== undefined) return file;
  const [preset = ''] = presetsNamed(name);
  const spelled = foldedName(name).replaceAll('-', '');
  const isOwn = [preset, lastPart(preset)].some((each) => each.replaceAll('-', '') === spelled);
  return isOwn || preset === '' ? undefined : preset;
}

/** Names of published models that have no file. */
export const publishedPresetNames = (): string[] =>
  publishedModels().flatMap(({ preset, row }) => (row.preset === undefined ? [preset] : []));

/** Text of a published model that has no file; undefined for another preset. */
export function publishedPresetText(preset: string): string | undefined {
  const model = presetFile(preset) === undefined ? publishedModel(preset) : undefined;
  return model && publishedText(model);
}

/** Remarks on the name of a published model: parts that are not described, and other sizes. */
export function publishedRemarks(name: string): string[] {
  const { model, others = [] } = publishedModelNamed(name) ?? {};
  return present([
    model?.of.part && 'without the parts that see or hear',
    others.length > 0 && `other sizes: ${others.join(', ')}`,
  ]);
}

/** The only preset of this name. */
function presetNamed(name: string): string | undefined {
  const isFile = /\.(?:ya?ml|json)$/i.test(name) && publishedPreset(name) === undefined;
  const [only, ...others] = isFile ? [] : presetsNamed(name);
  return others.length === 0 ? only : undefined;
}

/**
 * Refuses the name of a preset in the place of a checkpoint: only its sizes are part of the program.
 * @throws UserError with the repository of its weights, where they are published.
 */
export function refusePreset(reference: ModelReference): void {
  const place = locateModel(reference);
  if (place.kind !== 'preset') return;
  const repository = ownRepository(place.path)?.name;
  throw usageError(
    `expected a checkpoint, found the sizes of ${quote(place.path)}`,
    repository && hubSuggestion(repository),
  );
}

/** Advice for a name that is not a preset, such as that of a family. */
export function presetAdvice(name: string): string {
  const folded = name.toLowerCase();
  const bare = withoutType(name);
  if (bare.type !== undefined) {
    const own = presetNamed(bare.name);
    const published = own ?? hubRepository(bare.name);
    const model = own ?? `hf:${published}`;
    if (published !== undefined) {
      const typed = commandText('fit', [model], { dtype: bare.type });
      return `write ${model}, or for weights of that type ${typed}`;
    }
  }
  const sizes = publishedSizes(name).map(lastPart);
  if (sizes.length > 0) return `write one of its sizes: ${sizes.join(', ')}`;
  const [prefix = ''] = folded.split('/');
  // A family is not an organization of the hub.
  const isPlain = folded === prefix || !isFamilyName(prefix);
  const repository = isPlain ? hubRepository(name) : undefined;
  const hub = repository === undefined ? '' : `hf:${repository}`;
  // Families with published models have more than the presets of this package.
  const isOwn = folded === prefix || modelsWithWords(prefix).length === 0;
  const family = FAMILY_NAMES.find((each) => each === prefix && isOwn);
  const own = presetNames().filter((preset) => preset.startsWith(`${family}/`));
  const near = family !== undefined && folded !== family ? nearestPreset(name) : undefined;
  if (near !== undefined) return `did you mean ${near}?`;
  if (own.length > 0) {
    const shown = own.length > MOST_LISTED ? [`${own[0]}, …`] : own;
    const all = commandText('list', [String(family)]);
    return `${family} is a family: write one of its presets, ${[...shown, hub].filter(Boolean).join(', ')}; ${all} shows them`;
  }
  const alike = name.includes('/') ? [] : [...modelsWithWords(name), ...presetsWithWords(name)];
  const [only] = alike.length === 1 && repository === undefined ? alike : [];
  if (only !== undefined && !isVariant(name, only)) return `did you mean ${only}?`;
  const choice = alike.length > 0 && repository === undefined ? modelChoice(name) : undefined;
  if (choice) {
    return choice.isWhole
      ? choice.advice
      : `${choice.advice}; ${commandText('list', [name])} shows all`;
  }
  const nearby = only ?? nearestPreset(name);
  const close = nearby === undefined || isVariant(name, nearby) ? undefined : nearby;
  if (close !== undefined) return `did you mean ${close}?`;
  const elsewhere = repository && hubSuggestion(repository);
  if (elsewhere === undefined && IS_CLOSED.test(name)) {
    return `its weights and its config are not published; ${commandText('list')} shows models whose are`;
  }
  if (elsewhere === undefined) {
    const another = nearby === undefined ? '' : `${nearby} is another model; `;
    return `${another}${commandText('list')} shows the presets; a model of the hub is hf:ORG/NAME`;
  }
  return `its sizes are not built in: ${elsewhere}`;
}

/** Short names of the presets of this package that have all words of a name, of two or more: `minimind-moe`. */
function presetsWithWords(name: string): string[] {
  const wordsOf = (text: string) => text.toLowerCase().split(/[^a-z0-9.]+/);
  const words = wordsOf(name);
  if (words.length < 2) return [];
  return presetNames()
    .map(lastPart)
    .filter((preset) => words.every((word) => wordsOf(preset).includes(word)));
}

/** Words of a name, and letters apart from numbers: `minimind-3v` has minimind, 3, v. */
const partsOf = (name: string): string[] =>
  lastPart(name)
    .toLowerCase()
    .match(/[a-z]+|\d[\d.]*/g) ?? [];

/** Words that say how a model was trained, and not which one it is. */
const OF_TRAINING = /^(?:instruct|it|base|chat|hf|pt)$/;

/**
 * Whether two names differ in words alone that make another model, so that none is misspelled: granite-4.0-micro is not
 * granite-4.0-h-micro, and minimind-3v sees.
 */
function isVariant(name: string, other: string): boolean {
  const [own, others] = [partsOf(name), partsOf(other)];
  const more = own.filter((part) => !others.includes(part));
  const fewer = others.filter((part) => !own.includes(part));
  const isLetters = (part: string) => /^[a-z]+$/.test(part) && !OF_TRAINING.test(part);
  const hasAll = (some: readonly string[], rest: readonly string[]) =>
    rest.length === 0 &&
    some.length > 0 &&
    some.every(isLetters) &&
    some.every((part) => part.length < 3);
  return hasAll(more, fewer) || hasAll(fewer, more);
}

/** Models that are only a service. */
const IS_CLOSED = /^(?:openai|anthropic|google)?\/?(?:chat-?gpt|gpt-?[345]|claude|gemini|copilot)/i;

/** Most presets of a family in an error. */
const MOST_LISTED = 8;

/** The preset with the most similar name, as short as it is unique. A name with other digits is another model. */
function nearestPreset(name: string): string | undefined {
  const presets = presetNames();
  const [prefix = ''] = name.split('/');
  // Only the name after the family can be misspelled: its letters alone count, so hybrid/small is not hybrid/shared.
  if (isFamilyName(prefix) && name.includes('/')) {
    const own = presets.filter((each) => each.startsWith(`${prefix}/`)).map(lastPart);
    const close = nearestWithDigits(lastPart(name), own);
    return close && `${prefix}/${close}`;
  }
  const all = [...presets, ...presets.map(lastPart)];
  const start = `${foldedName(name)}-`;
  const longer = all.filter((each) => each.startsWith(start));
  const close = longer.length === 1 ? longer[0] : nearestWithDigits(name, all);
  const known = hubRepository(name);
  if (close === undefined || (known !== undefined && longer.length === 0)) return undefined;
  if (close.includes('/')) return close;
  return presetsNamed(close).length === 1 ? close : presetsNamed(close)[0];
}

/**
 * @param name `hybrid/recommended`, or `recommended` when only one family has it; in any case.
 * @throws UserError when there is no such preset.
 */
export function readPresetFile(name: string): PresetFile {
  const found = presetsNamed(name);
  const [preset] = found;
  const only = presetNamed(name);
  const file = only && presetFile(only);
  const published = only && file === undefined ? publishedPresetText(only) : undefined;
  if (preset === undefined || (file === undefined && published === undefined)) {
    throw usageError(
      preset === undefined
        ? `unknown preset ${quote(name)}`
        : `expected one preset, found ${found.length} of the name ${quote(name)}`,
      preset === undefined ? presetAdvice(name) : `write ${found.join(' or ')}`,
    );
  }
  const [family = ''] = preset.split('/');
  return {
    preset,
    family,
    text: published ?? ownCopy(fs.readFileSync(String(file), 'utf8'), family),
  };
}

/** The document of a preset, with or without a file. */
export function presetSettings(family: string, name: string): FamilyDocument {
  const published = publishedModel(`${family}/${name}`);
  return published ? publishedDocument(published) : presetDocument(family, name);
}

/** The text of a preset as a user's file: with the schema in the same folder, without the lines for lists of presets. */
function ownCopy(text: string, family: string): string {
  return text
    .replace(/^(# yaml-language-server: \$schema=).*$/m, `$1./${family}.schema.json`)
    .replace(/\n(?:# (?:title|order): .*\n)+$/, '');
}
