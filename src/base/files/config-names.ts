/** Names of the files in a model folder. */

import path from 'node:path';
import { pathExists } from './mounted.js';

/** Config names in a checkpoint folder: minimind's and Hugging Face's. */
export const CONFIG_FILES = { yaml: 'config.yaml', json: 'config.json' } as const;

export type ConfigFormat = keyof typeof CONFIG_FILES;

/** Config names in a model folder; the first that exists is used. */
export const CONFIG_NAMES: readonly string[] = [CONFIG_FILES.yaml, 'config.yml', CONFIG_FILES.json];

/** Settings of a LoRA adapter. peft/utils/constants.py: CONFIG_NAME. */
export const ADAPTER_CONFIG = 'adapter_config.json';

/** Whether a path is the folder of a LoRA adapter. */
export const isAdapterFolder = (folder: string | undefined): folder is string =>
  folder !== undefined && folder !== '-' && pathExists(path.join(folder, ADAPTER_CONFIG));

/**
 * Files of a model that do not depend on its weights. transformers/tokenization_utils_base.py and utils/__init__.py
 * (5.18): TOKENIZER_CONFIG_FILE, SPECIAL_TOKENS_MAP_FILE, ADDED_TOKENS_FILE, FULL_TOKENIZER_FILE, CHAT_TEMPLATE_FILE,
 * GENERATION_CONFIG_NAME; and the vocabulary files that its tokenizers read.
 */
const SIDECARS: readonly string[] = [
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'chat_template.jinja',
  'chat_template.json',
  'generation_config.json',
  'vocab.json',
  'vocab.txt',
  'merges.txt',
  'encoder.json',
  'vocab.bpe',
  'tiktoken.model',
  'qwen.tiktoken',
  'tokenizer.model',
  'spiece.model',
  'sentencepiece.bpe.model',
  'tekken.json',
  'preprocessor_config.json',
  'processor_config.json',
];

export const isSidecarName = (name: string): boolean => SIDECARS.includes(name);

export const isConvertedName = (name: string): boolean =>
  WEIGHTS.test(name) ||
  name === INDEX_FILE ||
  name === CONFIG_FILES.yaml ||
  name === CONFIG_FILES.json ||
  isSidecarName(name);

export const isConvertedWeights = (name: string): boolean => WEIGHTS.test(name);

export const INDEX_FILE = 'model.safetensors.index.json';

const WEIGHTS = /^model(-\d{5}-of-\d{5})?\.safetensors$/;

/** Whether a file name is a config, an index, weights or another file of a model. */
export const isModelFileName = (name: string): boolean =>
  isSidecarName(name) || MODEL_FILE.test(name);

const MODEL_FILE =
  /(?:^|\.)config\.(?:ya?ml|json)$|\.(?:safetensors|pt|pth|bin|ckpt)(?:\.index\.json)?$/i;

/**
 * Config in a folder, with or without a checkpoint.
 * @param own Names to try first.
 * @param listed Names of the files of the folder, where they are known.
 */
export function configIn(
  folder: string,
  own: readonly string[] = [],
  listed?: readonly string[],
): string | undefined {
  // Some file systems ignore case.
  const present = listed && new Set(listed.map((name) => name.toLowerCase()));
  return [...own, ...CONFIG_NAMES]
    .filter((name) => present?.has(name.toLowerCase()) ?? true)
    .map((name) => path.join(folder, name))
    .find(pathExists);
}

/** Config name for one of several checkpoints in a folder: `small.config.yaml` for `small.safetensors`. */
export const ownConfigName = (checkpoint: string, format: ConfigFormat): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.${CONFIG_FILES[format]}`;

/** Possible config names of one checkpoint; the first that exists is used. */
export const ownConfigNames = (checkpoint: string): string[] =>
  (Object.keys(CONFIG_FILES) as ConfigFormat[]).map((format) => ownConfigName(checkpoint, format));
