/** A `config.json` of Hugging Face as a document of ours. */
import { isDeepStrictEqual } from 'node:util';
import { FAMILY_NAMES, isFamilyName, loadFamily } from '../architecture/families.js';
import type { Family } from '../architecture/family.js';
import { type ConfigDocument, parseDocument } from '../config/document.js';
import { editedText } from '../config/edit.js';
import { nearest } from '../config/nearest.js';
import { splitOverride } from '../config/override-path.js';
import { applyOverrides } from '../config/overrides.js';
import { formatPath, isMapping, setOwn, valueAt } from '../config/path.js';
import { invalidConfig } from '../config/problems.js';
import { describeValue } from '../config/quote.js';
import { definitionOf, knownKeys, schemaAt } from '../config/schema.js';
import { documentOfSection } from '../config/section.js';
import type { PropertyPath, UserError } from '../errors.js';

type Json = Readonly<Record<string, unknown>>;
type Translate = NonNullable<Family['fromHuggingFace']>;

/** The key by which such a file says of what kind its model is. */
const KIND = 'model_type';

/** Keys that nearly every such file has, and no document of ours. */
const TELLING = ['architectures', 'num_hidden_layers', 'num_attention_heads', 'n_layer', 'n_head'];

/** Keys of models of several kinds, under which the one that reads text stands. */
const TEXT_PARTS = ['text_config', 'llm_config', 'language_config'] as const;

const HOW_TO_ADD = 'docs/adding-a-model.md says how to describe another';

/** Whether a document says of what kind its model is as Hugging Face does, and has no model of ours. */
export const isHuggingFace = ({ value }: ConfigDocument): boolean =>
  Object.hasOwn(value, KIND) && !isMapping(value.model);

/**
 * The document that a `config.json` comes to; any other as it is. Problems with its values are told where
 * the values stand that they come from.
 * @throws UserError when no family is known for its kind of model, or it has none.
 */
export async function asOurDocument(document: ConfigDocument): Promise<ConfigDocument> {
  if (!isHuggingFace(document)) {
    if (isWithoutKind(document)) throw await withoutKind(document);
    return document;
  }
  const { value } = document;
  const kind = value[KIND];
  const translate = await translatorOf(kind);
  if (translate === undefined) throw await unknownKind(document);
  const settings = translate(value);
  return documentOfSection(
    document,
    'model',
    { family: kind, ...settings },
    { of: originsOf(value, settings, translate), otherwise: [KIND] },
  );
}

/** A changed `config.json`. */
export interface ChangedHuggingFace {
  readonly value: Record<string, unknown>;
  readonly text: string;
}

/**
 * A `config.json` with overrides of what it comes to: each is written where the value that it changes comes
 * from, and all else stays as it is. Undefined when that would not come to the same.
 * @param sets `model.key=value`.
 * @throws UserError as `asOurDocument`.
 */
