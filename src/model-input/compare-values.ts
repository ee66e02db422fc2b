/** The values of a checkpoint against those of the checkpoint that it was made from. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { distanceBetween, relativeError, roundingLimit } from '../checkpoint/distance.js';
import { storedNames } from '../checkpoint/names.js';
import { storedTypeOf } from '../checkpoint/stored-tensor.js';
import type { ProgressDisplay } from '../progress-display.js';
import { isSameShape } from '../tensor/dtype.js';
import { sumOf } from '../text/words.js';

/** Tensors of one type, and how far they are from the original's. */
export interface TypeDifference {
  /** `Q4_K` */
  readonly type: string;
  readonly tensors: number;
  /** ‖original − stored‖ / ‖original‖ of the tensor that is furthest away. */
  readonly relativeError: number;
  /** Largest error that rounding to this type explains. */
  readonly limit: number;
  /** The tensor that is furthest away. */
  readonly worst: string;
}

export interface ValueComparison {
  readonly original: string;
  readonly compared: number;
  /** Names that only one of the two has. */
  readonly missing: readonly string[];
  /** Tensors of another shape, or beyond the limit of their type. */
  readonly beyond: readonly string[];
  /** Those of another shape, whose values are not compared. */
  readonly reshaped: readonly string[];
  readonly types: readonly TypeDifference[];
}

/**
 * Compares all tensors that both have.
 * @param copies Names of the checkpoint for equal copies of tied tensors, which the original need not store.
 * @throws UserError when reading fails, or a type has no values that can be read.
 */
export async function compareValues(
  checkpoint: Checkpoint,
  original: Checkpoint,
  display: ProgressDisplay,
  copies: ReadonlySet<string> = new Set(),
): Promise<ValueComparison> {
  const [stored, source] = [storedNames(checkpoint), storedNames(original)];
  const missing = [
    ...[...stored].flatMap(([name, { own }]) =>
      source.has(name) || copies.has(own) ? [] : [name],
    ),
    ...[...source.keys()].filter((name) => !stored.has(name)),
  ];
  const pairs = [...stored].flatMap(([name, { tensor }]) => {
    const other = source.get(name)?.tensor;
    return other && isSameShape(tensor.shape, other.shape) ? [{ name, tensor, other }] : [];
  });
  const shown = display.bytes(
    'comparing values',
    sumOf(pairs, ({ other }) => other.bytes),
  );
  const types = new Map<string, TypeDifference>();
  const reshaped = [...stored].flatMap(([name, { tensor }]) => {
    const other = source.get(name)?.tensor;
    return other && !isSameShape(tensor.shape, other.shape) ? [name] : [];
  });
  const beyond = [...reshaped];
  try {
    for (const { name, tensor, other } of pairs) {
      const type = storedTypeOf(tensor);
      const error = relativeError(await distanceBetween(other, tensor, shown.add));
      const limit = roundingLimit(type);
      if (error > limit) beyond.push(name);
      const known = types.get(type) ?? { type, tensors: 0, relativeError: -1, limit, worst: '' };
      const isWorst = error > known.relativeError;
      types.set(type, {
        ...known,
        tensors: known.tensors + 1,
        ...(isWorst && { relativeError: error, worst: name }),
      });
    }
  } finally {
    shown.end();
  }
  return {
    original: original.path,
    compared: pairs.length,
    missing,
    beyond,
    reshaped,
    types: [...types.values()],
  };
}
