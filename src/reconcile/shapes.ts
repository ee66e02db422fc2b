/** What the tensors of a checkpoint show of its model. */
import type { StoredShapes } from '../architecture/reading.js';
import { numbersUnder, type StoredNames } from '../checkpoint/stored-names.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';

/** @param areEqual Whether two tensors hold the same values. */
export function shapesOf(
  stored: StoredNames,
  areEqual: (a: StoredTensor, b: StoredTensor) => boolean,
): StoredShapes {
  return {
    size: stored.size,
    names: () => stored.keys(),
    shapeOf: (name) => stored.get(name)?.tensor.shape,
    numbersUnder: (prefix) => numbersUnder(prefix, stored.keys()),
    areOne: (names) => {
      const first = stored.get(names[0] ?? '')?.tensor;
      return names.every((name) => {
        const tensor = stored.get(name)?.tensor;
        return first !== undefined && tensor !== undefined && areEqual(first, tensor);
      });
    },
  };
}
