import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  countUnit,
  formatBinaryBytes,
  formatBytes,
  formatChange,
  formatCount,
  formatFlops,
  formatInteger,
  formatShare,
} from '../../../src/base/text/units.js';
import { parseLimit } from '../../../src/config/parse-number.js';

const MAX = Number.MAX_SAFE_INTEGER;

const parseBytes = (text: string) => parseLimit(text, 'bytes');
const parseCount = (text: string) => parseLimit(text, 'count');

describe('formatInteger', () => {
  it.each([
    [0, '0'],
    [-0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [-123456, '−123,456'],
    [22_143_967_232, '22,143,967,232'],
    [MAX, '9,007,199,254,740,991'],
    [10n ** 21n, '1,000,000,000,000,000,000,000'],
  ])('%s', (value, text) => expect(formatInteger(value)).toBe(text));

  it('refuses fractions', () => expect(() => formatInteger(1.5)).toThrow(RangeError));
});

describe('formatCount', () => {
  it.each([
    [22_143_967_232, '22.144B'],
    [13_822_468_096, '13.822B'],
    [13_562_945_536, '13.563B'],
    [13_558_489_088, '13.558B'],
    [13_554_032_640, '13.554B'],
    [13_352_181_760, '13.352B'],
    [8_912_896, '0.009B'],
    [4_456_448, '0.004B'],
    [4_718_592, '0.005B'],
    [0, '0.000B'],
    [-400_000, '0.000B'],
    [-8_321_499_136, '−8.321B'],
  ])('%s in billions', (value, text) => expect(formatCount(value, 'B')).toBe(text));

  it.each([
    [999, '999'],
    [1_000, '1.000K'],
    [25_829_888, '25.830M'],
    [-25_829_888, '−25.830M'],
    [1_500_000_000_000n, '1,500.000B'],
  ])('%s in the largest fitting unit', (value, text) => expect(formatCount(value)).toBe(text));

  it.each([
    // The double 1.0005 is below the midpoint; the integer 1000500 is the midpoint.
    [1_000_500, '1.001M'],
    [1_000_499, '1.000M'],
    [-1_000_500, '−1.001M'],
    [2_000_500, '2.001M'],
    [MAX, '9,007,199.255B'],
    [9_007_199_254_500_000, '9,007,199.255B'],
    [9_007_199_254_499_999, '9,007,199.254B'],
  ])('%s: rounds halves away from zero, to the last digit', (value, text) =>
    expect(formatCount(value)).toBe(text),
  );
});

describe('countUnit', () => {
  it.each([
    [1_000_000_000, 'B'],
    [999_999_999, 'M'],
    [1_000_000, 'M'],
    [999_999, 'K'],
    [1_000, 'K'],
    [999, ''],
    [0, ''],
    [Number.NEGATIVE_INFINITY, ''],
    [10n ** 30n, 'B'],
  ])('%s', (largest, unit) => expect(countUnit(largest)).toBe(unit));
});

describe('formatShare', () => {
  it.each([
    [8_589_934_592, 22_143_967_232, '38.8%'],
    [268_435_456, 13_822_468_096, '1.94%'],
    [8_791_785_472, 22_143_967_232, '39.7%'],
    [-8_791_785_472, 22_143_967_232, '−39.7%'],
    [3, 2, '150.0%'],
    [1, 2000, '0.050%'],
    [-1, 10_000, '−0.010%'],
    [MAX, MAX, '100.0%'],
    [0, 0, '–'],
    [5n, 0, '–'],
  ])('%s of %s', (part, whole, text) => expect(formatShare(part, whole)).toBe(text));
});

describe('formatChange', () => {
  it.each([
    [13_352_042_496, 22_143_967_232, '−39.7%'],
    [22_143_967_232, 13_352_042_496, '+65.8%'],
    [7, 7, ''],
    [1_000_001, 1_000_000, '<+0.1%'],
    [999_999, 1_000_000, '<−0.1%'],
    [999, 100, '+899.0%'],
    [1000, 100, '×10.0'],
    [10, 100, '÷10.0'],
    [11, 100, '−89.0%'],
    [0, 100, '−100.0%'],
    [100, 0, ''],
    [0, 0, ''],
    [10n ** 30n, 10n ** 30n - 1n, '<+0.1%'],
    [MAX, 1, '×9,007,199,254,740,991.0'],
  ])('%s after %s', (value, base, text) => expect(formatChange(value, base)).toBe(text));
});

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 kB'],
    [319_300_000, '319.3 MB'],
    [44_287_934_464, '44.3 GB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [999_950_000_000, '1.0 TB'],
    [-44_287_934_464, '−44.3 GB'],
    [MAX, '9.0 PB'],
    [10n ** 22n, '10,000.0 EB'],
  ])('%s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

  it.each([
    [1023, '1,023 B'],
    [1024, '1.0 KiB'],
    [24 * 2 ** 30, '24.0 GiB'],
    [2 ** 20 - 1, '1.0 MiB'],
    [1_047_500, '1,022.9 KiB'],
  ])('%s in binary units', (bytes, text) => expect(formatBinaryBytes(bytes)).toBe(text));
});

