import type { Shape } from '../../base/tensor/dtype.js';
import { elementCount, shapeText } from '../../base/tensor/dtype.js';

// Limits on the size of a description. They keep every count exact, and every answer within seconds and some
// hundred megabytes. A typo (`num_layers: 1e9`) fails before anything is built.

/** Maximum number of blocks: twice the depth of the deepest trained models. */
export const MAX_LAYERS = 2_000;

/**
 * Maximum number of state dict names, including aliases and buffers. Kimi K2 has 60 layers of 384 experts with three
 * matrices each: 69,120, and about a thousand more. A model of 92 layers with 512 experts has about 142,000.
 */
export const MAX_TENSORS = 200_000;

/** A valid config whose model is beyond the limits. */
export class LimitError extends Error {
  /** Dotted path of the responsible config key or section. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.name = 'LimitError';
    this.path = path;
  }
}

const groupedInteger = (value: number) =>
  Number.isSafeInteger(value) ? value.toLocaleString('en-US') : `about ${value.toExponential(2)}`;

/** Maximum values that a description lists, such as frequencies: the widest models have about 20,000. */
const MAX_LISTED = 1_000_000;

/** Rejects a list of more values than a description can hold. @param what `columns of positions` */
export function checkListed(path: string, count: number, what: string): void {
  if (count > MAX_LISTED) {
    throw new LimitError(
      path,
      `describes ${groupedInteger(count)} ${what}; the limit is ${groupedInteger(MAX_LISTED)}`,
    );
  }
}

/** Rejects a model with too many blocks. */
export function checkLayers(path: string, layers: number): void {
  if (layers > MAX_LAYERS) {
    throw new LimitError(
      path,
      `describes ${groupedInteger(layers)} layers; the limit is ${groupedInteger(MAX_LAYERS)}`,
    );
  }
}

/** Rejects a model whose minimum number of tensor names is too large. */
export function checkNames(path: string, names: number): void {
  if (names > MAX_TENSORS) throw tooManyNames(path, names);
}

/** Rejects a model of `layers` blocks with `each` tensor names if there are too many in total. */
export function checkEach(path: string, layers: number, each: number): void {
  const names = layers * each;
  if (names > MAX_TENSORS) {
    throw tooManyNames(
      path,
      names,
      `, ${groupedInteger(each)} in each of ${groupedInteger(layers)} layers`,
    );
  }
}

const tooManyNames = (path: string, names: number, where = '') =>
  new LimitError(
    path,
    `describes at least ${groupedInteger(names)} tensor names${where}; the limit is ${groupedInteger(MAX_TENSORS)}`,
  );

/** Rejects a model whose stored values (a sum of doubles) are too many to count exactly. */
export function checkElements(path: string, elements: number): void {
  if (!Number.isSafeInteger(elements)) {
    throw new LimitError(
      path,
      `describes ${groupedInteger(elements)} stored values; counts are exact only up to 2^53 − 1`,
    );
  }
}

/** A stored tensor. Layers share a tensor by holding the same object; it is counted once, by identity. */
export interface Param {
  /** Name in a checkpoint. */
  readonly name: string;
  /** Further state dict names of the same storage. */
  readonly aliases: readonly string[];
  readonly shape: Shape;
  /** Product of the shape. */
  readonly elements: number;
  /** A buffer is in the state dict but is not trained and not counted as a parameter. */
  readonly role: 'parameter' | 'buffer';
  /** Sources that count this buffer as a parameter. */
  readonly contested: string | undefined;
  /** Whether its values are integers: numbers of experts, or of rows. */
  readonly isInteger?: true;
}

/** @throws LimitError for more than 2^53 − 1 elements. */
export function param(name: string, shape: Shape, aliases: readonly string[] = []): Param {
  return tensor(name, shape, aliases, 'parameter');
}

interface BufferOptions {
  readonly aliases?: readonly string[];
  /** See `Param.contested`. */
  readonly contested?: string;
  readonly isInteger?: true;
}

/** @throws LimitError for more than 2^53 − 1 elements. */
export function buffer(
  name: string,
  shape: Shape,
  { aliases = [], contested, isInteger }: BufferOptions = {},
): Param {
  return {
    ...tensor(name, shape, aliases, 'buffer'),
    contested,
    ...(isInteger && { isInteger }),
  };
}

function tensor(
  name: string,
  shape: Shape,
  aliases: readonly string[],
  role: Param['role'],
): Param {
  const elements = elementCount(shape);
  if (elements === undefined) {
    throw new LimitError(
      'model',
      `describes ${name} of shape ${shapeText(shape)}, which has more than 2^53 − 1 elements`,
    );
  }
  return { name, aliases, shape, elements, role, contested: undefined };
}
