import type { Problem } from '../base/errors.js';
import type { MountedReference } from '../input/hub/mount-reference.js';
import type { LoadedModel } from '../input/model-input/checkpoint/checkpoint-model.js';

/** A loaded model, as the functions of the library take it. */
export interface Model extends LoadedModel {
  /** Models of the hub that it was read from; absent without one. */
  readonly references?: readonly MountedReference[];
}

/** Fields that any result can have. */
export interface AnswerNotes {
  /** Warnings about the input; absent if there are none. */
  readonly warnings?: readonly Problem[];
  /** Models of the hub that were read; absent if there are none. */
  readonly references?: readonly MountedReference[];
}

/** A result with warnings and references, where there are some. */
export const withNotes = <Result extends object>(
  result: Result,
  {
    warnings = [],
    references = [],
  }: {
    readonly warnings?: readonly Problem[] | undefined;
    readonly references?: readonly MountedReference[] | undefined;
  },
): Result & AnswerNotes => ({
  ...result,
  ...(warnings.length > 0 && { warnings }),
  ...(references.length > 0 && { references }),
});
