/** Inputs of the wrong kind, and the command that takes them. */
import fs from 'node:fs';
import path from 'node:path';
import { configIn } from '../../base/files/config-names.js';
import { isFolder } from '../../base/files/file-system.js';
import { counted } from '../../base/text/words.js';
import { ownValue } from '../../base/values.js';
import {
  hasWeights,
  isCheckpointPath,
  modelsIn,
  presetsNamed,
} from '../../input/model-input/locate.js';
import { quantizedName } from '../../input/published/quantized-names.js';
import { KINDS } from './extra-words.js';
import type { MeantLine } from './line-mistake.js';
import { linesWithOther, nearType, withoutTag } from './other-tools/names-in-path.js';

/** Commands that only read checkpoints. */
const OF_CHECKPOINTS: readonly string[] = ['inspect'];

/** Commands that read all configs of a folder. */
const OF_MODELS: readonly string[] = ['validate', 'compare'];

/** Commands about a model whose weights they do not read, with the type that they count. */
const OF_TYPES: readonly string[] = ['profile', 'fit', 'compare'];

/**
 * The line for an input that its command cannot read: a folder of configs, a checkpoint for a command of configs, a
 * config for a command of checkpoints.
 * @param words The line as it was written.
 */
export function lineForInput(words: readonly string[]): MeantLine | undefined {
  const [command = '', ...rest] = words;
  const named = lineForPath(command, rest);
  if (named) return named;
  const hardware = command === 'fit' ? lineForHardware(rest) : undefined;
  if (hardware) return hardware;
  const created = command === 'init' ? lineForConfig(rest) : undefined;
  if (created) return created;
  const listing = command === 'list' ? lineForListing(rest) : undefined;
  if (listing) return listing;
  const list = lineForList(command, rest);
  if (list) return list;
  const at = rest.findIndex((word) => word !== '' && (fs.existsSync(word) || isPreset(word)));
  const input = rest[at];
  if (input === undefined || rest[at - 1]?.startsWith('-')) return undefined;
  const configs = configsOf(input, command);
  const [config] = configs;
  if (config !== undefined) {
    const all = OF_MODELS.includes(command) ? configs : [config];
    const lead = configs.length > 1 ? `it holds ${counted(configs.length, 'config')}:` : '';
    const meant = OF_CHECKPOINTS.includes(command)
      ? ['profile', config]
      : [command, ...rest.toSpliced(at, 1, ...all)];
    return { words: meant, ...(lead && { lead }) };
  }
  const hasConfig = isFolder(input) && configIn(input) !== undefined;
  const isCheckpoint =
    fs.existsSync(input) && isCheckpointPath(input) && !isEmpty(input) && !hasConfig;
  if (isCheckpoint && command === 'validate') return { words: ['inspect', input] };
  const isConfig = !fs.existsSync(input) || (!isCheckpoint && !isFolder(input));
  return isConfig && OF_CHECKPOINTS.includes(command) ? { words: ['profile', input] } : undefined;
}

/** The line with the model that a path is named after, which is not here: `fit models/Qwen3-8B-Q4_K_M.gguf`. */
function lineForPath(command: string, words: readonly string[]): MeantLine | undefined {
  const [word = ''] = words;
  if (word.startsWith('-') || isPreset(word)) return undefined;
  const hasType = OF_TYPES.includes(command) && !words.includes('--dtype');
  const takes = { type: hasType ? ('dtype' as const) : undefined, hub: false };
  const line = linesWithOther([command, ...words], 1, takes).find(({ models: [model] }) =>
    isPreset(model),
  );
  return line && { words: line.words };
}

