/** Encodes numbers to stored bytes. */
import {
  decodeValues,
  FLOAT_FORMATS,
  fillLittleEndian,
  littleEndianWords,
  numbersIn,
  valueTable,
  viewOf,
} from './decode-values.js';
import type { StoredDtype } from './dtype.js';
import { STORED_DTYPES } from './dtype.js';

// Rounding from 32- and 64-bit floats to the two 16-bit formats, to nearest, ties to even

/** 32-bit words with the sign, exponent and start of the fraction. */
const SOURCES = {
  F32: { fractionBits: 23, bias: 127 },
  /** See `highWords`. */
  F64: { fractionBits: 20, bias: 1023 },
} as const;

type SourceDtype = keyof typeof SOURCES;
export type NarrowDtype = 'F16' | 'BF16';

/** Constants for a pair of formats. A *size* is the word or code of a number without its sign. */
function narrowingOf(from: SourceDtype, to: NarrowDtype) {
  const source = SOURCES[from];
  const { exponentBits, fractionBits, bias } = FLOAT_FORMATS[to];
  const oneExponent = 1 << source.fractionBits;
  const sourceInfinity = (2 * source.bias + 1) * oneExponent;
  const infinity = (2 ** exponentBits - 1) << fractionBits;
  /** Subtracted from the exponent. */
  const rebase = (source.bias - bias) * oneExponent;
  return {
    ...source,
    sourceInfinity,
    infinity,
    quietNaN: infinity | (1 << (fractionBits - 1)),
    rebase,
    /** Dropped bits of the fraction. */
    droppedBits: source.fractionBits - fractionBits,
    /** Smallest size whose only change is the loss of low bits; without a rebase, this includes subnormal ones. */
    regularFrom: rebase === 0 ? 0 : rebase + oneExponent,
    /** Smallest size that may overflow. */
    regularUpTo: rebase + (2 ** exponentBits - 2) * oneExponent,
  };
}

type Narrowing = ReturnType<typeof narrowingOf>;

/** Constants of all pairs: blocks round one number at a time. */
const NARROWINGS = {
  F32: { F16: narrowingOf('F32', 'F16'), BF16: narrowingOf('F32', 'BF16') },
  F64: { F16: narrowingOf('F64', 'F16'), BF16: narrowingOf('F64', 'BF16') },
} as const satisfies Record<SourceDtype, Record<NarrowDtype, Narrowing>>;

/**
 * Rounds floats, given as native words, directly to 16-bit codes. Every NaN becomes the same quiet NaN without
 * sign, so the result does not depend on the machine's NaN.
 * @param words One per number: float32 numbers themselves, or the `highWords` of float64 ones.
 * @param saturate Whether an overflow becomes the largest finite number instead of infinity.
 * @returns Index of the first overflow, a finite number that rounds to infinity; −1 if there is none.
 */
export function narrowFloats(
  from: SourceDtype,
  to: NarrowDtype,
  words: Uint32Array,
  codes: Uint16Array,
  saturate: boolean,
): number {
  const narrowing = NARROWINGS[from][to];
  const { regularFrom, regularUpTo, droppedBits, sourceInfinity } = narrowing;
  const addend = (1 << (droppedBits - 1)) - 1 - narrowing.rebase;
  let firstOverflow = -1;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? 0;
    const size = word & 0x7fffffff;
    const sign = (word >>> 16) & 0x8000;
    if (size >= regularFrom && size < regularUpTo) {
      // A carry out of the fraction correctly increments the exponent.
      codes[i] = sign | ((size + addend + ((size >>> droppedBits) & 1)) >>> droppedBits);
      continue;
    }
    let code = irregular(size, narrowing);
    if (code === narrowing.infinity && size < sourceInfinity) {
      if (firstOverflow < 0) firstOverflow = i;
      if (saturate) code--;
    }
    codes[i] = code === narrowing.quietNaN ? code : sign | code;
  }
  return firstOverflow;
}

/**
 * High words of float64 numbers. Rounding only needs to know whether any bit of the low word is set. That sets the
 * lowest bit, which is always dropped.
 */
