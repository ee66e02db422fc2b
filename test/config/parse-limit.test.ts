import { describe, expect, it } from 'vitest';
import {
  lacksUnit,
  parseLimit,
  parseRounded,
  parseCount as parseWhole,
} from '../../src/config/parse-number.js';

const MAX = Number.MAX_SAFE_INTEGER;

const parseBytes = (text: string) => parseLimit(text, 'bytes');
const parseCount = (text: string) => parseLimit(text, 'count');

describe('parseLimit of bytes', () => {
  it.each([
    ['123', 123],
    ['0', 0],
    ['7 B', 7],
    ['24GB', 24_000_000_000],
    ['24G', 24_000_000_000],
    ['24Gi', 24 * 2 ** 30],
    ['512m', 512_000_000],
    ['24gb', 24_000_000_000],
    ['1.5 GB', 1_500_000_000],
    ['1.50 GB', 1_500_000_000],
    ['512MiB', 536_870_912],
    ['0.5KiB', 512],
    ['0.001kB', 1],
    [' 1_024 TiB ', 2 ** 50],
    ['9007199254740991', MAX],
    // A limit is rounded down to whole bytes.
    ['1.5', 1],
    ['0.0005kB', 0],
    ['0.3KiB', 307],
    ['43.6GiB', 46_815_143_526],
    // Exact beyond 2^53.
    ['9007199254740992', 2n ** 53n],
    ['10PB', 10n ** 16n],
  ])('reads %j', (text, bytes) => expect(parseBytes(text)).toBe(bytes));

  it.each([
    '',
    'GB',
    '24Gib/s',
    '24 gigabytes',
    '-1',
    '+1',
    '1,00',
    '1.',
    '.5GB',
    '1__0',
    '_1',
    '0x10',
    '1e',
    '1e999',
    '1  GB',
    '1\nGB',
    '１GB',
    '1toString',
    '1constructor',
    'NaN',
    'Infinity',
    '9'.repeat(10_000),
  ])('does not read %j', (text) => expect(parseBytes(text)).toBeUndefined());
});

describe('a small number without a unit', () => {
  it.each([
    ['30', 'bytes'],
    ['30.5', 'bytes'],
    [' 512 ', 'bytes'],
    ['999_999', 'bytes'],
    ['3e3', 'bytes'],
    ['900', 'bytes/s'],
    ['165', 'FLOP/s'],
  ] as const)('includes %j as %s', (text, unit) => expect(lacksUnit(text, unit)).toBe(true));

  it.each([
    ['30B', 'bytes'],
    ['30G', 'bytes'],
    ['0', 'bytes'],
    ['1000000', 'bytes'],
    ['2e9', 'bytes'],
    ['319258624', 'bytes'],
    ['lots', 'bytes'],
    ['900GB/s', 'bytes/s'],
    ['165e12', 'FLOP/s'],
  ] as const)('does not include %j as %s', (text, unit) =>
    expect(lacksUnit(text, unit)).toBe(false),
  );
});

describe('parseLimit of a rate', () => {
  it.each([
    ['1.008TB/s', 1_008_000_000_000],
    ['936 GB/s', 936_000_000_000],
    ['2GiB/s', 2 ** 31],
    ['5e9', 5_000_000_000],
  ])('reads %j in bytes per second', (text, value) =>
    expect(parseLimit(text, 'bytes/s')).toBe(value),
  );

  it.each([
    ['165.2TFLOP/s', 165_200_000_000_000],
    ['165.2 TFLOPS', 165_200_000_000_000],
    ['1.9789 PFLOP/s', 1_978_900_000_000_000],
    ['650 TOPS', 650_000_000_000_000],
  ])('reads %j in operations per second', (text, value) =>
    expect(parseLimit(text, 'FLOP/s')).toBe(value),
  );

  it.each([
    ['24GB', 'bytes/s'],
    ['24GB/s', 'bytes'],
    ['24GB/s', 'FLOP/s'],
    ['24TFLOP', 'FLOP/s'],
    ['1/s', 'bytes/s'],
    ['-1GB/s', 'bytes/s'],
  ] as const)('does not read %j as %s', (text, unit) =>
    expect(parseLimit(text, unit)).toBeUndefined(),
  );
});

describe('parseLimit of a count', () => {
  it.each([
    ['26M', 26_000_000],
    ['13.4B', 13_400_000_000],
    ['13.4b', 13_400_000_000],
    ['1e9', 1_000_000_000],
    ['1.5E+3', 1500],
    ['7_000', 7000],
    ['2k', 2000],
    ['0.0000000011T', 1100],
    // In floating point, each of these is a fraction.
    ['4.35K', 4350],
    ['1.005K', 1005],
    ['64.1M', 64_100_000],
    ['0.0000011M', 1],
    ['1MB', undefined],
    ['1e-3', undefined],
    ['1.2345K', 1234],
    ['9007199.254740991B', MAX],
    ['9007199.254740992B', 2n ** 53n],
    ['20000T', 2n * 10n ** 16n],
  ])('reads %j as %s', (text, count) => expect(parseCount(text)).toBe(count));
});

describe('parseRounded', () => {
  it.each([
    ['22143967232', 22_143_967_232n, 0n],
    ['22,143,967,232', 22_143_967_232n, 0n],
    ['13.8B', 13_800_000_000n, 50_000_000n],
    ['7B', 7_000_000_000n, 500_000_000n],
    ['850.0T', 850_000_000_000_000n, 50_000_000_000n],
    ['0.275200M', 275_200n, 0n],
  ])('reads %s as %d ± %d', (text, value, tolerance) =>
    expect(parseRounded(text)).toEqual({ value, tolerance }),
  );

  it.each(['', 'B', '7Q', '1.5', '1,00', '1,0000', ',100', '-7B', '7 B B'])('refuses %j', (text) =>
    expect(parseRounded(text)).toBeUndefined(),
  );
});

describe('parseCount', () => {
  it.each([
    ['128', 128, 128],
    ['32_768', 32_768, 32_768],
    ['32,768', 32_768, 32_768],
    ['1e4', 10_000, 10_000],
    ['1.5k', 1500, 1536],
    ['32k', 32_000, 32_768],
    ['128K', 128_000, 131_072],
    ['0', 0, 0],
    ['1.5', undefined, undefined],
    ['024', undefined, undefined],
    ['1,00', undefined, undefined],
    ['-1', undefined, undefined],
    ['32kB', undefined, undefined],
  ])('reads %j as %j, and as %j tokens', (text, count, tokens) => {
    expect([parseWhole(text), parseWhole(text, 'tokens')]).toEqual([count, tokens]);
  });
});
