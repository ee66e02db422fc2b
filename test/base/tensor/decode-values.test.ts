import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeValues,
  numbersIn,
  numbersPerElement,
} from '../../../src/base/tensor/decode-values.js';
import type { StoredDtype } from '../../../src/base/tensor/dtype.js';

/** The numbers in some bytes. */
function numbers(dtype: StoredDtype, bytes: ArrayLike<number> | ArrayBuffer): number[] {
  const source = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : Uint8Array.from(bytes);
  const target = new Float64Array(numbersIn(dtype, source.length) + 1).fill(1234.5);
  const count = decodeValues(dtype, source, target);
  // Values after the result are not written.
  expect(target[count]).toBe(1234.5);
  return [...target.subarray(0, count)];
}

/** Value of a code of at most 8 bits, with zeros for the other elements of its bytes. */
const ofCode = (dtype: StoredDtype, code: number) =>
  numbers(dtype, dtype.startsWith('F6') ? [code, 0, 0] : [code])[0];

const float32 = (bits: number) => new Float32Array(Uint32Array.of(bits).buffer)[0] ?? 0;

describe('decode', () => {
  it('decodes every binary16', () => {
    // The fraction and exponent of a float32 whose exponent is too small by the difference of the biases.
    const expected = Array.from({ length: 65536 }, (_, bits) => {
      const size = float32((bits & 0x7fff) << 13) * 2 ** (127 - 15);
      const finite = (bits & 0x7c00) === 0x7c00 ? ((bits & 0x3ff) === 0 ? 1 / 0 : 0 / 0) : size;
      return bits >>> 15 ? -finite : finite;
    });
    const codes = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
    expect(numbers('F16', codes.buffer)).toEqual(expected);
    // Examples of the standard: one, the largest, the smallest normal and the smallest subnormal.
    const examples = Uint16Array.of(0x3c00, 0x7bff, 0x0400, 0x0001, 0x8000);
    expect(numbers('F16', examples.buffer)).toEqual([1, 65504, 2 ** -14, 2 ** -24, -0]);
  });

  it('decodes every bfloat16', () => {
    const codes = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
    const expected = Array.from(codes, (bits) => float32(bits << 16));
    expect(numbers('BF16', codes.buffer)).toEqual(expected);
  });

  // Tables 1 and 2 of OFP8, table 2 of arXiv:2206.02915, section 5.3 and 5.4 of MX.
  it.each<[StoredDtype, [number, number][]]>([
    [
      'F8_E4M3',
      [
        [0x00, 0],
        [0x80, -0],
        [0x01, 2 ** -9],
        [0x07, 0.875 * 2 ** -6],
        [0x08, 2 ** -6],
        [0x38, 1],
        [0x78, 256],
        [0x7e, 448],
        [0xfe, -448],
        [0x7f, Number.NaN],
        [0xff, Number.NaN],
      ],
    ],
    [
      'F8_E5M2',
      [
        [0x01, 2 ** -16],
        [0x03, 0.75 * 2 ** -14],
        [0x04, 2 ** -14],
        [0x80, -0],
        [0x7b, 57344],
        [0x7c, Number.POSITIVE_INFINITY],
        [0xfc, Number.NEGATIVE_INFINITY],
        [0x7d, Number.NaN],
        [0x7e, Number.NaN],
        [0xff, Number.NaN],
      ],
    ],
    [
      'F8_E4M3FNUZ',
      [
        [0x00, 0],
        [0x80, Number.NaN],
        [0x01, 2 ** -10],
        [0x08, 2 ** -7],
        [0x40, 1],
        [0x7f, 240],
        [0xff, -240],
      ],
    ],
    [
      'F8_E5M2FNUZ',
      [
        [0x00, 0],
        [0x80, Number.NaN],
        [0x01, 2 ** -17],
        [0x04, 2 ** -15],
        [0x40, 1],
        [0x7f, 57344],
        [0xff, -57344],
      ],
    ],
    [
      'F8_E8M0',
      [
        [0x00, 2 ** -127],
        [0x7f, 1],
        [0x80, 2],
        [0xfe, 2 ** 127],
        [0xff, Number.NaN],
      ],
    ],
    [
      'F6_E2M3',
      [
        [0x00, 0],
        [0x01, 0.125],
        [0x07, 0.875],
        [0x08, 1],
        [0x1f, 7.5],
        [0x3f, -7.5],
      ],
    ],
    [
      'F6_E3M2',
      [
        [0x00, 0],
        [0x01, 0.0625],
        [0x03, 0.1875],
        [0x04, 0.25],
        [0x1f, 28],
        [0x20, -0],
        [0x3f, -28],
      ],
    ],
    [
      'F4',
      [
        [0x1, 0.5],
        [0x2, 1],
        [0x3, 1.5],
        [0x4, 2],
        [0x5, 3],
        [0x6, 4],
        [0x7, 6],
        [0x8, -0],
        [0xf, -6],
      ],
    ],
  ])('decodes %s according to its standard', (dtype, codes) => {
    expect(codes.map(([code]) => ofCode(dtype, code))).toEqual(codes.map(([, value]) => value));
  });

  it('gives no infinity where the standard has none', () => {
    const codes = Array.from({ length: 256 }, (_, code) => code);
    for (const dtype of ['F8_E4M3', 'F8_E4M3FNUZ', 'F8_E5M2FNUZ', 'F8_E8M0'] as const) {
      const values = numbers(dtype, codes);
      expect(values.filter((value) => Math.abs(value) === 1 / 0)).toEqual([]);
      expect(values.filter(Number.isNaN)).toHaveLength(dtype === 'F8_E4M3' ? 2 : 1);
    }
  });

  it('unpacks low bits first', () => {
    expect(numbers('F4', [0x21, 0x43])).toEqual([0.5, 1, 1.5, 2]);
    // Codes 1, 2, 3 and 63 as the 24 bits 111111 000011 000010 000001.
    const group = 1 | (2 << 6) | (3 << 12) | (63 << 18);
    const bytes = [group & 255, (group >> 8) & 255, group >> 16];
    expect(numbers('F6_E2M3', [...bytes, 8, 0, 0])).toEqual([0.125, 0.25, 0.375, -7.5, 1, 0, 0, 0]);
  });

  it('decodes integers and booleans', () => {
    expect(numbers('BOOL', [0, 1, 2, 255])).toEqual([0, 1, 1, 1]);
    expect(numbers('U8', [0, 255])).toEqual([0, 255]);
    expect(numbers('I8', [0x7f, 0x80])).toEqual([127, -128]);
    expect(numbers('U16', [0x01, 0xff])).toEqual([0xff01]);
    expect(numbers('I16', [0x01, 0xff])).toEqual([0xff01 - 0x10000]);
    expect(numbers('U32', [4, 3, 2, 0xff])).toEqual([0xff020304]);
    expect(numbers('I32', [4, 3, 2, 0xff])).toEqual([0xff020304 - 2 ** 32]);
  });

  it('rounds 64-bit integers to the nearest float64', () => {
    fc.assert(
      fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (value) => {
        expect(numbers('I64', BigInt64Array.of(value).buffer)).toEqual([Number(value)]);
        expect(numbers('U64', BigInt64Array.of(value).buffer)).toEqual([
          Number(BigInt.asUintN(64, value)),
        ]);
      }),
    );
  });

  it('decodes float32, float64 and complex numbers as pairs', () => {
    const values = [1.5, -0, Number.NEGATIVE_INFINITY, Number.NaN];
    expect(numbers('F32', Float32Array.from(values).buffer)).toEqual(values);
    expect(numbers('F64', Float64Array.of(...values, 0.1).buffer)).toEqual([...values, 0.1]);
    expect(numbers('C64', Float32Array.from(values).buffer)).toEqual(values);
    expect(numbers('C128', Float64Array.of(0.1, 0.2).buffer)).toEqual([0.1, 0.2]);
    expect([numbersPerElement('C64'), numbersPerElement('C128')]).toEqual([2, 2]);
    expect(numbersPerElement('F32')).toBe(1);
  });

  it('reads unaligned bytes', () => {
    const bytes = Buffer.alloc(25);
    bytes.writeDoubleLE(0.1, 1);
    bytes.writeDoubleLE(-0.2, 9);
    bytes.writeDoubleLE(0.3, 17);
    const target = new Float64Array(3);
    expect(decodeValues('F64', bytes.subarray(1), target)).toBe(3);
    expect([...target]).toEqual([0.1, -0.2, 0.3]);
  });

  it.each<[StoredDtype, number]>([
    ['F32', 6],
    ['C64', 12],
    ['F6_E3M2', 4],
    ['I64', 7],
  ])('refuses a part of an element of %s', (dtype, bytes) => {
    const call = () => decodeValues(dtype, new Uint8Array(bytes), new Float64Array(100));
    expect(call).toThrow(new RangeError(`${bytes} bytes of ${dtype}`));
  });

  it('refuses a target that is too short', () => {
    const call = () => decodeValues('F4', new Uint8Array(2), new Float64Array(3));
    expect(call).toThrow(new RangeError('4 numbers into 3'));
  });
});
