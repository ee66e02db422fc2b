import { describe, expect, it } from 'vitest';
import { parsePublished } from '../../src/config/parse-number.js';

describe('parsePublished', () => {
  it.each([
    ['13.8B', { value: 13_800_000_000n, tolerance: 50_000_000n }],
    ['22,143,967,232', { value: 22_143_967_232n, tolerance: 0n }],
    // The number may be truncated instead of rounded: up to a whole unit of the last digit.
    ['~1M', { value: 1_000_000n, tolerance: 500_000n, above: 1_000_000n }],
    ['≈ 25M', { value: 25_000_000n, tolerance: 1_250_000n, above: 1_250_000n }],
    ['about 100M', { value: 100_000_000n, tolerance: 5_000_000n, above: 5_000_000n }],
    [
      '536MB',
      {
        unit: 'bytes',
        value: 536_000_000n,
        tolerance: 500_000n,
        above: 1_000_000n,
        power: 2,
        isBinary: false,
      },
    ],
    [
      '512 MiB',
      {
        unit: 'bytes',
        value: 2n ** 29n,
        tolerance: 2n ** 19n,
        above: 2n ** 20n,
        power: 2,
        isBinary: true,
      },
    ],
    [
      '16.8 MB fp16',
      {
        unit: 'bytes',
        value: 16_800_000n,
        tolerance: 50_000n,
        above: 100_000n,
        power: 2,
        isBinary: false,
        type: 'fp16',
      },
    ],
    [
      '4096 bytes',
      { unit: 'bytes', value: 4096n, tolerance: 0n, above: 0n, power: 0, isBinary: false },
    ],
    ['57x', { unit: 'ratio', value: 57, tolerance: 0.5 }],
    ['0.603 ×', { unit: 'ratio', value: 0.603, tolerance: 0.0005 }],
  ])('reads %j', (text, expected) => expect(parsePublished(text)).toEqual(expected));

  it('reads a percentage as a share', () => {
    const share = parsePublished('96.9%');
    expect(share).toMatchObject({ unit: 'share', value: expect.closeTo(0.969, 12) });
    expect(share?.tolerance).toBeCloseTo(0.0005, 12);
  });

  it.each(['', '~', 'x', '%', 'many', '7 apples', '1.2.3x', '-57x', '5BB'])(
    'does not read %j',
    (text) => expect(parsePublished(text)).toBeUndefined(),
  );
});
