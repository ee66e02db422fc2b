import { describe, expect, it } from 'vitest';
import {
  klDivergence,
  logitDifference,
  relativeDifference,
} from '../../../src/engine/compare/differences.js';

const floats = (...values: number[]) => Float32Array.from(values);
const logitsOf = (rows: number[][]) => ({
  shape: [1, rows.length, rows[0]?.length ?? 0],
  data: floats(...rows.flat()),
});

describe('the divergence of two distributions', () => {
  it('is Σ p ln(p / q) in nats', () => {
    // p = (1/2, 1/2), q = (3/4, 1/4): ½ ln(2/3) + ½ ln 2 = ½ ln(4/3).
    const q = floats(Math.log(3), 0);
    expect(klDivergence(floats(0, 0), q)).toBeCloseTo(0.5 * Math.log(4 / 3), 7);
    // The other way: ¾ ln(3/2) + ¼ ln(1/2).
    const back = 0.75 * Math.log(3 / 2) + 0.25 * Math.log(1 / 2);
    expect(klDivergence(q, floats(0, 0))).toBeCloseTo(back, 7);
  });

  it('does not depend on a constant added to all logits', () => {
    expect(klDivergence(floats(1000, 1001, 999), floats(-1000, -999, -1001))).toBe(0);
    expect(klDivergence(floats(30000, 0), floats(30000, 0))).toBe(0);
    // One token against half and half: ln 2.
    expect(klDivergence(floats(30000, 0), floats(5, 5))).toBeCloseTo(Math.LN2, 12);
  });

  it('is infinite where a logit is not finite', () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(klDivergence(floats(bad, 0), floats(0, 0))).toBe(Number.POSITIVE_INFINITY);
      expect(klDivergence(floats(0, 0), floats(bad, 0))).toBe(Number.POSITIVE_INFINITY);
    }
  });
});

describe('the relative difference', () => {
  it('uses Frobenius norms', () => {
    expect(relativeDifference(floats(3, 4), floats(3, 5))).toBeCloseTo(1 / 5, 12);
    expect(relativeDifference(floats(3, 4), floats(0, 0))).toBe(1);
  });

  it('is 0 or infinite for zeros', () => {
    expect(relativeDifference(floats(0, 0), floats(0, 0))).toBe(0);
    expect(relativeDifference(floats(0), floats(1e-20))).toBe(Number.POSITIVE_INFINITY);
    expect(relativeDifference(floats(Number.NaN), floats(1))).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('the difference of logits', () => {
  const own = logitsOf([
    [0, 0, -50],
    [1, 2, 3],
    [7, 7, 7],
    [4, 0, 0],
  ]);

  it('has maximum, mean, divergence and agreement over all positions', () => {
    const other = logitsOf([
      [Math.log(3), 0, -50],
      [1, 2, 3],
      [7, 7, 7],
      [4, 0, 6],
    ]);
    const difference = logitDifference(own, other);
    expect(difference.largestDifference).toBe(6);
    expect(difference.meanDifference).toBeCloseTo((Math.log(3) + 6) / 12, 7);
    // The last position differs; the first of equal logits counts.
    expect(difference.topAgreement).toBe(3 / 4);
    const [sum, otherSum] = [Math.exp(4) + 2, Math.exp(4) + 1 + Math.exp(6)];
    const last = Math.log(otherSum / sum) - (6 * 1) / sum;
    expect(difference.klDivergence).toBeCloseTo((0.5 * Math.log(4 / 3) + last) / 4, 7);
  });

  it('is 0 for equal logits', () => {
    expect(logitDifference(own, own)).toEqual({
      largestDifference: 0,
      meanDifference: 0,
      relativeDifference: 0,
      klDivergence: 0,
      topAgreement: 1,
    });
  });

  it('does not accept NaN as agreement', () => {
    const broken = logitsOf([
      [Number.NaN, 0, 0],
      [1, 2, 3],
      [7, 7, 7],
      [4, 0, 0],
    ]);
    const infinite = Number.POSITIVE_INFINITY;
    expect(logitDifference(broken, broken)).toEqual({
      largestDifference: infinite,
      meanDifference: infinite,
      relativeDifference: infinite,
      klDivergence: infinite,
      topAgreement: 3 / 4,
    });
  });
});