describe('formatFlops', () => {
  it.each([
    [12, '12 FLOPs'],
    [26_400_000_000, '26.4 GFLOPs'],
    [6n * 10n ** 22n, '60.0 ZFLOPs'],
  ])('%s', (flops, text) => expect(formatFlops(flops)).toBe(text));
});

describe('written values can be read back', () => {
  const integers = fc.maxSafeNat();

  it('exactly, for plain numbers', () => {
    fc.assert(
      fc.property(integers, (value) => {
        expect(parseBytes(String(value))).toBe(value);
        expect(parseCount(formatInteger(value).replaceAll(',', '_'))).toBe(value);
      }),
    );
  });

  it('to half of the last digit, for rounded numbers', () => {
    const near = (text: string, value: number, halfDigit: number, parse: typeof parseBytes) => {
      const read = parse(text.replaceAll(',', ''));
      expect(read).toBeDefined();
      const away = BigInt(read ?? 0) - BigInt(value);
      expect(Math.abs(Number(away))).toBeLessThanOrEqual(halfDigit);
    };
    fc.assert(
      fc.property(integers, fc.nat(50), (large, shift) => {
        const value = Math.floor(large / 2 ** shift);
        const power = Math.max(3, 3 * Math.floor(Math.log10(value * 1.0001) / 3));
        near(formatBytes(value), value, 10 ** power / 20, parseBytes);
        near(formatCount(value), value, value < 1e6 ? 0.5 : value < 1e9 ? 500 : 5e5, parseCount);
      }),
    );
  });

  it('exactly, for any decimal', () => {
    fc.assert(
      fc.property(fc.nat(999_999), fc.nat(999), (whole, thousandths) => {
        const text = `${whole}.${String(thousandths).padStart(3, '0')}B`;
        expect(parseCount(text)).toBe(whole * 1e9 + thousandths * 1e6);
        expect(formatCount(whole * 1e9 + thousandths * 1e6, 'B').replaceAll(',', '')).toBe(text);
      }),
    );
  });

  it('without errors or fractions, for any text', () => {
    const alphabet = fc.constantFrom(...'0123456789._eE+-KMGTBib \n');
    fc.assert(
      fc.property(fc.string({ unit: alphabet }), (text) => {
        for (const value of [parseBytes(text), parseCount(text)]) {
          // A number where it can be exact, a bigint only where it cannot.
          if (typeof value === 'bigint') expect(value).toBeGreaterThan(BigInt(MAX));
          else
            expect(value === undefined || (Number.isSafeInteger(value) && value >= 0)).toBe(true);
        }
      }),
    );
  });
});
