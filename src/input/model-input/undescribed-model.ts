import { UserError } from '../../base/errors.js';

/** A model that no family describes. Its weights can still be counted from their headers. */
export class UndescribedModel extends UserError {
  /** @param like Preset or published model with the same tensors, for weights without a config. */
  constructor(
    { code, message, problems, suggestion, cause }: UserError,
    readonly like?: string | undefined,
  ) {
    super(code, message, { problems, suggestion, cause });
  }
}

/** Rules of folders without one checkpoint in them, such as a pipeline. */
const OF_FOLDERS: readonly unknown[] = ['folder-holds-weights', 'folder-is-one'];

/** Whether an error is about a folder that does not hold one checkpoint. */
export const isFolderRefused = (error: unknown): boolean =>
  error instanceof UserError && error.problems.some(({ rule }) => OF_FOLDERS.includes(rule));
