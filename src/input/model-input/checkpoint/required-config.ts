/** The config of a checkpoint where a command requires one. */
import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { UndescribedModel } from '../undescribed-model.js';
import { findConfig, type LocatedConfig } from './checkpoint-config.js';

/**
 * The config of a checkpoint: the one named by the user, the one in the file, or the one in its folder.
 * @param named Value of `--config`.
 * @param advise How to name a config, and which one where its tensors show that.
 * @throws UserError when there is none, or it cannot be read.
 */
export async function configOf(
  checkpoint: Checkpoint,
  named: string | undefined,
  advise: ConfigAdvice = configByFlag,
): Promise<LocatedConfig> {
  const found = await findConfig(checkpoint, named);
  if (found) return found;
  throw await withoutConfig(checkpoint, advise);
}

/** How to name a config. @param like The preset that has the same tensors. */
type ConfigAdvice = (checkpoint: Checkpoint, like: string | undefined) => string;

/** The error of a checkpoint without a config, with the preset that has the same tensors. */
export async function withoutConfig(
  checkpoint: Checkpoint,
  advise: ConfigAdvice,
): Promise<UndescribedModel> {
  // The published models are read only for this error.
  const { presetLike } = await import('./matching-preset.js');
  const like = await presetLike(checkpoint);
  const found = like === undefined ? '' : `; its tensors are those of ${like}`;
  return new UndescribedModel(
    usageError(
      `${checkpoint.path} has no config, and there is none next to it${found}`,
      advise(checkpoint, like),
    ),
    like,
  );
}

/** Advice of commands that take `--config`. */
export const configByFlag: ConfigAdvice = (_, like = 'FILE') =>
  `name one with ${setting('config', like)}`;

/** Advice of commands that take a config and `--checkpoint`. */
export const configFirst: ConfigAdvice = ({ path }, like = 'the config') =>
  `write ${like} in its place, and ${setting('checkpoint', path)}`;
