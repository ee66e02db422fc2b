/** The values of a checkpoint against those of the checkpoint that it was made from. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { reshaped } from '../checkpoint/computed-file.js';
import { storedNames } from '../checkpoint/names.js';
import { type StoredTensor, storedTypeOf } from '../checkpoint/stored-tensor.js';
import { readRows, rowBytes, yieldToEventLoop } from '../checkpoint/view.js';
import type { ProgressDisplay } from '../progress-display.js';
import { decodeValues } from '../tensor/decode-values.js';
import { isSameShape } from '../tensor/dtype.js';

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
  /** Tensors beyond the limit of their type. */
  readonly beyond: readonly string[];
  readonly types: readonly TypeDifference[];
}

/**
 * Largest relative error of a tensor by rounding to a type. For floats the rounding of their fraction; for blocks what
 * values in the worst order for their scales lose, rounded up.
 */
const LIMITS: Readonly<Record<string, number>> = {
  F64: 1e-6,
  F32: 1e-6,
  F16: 2 ** -11,
  BF16: 2 ** -8,
  Q8_0: 0.0225,
  Q6_K: 0.05,
  Q5_0: 0.09,
  Q5_1: 0.09,
  Q5_K: 0.09,
  Q4_0: 0.18,
  Q4_1: 0.18,
  Q4_K: 0.18,
  Q3_K: 0.35,
  Q2_K: 0.6,
};

/** Values compared at a time. */
const BLOCK = 2 ** 17;

/**
 * Compares all tensors that both have.
 * @throws UserError when reading fails, or a type has no values that can be read.
 */
export async function compareValues(
  checkpoint: Checkpoint,
  original: Checkpoint,
  display: ProgressDisplay,
): Promise<ValueComparison> {
  const [stored, source] = [storedNames(checkpoint), storedNames(original)];
  const missing = [
    ...[...stored.keys()].filter((name) => !source.has(name)),
    ...[...source.keys()].filter((name) => !stored.has(name)),
  ];
  const pairs = [...stored].flatMap(([name, { tensor }]) => {
    const other = source.get(name)?.tensor;
    return other && isSameShape(tensor.shape, other.shape) ? [{ name, tensor, other }] : [];
  });
  const shown = display.bytes(
    'comparing values',
    pairs.reduce((sum, { tensor }) => sum + tensor.bytes, 0),
  );
  const types = new Map<string, TypeDifference>();
  const beyond: string[] = [];
  try {
    for (const { name, tensor, other } of pairs) {
      const type = storedTypeOf(tensor);
      const relativeError = await distanceOf(tensor, other, shown.add);
      const limit = LIMITS[type] ?? 0;
      if (!(relativeError <= limit)) beyond.push(name);
      const known = types.get(type) ?? { type, tensors: 0, relativeError: -1, limit, worst: '' };
      const isWorst = !(relativeError <= known.relativeError);
      types.set(type, {
        ...known,
        tensors: known.tensors + 1,
        ...(isWorst && { relativeError, worst: name }),
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
    types: [...types.values()],
  };
}

/** ‖original − stored‖ / ‖original‖ in float64. */
async function distanceOf(
  stored: StoredTensor,
  original: StoredTensor,
  onBytes: (bytes: number) => void,
): Promise<number> {
  const { elements } = stored;
  if (elements === 0) return 0;
  const [a, b] = [stored, original].map((tensor) => reshaped(tensor, [elements]));
  if (!a || !b) throw new Error('two tensors');
  let [distance, norm] = [0, 0];
  for (let first = 0; first < elements; first += BLOCK) {
    const count = Math.min(BLOCK, elements - first);
    const [mine, theirs] = [numbersOf(a, first, count), numbersOf(b, first, count)];
    for (let i = 0; i < count; i++) {
      const value = theirs[i] ?? 0;
      distance += ((mine[i] ?? 0) - value) ** 2;
      norm += value ** 2;
    }
    onBytes(count * rowBytes(a));
    await yieldToEventLoop();
  }
  if (distance === 0) return 0;
  return norm === 0 ? Number.POSITIVE_INFINITY : Math.sqrt(distance / norm);
}

function numbersOf(tensor: StoredTensor, first: number, count: number): Float64Array {
  const bytes = new Uint8Array(count * rowBytes(tensor));
  readRows(tensor, first, count, bytes);
  const numbers = new Float64Array(count);
  decodeValues(tensor.dtype, bytes, numbers);
  return numbers;
}
