/** Names of the files in a model folder. */

import fs from 'node:fs';
import path from 'node:path';
import { alreadyExists, codeOf } from './refusals.js';

/** In the folder of the checkpoint: of ours, and of Hugging Face. */
export const CONFIG_FILES = { yaml: 'config.yaml', json: 'config.json' } as const;

export type ConfigFormat = keyof typeof CONFIG_FILES;

/** In the folder of a model; the first that exists is used. */
export const CONFIG_NAMES: readonly string[] = [CONFIG_FILES.yaml, 'config.yml', CONFIG_FILES.json];

/**
 * Files that belong to a model and do not depend on its weights. transformers/tokenization_utils_base.py and
 * utils/__init__.py (5.18): TOKENIZER_CONFIG_FILE, SPECIAL_TOKENS_MAP_FILE, ADDED_TOKENS_FILE, FULL_TOKENIZER_FILE,
 * CHAT_TEMPLATE_FILE, GENERATION_CONFIG_NAME; and the vocabularies that its tokenizers read.
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
  'tokenizer.model',
  'spiece.model',
  'sentencepiece.bpe.model',
  'tekken.json',
  'preprocessor_config.json',
  'processor_config.json',
];

export const isSidecarName = (name: string): boolean => SIDECARS.includes(name);

/** Whether a conversion writes a file of this name into a folder. */
export const isConvertedName = (name: string): boolean =>
  WEIGHTS.test(name) ||
  name === INDEX_FILE ||
  name === CONFIG_FILES.yaml ||
  name === CONFIG_FILES.json ||
  isSidecarName(name);

/** Whether a file of this name holds weights that a conversion has written. */
export const isConvertedWeights = (name: string): boolean => WEIGHTS.test(name);

export const INDEX_FILE = 'model.safetensors.index.json';

const WEIGHTS = /^model(-\d{5}-of-\d{5})?\.safetensors$/;

/** Whether a file of this name is a config, an index, weights, or another file that belongs to a model. */
export const isModelFileName = (name: string): boolean =>
  isSidecarName(name) || MODEL_FILE.test(name);

const MODEL_FILE =
  /(?:^|\.)config\.(?:ya?ml|json)$|\.(?:safetensors|pt|pth|bin|ckpt)(?:\.index\.json)?$/i;

/**
 * The config in a folder, with or without a checkpoint.
 * @param own Names that come first.
 */
export const configIn = (folder: string, own: readonly string[] = []): string | undefined =>
  [...own, ...CONFIG_NAMES]
    .map((name) => path.join(folder, name))
    .find((file) => fs.existsSync(file));

/** Config name of one checkpoint among several in a folder: `small.config.yaml` beside `small.safetensors`. */
export const ownConfigName = (checkpoint: string, format: ConfigFormat): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.${CONFIG_FILES[format]}`;

/** Names that the config of one checkpoint can have; the first that exists is used. */
export const ownConfigNames = (checkpoint: string): string[] =>
  (Object.keys(CONFIG_FILES) as ConfigFormat[]).map((format) => ownConfigName(checkpoint, format));

// Names of files: taking them, and bringing them to the disk.

/** Gives a file another name, which must be free still. */
export function takeFreeName(from: string, to: string): void {
  try {
    // A link fails when the name was taken meanwhile; a rename would replace what took it.
    fs.linkSync(from, to);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    if (fs.existsSync(to)) throw alreadyExists(to);
    fs.renameSync(from, to);
  }
}

/** What file systems without hard links (FAT, some network shares) answer, and all of them for folders. */
export const NO_LINKS: ReadonlySet<string> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

/** Brings the names in a folder to the disk. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = fs.openSync(folder, 'r');
    try {
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    // Not every system lets a folder be opened or synced. The content is on the disk already.
  }
}

/** Whether something stands there, be it a link to nothing. */
export const exists = (file: string) => fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;

/** Whether two names, of links too, are those of one file. */
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
    // What went wrong before is what the user has to know.
  }
}
