/** What the config of a checkpoint is called. */
import fs from 'node:fs';
import path from 'node:path';

/** In the folder of the checkpoint. */
export const CONFIG_FILE = 'config.yaml';

/** In the folder of a model; the first that is there is taken. */
const CONFIG_FILES = [CONFIG_FILE, 'config.yml', 'config.json'] as const;

/** The config that stands in a folder, of a checkpoint in it or alone. */
export const configIn = (folder: string, names: readonly string[] = []): string | undefined =>
  [...names, ...CONFIG_FILES]
    .map((name) => path.join(folder, name))
    .find((file) => fs.existsSync(file));

/** Of one checkpoint of several in a folder: `small.config.yaml` beside `small.safetensors`. */
export const ownConfigName = (checkpoint: string): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.config.yaml`;
