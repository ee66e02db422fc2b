import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredDtype } from '../../src/base/tensor/dtype.js';
import { type Statistics, StatisticsFold } from '../../src/checkpoint/statistics.js';

/** Statistics of values that arrive in pieces. */
function statisticsOf(dtype: StoredDtype, ...pieces: readonly ArrayBuffer[]): Statistics {
  const fold = new StatisticsFold(dtype);
  for (const piece of pieces) fold.take(new Uint8Array(piece));
  return fold.result();
}

const ofFloat64 = (...values: number[]) => statisticsOf('F64', Float64Array.from(values).buffer);

const NOT_FINITE = { nan: 0, positiveInfinity: 0, negativeInfinity: 0 };

describe('statistics', () => {
  it('are computed by definition', () => {
    // Mean 2; squared distances 4 + 1 + 0 + 1 + 4; squares 0 + 1 + 4 + 9 + 16.
    expect(statisticsOf('F32', Float32Array.of(4, 1, 2, 3, 0).buffer)).toEqual({
      min: 0,
      max: 4,
      mean: 2,
      standardDeviation: Math.sqrt(10 / 5),
      norm: Math.sqrt(30),
      zeros: 1,
      ...NOT_FINITE,
    });
  });

  it('are null without values', () => {
    expect(statisticsOf('BF16')).toEqual({
      min: null,
      max: null,
      mean: null,
      standardDeviation: null,
      norm: 0,
      zeros: 0,
      ...NOT_FINITE,
    });
  });

  it('count values that are not finite separately', () => {
    expect(ofFloat64(Number.NaN, 3, 1 / 0, -4, -1 / 0, Number.NaN, -0)).toMatchObject({
      min: -4,
      max: 3,
      mean: -1 / 3,
      norm: 5,
      zeros: 1,
      nan: 2,
      positiveInfinity: 1,
      negativeInfinity: 1,
    });
    expect(ofFloat64(Number.NaN)).toMatchObject({ min: null, mean: null, norm: 0, nan: 1 });
  });

  it('count infinities that cancel out in a sum', () => {
    expect(ofFloat64(1 / 0, 7)).toMatchObject({ max: 7, positiveInfinity: 1 });
    expect(ofFloat64(-1 / 0, 7)).toMatchObject({ min: 7, negativeInfinity: 1 });
    expect(ofFloat64(1 / 0, -1 / 0)).toMatchObject({ positiveInfinity: 1, negativeInfinity: 1 });
  });

  it('do not overflow', () => {
    const largest = Number.MAX_VALUE;
    expect(ofFloat64(largest, largest)).toMatchObject({
      mean: largest,
      standardDeviation: 0,
      norm: Number.POSITIVE_INFINITY,
      ...NOT_FINITE,
    });
    const { mean, standardDeviation, norm } = ofFloat64(-3e300, 4e300, 0, 0);
    expect(mean).toBeCloseTo(0.25e300, -290);
    expect((norm ?? 0) / 5e300).toBeCloseTo(1, 14);
    // 25/4 − 1/16 = 99/16.
    expect((standardDeviation ?? 0) / 1e300).toBeCloseTo(Math.sqrt(99 / 16), 13);
  });

  it('do not underflow', () => {
    const { norm, mean } = ofFloat64(3e-300, 4e-300);
    expect(norm / 5e-300).toBeCloseTo(1, 14);
    expect((mean ?? 0) / 3.5e-300).toBeCloseTo(1, 14);
    expect(ofFloat64(Number.MIN_VALUE).norm).toBe(Number.MIN_VALUE);
  });

  it('are exact if later pieces have another scale', () => {
    const piece = (value: number) => Float64Array.of(value, value).buffer;
    const { mean, norm, min, max } = statisticsOf('F64', piece(1e-300), piece(2), piece(1e300));
    expect((mean ?? 0) / (1e300 / 3)).toBeCloseTo(1, 14);
    expect(norm / (Math.SQRT2 * 1e300)).toBeCloseTo(1, 14);
    expect([min, max]).toEqual([1e-300, 1e300]);
    const { mean: usual, norm: size } = statisticsOf('F64', piece(1e-300), piece(3), piece(0));
    expect(usual).toBeCloseTo(1, 14);
    expect(size).toBeCloseTo(Math.sqrt(18), 14);
  });

  it('keep a small deviation with a large mean', () => {
    // 10^8 ± 1: the squares differ beyond the sixteenth digit.
    const { standardDeviation } = ofFloat64(1e8 - 1, 1e8 + 1, 1e8 - 1, 1e8 + 1);
    expect(standardDeviation).toBe(1);
  });

  it('use the moduli of complex values', () => {
    expect(statisticsOf('C64', Float32Array.of(3, 4, 0, 0, 0, -5).buffer)).toMatchObject({
      min: 0,
      max: 5,
      mean: 10 / 3,
      norm: Math.sqrt(50),
      zeros: 1,
    });
    const odd = Float64Array.of(Number.NaN, 1, 1 / 0, 1);
    expect(statisticsOf('C128', odd.buffer)).toMatchObject({ nan: 1, positiveInfinity: 1 });
  });

  it('count truth values as 0 and 1', () => {
    const stats = statisticsOf('BOOL', Uint8Array.of(0, 1, 1, 255).buffer);
    expect(stats).toMatchObject({ min: 0, max: 1, mean: 0.75, zeros: 1 });
  });

  it('do not depend on the pieces', () => {
    const values = fc.array(fc.float({ noDefaultInfinity: true, noNaN: true }), {
      minLength: 1,
      maxLength: 40,
    });
    fc.assert(
      fc.property(values, fc.nat({ max: 40 }), (some, cut) => {
        // More values than one block.
        const many = Float32Array.from({ length: 9000 + some.length }, (_, i) =>
          Number(some[i % some.length]),
        );
        const whole = statisticsOf('F32', many.buffer);
        const parts = statisticsOf('F32', many.slice(0, cut).buffer, many.slice(cut).buffer);
        const expected = naive(many);
        for (const stats of [whole, parts]) {
          expect(stats.min).toSatisfy(near(expected.min, 0));
          expect(stats.max).toSatisfy(near(expected.max, 0));
          expect(stats.zeros).toBe(expected.zeros);
          expect(stats.mean).toSatisfy(near(expected.mean, expected.norm));
          expect(stats.norm).toSatisfy(near(expected.norm, expected.norm));
        }
      }),
      { numRuns: 50 },
    );
  });
});

/** Test for equality within twelve digits of `size`. */
const near = (expected: number, size: number) => (value: number) =>
  Math.abs(value - expected) <= 1e-12 * size;

/** Plain sums. float32 is far from the limits of float64. */
function naive(values: Float32Array) {
  const squares = values.reduce((sum, value) => sum + value * value, 0);
  return {
    min: values.reduce((least, value) => Math.min(least, value)),
    max: values.reduce((most, value) => Math.max(most, value)),
    mean: values.reduce((sum, value) => sum + value / values.length, 0),
    norm: Math.sqrt(squares),
    zeros: values.filter((value) => value === 0).length,
  };
}
