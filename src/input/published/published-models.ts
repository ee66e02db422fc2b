/** Published models by their names on the hub, in Ollama, and in speech. Nothing is looked up. */

import { setting } from '../../base/text/setting.js';
import { type PublishedModel, publishedFile, publishedModels } from './published-file.js';
import { quantizedName, usualType } from './quantized-names.js';

/** The page of a repository of the hub, and what follows its name where that is its usual revision. */
const PAGE = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//i;
const USUAL_REVISION = /\/(?:tree\/main)?\/?$/;

/** The page of the library of Ollama, where names have no owner. */
const LIBRARY = /^(?:(?:https?:\/\/)?(?:www\.)?ollama\.com\/)?library\//i;

/** Words in a name that say how a model was trained, not which sizes it has. */
const VERSION = /[-_: ](?:instruct|it|base|chat|hf|pt|latest)(?=[-_: ]|$)/gi;

/** Words of a version that are in every name of their series. */
const NO_VERSION: ReadonlySet<string> = new Set(['hf', 'latest']);

/** How a model was trained, by its name: `instruct`. */
const versionOf = (name: string): string =>
  [...name.toLowerCase().matchAll(VERSION)]
    .map(([word]) => word.slice(1))
    .filter((word) => !NO_VERSION.has(word))
    .sort()
    .join();

/** A name without its version. `base` is a size after the name of a series that has it: `bart-base` is not `bart`. */
const withoutVersion = (name: string): string =>
  name.replaceAll(VERSION, (word: string, offset: number) =>
    word.slice(1).toLowerCase() === 'base' && basedNames().has(spelled(name.slice(0, offset)))
      ? word
      : '',
  );

let based: ReadonlySet<string> | undefined;

/** Names before a size, as `spelled` has them, of the series with a size `base`, here or elsewhere. */
function basedNames(): ReadonlySet<string> {
  if (based !== undefined) return based;
  const { series, elsewhere } = publishedFile();
  const all = [
    ...series.map(({ names, sizes }) => ({
      names,
      sizes: Object.entries(sizes).flatMap(([size, row]) => [size, ...(row?.also ?? [])]),
    })),
    ...elsewhere.map(([name, sizes]) => ({ names: [name], sizes: sizes.split(' ') })),
  ];
  const withBase = all.filter(({ sizes }) => sizes.some((size) => /^base\b/.test(size)));
  based = new Set(withBase.flatMap(({ names }) => names.map(spelled)));
  return based;
}

/** Types of weights at the end of a name, as in Ollama: `llama3.1:8b-instruct-q4_K_M`. */
const TYPE =
  /[-: ]((?:i?q\d_\w{1,4})|b?f(?:p)?(?:8|16|32)|int[48]|[48]bit|awq|gptq|nvfp4|mxfp4)(?:-gguf)?$/i;

/** A name without the type of its weights, and the type. An owner's repository has a name of its own. */
export function withoutType(name: string): { readonly name: string; readonly type?: string } {
  const [ending, type] = (!name.includes('/') && TYPE.exec(name)) || [];
  return ending === undefined || type === undefined
    ? { name }
    : { name: name.slice(0, -ending.length), type };
}

/**
 * A name in lower case, without separators except between numbers: `llama3.2:1b`, `Llama 3.2 1B` and `Llama-3-2-1B` are
 * `llama3.2_1b`. A size stays apart from the number before it: `mamba2-8b` is not `mamba-2.8b`.
 */
const spelled = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/(?<=\d)[-_: ]+(?=\d+(?:\.\d+)?[bmkt](?![a-z]))/g, '=')
    .replaceAll(/(?<=\d)[-_: .]+(?=\d)/g, '.')
    .replaceAll(/(?<!\d)[-_: .]+|[-_: .]+(?!\d)/g, '')
    .replaceAll('=', '_');

/** A published name, and the models of its series. */
interface NamedModel {
  readonly model: PublishedModel;
  /** Other sizes, where the name has none. */
  readonly others: readonly string[];
}

/** Names without owners, and repositories with them, as `spelled` has them. */
interface NameIndex {
  readonly sized: ReadonlyMap<string, PublishedModel>;
  readonly unsized: ReadonlyMap<string, readonly PublishedModel[]>;
}

let known: NameIndex | undefined;

const nameKey = (name: string): string => spelled(withoutVersion(name));

