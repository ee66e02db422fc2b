import { elementCount, type Shape, shapeText } from '../tensor/dtype.js';
import { LimitError } from './limits.js';

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
}

/** @throws LimitError for more than 2^53 − 1 elements. */
export function param(name: string, shape: Shape, aliases: readonly string[] = []): Param {
  return tensor(name, shape, aliases, 'parameter');
}

interface BufferOptions {
  readonly aliases?: readonly string[];
  /** See `Param.contested`. */
  readonly contested?: string;
}

/** @throws LimitError for more than 2^53 − 1 elements. */
export function buffer(
  name: string,
  shape: Shape,
  { aliases = [], contested }: BufferOptions = {},
): Param {
  return { ...tensor(name, shape, aliases, 'buffer'), contested };
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
