import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Distribution,
  MersenneTwister,
  SeededFill,
} from '../../../src/base/random/distributions.js';
import { manualSeed } from '../../../src/base/random/index.js';

const draw = (twister: MersenneTwister) => {
  const word = new Int32Array(1);
  twister.fill(word);
  return (word[0] ?? 0) >>> 0;
};

describe('the Mersenne Twister', () => {
  it('gives the numbers of the C++ standard', () => {
    // [rand.predef]: the 10000th invocation of a default-constructed mt19937 gives 4123659995.
    const twister = new MersenneTwister(5489);
    twister.fill(new Int32Array(9999));
    expect(draw(twister)).toBe(4123659995);
    twister.seek(9999);
    expect(draw(twister)).toBe(4123659995);
    expect(twister.position).toBe(10000);
  });

  it('gives the same draws in pieces of any size', () => {
    const whole = new Int32Array(2000);
    new MersenneTwister(8).fill(whole);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(1900), fc.nat(100)), { maxLength: 8 }), (pieces) => {
        const twister = new MersenneTwister(8);
        for (const [position, count] of pieces) {
          const target = new Int32Array(count);
          twister.seek(position);
          twister.fill(target);
          expect([...target]).toEqual([...whole.subarray(position, position + count)]);
        }
      }),
    );
  });
});

const DISTRIBUTIONS: readonly Distribution[] = [
  { kind: 'uniform', low: -0.3, high: 0.5 },
  { kind: 'normal', mean: 0.1, deviation: 0.02 },
];

function whole(seed: number, count: number, distribution: Distribution): Float32Array {
  const generator = manualSeed(seed);
  const target = new Float32Array(count);
  return distribution.kind === 'uniform'
    ? generator.uniform(target, distribution.low, distribution.high)
    : generator.normal(target, distribution.mean, distribution.deviation);
}

describe.each(DISTRIBUTIONS)('a fill in parts, $kind', (distribution) => {
  it('has the values of the whole, in any order', () => {
    const part = fc.tuple(fc.nat(1000), fc.nat(1000));
    const count = fc.oneof(fc.nat(40), fc.integer({ min: 600, max: 700 }));
    fc.assert(
      fc.property(fc.nat(), count, fc.array(part, { maxLength: 6 }), (seed, count, parts) => {
        const expected = whole(seed, count, distribution);
        const fill = new SeededFill(seed, count, distribution);
        for (const [a, b] of parts) {
          const [first, end] = [a % (count + 1), b % (count + 1)].sort((x, y) => x - y) as [
            number,
            number,
          ];
          const target = new Float32Array(end - first);
          fill.read(first, target);
          expect([...target]).toEqual([...expected.subarray(first, end)]);
        }
      }),
    );
  });

  it('cannot be read beyond the tensor', () => {
    const fill = new SeededFill(1, 20, distribution);
    expect(() => fill.read(15, new Float32Array(6))).toThrow(RangeError);
    expect(() => fill.read(-1, new Float32Array(1))).toThrow(RangeError);
  });
});
