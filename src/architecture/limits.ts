/**
 * How large a description may become. The limits keep every count exact, keep every answer within seconds
 * and some hundred megabytes, and stop a slip of the pen (`num_layers: 1e9`) before anything is built from it.
 */

/** Most blocks of a model: twice as many as the deepest models that were trained have. */
export const MAX_LAYERS = 2_000;

/**
 * Most names that a model's state dict may have, aliases and buffers included. The model that has most of all, Kimi K2,
 * has 60 layers of 384 experts with three matrices each: 69,120, and about a thousand more.
 */
export const MAX_TENSORS = 100_000;

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

/** Refuses a model of `layers` blocks when these are too many. */
export function checkLayers(path: string, layers: number): void {
  if (layers > MAX_LAYERS) {
    throw new LimitError(
      path,
      `describes ${grouped(layers)} layers; the limit is ${grouped(MAX_LAYERS)}`,
    );
  }
}

/** Refuses a model of at least `names` tensor names when these are too many. */
export function checkNames(path: string, names: number): void {
  if (names > MAX_TENSORS) throw tooManyNames(path, names);
}

/** Refuses a model of `layers` blocks with `each` tensor names when these are too many together. */
export function checkEach(path: string, layers: number, each: number): void {
  const names = layers * each;
  if (names > MAX_TENSORS) {
    throw tooManyNames(path, names, `, ${grouped(each)} in each of ${grouped(layers)} layers`);
  }
}

const tooManyNames = (path: string, names: number, where = '') =>
  new LimitError(
    path,
    `describes at least ${grouped(names)} tensor names${where}; the limit is ${grouped(MAX_TENSORS)}`,
  );

/** Refuses a model of `elements` stored values (a sum of doubles) when these cannot be counted exactly. */
export function checkElements(path: string, elements: number): void {
  if (!Number.isSafeInteger(elements)) {
    throw new LimitError(
      path,
      `describes ${grouped(elements)} stored values; counts are exact only up to 2^53 − 1`,
    );
  }
}
