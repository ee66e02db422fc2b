/** The distance between two stored tensors of one shape, as numbers, and what rounding to a type explains of it. */
import { decodeValues } from '../base/tensor/decode-values.js';
import { STORED_DTYPES } from '../base/tensor/dtype.js';
import { reshaped } from './computed-file.js';
import { type StoredTensor, storedTypeOf } from './stored-tensor.js';
import { readRows, rowBytes, yieldToEventLoop } from './view.js';

export interface TensorDistance {
  readonly elements: number;
  /** Elements with the same value. A NaN is the same as a NaN; −0 is not the same as 0. */
  readonly equal: number;
  /** Largest absolute difference; infinite where only one of two values is finite. */
  readonly largest: number;
  /** Sum of the squared differences. */
  readonly squared: number;
  /** Sum of the squared finite values of the reference. */
  readonly squaredNorm: number;
}

/** ‖a − b‖ / ‖a‖ of tensors together; 0 without a difference, infinite where the reference is zero. */
export function relativeError({
  squared,
  squaredNorm,
}: Pick<TensorDistance, 'squared' | 'squaredNorm'>): number {
  if (squared === 0) return 0;
  if (squaredNorm === 0 || squared === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
  return Math.sqrt(squared / squaredNorm);
}

/**
 * Largest relative error of a tensor by rounding to a type. For floats, the rounding of their fraction. For blocks, the
 * error of values in the worst order for their scales, rounded up.
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
  // Groups of up to 128 weights.
  INT8: 0.0225,
  INT4: 0.25,
};

/** Largest relative error that rounding to a type explains; 0 for a type whose rounding is not bounded here. */
export const roundingLimit = (type: string): number => LIMITS[type] ?? 0;

/** Largest relative error between two tensors that rounding the same values to both types explains. */
export function mutualLimit(a: StoredTensor, b: StoredTensor): number {
  const [first, second] = [storedTypeOf(a), storedTypeOf(b)];
  if (first === second) return 0;
  return Math.max(roundingLimit(first), roundingLimit(second));
}

/** Values compared at a time. */
const BLOCK = 2 ** 17;

/**
 * Compares two tensors of one shape element by element in float64, whatever their types and layouts.
 * @param onBytes Receives the bytes of `a` that were compared.
 * @throws UserError when reading fails, or a type has no values that can be read.
 */
export async function distanceBetween(
  a: StoredTensor,
  b: StoredTensor,
  onBytes: (bytes: number) => void,
): Promise<TensorDistance> {
  const { elements } = a;
  const sums = { equal: 0, largest: 0, squared: 0, squaredNorm: 0 };
  if (elements > 0) {
    const [flatA, flatB] = [reshaped(a, [elements]), reshaped(b, [elements])];
    const parts = [a, b].some(isComplex) ? 2 : 1;
    for (let first = 0; first < elements; first += BLOCK) {
      const count = Math.min(BLOCK, elements - first);
      const [mine, theirs] = [flatA, flatB].map((each) => numberBlock(each, first, count, parts));
      if (mine && theirs) addBlock(sums, mine, theirs, parts);
      onBytes(count * rowBytes(flatA));
      await yieldToEventLoop();
    }
  }
  return { elements, ...sums };
}

const isComplex = ({ dtype }: StoredTensor) => STORED_DTYPES[dtype].kind === 'complex';

interface Block {
  readonly numbers: Float64Array;
  /** Integers of 64 bits, which numbers cannot hold; undefined for other types. */
  readonly words: BigUint64Array | undefined;
}

/** @param parts Numbers of an element: the real and the imaginary part where one of two tensors is complex. */
function numberBlock(tensor: StoredTensor, first: number, count: number, parts: 1 | 2): Block {
  const { dtype } = tensor;
  const bytes = new Uint8Array(count * rowBytes(tensor));
  readRows(tensor, first, count, bytes);
  const numbers = new Float64Array(parts * count);
  decodeValues(dtype, bytes, numbers);
  if (parts === 2 && !isComplex(tensor)) spread(numbers, count);
  const isLong = dtype === 'I64' || dtype === 'U64';
  return { numbers, words: isLong ? new BigUint64Array(bytes.buffer) : undefined };
}

/** Real numbers as complex ones. */
function spread(numbers: Float64Array, count: number): void {
  for (let i = count - 1; i >= 0; i--) {
    numbers[2 * i] = numbers[i] ?? 0;
    numbers[2 * i + 1] = 0;
  }
}

type Sums = { -readonly [Key in Exclude<keyof TensorDistance, 'elements'>]: number };

function addBlock(sums: Sums, a: Block, b: Block, parts: 1 | 2): void {
  const [x, y] = [a.numbers, b.numbers];
  const words = a.words && b.words ? ([a.words, b.words] as const) : undefined;
  let { equal, largest, squared, squaredNorm } = sums;
  let equalParts = 0;
  for (let i = 0; i < x.length; i++) {
    const [mine, theirs] = [x[i] ?? 0, y[i] ?? 0];
    if (Number.isFinite(mine)) squaredNorm += mine * mine;
    if (words ? words[0][i] === words[1][i] : Object.is(mine, theirs)) equalParts++;
    else {
      const difference = Math.abs(mine - theirs);
      // NaN, where only one of the values is.
      const size = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
      if (size > largest) largest = size;
      squared += size * size;
    }
    if (i % parts < parts - 1) continue;
    if (equalParts === parts) equal++;
    equalParts = 0;
  }
  Object.assign(sums, { equal, largest, squared, squaredNorm });
}
