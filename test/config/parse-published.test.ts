import { describe, expect, it } from 'vitest';
import { parsePublished } from '../../src/config/parse-published.js';

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
    ['2.7x faster', { unit: 'ratio', value: 2.7, tolerance: expect.closeTo(0.05, 12) }],
    ['57倍压缩', { unit: 'ratio', value: 57, tolerance: 0.5 }],
    ['(4.3x)', { unit: 'ratio', value: 4.3, tolerance: expect.closeTo(0.05, 12) }],
    [
      '16.8MB (fp16)',
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
    ['57倍', { unit: 'ratio', value: 57, tolerance: 0.5 }],
    ['16:1', { unit: 'ratio', value: 16, tolerance: 0.5 }],
    ['6.25 : 1', { unit: 'ratio', value: 6.25, tolerance: 0.005 }],
    ['3-5x', { unit: 'ratio', value: 3, tolerance: 0.5, above: 2.5 }],
    ['约 10M', { value: 10_000_000n, tolerance: 500_000n, above: 1_000_000n }],
    ['1M–10M', { value: 1_000_000n, tolerance: 500_000n, above: 9_500_000n }],
    ['1-10M', { value: 1_000_000n, tolerance: 500_000n, above: 9_500_000n }],
    ['26M parameters', { value: 26_000_000n, tolerance: 500_000n }],
    ['1.04亿', { value: 104_000_000n, tolerance: 500_000n }],
    ['640万参数', { value: 6_400_000n, tolerance: 5000n }],
    ['+96M', { unit: 'change', value: 96_000_000n, tolerance: 500_000n }],
    ['-2.3M', { unit: 'change', value: -2_300_000n, tolerance: 50_000n }],
    ['−2.3M', { unit: 'change', value: -2_300_000n, tolerance: 50_000n }],
    [
      '30.7 GFLOPs',
      { unit: 'flops', value: 30_700_000_000n, tolerance: 50_000_000n, isMacs: false },
    ],
    ['15.4GMACs', { unit: 'flops', value: 30_800_000_000n, tolerance: 100_000_000n, isMacs: true }],
  ])('reads %j', (text, expected) => expect(parsePublished(text)).toEqual(expected));

  it('reads a percentage as a share', () => {
    const share = parsePublished('96.9%');
    expect(share).toMatchObject({ unit: 'share', value: expect.closeTo(0.969, 12) });
    expect(share?.tolerance).toBeCloseTo(0.0005, 12);
  });

  it.each([
    ['25%~50%', 0.25, 0.255],
    ['50-70%', 0.5, 0.205],
    ['50–70％', 0.5, 0.205],
  ])('reads %j from its lower end to its upper end', (text, value, above) =>
    expect(parsePublished(text)).toMatchObject({
      unit: 'share',
      value: expect.closeTo(value, 12),
      above: expect.closeTo(above, 12),
    }),
  );

  it.each([
    '',
    '~',
    'x',
    '%',
    'many',
    '7 apples',
    '1.2.3x',
    '-57x',
    '5BB',
    '5-3x',
    '3x-5MB',
    '4:0',
    '1e-4',
  ])('does not read %j', (text) => expect(parsePublished(text)).toBeUndefined());
});
