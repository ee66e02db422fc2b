/** A config, and the checkpoint with the weights of its model: named beside it, or in its place. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { UserError } from '../errors.js';
import { isCheckpointPath } from './checkpoint-path.js';

interface CheckpointFlags {
  readonly checkpoint: string | undefined;
  readonly 'state-dict': string | undefined;
}

/**
 * The checkpoint that stands in the place of a config, open: it has its own.
 * @throws UserError when it is refused, or another is named too.
 */
export function ownCheckpoint(config: string, flags: CheckpointFlags): Checkpoint | undefined {
  if (!isCheckpointPath(config)) return undefined;
  if (flags.checkpoint === undefined) return opened(config, flags);
  throw new UserError('usage', `${config} is a checkpoint, and so is --checkpoint`, {
    suggestion: 'leave --checkpoint out, or name a config in its place',
  });
}

/** That of `--checkpoint`, open. */
export const openedFor = (flags: CheckpointFlags): Checkpoint | undefined =>
  flags.checkpoint === undefined ? undefined : opened(flags.checkpoint, flags);

const opened = (path: string, flags: CheckpointFlags): Checkpoint =>
  openCheckpoint(path, { stateDict: flags['state-dict'] });