/** Repositories of a model, and its names without an owner. */
function sizedNames({ hub, of, row, size, name, family }: PublishedModel): string[] {
  const owned = hub.flatMap((each) => {
    const [owner = '', own = ''] = each.split('/');
    return [nameKey(own), `${owner.toLowerCase()}/${nameKey(own)}`];
  });
  const stems = [...of.names, ...(row.names ?? [])];
  const sizes = [size, ...(row.also ?? [])];
  const spoken = stems.flatMap((stem) => sizes.map((each) => nameKey(`${stem}-${each}`)));
  return [...owned, nameKey(name), `${family}/${nameKey(name)}`, ...spoken];
}

function nameIndex(): NameIndex {
  if (known !== undefined) return known;
  const sized = new Map<string, PublishedModel>();
  const unsized = new Map<string, PublishedModel[]>();
  for (const model of publishedModels()) {
    for (const name of sizedNames(model)) if (!sized.has(name)) sized.set(name, model);
    for (const stem of new Set([...model.of.names, ...(model.row.names ?? [])].map(nameKey))) {
      unsized.set(stem, [...(unsized.get(stem) ?? []), model]);
    }
  }
  known = { sized, unsized };
  return known;
}

/** The published model that a name means; undefined for an unknown name, and for one of several sizes without a usual one. */
export function publishedModelNamed(text: string): NamedModel | undefined {
  const name = text.trim().replace(PAGE, '').replace(LIBRARY, '').replace(USUAL_REVISION, '');
  const [owner, own] = name.includes('/') ? name.split(/\/(.*)/s) : [undefined, name];
  const key = nameKey(own ?? '');
  if (key === '') return undefined;
  const { sized, unsized } = nameIndex();
  const exact = sized.get(owner === undefined ? key : `${owner.toLowerCase()}/${key}`);
  const series = (owner === undefined ? unsized.get(key) : undefined) ?? [];
  const usual = series.find(({ isUsual }) => isUsual);
  const model = exact ?? usual;
  if (model === undefined) return undefined;
  const others = series.filter((each) => each !== model).map(({ size }) => size);
  return { model, others };
}

/** The way without a network for a repository whose sizes are part of the program; undefined for any other. */
export function builtInAdvice(repository: string): string | undefined {
  if (publishedModelNamed(repository) !== undefined) {
    return `where its sizes are enough, write ${repository} alone: they are built in`;
  }
  const typed = quantizedName(repository.slice(repository.indexOf('/') + 1));
  const { preset } = (typed && publishedModelNamed(typed.name)?.model) ?? {};
  if (typed === undefined || preset === undefined) return undefined;
  const type = setting('dtype', typed.dtype ?? usualType(typed.name));
  return `where its sizes are enough, write ${preset} with ${type}: they are built in`;
}

/** Presets of a series whose name has no usual size; none for another name. */
export function publishedSizes(text: string): readonly string[] {
  const key = nameKey(text.trim());
  return key === '' ? [] : (nameIndex().unsized.get(key) ?? []).map(({ preset }) => preset);
}

/** Words and numbers of a name: `qwen2.5-coder:32b` has qwen, 2.5, coder, 32b. */
const partsOfName = (name: string): string[] =>
  name.toLowerCase().match(/\d+(?:\.\d+)?[bmkt](?![a-z])|\d+(?:\.\d+)?|[a-z]+/g) ?? [];

/** The first number of a name: its generation. */
const generationIn = (name: string): number =>
  Number(partsOfName(name).find((part) => /^[\d.]+$/.test(part)) ?? 0);

/**
 * Names of published models that have all words and numbers of a text, those with the fewest others and the latest
 * generation first: `llama-70b` is in llama-3.3-70b and llama-2-70b.
 */
export function modelsWithWords(text: string): readonly string[] {
  const wanted = partsOfName(text);
  if (wanted.length === 0 || !/^[a-z]/.test(wanted[0] ?? '')) return [];
  return publishedModels()
    .map(({ name }) => ({ name, parts: partsOfName(name) }))
    .filter(({ parts }) => wanted.every((part) => parts.includes(part)))
    .sort((a, b) => a.parts.length - b.parts.length || generationIn(b.name) - generationIn(a.name))
    .map(({ name }) => name);
}

/**
 * The one published model with all words and numbers of a text, or the one of them without further words: `qwen 8b` is
 * qwen3-8b and not qwen3-vl-8b. Undefined where several are meant.
 */
export function modelWithWords(text: string): string | undefined {
  const models = modelsWithWords(text);
  const wanted = partsOfName(text);
  const plain = models.filter((name) =>
    partsOfName(name).every((part) => wanted.includes(part) || /^[\d.]/.test(part)),
  );
  const [model, ...more] = plain.length > 0 ? plain : models;
  return more.length === 0 ? model : undefined;
}

