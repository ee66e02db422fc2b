/** What the config of a checkpoint is called. */
import path from 'node:path';

/** In the folder of the checkpoint. */
export const CONFIG_FILE = 'config.yaml';

/** Of one checkpoint of several in a folder: `small.config.yaml` beside `small.safetensors`. */
export const ownConfigName = (checkpoint: string): string =>
  `${path.basename(checkpoint, path.extname(checkpoint))}.config.yaml`;