/** A page of the hub before the name of a repository. */
const PAGE = /^(?:hf:|(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/)/i;

/** The line with the type after a repository of the hub as a flag: `fit hf.co/ORG/NAME:Q4_K_M`. */
export function lineForTag([command = '', ...words]: readonly string[]): MeantLine | undefined {
  const { text, type } = withoutTag(words[0] ?? '');
  if (type === undefined) return undefined;
  const [, ...rest] = words;
  const repository = text.replace(PAGE, '');
  const own = quantizedName(repository.slice(repository.indexOf('/') + 1))?.name;
  const isBuiltIn = own !== undefined && isPreset(own);
  const isTyped = rest.some((word) => /^--dtype(?:=|$)/.test(word));
  const takes = OF_TYPES.includes(command) && !isTyped;
  const near = nearType(type.toLowerCase());
  // The sizes of a model are those of its repository, without a network.
  const model = isBuiltIn ? own : `hf:${repository}`;
  const isServed = command !== 'fit' && /^i?q\d/.test(near);
  const typed = takes && !isServed ? ['--dtype', near] : [];
  const note = typed.length > 0 || isTyped ? [] : [`the type ${type} is counted by minimind fit`];
  const mixture = near === type.toLowerCase() ? [] : [`${type} is counted as ${near}`];
  return {
    words: [command, model, ...typed, ...rest],
    models: [model],
    leftOut: typed.length > 0 ? mixture : note,
  };
}

/** The line for several models in one word: `compare a.yaml,b.yaml`. */
function lineForList(command: string, words: readonly string[]): MeantLine | undefined {
  if (command !== 'compare' && command !== 'profile') return undefined;
  const at = words.findIndex(
    (word) => word.includes(',') && !fs.existsSync(word) && word.split(',').every(isInput),
  );
  const models = words[at]?.split(',') ?? [];
  if (at < 0 || words[at - 1]?.startsWith('-')) return undefined;
  return { words: ['compare', ...words.toSpliced(at, 1, ...models)], models };
}

const isInput = (word: string) => word !== '' && (fs.existsSync(word) || isPreset(word));

/** The line for an artifact that another command writes: a graph by a conversion, a checkpoint by an export. */
export function lineForArtifact([command, ...words]: readonly string[]): MeantLine | undefined {
  const artifacts = ownValue(ARTIFACTS, command ?? '');
  const at = words.findIndex((word) => artifacts?.test(word));
  const artifact = words[at];
  if (artifact === undefined) return undefined;
  if (command === 'convert-checkpoint') {
    return { words: ['export', ...words.toSpliced(at, 1), '--save', artifact] };
  }
  const isFlag = words[at - 1] === '--save';
  if (!isFlag) return undefined;
  const [model = '', ...rest] = words.toSpliced(at - 1, 2);
  return { words: ['convert-checkpoint', model, artifact, ...rest] };
}

/** Endings of artifacts that a command does not write, and another one does. */
const ARTIFACTS: Readonly<Record<string, RegExp>> = {
  'convert-checkpoint': /\.onnx$/i,
  export: /\.(?:gguf|safetensors|pt)$/i,
};

/** The line for the file of a new config in the place of a preset: `init my-model.yaml`. */
const lineForConfig = ([word = '', ...rest]: readonly string[]): MeantLine | undefined =>
  KINDS.config.test(word) && !rest.includes('--save')
    ? { words: ['init', '--save', word, ...rest] }
    : undefined;

/** The line for a kind of things in the place of a name: `list models`, `list gpus`. */
function lineForListing([word = '', ...rest]: readonly string[]): MeantLine | undefined {
  if (/^(?:all|configs?|famil(?:y|ies)|models?|presets?)$/i.test(word)) {
    return { words: ['list', ...rest] };
  }
  const isOfCards = /^(?:cards?|devices?|gpus?|hardware|machines?)$/i.test(word);
  return isOfCards ? { words: ['fit', '--list-gpus', ...rest] } : undefined;
}

/** The line for `fit h100`, where a GPU is in the place of the model. */
function lineForHardware([word = '', ...rest]: readonly string[]): MeantLine | undefined {
  if (word.startsWith('-') || fs.existsSync(word) || isPreset(word)) return undefined;
  if (KINDS.size.test(word)) return { words: ['fit', '--list-gpus', word, ...rest] };
  const [model, ...others] = modelsIn('.');
  const own = model === undefined || others.length > 0 ? [EXAMPLE_MODEL] : [];
  const given = rest.some((each) => /^--(?:gpu|hardware|list-gpus)\b/.test(each));
  if (given) return undefined;
  return { words: ['fit', ...own, '--gpu', word, ...rest], gpus: [word] };
}

/** A preset for the place of the user's own model. */
const EXAMPLE_MODEL = 'minimind2-small';

const isEmpty = (file: string) => isFolder(file) && !hasWeights(file);

const isPreset = (word: string) => !word.startsWith('-') && presetsNamed(word).length === 1;

/** Configs of a folder that is not itself a model. */
function configsOf(folder: string, command: string): string[] {
  const isModel = !isEmpty(folder) && command !== 'validate';
  if (!isFolder(folder) || isModel || configIn(folder) !== undefined) return [];
  return modelsIn(folder)
    .filter((name) => name !== '.')
    .map((name) => path.join(folder, name));
}
