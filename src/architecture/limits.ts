/**
 * How large a description may become. The limits keep every count exact and stop a slip of the pen
 * (`num_layers: 1e9`) before anything is built from it.
 */

/** Most tensor names that a description may hold, aliases included. */
export const MAX_TENSORS = 1_000_000;

/** A config that is valid but describes a model beyond the limits. */
export class LimitError extends Error {
  /** Dotted path of the config key that is to blame, or of its section. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.name = 'LimitError';
    this.path = path;
  }
}

/** Refuses `count` copies of something that holds `tensorsEach` tensors when that is too many. */
export function checkTensorCount(path: string, count: number, tensorsEach: number): void {
  // Safe also past 2^53: the product may then be rounded, but not to below the limit.
  const total = count * tensorsEach;
  if (total > MAX_TENSORS) {
    throw new LimitError(
      path,
      `describes at least ${total.toLocaleString('en-US')} tensors; the limit is ${MAX_TENSORS.toLocaleString('en-US')}`,
    );
  }
}
