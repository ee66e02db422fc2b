/** Compares quantized rows with a reference that follows the definition. */
import { describe, expect, it } from 'vitest';
import { GROUP_SIZES, QUANTIZED_BITS } from '../../../src/base/tensor/dtype.js';
import {
  dequantizedRows,
  groupsIn,
  NotFiniteWeight,
  packCodes,
  quantizeRows,
  unpackCodes,
  type WeightForm,
} from '../../../src/base/tensor/group-quantization.js';
import { fillHashes } from '../../../src/base/tensor/random.js';

const FORMS = QUANTIZED_BITS.flatMap((bits) =>
  GROUP_SIZES.map((group): WeightForm => ({ bits, group })),
);

/** Values of many sizes, rows × columns. */
function valuesOf(rows: number, columns: number): Float32Array {
  const hashes = new Uint32Array(rows * columns);
  fillHashes(1, 0, hashes);
  return Float32Array.from(hashes, (hash, at) => (hash / 2 ** 31 - 1) * 2 ** (at % 7));
}

const halfToEven = (value: number): number => {
  const [low, high] = [Math.floor(value), Math.ceil(value)];
  if (value - low !== high - value) return Math.round(value);
  return low % 2 === 0 ? low : high;
};

/** One group by definition: from smallest to largest value, including 0, in 2^bits − 1 steps. */
function reference(group: readonly number[], bits: number) {
  const largest = 2 ** bits - 1;
  const [low, high] = [Math.min(0, ...group), Math.max(0, ...group)];
  let scale = low === high ? 1 : Math.fround(high / largest - low / largest);
  const exact = high / largest - low / largest;
  if (low !== high && scale < exact) {
    const words = new Uint32Array(Float32Array.of(scale).buffer);
    words[0] = (words[0] ?? 0) + 1;
    scale = new Float32Array(words.buffer)[0] ?? 0;
  }
  const zero = Math.min(largest, halfToEven(Math.abs(low) / scale));
  const codes = group.map((value) =>
    Math.min(largest, Math.max(0, halfToEven(value / scale) + zero)),
  );
  return { scale, zero, codes };
}

describe('quantized rows', () => {
  it.each(FORMS)(
    'have the nearest code for each value, with $bits bits in groups of $group',
    (form) => {
      for (const columns of [1, form.group - 1, form.group, 3 * form.group + 5]) {
        const values = valuesOf(3, columns);
        const quantized = quantizeRows(values, columns, form);
        const groups = groupsIn(columns, form);
        for (let row = 0; row < 3; row++) {
          for (let at = 0; at < groups; at++) {
            const start = row * columns + at * form.group;
            const length = Math.min(form.group, columns - at * form.group);
            const target = reference([...values.subarray(start, start + length)], form.bits);
            const place = row * groups + at;
            expect(quantized.scales[place]).toBe(target.scale);
            expect(quantized.zeroPoints[place]).toBe(target.zero);
            const codes = quantized.codes.subarray(place * form.group, (place + 1) * form.group);
            expect([...codes.subarray(0, length)]).toEqual(target.codes);
            expect([...codes.subarray(length)].every((code) => code === target.zero)).toBe(true);
          }
        }
      }
    },
  );

  it.each(['F32', 'F16', 'BF16'] as const)('have errors of at most half a scale in %s', (dtype) => {
    for (const form of FORMS) {
      const columns = 2 * form.group;
      const values = valuesOf(8, columns);
      const quantized = quantizeRows(values, columns, form, dtype);
      const back = dequantizedRows(quantized, form);
      for (const [at, value] of values.entries()) {
        const scale = quantized.scales[Math.floor(at / form.group)] ?? 0;
        expect(Math.abs(value - (back[at] ?? Number.NaN))).toBeLessThanOrEqual(
          (scale / 2) * (1 + 2 ** -40),
        );
      }
    }
  });

  it('keep zeros exactly, and rows of one value to float32 precision', () => {
    const form = { bits: 4, group: 16 } as const;
    const values = Float32Array.from(
      { length: 48 },
      (_, at) => [0, 0.3, -7][Math.floor(at / 16)] ?? 0,
    );
    const back = dequantizedRows(quantizeRows(values, 16, form), form);
    for (const [at, value] of values.entries())
      expect(Math.abs((back[at] ?? 1) - value)).toBeLessThan(1e-6);
    expect(back.slice(0, 16)).toEqual(new Float64Array(16));
  });

  it('are quantized to themselves, except for the last bit of a scale', () => {
    for (const form of FORMS) {
      const once = quantizeRows(valuesOf(4, 256), 256, form);
      const again = quantizeRows(Float32Array.from(dequantizedRows(once, form)), 256, form);
      expect(again.codes).toEqual(once.codes);
      expect(again.zeroPoints).toEqual(once.zeroPoints);
      for (const [at, scale] of again.scales.entries()) {
        expect(Math.abs(scale / (once.scales[at] ?? 0) - 1)).toBeLessThan(3e-7);
      }
    }
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'cannot have the value %s',
    (value) => {
      const values = Float32Array.of(1, 2, value, 4);
      const refused = () => quantizeRows(values, 4, { bits: 8, group: 16 });
      expect(refused).toThrow(NotFiniteWeight);
      expect(refused).toThrow('value 2');
    },
  );
});

describe('packed codes', () => {
  it('have the first of two codes in the low bits, and start each row with a new byte', () => {
    expect(packCodes(Uint8Array.of(1, 2, 3, 15, 14, 13), 3, 4)).toEqual(
      Uint8Array.of(0x21, 0x03, 0xef, 0x0d),
    );
    expect(packCodes(Uint8Array.of(1, 255), 2, 8)).toEqual(Uint8Array.of(1, 255));
  });

  it.each(QUANTIZED_BITS)('of %i bits can be unpacked from any position', (bits) => {
    const codes = Uint8Array.from({ length: 40 }, (_, at) => (at * 7) % 2 ** bits);
    const packed = packCodes(codes, 40, bits);
    expect(unpackCodes(packed, 3, 20, bits)).toEqual(codes.slice(3, 23));
  });
});