export async function changedHuggingFace(
  document: ConfigDocument,
  sets: readonly string[],
): Promise<ChangedHuggingFace | undefined> {
  const translate = await translatorOf(document.value[KIND]);
  if (translate === undefined) throw await unknownKind(document);
  const origins = originsOf(document.value, translate(document.value), translate);
  const moved = sets.flatMap((text): { path: PropertyPath; value: string }[] => {
    const override = splitOverride(text);
    if ('mistake' in override) return [];
    const [section, key, ...rest] = override.path;
    if (section !== 'model' || key === undefined) return [];
    return [{ path: [...(origins.get(String(key)) ?? [key]), ...rest], value: override.value }];
  });
  const changed = applyOverrides(
    document,
    moved.map(({ path, value }) => `${formatPath(path)}=${value}`),
  );
  const wanted = applyOverrides(await asOurDocument(document), sets);
  const isSame = async (other: ConfigDocument) =>
    isDeepStrictEqual((await asOurDocument(other)).value, wanted.value);
  if (!(await isSame(changed))) return undefined;
  const { value } = changed;
  const edits = moved.map(({ path }) => ({ path, value: valueAt(value, path) }));
  const text = editedText(document, edits);
  const isRight = text !== undefined && isJson(text) && (await isSame(parseDocument(text, '')));
  return { value, text: isRight ? text : `${JSON.stringify(value, null, 2)}\n` };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function translatorOf(kind: unknown): Promise<Translate | undefined> {
  if (!isFamilyName(kind)) return undefined;
  const family = await loadFamily(kind);
  return family.fromHuggingFace?.bind(family);
}

/** The kinds of models that can be read, by name. */
async function knownKinds(): Promise<string[]> {
  const known = await Promise.all(
    FAMILY_NAMES.map(async (name) => ((await translatorOf(name)) ? [name] : [])),
  );
  return known.flat().sort();
}

// ── Files that cannot be read ────────────────────────────────────────────────────────────────────

const isWithoutKind = ({ file, value }: ConfigDocument): boolean =>
  value.model === undefined &&
  /\.json$/i.test(file) &&
  TELLING.some((key) => Object.hasOwn(value, key));

async function withoutKind(document: ConfigDocument): Promise<UserError> {
  const kinds = await knownKinds();
  const likely = await likelyKind(document.value, kinds);
  return refusal(document, {
    path: [],
    message: `has no ${KIND}, so it does not say of what kind its model is`,
    suggestion: likely
      ? `its keys are those of ${likely}: add "${KIND}": "${likely}" if it is one`
      : `add "${KIND}": with one of ${kinds.join(', ')}`,
  });
}

/** The one kind that has keys for the most of what a file says. */
async function likelyKind(config: Json, kinds: readonly string[]): Promise<string | undefined> {
  const keys = Object.keys(config);
  const known = await Promise.all(
    kinds.map(async (kind) => {
      const settings = await keysOf(kind);
      return { kind, count: keys.filter((key) => settings.has(key)).length };
    }),
  );
  const most = Math.max(...known.map(({ count }) => count));
  const [likely, ...others] = known.filter(({ count }) => count === most);
  return others.length === 0 ? likely?.kind : undefined;
}

async function keysOf(kind: string): Promise<ReadonlySet<string>> {
  if (!isFamilyName(kind)) return new Set();
  const section = schemaAt((await loadFamily(kind)).schema, {}, ['model']);
  return new Set(section && knownKeys(definitionOf(section)));
}

async function unknownKind(document: ConfigDocument): Promise<UserError> {
  const kind = document.value[KIND];
  const kinds = await knownKinds();
  const close = typeof kind === 'string' ? nearest(kind, kinds) : undefined;
  const inside = await textPartOf(document.value);
  const known = `known are ${kinds.join(', ')}; ${HOW_TO_ADD}`;
  return refusal(document, {
    path: [KIND],
    message: `no family for ${KIND} ${describeValue(kind)} is known here`,
    suggestion: inside ?? (close === undefined ? known : `did you mean ${close}? ${known}`),
  });
}

async function textPartOf(config: Json): Promise<string | undefined> {
  for (const key of TEXT_PARTS) {
    const kind = valueAt(config, [key, KIND]);
    if (!(await translatorOf(kind))) continue;
    return `its ${key} is of the kind ${kind}, which is known: save that part as a config.json of its own`;
  }
  return undefined;
}

function refusal(
  document: ConfigDocument,
  { path, message, suggestion }: { path: string[]; message: string; suggestion: string },
): UserError {
  const place = document.locate(path);
  const named = path.length === 0 ? {} : { path: path.join('.') };
  return invalidConfig(
    document.file,
    [{ severity: 'error', ...place, ...named, message, suggestion }],
    1,
  );
}

// ── Where values come from ───────────────────────────────────────────────────────────────────────

/** Beyond so many keys a file is no config, and its keys are not tried one by one. */
const MOST_TRIED = 200;

/** Where `config` has what each key stands for; its own keys stand for themselves. */
function originsOf(
  config: Json,
  settings: Json,
  translate: Translate,
): ReadonlyMap<string, PropertyPath> {
  const origins = new Map<string, PropertyPath>(Object.keys(config).map((key) => [key, [key]]));
  const mappings = Object.keys(config).filter((key) => isMapping(config[key]));
  for (const [key, value] of Object.entries(settings)) {
    const places = [[key], ...mappings.map((outer) => [outer, key])].filter(
      (path) => valueAt(config, path) !== undefined,
    );
    const same = places.find((path) => isDeepStrictEqual(valueAt(config, path), value));
    const origin = same ?? places[0] ?? triedOrigin(key, config, settings, translate);
    if (origin !== undefined) origins.set(key, origin);
  }
  return origins;
}

/** The key without which a setting would be another. */
function triedOrigin(
  setting: string,
  config: Json,
  settings: Json,
  translate: Translate,
): PropertyPath | undefined {
  const keys = Object.keys(config);
  if (keys.length > MOST_TRIED) return undefined;
  const origin = keys.find((left) => {
    const rest = {};
    for (const key of keys) if (key !== left) setOwn(rest, key, config[key]);
    return !isDeepStrictEqual(translate(rest)[setting], settings[setting]);
  });
  return origin === undefined ? undefined : [origin];
}
