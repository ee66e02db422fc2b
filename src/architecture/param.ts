import { elementCount, type Shape, shapeText } from '../tensor/dtype.js';
import { LimitError } from './limits.js';

/**
 * A stored tensor. Two layers share a tensor by holding the same object: it is counted once, by
 * identity, and used wherever it is held.
 */
export interface Param {
  /** The name under which a checkpoint stores it. */
  readonly name: string;
  /** Further names under which the same storage stands in a state dict. */
  readonly aliases: readonly string[];
  readonly shape: Shape;
  /** Product of the shape. */
  readonly elements: number;
  /** A buffer stands in a state dict but is not trained, and not counted as a parameter. */
  readonly role: 'parameter' | 'buffer';
  /** Of a buffer that others count as a parameter: who does. */
  readonly contested: string | undefined;
}

/** @throws LimitError when the tensor has more than 2^53 − 1 elements. */
export function param(name: string, shape: Shape, aliases: readonly string[] = []): Param {
  return tensor(name, shape, aliases, 'parameter');
}

interface BufferOptions {
  readonly aliases?: readonly string[];
  /** See `Param.contested`. */
  readonly contested?: string;
}

/** @throws LimitError when the tensor has more than 2^53 − 1 elements. */
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
