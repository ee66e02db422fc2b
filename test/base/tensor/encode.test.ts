import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import { STORED_DTYPES, type StoredDtype } from '../../../src/base/tensor/dtype.js';
import {
  convertDtype,
  type EncodableDtype,
  type EncodeOptions,
  encode,
} from '../../../src/base/tensor/encode.js';

const INFINITY = Number.POSITIVE_INFINITY;
const ALL_CODES = Uint16Array.from({ length: 65536 }, (_, code) => code);
const bytesOf = (words: ArrayBufferView) =>
  new Uint8Array(words.buffer, words.byteOffset, words.byteLength);

function valuesOf(dtype: StoredDtype, bytes: Uint8Array): Float64Array {
  const values = new Float64Array((bytes.length * 8) / STORED_DTYPES[dtype].bits);
  decodeValues(dtype, bytes, values);
  return values;
}

/** Numbers rounded to a dtype, and the index of the first overflow. */
function encoded(dtype: EncodableDtype, numbers: readonly number[], options?: EncodeOptions) {
  const target = new Uint8Array((numbers.length * STORED_DTYPES[dtype].bits) / 8);
  const overflow = encode(dtype, Float64Array.from(numbers), target, options);
  return { values: [...valuesOf(dtype, target)], overflow };
}

/** Like `encoded`, by a cast from another dtype. */
function castTo(
  dtype: EncodableDtype,
  from: StoredDtype,
  bytes: Uint8Array,
  options?: EncodeOptions,
) {
  const count = (bytes.length * 8) / STORED_DTYPES[from].bits;
  const target = new Uint8Array((count * STORED_DTYPES[dtype].bits) / 8);
  const overflow = convertDtype(from, dtype, bytes, target, options);
  return { values: [...valuesOf(dtype, target)], overflow };
}

const HALVES = ['F16', 'BF16'] as const;

/** Non-negative finite values by code, and the power of two after the largest. */
const LADDERS = {
  F16: [...valuesOf('F16', bytesOf(ALL_CODES)).subarray(0, 0x7c00), 2 ** 16],
  BF16: [...valuesOf('BF16', bytesOf(ALL_CODES)).subarray(0, 0x7f80), 2 ** 128],
};

/**
 * The nearest value by distance, or the even code for a tie. The comparison is exact, because differences of neighbours
 * are (Sterbenz, Floating-Point Computation, 1974).
 */
function nearestHalf(dtype: 'F16' | 'BF16', value: number): number {
  const ladder = LADDERS[dtype];
  const size = Math.abs(value);
  const top = ladder.length - 1;
  if (Number.isNaN(value) || size === INFINITY) return value;
  let low = 0;
  let high = top;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((ladder[middle] ?? 0) <= size) low = middle;
    else high = middle;
  }
  const toLow = size - (ladder[low] ?? 0);
  const toHigh = (ladder[high] ?? 0) - size;
  const code = toLow < toHigh || (toLow === toHigh && low % 2 === 0) ? low : high;
  const nearest = code === top ? INFINITY : (ladder[code] ?? 0);
  return Object.is(Math.sign(value), -0) || value < 0 ? -nearest : nearest;
}

/** The next float64 away from zero, or towards it. */
function neighbour(value: number, direction: 1 | -1): number {
  const bits = new BigInt64Array(Float64Array.of(value).buffer);
  bits[0] = (bits[0] ?? 0n) + BigInt(direction);
  return new Float64Array(bits.buffer)[0] ?? 0;
}

const wideFloats = fc.oneof(
  fc.double(),
  // The dense range of half precision, and its ends.
  fc.double({ min: -70000, max: 70000 }),
  fc.double({ min: -1e-4, max: 1e-4 }),
  fc
    .tuple(fc.double({ min: -2, max: 2, noNaN: true }), fc.integer({ min: -160, max: 130 }))
    .map(([fraction, exponent]) => fraction * 2 ** exponent),
);

