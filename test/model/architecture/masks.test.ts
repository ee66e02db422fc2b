import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Window } from '../../../src/model/architecture/layer.js';
import {
  firstVisibleKey,
  scoreValues,
  visiblePairs,
} from '../../../src/model/architecture/masks.js';

const local = (tokens: number | undefined): Window | undefined =>
  tokens === undefined ? undefined : { rule: 'local', tokens };
const sliding = (tokens: number): Window => ({ rule: 'sliding', tokens });

describe('firstVisibleKey', () => {
  it('reaches back the length of a sliding window, own position included, at every length', () => {
    expect(firstVisibleKey(9, 10, sliding(4))).toBe(6);
    expect(firstVisibleKey(2, 10, sliding(4))).toBe(0);
    expect(firstVisibleKey(4999, 5000, sliding(100))).toBe(4900);
    expect(firstVisibleKey(9, 10, sliding(1))).toBe(9);
  });

  it.each([
    // [position, context, window, first key]
    [9, 10, undefined, 0],
    [9, 10, 4, 7], // slides: 9 − ⌊4 / 2⌋
    [1, 10, 4, 0],
    [9, 10, 5, 7], // an odd window is halved downwards
    [9, 10, 10, 0], // window = context: no window
    [9, 10, 12, 0],
    [2047, 2048, 100, 1997],
    [2047, 2049, 100, 1950], // block 2000…2099, minus 50
    [2048, 2049, 4000, 48], // blocks of 1024 at most: 2048 − 2000
  ])('at position %d of %d with window %s is %d', (position, context, window, first) => {
    expect(firstVisibleKey(position, context, local(window))).toBe(first);
  });
});

describe('scoreValues', () => {
  /** Sum over blocks: the queries of a block times its keys, from the first visible one to the end of the block. */
  const counted = (context: number, window: number) => {
    const block = Math.min(window, 1024);
    let values = 0;
    for (let start = 0; start < context; start += block) {
      const end = Math.min(start + block, context);
      values += (end - start) * (end - Math.max(0, start - Math.floor(window / 2)));
    }
    return BigInt(values);
  };

  it('is the square up to 2048 tokens, and without a window', () => {
    expect(scoreValues(2048, local(100))).toBe(2048n ** 2n);
    expect(scoreValues(5000, undefined)).toBe(5000n ** 2n);
  });

  it('is the sum over blocks for longer contexts with a window', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2049, max: 9000 }),
        fc.integer({ min: 1, max: 12_000 }),
        (t, w) => {
          expect(scoreValues(t, local(w))).toBe(counted(t, w));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('visiblePairs', () => {
  const counted = (context: number, window: Window | undefined) => {
    let pairs = 0;
    for (let position = 0; position < context; position++) {
      pairs += position - firstVisibleKey(position, context, window) + 1;
    }
    return BigInt(pairs);
  };

  it('counts the same pairs as a loop over positions', () => {
    const contexts = fc.oneof(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 2040, max: 5000 }),
    );
    const windows = fc.option(
      fc.record<Window>({
        rule: fc.constantFrom('local', 'sliding'),
        tokens: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 900, max: 6000 })),
      }),
      { nil: undefined },
    );
    fc.assert(
      fc.property(contexts, windows, (context, window) => {
        expect(visiblePairs(context, window)).toBe(counted(context, window));
      }),
      { numRuns: 300 },
    );
  });

  it('computes contexts of 2^40 tokens without a loop', () => {
    expect(visiblePairs(2 ** 50, undefined)).toBe((2n ** 50n * (2n ** 50n + 1n)) / 2n);
    expect(visiblePairs(2 ** 40, local(1024))).toBeGreaterThan(2n ** 49n);
  });
});
