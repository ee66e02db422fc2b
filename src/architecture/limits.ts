/**
 * How large a description may become. The limits keep every count exact and stop a slip of the pen
 * (`num_layers: 1e9`) before anything is built from it.
 */

/** Most names that a model's state dict may have, aliases and buffers included. */
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

const grouped = (value: number) =>
  Number.isSafeInteger(value) ? value.toLocaleString('en-US') : `about ${value.toExponential(2)}`;

/** Refuses a model of at least `names` tensor names when these are too many. */
export function checkNames(path: string, names: number): void {
  if (names > MAX_TENSORS) {
    throw new LimitError(
      path,
      `describes at least ${grouped(names)} tensor names; the limit is ${grouped(MAX_TENSORS)}`,
    );
  }
}

/** Refuses a model of `elements` stored values (a sum of doubles) when these cannot be counted exactly. */
export function checkElements(path: string, elements: number): void {
  if (!Number.isSafeInteger(elements)) {
    throw new LimitError(
      path,
      `describes ${grouped(elements)} stored values; counts are exact only up to 2^53 − 1`,
    );
  }
}