describe('encode', () => {
  it.each(HALVES)('encodes every value of %s to its code', (dtype) => {
    const values = valuesOf(dtype, bytesOf(ALL_CODES));
    const target = new Uint16Array(ALL_CODES.length);
    expect(encode(dtype, values, bytesOf(target))).toBe(-1);
    const expected = ALL_CODES.map((code, i) =>
      Number.isNaN(values[i]) ? (dtype === 'F16' ? 0x7e00 : 0x7fc0) : code,
    );
    expect(target).toEqual(expected);
  });

  it.each(HALVES)('rounds once to %s: midpoints to even, neighbours to nearest', (dtype) => {
    const ladder = LADDERS[dtype];
    for (let code = 0; code < ladder.length - 1; code++) {
      const [below, above] = [ladder[code] ?? 0, ladder[code + 1] ?? 0];
      const middle = below + (above - below) / 2;
      const top = code === ladder.length - 2 ? INFINITY : above;
      // As float32, all three would be the midpoint.
      const three = [neighbour(middle, -1), middle, neighbour(middle, 1)];
      const expected = [below, code % 2 === 0 ? below : top, top];
      const { values } = encoded(dtype, [...three, ...three.map((value) => -value)]);
      expect(values, `code ${code}`).toEqual([...expected, ...expected.map((value) => -value)]);
    }
  });

  it.each(HALVES)('rounds any number to the nearest %s', (dtype) => {
    fc.assert(
      fc.property(wideFloats, (value) => {
        const expected = nearestHalf(dtype, value);
        expect(encoded(dtype, [value])).toEqual({
          values: [expected],
          overflow: Number.isFinite(value) && Math.abs(expected) === INFINITY ? 0 : -1,
        });
      }),
      { numRuns: 5000 },
    );
  });

  // The largest finite value by IEEE 754 and the BFLOAT16 definition, and the half step above it.
  it.each<[EncodableDtype, number, number]>([
    ['F16', 65504, 65520],
    ['BF16', (2 - 2 ** -7) * 2 ** 127, (2 - 2 ** -8) * 2 ** 127],
    ['F32', (2 - 2 ** -23) * 2 ** 127, (2 - 2 ** -24) * 2 ** 127],
  ])('overflows at the end of %s', (dtype, largest, firstBeyond) => {
    const within = neighbour(firstBeyond, -1);
    expect(encoded(dtype, [within, -within])).toEqual({
      values: [largest, -largest],
      overflow: -1,
    });
    const beyond = [1, -firstBeyond, firstBeyond, -1e300, INFINITY];
    expect(encoded(dtype, beyond)).toEqual({
      values: [1, -INFINITY, INFINITY, -INFINITY, INFINITY],
      overflow: 1,
    });
    expect(encoded(dtype, beyond, { saturate: true })).toEqual({
      values: [1, -largest, largest, -largest, INFINITY],
      overflow: 1,
    });
  });

  it.each<EncodableDtype>(['F64', 'F32', 'F16', 'BF16'])(
    'keeps zeros, infinities and NaN in %s',
    (dtype) => {
      const special = [0, -0, INFINITY, -INFINITY, Number.NaN];
      expect(encoded(dtype, special)).toEqual({ values: special, overflow: -1 });
      expect(encoded(dtype, special, { saturate: true }).values).toEqual(special);
    },
  );

  it('rounds values below float16 to signed zeros', () => {
    const tiny = [2 ** -25, neighbour(2 ** -25, 1), Number.MIN_VALUE, -Number.MIN_VALUE, -1e-30];
    expect(encoded('F16', tiny).values).toEqual([0, 2 ** -24, 0, -0, -0]);
  });

  it('writes exact float64 and the nearest float32', () => {
    fc.assert(
      fc.property(wideFloats, (value) => {
        expect(encoded('F64', [value]).values).toEqual([value]);
        expect(encoded('F32', [value]).values).toEqual([Math.fround(value)]);
      }),
    );
  });

  it('writes at any position of memory, without touching other bytes', () => {
    const memory = new Uint8Array(12).fill(7);
    encode('F16', Float64Array.of(1, -2), memory.subarray(1));
    expect([...memory]).toEqual([7, 0x00, 0x3c, 0x00, 0xc0, 7, 7, 7, 7, 7, 7, 7]);
    encode('F32', Float64Array.of(1), memory.subarray(7));
    expect([...memory.subarray(5)]).toEqual([7, 7, 0, 0, 0x80, 0x3f, 7]);
  });

  it('refuses a target that is too short', () => {
    const call = () => encode('F32', Float64Array.of(1, 2), new Uint8Array(7));
    expect(call).toThrow(new RangeError('8 bytes into 7'));
  });
});

