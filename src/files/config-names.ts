/** What the files of a model folder are called. */
import fs from 'node:fs';
import path from 'node:path';

/** In the folder of the checkpoint: of ours, and of Hugging Face. */
export const CONFIG_FILES = { yaml: 'config.yaml', json: 'config.json' } as const;

export type ConfigFormat = keyof typeof CONFIG_FILES;

/** In the folder of a model; the first that is there is taken. */
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

/**
 * The config that stands in a folder, of a checkpoint in it or alone.
 * @param own Names that come first.
 */
export const configIn = (folder: string, own: readonly string[] = []): string | undefined =>
  [...own, ...CONFIG_NAMES]
    .map((name) => path.join(folder, name))
    .find((file) => fs.existsSync(file));

/** Of one checkpoint of several in a folder: `small.config.yaml` beside `small.safetensors`. */
export const ownConfigName = (checkpoint: string, format: ConfigFormat): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.${CONFIG_FILES[format]}`;

/** Every name that the config of one checkpoint may have, the first that is there being taken. */
export const ownConfigNames = (checkpoint: string): string[] =>
  (Object.keys(CONFIG_FILES) as ConfigFormat[]).map((format) => ownConfigName(checkpoint, format));
