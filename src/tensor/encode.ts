/** Numbers → stored bytes. */
import { decode, numbersIn } from './decode.js';
import { valueTable } from './decode-tables.js';
import { highWords, narrow } from './narrow.js';
import { STORED_DTYPES, type StoredDtype } from './stored-dtype.js';
import { fillLittleEndian, littleEndianWords, viewOf } from './words.js';

/** What numbers can be written as. */
export const ENCODABLE_DTYPES = ['F64', 'F32', 'F16', 'BF16'] as const satisfies StoredDtype[];

export type EncodableDtype = (typeof ENCODABLE_DTYPES)[number];

export interface EncodeOptions {
  /** Whether a finite number beyond the dtype's largest becomes that rather than infinity. */
  readonly saturate?: boolean;
}

/**
 * Encodes numbers as little-endian elements into the first bytes of `target`, to the nearest value, ties
 * to even, rounded once. Subnormal numbers, −0 and infinities stay what they are; a NaN stays a NaN.
 * @returns Where the first overflow stands, a finite number that the dtype has no finite one near; −1
 * when there is none.
 * @throws RangeError when the target is too short.
 */
export function encode(
  dtype: EncodableDtype,
  numbers: Float64Array,
  target: Uint8Array,
  { saturate = false }: EncodeOptions = {},
): number {
  const wordBytes = STORED_DTYPES[dtype].bits / 8;
  const encoded = firstBytes(target, numbers.length * wordBytes);
  return fillLittleEndian(encoded, wordBytes, (words) => ENCODERS[dtype](numbers, words, saturate));
}

/**
 * Writes elements of one dtype as another, rounded once as `encode` does. Between equal dtypes every bit
 * stays. Integers are encoded as the numbers that `decode` gives.
 * @returns What `encode` returns.
 * @throws RangeError when the bytes are no whole elements, the target is too short, or the elements are
 * complex.
 */
export function cast(
  from: StoredDtype,
  to: EncodableDtype,
  bytes: Uint8Array,
  target: Uint8Array,
  { saturate = false }: EncodeOptions = {},
): number {
  if (STORED_DTYPES[from].kind === 'complex') throw new RangeError(`${from} as ${to}`);
  const wordBytes = STORED_DTYPES[to].bits / 8;
  const encoded = firstBytes(target, numbersIn(from, bytes.length) * wordBytes);
  if (from === to) {
    encoded.set(bytes);
    return -1;
  }
  const direct = DIRECT_CASTS[`${from}-${to}`];
  if (direct === undefined) return castByNumbers(from, to, bytes, encoded, saturate);
  const source = littleEndianWords(bytes, STORED_DTYPES[from].wordBytes);
  return fillLittleEndian(encoded, wordBytes, (words) => direct(source, words, saturate));
}

function firstBytes(target: Uint8Array, count: number): Uint8Array {
  if (count > target.length) throw new RangeError(`${count} bytes into ${target.length}`);
  return target.subarray(0, count);
}

const ENCODERS = {
  F64: (numbers, target) => {
    viewOf(Float64Array, target).set(numbers);
    return -1;
  },
  F32: encodeF32,
  F16: (numbers, target, saturate) =>
    narrow('F64', 'F16', highWords(numbers), viewOf(Uint16Array, target), saturate),
  BF16: (numbers, target, saturate) =>
    narrow('F64', 'BF16', highWords(numbers), viewOf(Uint16Array, target), saturate),
} as const satisfies Record<
  EncodableDtype,
  (numbers: Float64Array, target: Uint8Array, saturate: boolean) => number
>;

const LARGEST_F32 = (2 - 2 ** -23) * 2 ** 127;

function encodeF32(numbers: Float64Array, target: Uint8Array, saturate: boolean): number {
  const floats = viewOf(Float32Array, target);
  floats.set(numbers);
  let firstOverflow = -1;
  for (let i = 0; i < floats.length; i++) {
    const float = floats[i] ?? 0;
    if (Math.abs(float) !== Number.POSITIVE_INFINITY || float === numbers[i]) continue;
    if (firstOverflow < 0) firstOverflow = i;
    if (saturate) floats[i] = Math.sign(float) * LARGEST_F32;
  }
  return firstOverflow;
}

/** Both given as words of the machine. */
type DirectCast = (source: Uint8Array, target: Uint8Array, saturate: boolean) => number;

/** The casts of many bytes, which need no float64 in between. */
const DIRECT_CASTS: Readonly<Record<string, DirectCast>> = {
  'F32-F16': (source, target, saturate) =>
    narrow('F32', 'F16', viewOf(Uint32Array, source), viewOf(Uint16Array, target), saturate),
  'F32-BF16': (source, target, saturate) =>
    narrow('F32', 'BF16', viewOf(Uint32Array, source), viewOf(Uint16Array, target), saturate),
  'F16-F32': (source, target) => {
    const codes = viewOf(Uint16Array, source);
    const floats = viewOf(Float32Array, target);
    const table = valueTable('F16');
    for (let i = 0; i < codes.length; i++) floats[i] = table[codes[i] ?? 0] ?? 0;
    return -1;
  },
  'BF16-F32': (source, target) => {
    const codes = viewOf(Uint16Array, source);
    const words = viewOf(Uint32Array, target);
    for (let i = 0; i < codes.length; i++) words[i] = (codes[i] ?? 0) << 16;
    return -1;
  },
};

/** A whole number of elements of every dtype, and little memory. */
const NUMBERS_PER_BLOCK = 2 ** 14;

function castByNumbers(
  from: StoredDtype,
  to: EncodableDtype,
  bytes: Uint8Array,
  target: Uint8Array,
  saturate: boolean,
): number {
  const fromBytes = (NUMBERS_PER_BLOCK * STORED_DTYPES[from].bits) / 8;
  const toBytes = (NUMBERS_PER_BLOCK * STORED_DTYPES[to].bits) / 8;
  const numbers = new Float64Array(Math.min(NUMBERS_PER_BLOCK, numbersIn(from, bytes.length)));
  let firstOverflow = -1;
  for (let block = 0; block * fromBytes < bytes.length; block++) {
    const source = bytes.subarray(block * fromBytes, (block + 1) * fromBytes);
    const decoded = numbers.subarray(0, decode(from, source, numbers));
    const overflow = encode(to, decoded, target.subarray(block * toBytes), { saturate });
    if (firstOverflow < 0 && overflow >= 0) firstOverflow = block * NUMBERS_PER_BLOCK + overflow;
  }
  return firstOverflow;
}

export const isEncodable = (dtype: StoredDtype): dtype is EncodableDtype =>
  (ENCODABLE_DTYPES as readonly StoredDtype[]).includes(dtype);
