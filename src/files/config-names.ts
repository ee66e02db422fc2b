/** Names of the files in a model folder. */

import fs from 'node:fs';
import path from 'node:path';
import { alreadyExists, codeOf } from './refusals.js';

/** Config names in a checkpoint folder: minimind's and Hugging Face's. */
export const CONFIG_FILES = { yaml: 'config.yaml', json: 'config.json' } as const;

export type ConfigFormat = keyof typeof CONFIG_FILES;

/** Config names in a model folder; the first that exists is used. */
export const CONFIG_NAMES: readonly string[] = [CONFIG_FILES.yaml, 'config.yml', CONFIG_FILES.json];

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
 */
export const configIn = (folder: string, own: readonly string[] = []): string | undefined =>
  [...own, ...CONFIG_NAMES]
    .map((name) => path.join(folder, name))
    .find((file) => fs.existsSync(file));

/** Config name for one of several checkpoints in a folder: `small.config.yaml` for `small.safetensors`. */
export const ownConfigName = (checkpoint: string, format: ConfigFormat): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.${CONFIG_FILES[format]}`;

/** Possible config names of one checkpoint; the first that exists is used. */
export const ownConfigNames = (checkpoint: string): string[] =>
  (Object.keys(CONFIG_FILES) as ConfigFormat[]).map((format) => ownConfigName(checkpoint, format));

/** Renames a file to a name that must be unused. */
export function takeFreeName(from: string, to: string): void {
  try {
    // A link fails if the name is already taken; a rename would replace that file.
    fs.linkSync(from, to);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    if (fs.existsSync(to)) throw alreadyExists(to);
    fs.renameSync(from, to);
  }
}

/** Errors of file systems without hard links (FAT, some network shares), and of all systems for folders. */
export const NO_LINKS: ReadonlySet<string> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

/** Syncs the names in a folder to disk. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = fs.openSync(folder, 'r');
    try {
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    // Not every system can open or sync a folder. The content is on disk already.
  }
}

/** Whether a path exists, even as a broken link. */
export const exists = (file: string) => fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;

/** Whether two paths, links included, lead to one file. */
export function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((file) =>
    fs.lstatSync(file, { bigint: true, throwIfNoEntry: false }),
  );
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

export function removeQuietly(file: string): void {
  try {
    fs.rmSync(file, { recursive: true, force: true });
  } catch {
    // The earlier error is the one that the user needs.
  }
}
