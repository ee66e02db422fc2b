/** What the names of a checkpoint show that is no choice of its model, but of who wrote the file. */
import type { Setting } from '../family.js';
import type { StoredShapes } from '../reading.js';

const PACKED = /\.experts\.gate_up_proj$/;
const SEPARATE = /\.experts\.(?:0|[1-9]\d*)\./;

/** `model.experts_stored`: whether experts stand in two tensors for all of them, or each in its own. */
export function expertsStored(stored: StoredShapes): readonly Setting[] {
  for (const name of stored.names()) {
    const value = PACKED.test(name) ? 'packed' : SEPARATE.test(name) ? 'separate' : undefined;
    if (value !== undefined) return [{ path: 'model.experts_stored', value }];
  }
  return [];
}

/**
 * `model.stored_prefix`: whether `prefix` stands before every name, or nothing.
 * @param name Of a tensor that every model has, without it.
 */
export function prefixStored(
  stored: StoredShapes,
  prefix: string,
  name: string,
): readonly Setting[] {
  const value = [prefix, ''].find((each) => stored.shapeOf(`${each}${name}`) !== undefined);
  return value === undefined ? [] : [{ path: 'model.stored_prefix', value }];
}
