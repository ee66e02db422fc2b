import { describe, expect, it } from 'vitest';
import {
  decayRates,
  type ScanInput,
  type ScanSizes,
  selectiveScan,
} from '../../../../src/engine/tfjs/layers/selective-scan.js';
import { largestDifference } from '../support.js';

/** A reproducible input with steps up to `longest`. */
function example(sizes: ScanSizes, longest = 0.1): ScanInput & { stateLog: Float32Array } {
  const { batch, tokens, inner, state } = sizes;
  let seed = 1;
  const values = (length: number, low: number, high: number) =>
    Float32Array.from({ length }, () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return low + (high - low) * (seed / 2_147_483_647);
    });
  const stateLog = values(inner * state, -3, 4);
  return {
    sizes,
    step: values(batch * tokens * inner, 0, longest),
    x: values(batch * tokens * inner, -1, 1),
    b: values(batch * tokens * state, -1, 1),
    c: values(batch * tokens * state, -1, 1),
    state: values(batch * inner * state, -1, 1),
    rates: decayRates(stateLog),
    stateLog,
  };
}

/** The scan by definition, in float64. */
function naively({ sizes, step, x, b, c, state, stateLog }: ReturnType<typeof example>) {
  const { batch, tokens, inner, state: size } = sizes;
  const h = Float64Array.from(state);
  const y = new Float64Array(batch * tokens * inner);
  const at = (values: ArrayLike<number>, index: number) => values[index] ?? 0;
  for (let place = 0; place < y.length; place++) {
    const [token, channel] = [Math.floor(place / inner), place % inner];
    const row = (Math.floor(token / tokens) * inner + channel) * size;
    for (let n = 0; n < size; n++) {
      const decay = Math.exp(-Math.exp(at(stateLog, channel * size + n)) * at(step, place));
      const added = at(step, place) * at(x, place) * at(b, token * size + n);
      h[row + n] = at(h, row + n) * decay + added;
      y[place] = at(y, place) + at(h, row + n) * at(c, token * size + n);
    }
  }
  return { y, h };
}

describe('selectiveScan', () => {
  it.each([
    ['two sequences', { batch: 2, tokens: 50, inner: 10, state: 64 }, 0.1],
    ['large steps that erase the state', { batch: 1, tokens: 50, inner: 10, state: 64 }, 40],
    [
      'a number of states that is not a multiple of the lanes',
      { batch: 2, tokens: 9, inner: 3, state: 7 },
      1,
    ],
    ['one token', { batch: 1, tokens: 1, inner: 5, state: 16 }, 1],
    [
      'more tokens than it processes at a time',
      { batch: 1, tokens: 6000, inner: 256, state: 4 },
      0.1,
    ],
  ])('matches the definition for %s', (_, sizes, longest) => {
    const input = example(sizes, longest);
    const { y, h } = naively(input);
    const output = selectiveScan(input);
    expect(largestDifference(output, y)).toBeLessThan(1e-5 * Math.max(1, longest));
    expect(largestDifference(input.state, h)).toBeLessThan(1e-5 * Math.max(1, longest));
  });

  it('spreads NaN only to dependent values', () => {
    const input = example({ batch: 1, tokens: 4, inner: 3, state: 8 });
    input.step[3 + 1] = Number.NaN;
    const output = selectiveScan(input);
    expect([...output].map(Number.isNaN)).toEqual(
      [0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0].map(Boolean),
    );
  });
});