/** Most models in an advice. */
const MOST_MODELS = 8;

/** Advice for a name that several published models share, and whether it lists all of them. */
export function modelChoice(
  text: string,
): { readonly advice: string; readonly isWhole: boolean } | undefined {
  const models = modelsWithWords(text);
  if (models.length < 2) return undefined;
  const advice = `write one of ${models.slice(0, MOST_MODELS).join(', ')}`;
  return { advice, isWhole: models.length <= MOST_MODELS };
}

/** A number of parameters as in the names of models: `0.5B`, `30b-a3b`. */
const SIZE = /^(\d+(?:\.\d+)?)([mbt])(?:-a[\d.]+b)?$/i;
const UNITS: Readonly<Record<string, number>> = { m: 1e6, b: 1e9, t: 1e12 };

/** Parameters by a name of a size; undefined for another text. */
function parametersNamed(text: string): number | undefined {
  const [, number, unit = ''] = SIZE.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS[unit.toLowerCase()] ?? 1);
}

/** Greatest ratio of two sizes that are about the same. */
const ABOUT = 1.15;

/**
 * Presets of published models of about a size, the nearest first; undefined for a text that is not a size.
 * @param text A number of parameters as people write it: `0.5B`.
 */
export function presetsOfSize(text: string): readonly string[] | undefined {
  const wanted = parametersNamed(text.trim());
  if (wanted === undefined) return undefined;
  const ratio = (parameters: number) => Math.max(parameters / wanted, wanted / parameters);
  return publishedModels()
    .flatMap(({ name, size }) => {
      const parameters = parametersNamed(size);
      return parameters === undefined ? [] : [{ name, ratio: ratio(parameters) }];
    })
    .filter((each) => each.ratio <= ABOUT)
    .sort((a, b) => a.ratio - b.ratio)
    .map(({ name }) => name);
}

/** Repository of the hub that a name of a published model means; undefined for an unknown one. */
export function hubRepository(name: string): string | undefined {
  const own = name.trim().replace(PAGE, '').replace(LIBRARY, '').replace(USUAL_REVISION, '');
  if (/^[\w.-]+\/[\w.-]+$/.test(own)) {
    const hub = publishedModelNamed(own)?.model.hub ?? [];
    return hub.find((each) => each.toLowerCase() === own.toLowerCase()) ?? own;
  }
  const wanted = nameKey(own);
  const named = publishedModelNamed(own);
  if (named !== undefined) {
    const { hub } = named.model;
    const alike = hub.filter((each) => nameKey(each.slice(each.indexOf('/') + 1)) === wanted);
    const version = versionOf(own);
    const candidates = alike.length > 0 ? alike : hub;
    return candidates.find((each) => versionOf(each) === version) ?? candidates[0];
  }
  for (const [base, sizes, repository] of publishedFile().elsewhere) {
    const all = sizes.split(' ');
    const size = all.find((each) => nameKey(`${base}-${each}`) === wanted);
    const usual = nameKey(base) === wanted ? all[0] : undefined;
    const meant = size ?? usual;
    if (meant !== undefined) {
      return repository.replace('$B', () => meant.toUpperCase()).replace('$b', () => meant);
    }
  }
  return undefined;
}

/** A repository with the weights of a preset. */
interface OwnRepository {
  readonly name: string;
  /** Whether it has the version of the name that was asked for: `instruct`. */
  readonly isVersion: boolean;
}

/** Repository with the weights of a preset; undefined for one whose weights nobody published. */
export function ownRepository(name: string): OwnRepository | undefined {
  const found = repositoryOf(name);
  const asked = versionOf(name.trim());
  return found === undefined
    ? undefined
    : { name: found, isVersion: asked === '' || versionOf(found) === asked };
}

function repositoryOf(name: string): string | undefined {
  const asked = name.trim().replace(PAGE, '').replace(USUAL_REVISION, '');
  const [owner, own] = asked.includes('/') ? asked.split(/\/(.*)/s) : [undefined, asked];
  const model = publishedModelNamed(asked)?.model;
  // A repository that the user named can be a copy, or trained further.
  if (owner !== undefined && model !== undefined && owner.toLowerCase() !== model.family)
    return asked;
  if (model === undefined) return undefined;
  // The name of the model itself means its first repository; that of a sister with the same sizes, another one.
  const isItself = nameKey(own ?? '') === nameKey(model.name) && versionOf(own ?? '') === '';
  return isItself ? model.hub[0] : (hubRepository(own ?? '') ?? model.hub[0]);
}