describe('cast', () => {
  it.each(HALVES)('rounds float32 to the nearest %s', (dtype) => {
    const floats = Float32Array.from(
      fc.sample(wideFloats, { numRuns: 20_000, seed: 1 }).concat(LADDERS[dtype]),
    );
    const { values, overflow } = castTo(dtype, 'F32', bytesOf(floats));
    const expected = Array.from(floats, (value) => nearestHalf(dtype, value));
    expect(values).toEqual(expected);
    const isOverflow = (value: number, i: number) =>
      Math.abs(value) === INFINITY && Number.isFinite(floats[i]);
    expect(overflow).toBe(expected.findIndex(isOverflow));
  });

  it.each(HALVES)('rounds the float32 midpoints of %s to even', (dtype) => {
    const middles = LADDERS[dtype].slice(1).map((above, i) => {
      const below = LADDERS[dtype][i] ?? 0;
      return below + (above - below) / 2;
    });
    const { values } = castTo(dtype, 'F32', bytesOf(Float32Array.from(middles)));
    const expected = middles.map((_, i) => LADDERS[dtype][i + (i % 2)]);
    expected[expected.length - 1] = INFINITY;
    expect(values).toEqual(expected);
  });

  it.each(HALVES)('reads every %s as float32 and back', (dtype) => {
    const floats = new Float32Array(65536);
    expect(convertDtype(dtype, 'F32', bytesOf(ALL_CODES), bytesOf(floats))).toBe(-1);
    expect(Float64Array.from(floats)).toEqual(valuesOf(dtype, bytesOf(ALL_CODES)));
    const { values } = castTo(dtype, 'F32', bytesOf(floats));
    expect(values).toEqual([...floats]);
  });

  it.each<[StoredDtype, EncodableDtype]>([
    ['F16', 'BF16'],
    ['BF16', 'F16'],
    ['F64', 'F32'],
    ['F64', 'BF16'],
    ['F8_E4M3', 'F16'],
    ['F6_E2M3', 'BF16'],
    ['F4', 'F32'],
    ['I16', 'F16'],
    ['U8', 'F64'],
  ])('converts %s to %s in blocks with the results of encode', (from, to) => {
    // The last block is partial.
    const bytes = Uint8Array.from(
      { length: (20_004 * STORED_DTYPES[from].bits) / 8 },
      (_, i) => (i * i * 31 + (i >> 5)) % 251,
    );
    for (const saturate of [false, true]) {
      const expected = encoded(to, [...valuesOf(from, bytes)], { saturate });
      expect(castTo(to, from, bytes, { saturate })).toEqual(expected);
    }
  });

  it('gives the index of the first overflow in many blocks', () => {
    const numbers = new Float64Array(100_000);
    numbers[70_000] = 1e39;
    numbers[90_000] = 1e39;
    expect(castTo('F32', 'F64', bytesOf(numbers)).overflow).toBe(70_000);
    expect(castTo('F16', 'F32', bytesOf(Float32Array.from(numbers))).overflow).toBe(-1);
  });

  it('saturates float32', () => {
    const floats = bytesOf(Float32Array.of(-65519.99, 65520, -1e30, -INFINITY));
    expect(castTo('F16', 'F32', floats, { saturate: true })).toEqual({
      values: [-65504, 65504, -65504, -INFINITY],
      overflow: 1,
    });
  });

  it('copies every bit between equal dtypes, including those of NaN', () => {
    const target = new Uint16Array(65536);
    expect(convertDtype('BF16', 'BF16', bytesOf(ALL_CODES), bytesOf(target))).toBe(-1);
    expect(target).toEqual(ALL_CODES);
  });

  it('reads and writes at any position of memory', () => {
    const memory = new Uint8Array(20);
    memory.set(bytesOf(Float32Array.of(1.5, -2)), 1);
    convertDtype('F32', 'BF16', memory.subarray(1, 9), memory.subarray(11));
    expect([...memory.subarray(11, 16)]).toEqual([0xc0, 0x3f, 0x00, 0xc0, 0]);
  });

  it('refuses values that it cannot write', () => {
    const call = (from: StoredDtype, bytes: number, target: number) => () =>
      convertDtype(from, 'F16', new Uint8Array(bytes), new Uint8Array(target));
    expect(call('C64', 8, 100)).toThrow(new RangeError('C64 as F16'));
    expect(call('F32', 6, 100)).toThrow(new RangeError('6 bytes of F32'));
    expect(call('F32', 8, 3)).toThrow(new RangeError('4 bytes into 3'));
  });
});
