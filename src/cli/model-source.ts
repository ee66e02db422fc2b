/** Whatever a command takes for a model: a config, standard input, a checkpoint with its config. */

import { UserError } from '../errors.js';
import type { CheckpointFlags, ModelSource } from './checkpoint-model.js';
import { isCheckpointPath } from './checkpoint-path.js';
import { modelOf, readConfig } from './model-file.js';

/**
 * Reads a path, or `-` for standard input.
 * @throws UserError when it cannot be read, or is a checkpoint that has no config.
 */
export async function openModelSource(path: string, flags: CheckpointFlags): Promise<ModelSource> {
  if (isCheckpointPath(path)) {
    // What reads checkpoints is loaded for them only.
    const { openCheckpointModel } = await import('./checkpoint-model.js');
    return openCheckpointModel(path, flags);
  }
  if (flags.config === undefined && flags['state-dict'] === undefined) {
    const document = await readConfig(path);
    return { model: (set) => modelOf(document, { set }) };
  }
  throw new UserError(
    'usage',
    `${path} is no checkpoint: --config and --state-dict are for those`,
    { suggestion: 'leave the flag out' },
  );
}
