/** Tensors of the building blocks: a shape, and a typed array in row-major order. */
import { type UserError, usageError } from '../../base/errors.js';
import { valueTable } from '../../base/tensor/decode-values.js';
import { elementCount, isSameShape, type Shape, shapeText } from '../../base/tensor/dtype.js';
import { narrowFloats } from '../../base/tensor/encode.js';

/** Names of the 16-bit dtypes in the table of formats. */
const HALVES = { f16: 'F16', bf16: 'BF16' } as const;

/** Array type of each dtype. */
const ARRAYS = { f32: Float32Array, f16: Uint16Array, bf16: Uint16Array } as const;

type HalfDtype = keyof typeof HALVES;
export type ModuleDtype = 'f32' | HalfDtype;

export interface Float32Tensor {
  readonly dtype: 'f32';
  readonly shape: Shape;
  readonly data: Float32Array;
}

/** 16-bit values as bit patterns, as in PyTorch's `view(torch.uint16)`. */
export interface HalfTensor {
  readonly dtype: HalfDtype;
  readonly shape: Shape;
  readonly data: Uint16Array;
}

export type Tensor = Float32Tensor | HalfTensor;

/** Token ids, such as [b, s]. */
export interface Ids {
  readonly shape: Shape;
  readonly data: Int32Array;
}

/** Error for an invalid call of a building block: `groupRmsNorm: …`. */
export const mistake = (where: string, message: string, suggestion: string): UserError =>
  usageError(`${where}: ${message}`, suggestion);

/**
 * Creates a tensor of numbers, rounded to nearest, ties to even. Like `torch.tensor`, it rounds to float32, then
 * to the dtype.
 * @throws UserError when the shape does not match the number of values.
 */
export function tensor(
  shape: Shape,
  numbers: ArrayLike<number>,
  dtype: ModuleDtype = 'f32',
): Tensor {
  const data = Float32Array.from(numbers);
  return roundedTensor('tensor', checked('tensor', { dtype: 'f32', shape, data }), dtype);
}

/**
 * Converts values to another dtype, like `Tensor.to` of PyTorch. @throws UserError when the shape does not fit.
 */
export const cast = (values: Tensor, dtype: ModuleDtype): Tensor =>
  values.dtype === dtype
    ? checked('cast', values)
    : roundedTensor('cast', { ...values, dtype: 'f32', data: numbersOf('cast', values) }, dtype);

/** A tensor's values as float32, without loss. @throws UserError when the shape does not fit. */
export const toFloat32 = (values: Tensor): Float32Array => numbersOf('toFloat32', values);

/** The same, for a block that includes its name in errors. */
export function numbersOf(where: string, values: Tensor): Float32Array {
  checked(where, values);
  if (values.dtype === 'f32') return values.data;
  const table = valueTable(HALVES[values.dtype]);
  return Float32Array.from(values.data, (code) => table[code] ?? 0);
}

/** Rounds a block's float32 result to the dtype of its input. */
export function roundedTensor(where: string, values: Float32Tensor, dtype: ModuleDtype): Tensor {
  if (dtype === 'f32') return values;
  const format = Object.hasOwn(HALVES, dtype) ? HALVES[dtype] : undefined;
  if (format === undefined) {
    throw mistake(where, `dtype ${String(dtype)}`, 'write f32, f16 or bf16');
  }
  const { shape, data } = values;
  const codes = new Uint16Array(data.length);
  narrowFloats(
    'F32',
    format,
    new Uint32Array(data.buffer, data.byteOffset, data.length),
    codes,
    false,
  );
  return { dtype, shape, data: codes };
}

const arrayOf = (dtype: ModuleDtype) => (Object.hasOwn(ARRAYS, dtype) ? ARRAYS[dtype] : undefined);

/** Returns the input if its shape matches its number of values and its array matches its dtype. */
export function checked<Given extends Tensor | Ids>(where: string, given: Given): Given {
  const { shape, data } = given;
  const expected = 'dtype' in given ? arrayOf(given.dtype) : Int32Array;
  if (expected === undefined || !((data as unknown) instanceof expected)) {
    const dtype = 'dtype' in given ? `dtype ${given.dtype}` : 'ids';
    throw mistake(where, `${dtype} in a ${data?.constructor?.name}`, ARRAYS_TEXT);
  }
  if (elementCount(shape) === data.length) return given;
  throw mistake(
    where,
    `shape ${shapeText(shape)} for ${data.length} values`,
    'give a shape whose sizes multiply to the number of values',
  );
}

const ARRAYS_TEXT =
  'give f32 as a Float32Array, f16 and bf16 as a Uint16Array of their codes, and ids as an Int32Array';

/** @throws UserError when a tensor does not have the expected shape. */
export function expectShape(where: string, what: string, found: Shape, expected: Shape): void {
  if (isSameShape(found, expected)) return;
  throw mistake(
    where,
    `${what} has shape ${shapeText(found)} and should have ${shapeText(expected)}`,
    'see the shapes in the documentation of the block',
  );
}

/** @throws UserError when a tensor does not have the expected number of axes. */
export function expectAxes(where: string, what: string, found: Shape, axes: string): void {
  const count = axes.split(', ').length;
  if (found.length === count) return;
  throw mistake(
    where,
    `${what} has shape ${shapeText(found)}, of ${found.length} axes`,
    `give it ${count}: [${axes}]`,
  );
}

/** @throws UserError when a number is not whole or is less than `least`. */
export function expectWhole(where: string, what: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw mistake(where, `${what} is ${value}`, `give a whole number from ${least} on`);
}

/** @throws UserError when a number is negative, infinite or NaN. */
export function expectFinite(where: string, what: string, value: number): void {
  if (Number.isFinite(value) && value >= 0) return;
  throw mistake(where, `${what} is ${value}`, 'give a finite number that is not negative');
}

/** @throws UserError when related tensors have different dtypes. */
export function expectSameDtype(where: string, tensors: Readonly<Record<string, Tensor>>): void {
  const named = Object.entries(tensors);
  if (new Set(named.map(([, { dtype }]) => dtype)).size <= 1) return;
  throw mistake(
    where,
    named.map(([name, { dtype }]) => `${name} is ${dtype}`).join(', '),
    'cast them to one dtype',
  );
}
