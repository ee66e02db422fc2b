/** Floats of 32 and 64 bits → the two formats of 16 bits, to the nearest, ties to even. */
import { FLOAT_FORMATS } from './decode-tables.js';

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
export function highWords(numbers: Float64Array): Uint32Array {
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
