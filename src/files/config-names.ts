/** What the config of a checkpoint is called. */
import fs from 'node:fs';
import path from 'node:path';

/** In the folder of the checkpoint: of ours, and of Hugging Face. */
export const CONFIG_FILES = { yaml: 'config.yaml', json: 'config.json' } as const;

export type ConfigFormat = keyof typeof CONFIG_FILES;

/** In the folder of a model; the first that is there is taken. */
const NAMES = [CONFIG_FILES.yaml, 'config.yml', CONFIG_FILES.json] as const;

/**
 * The config that stands in a folder, of a checkpoint in it or alone.
 * @param own Names that come first.
 */
export const configIn = (folder: string, own: readonly string[] = []): string | undefined =>
  [...own, ...NAMES].map((name) => path.join(folder, name)).find((file) => fs.existsSync(file));

/** Of one checkpoint of several in a folder: `small.config.yaml` beside `small.safetensors`. */
export const ownConfigName = (checkpoint: string, format: ConfigFormat): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.${CONFIG_FILES[format]}`;

/** Every name that the config of one checkpoint may have, the first that is there being taken. */
export const ownConfigNames = (checkpoint: string): string[] =>
  (Object.keys(CONFIG_FILES) as ConfigFormat[]).map((format) => ownConfigName(checkpoint, format));
