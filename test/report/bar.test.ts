import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bar } from '../../src/report/kit/report.js';

it.each([
  [0, 4, ''],
  [1, 4, '████'],
  [0.5, 3, '█▌'],
  [1 / 32, 4, '▏'],
  [1 / 100, 4, ''],
  [7, 2, '██'],
  [-1, 2, ''],
  [Number.NaN, 2, ''],
])('bar(%d, %d)', (share, width, text) => expect(bar(share, width)).toBe(text));

it('a bar is never longer than its width and grows with its share', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1 }),
      fc.double({ min: 0, max: 1 }),
      fc.nat(60),
      (a, b, width) => {
        const [short, long] = [Math.min(a, b), Math.max(a, b)].map(
          (share) => bar(share, width).length,
        );
        expect(short).toBeLessThanOrEqual(long ?? 0);
        expect(long).toBeLessThanOrEqual(width);
      },
    ),
  );
});
