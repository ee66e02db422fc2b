/** Numbers → stored bytes. */
import {
  decode,
  FLOAT_FORMATS,
  fillLittleEndian,
  littleEndianWords,
  numbersIn,
  valueTable,
  viewOf,
} from './decode.js';
import type { StoredDtype } from './dtype.js';
import { STORED_DTYPES } from './dtype.js';

// Floats of 32 and 64 bits → the two formats of 16 bits, to the nearest, ties to even.

/** The 32-bit words that hold sign, exponent and the start of the fraction. */
const SOURCES = {
  F32: { fractionBits: 23, bias: 127 },
  /** See `highWords`. */
  F64: { fractionBits: 20, bias: 1023 },
} as const;

type SourceDtype = keyof typeof SOURCES;
export type NarrowDtype = 'F16' | 'BF16';

/** What follows from a pair of formats. A *size* is the word or the code of a number without its sign. */
function narrowingOf(from: SourceDtype, to: NarrowDtype) {
  const source = SOURCES[from];
  const { exponentBits, fractionBits, bias } = FLOAT_FORMATS[to];
  const oneExponent = 1 << source.fractionBits;
  const sourceInfinity = (2 * source.bias + 1) * oneExponent;
  const infinity = (2 ** exponentBits - 1) << fractionBits;
  /** What comes off the exponent. */
  const rebase = (source.bias - bias) * oneExponent;
  return {
    ...source,
    sourceInfinity,
    infinity,
    quietNaN: infinity | (1 << (fractionBits - 1)),
    rebase,
    /** Bits of the fraction that go. */
    droppedBits: source.fractionBits - fractionBits,
    /** Sizes from here on lose the low bits and no more; without a rebase, subnormal ones do too. */
    regularFrom: rebase === 0 ? 0 : rebase + oneExponent,
    /** From here on a number may overflow. */
    regularUpTo: rebase + (2 ** exponentBits - 2) * oneExponent,
  };
}

type Narrowing = ReturnType<typeof narrowingOf>;

/**
 * Rounds floats, given as words of the machine, straight into their 16-bit codes. A NaN becomes the one
 * quiet NaN without sign, so that a result does not depend on which of them a machine makes.
 * @param words One for each number: of float32 numbers they themselves, of float64 ones their `highWords`.
 * @param saturate Whether an overflow becomes the largest finite number rather than infinity.
 * @returns Where the first overflow stands: a finite number that rounds to infinity; −1 when there is none.
 */
export function narrow(
  from: SourceDtype,
  to: NarrowDtype,
  words: Uint32Array,
  codes: Uint16Array,
  saturate: boolean,
): number {
  const narrowing = narrowingOf(from, to);
  const { regularFrom, regularUpTo, droppedBits, sourceInfinity } = narrowing;
  const addend = (1 << (droppedBits - 1)) - 1 - narrowing.rebase;
  let firstOverflow = -1;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? 0;
    const size = word & 0x7fffffff;
    const sign = (word >>> 16) & 0x8000;
    if (size >= regularFrom && size < regularUpTo) {
      // A carry out of the fraction goes into the exponent, as it should.
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
 * The high words of float64 numbers. Of a low one, rounding has to know only whether anything is set in it:
 * that becomes the lowest bit, which is never kept.
 */
function highWords(numbers: Float64Array): Uint32Array {
  const words = new Uint32Array(numbers.buffer, numbers.byteOffset, 2 * numbers.length);
  const high = new Uint32Array(numbers.length);
  for (let i = 0; i < high.length; i++) {
    high[i] = (words[2 * i + HIGH] ?? 0) | (words[2 * i + 1 - HIGH] === 0 ? 0 : 1);
  }
  return high;
}

/** Which of the two words of a float64 is the high one on this machine. */
const HIGH = new Uint32Array(Float64Array.of(1).buffer)[0] === 0 ? 1 : 0;

/** The code of a size that is very small, very large or no number. */
function irregular(size: number, narrowing: Narrowing): number {
  const { sourceInfinity, rebase, regularFrom, regularUpTo, droppedBits, infinity } = narrowing;
  if (size > sourceInfinity) return narrowing.quietNaN;
  // One carry too many ends at infinity.
  if (size >= regularUpTo) return Math.min(roundedShift(size - rebase, droppedBits), infinity);
  // What will be subnormal: the leading one becomes a bit like the others, and each step of the exponent
  // shifts it by one.
  const { fractionBits } = narrowing;
  const leadingOne = 1 << fractionBits;
  const shift = droppedBits + (regularFrom >>> fractionBits) - (size >>> fractionBits);
  if (shift > fractionBits + 1) return 0;
  return roundedShift((size & (leadingOne - 1)) | leadingOne, shift);
}

/** value / 2^bits, to the nearest, ties to even. */
function roundedShift(value: number, bits: number): number {
  const isOdd = (value >>> bits) & 1;
  return (value + (1 << (bits - 1)) - 1 + isOdd) >>> bits;
}

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