function highWords(numbers: Float64Array): Uint32Array {
  const words = new Uint32Array(numbers.buffer, numbers.byteOffset, 2 * numbers.length);
  const high = new Uint32Array(numbers.length);
  for (let i = 0; i < high.length; i++) {
    high[i] = (words[2 * i + HIGH] ?? 0) | (words[2 * i + 1 - HIGH] === 0 ? 0 : 1);
  }
  return high;
}

/** Index of the high word of a float64 on this machine. */
const HIGH = new Uint32Array(Float64Array.of(1).buffer)[0] === 0 ? 1 : 0;

/** Code of a size that is very small, very large or NaN. */
function irregular(size: number, narrowing: Narrowing): number {
  const { sourceInfinity, rebase, regularFrom, regularUpTo, droppedBits, infinity } = narrowing;
  if (size > sourceInfinity) return narrowing.quietNaN;
  // A carry beyond the range ends at infinity.
  if (size >= regularUpTo) return Math.min(roundedShift(size - rebase, droppedBits), infinity);
  // A subnormal result: the leading one becomes an explicit bit, and each step of the exponent shifts it by one.
  const { fractionBits } = narrowing;
  const leadingOne = 1 << fractionBits;
  const shift = droppedBits + (regularFrom >>> fractionBits) - (size >>> fractionBits);
  if (shift > fractionBits + 1) return 0;
  return roundedShift((size & (leadingOne - 1)) | leadingOne, shift);
}

/** value / 2^bits, rounded to nearest, ties to even. */
function roundedShift(value: number, bits: number): number {
  const isOdd = (value >>> bits) & 1;
  return (value + (1 << (bits - 1)) - 1 + isOdd) >>> bits;
}

/** Target dtypes for encoding. */
export const ENCODABLE_DTYPES = ['F64', 'F32', 'F16', 'BF16'] as const satisfies StoredDtype[];

export type EncodableDtype = (typeof ENCODABLE_DTYPES)[number];

export interface EncodeOptions {
  /** Whether a finite number beyond the dtype's largest becomes the largest instead of infinity. */
  readonly saturate?: boolean;
}

/**
 * Encodes numbers as little-endian elements into the first bytes of `target`, rounded once to nearest, ties to
 * even. Keeps subnormal numbers, −0, infinities and NaN.
 * @returns Index of the first overflow, a finite number beyond the dtype's range; −1 if there is none.
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
 * Converts elements to another dtype, rounded once like `encode`. Equal dtypes keep every bit. Integers are
 * encoded from the numbers that `decodeValues` gives.
 * @returns The result of `encode`.
 * @throws RangeError for a partial element, a target that is too short, or complex elements.
 */
export function convertDtype(
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
    narrowFloats('F64', 'F16', highWords(numbers), viewOf(Uint16Array, target), saturate),
  BF16: (numbers, target, saturate) =>
    narrowFloats('F64', 'BF16', highWords(numbers), viewOf(Uint16Array, target), saturate),
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

/** Source and target are native words. */
type DirectCast = (source: Uint8Array, target: Uint8Array, saturate: boolean) => number;

/** Frequent casts that need no intermediate float64. */
const DIRECT_CASTS: Readonly<Record<string, DirectCast>> = {
  'F32-F16': (source, target, saturate) =>
    narrowFloats('F32', 'F16', viewOf(Uint32Array, source), viewOf(Uint16Array, target), saturate),
  'F32-BF16': (source, target, saturate) =>
    narrowFloats('F32', 'BF16', viewOf(Uint32Array, source), viewOf(Uint16Array, target), saturate),
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

/** A whole number of elements of every dtype, small enough to save memory. */
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
    const decoded = numbers.subarray(0, decodeValues(from, source, numbers));
    const overflow = encode(to, decoded, target.subarray(block * toBytes), { saturate });
    if (firstOverflow < 0 && overflow >= 0) firstOverflow = block * NUMBERS_PER_BLOCK + overflow;
  }
  return firstOverflow;
}

export const isEncodable = (dtype: StoredDtype): dtype is EncodableDtype =>
  (ENCODABLE_DTYPES as readonly StoredDtype[]).includes(dtype);
