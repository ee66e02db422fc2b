import { describe, expect, it } from 'vitest';
import { rotary } from '../../../src/model/architecture/constructors/attention-layers.js';
import {
  activation,
  fusedProjection,
  learnedPositions,
  linear,
  residual,
  rmsNormLayer,
  scale,
  softcap,
  transposedLinear,
  xielu,
} from '../../../src/model/architecture/constructors/basic-layers.js';
import { type ActivationName, LAPLACE } from '../../../src/model/architecture/layer.js';
import { identity, rowsThrough, weightsBy } from './given-weights.js';
import { largestDifference } from './support.js';

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

type ByErf = 'gelu' | 'geluClipped' | 'laplace';

describe('an activation matches its formula:', () => {
  const POINTS = [-20, -3, -1, -0.1, 0, 0.1, 1, 2, 20];
  const FORMULAS = {
    silu: (x) => x * sigmoid(x),
    geluTanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
    quickGelu: (x) => x * sigmoid(1.702 * x),
    relu: (x) => Math.max(x, 0),
    identity: (x) => x,
    softplus: (x) => Math.log1p(Math.exp(x)),
    sqrtSoftplus: (x) => Math.sqrt(Math.log1p(Math.exp(x))),
    reluSquared: (x) => Math.max(x, 0) ** 2,
    relu6: (x) => Math.min(Math.max(x, 0), 6),
    leakyRelu: (x) => (x < 0 ? 0.01 * x : x),
    hardSwish: (x) => (x * Math.min(Math.max(x + 3, 0), 6)) / 6,
    mish: (x) => x * Math.tanh(Math.log(1 + Math.exp(x))),
    tanh: Math.tanh,
    sigmoid,
  } as const satisfies Record<Exclude<ActivationName, ByErf>, (x: number) => number>;

  it.each(Object.entries(FORMULAS))('%s', async (name, formula) => {
    const layer = activation('act', name as keyof typeof FORMULAS);
    const [output = []] = await rowsThrough(layer, identity, [POINTS]);
    expect(largestDifference(output, POINTS.map(formula))).toBeLessThan(2e-6);
  });

  // x · Φ(x), with Φ(1) and Φ(2) from tables of the normal distribution.
  it('gelu uses the error function, not tanh', async () => {
    const [output = []] = await rowsThrough(activation('act', 'gelu'), identity, [[1, -1, 2]]);
    expect(largestDifference(output, [0.8413447, -0.1586553, 1.9544997])).toBeLessThan(1e-6);
    const [clipped = []] = await rowsThrough(activation('act', 'geluClipped'), identity, [[1, 20]]);
    expect(largestDifference(clipped, [0.8413447, 10])).toBeLessThan(1e-6);
  });

  it('xIELU has factors of its own', async () => {
    const values: Readonly<Record<string, number>> = {
      'act.alpha_p': 0.4,
      'act.alpha_n': -1.2,
      'act.beta': 0.5,
      'act.eps': -0.05,
    };
    const weights = weightsBy(({ name }) => values[name] ?? 0);
    const points = [-3, -1, -0.1, -0.02, 0, 0.02, 0.1, 1, 2];
    const [output = []] = await rowsThrough(xielu('act'), weights, [points]);
    const [above, below] = [Math.log1p(Math.exp(0.4)), 0.5 + Math.log1p(Math.exp(-1.2))];
    const formula = (x: number) =>
      0.5 * x + (x > 0 ? above * x ** 2 : below * (Math.expm1(Math.min(x, -0.05)) - x));
    expect(largestDifference(output, points.map(formula))).toBeLessThan(1e-5);
  });

  it('laplace is Φ of the distance from the mean, in deviations', async () => {
    const { mean, deviation } = LAPLACE;
    const points = [mean, mean + deviation, mean - 2 * deviation];
    const [output = []] = await rowsThrough(activation('act', 'laplace'), identity, [points]);
    expect(largestDifference(output, [0.5, 0.8413447, 0.0227501])).toBeLessThan(1e-6);
  });
});

describe('simple layers', () => {
  it('include scale, softcap, learned positions and a residual of two branches', async () => {
    const outputOf = (layer: Parameters<typeof rowsThrough>[0]) =>
      rowsThrough(layer, identity, [
        [1, -2],
        [30, 4],
      ]);
    expect(await outputOf(scale('s', 3))).toEqual([
      [3, -6],
      [90, 12],
    ]);
    const [, capped = []] = await outputOf(softcap('c', 5));
    expect(largestDifference(capped, [5 * Math.tanh(6), 5 * Math.tanh(0.8)])).toBeLessThan(1e-6);
    expect(await outputOf(learnedPositions('p', 4, 2))).toEqual([
      [2, -2],
      [30, 5],
    ]);
    expect(await outputOf(residual('r', scale('a', 2), scale('b', 10)))).toEqual([
      [13, -26],
      [390, 52],
    ]);
  });

  it('read the weight of a transposed linear layer as [in, out]', async () => {
    const layer = transposedLinear('conv1d', 2, 3);
    const weights = weightsBy((tensor, at) => (tensor === layer.weight ? at : 100));
    // [1, 10] · [[0, 1, 2], [3, 4, 5]] + 100
    expect(await rowsThrough(layer, weights, [[1, 10]])).toEqual([[130, 141, 152]]);
  });

  it('normalise each part with the length of the weight, plus an offset, in RMSNorm', async () => {
    const weights = weightsBy(() => 0.5);
    const [plain = []] = await rowsThrough(rmsNormLayer('n', 2, 0.02), weights, [[1, 3]]);
    const mean = Math.sqrt(5 + 0.02);
    expect(largestDifference(plain, [0.5 / mean, 1.5 / mean])).toBeLessThan(1e-6);
    const heads = rmsNormLayer('n', 2, 0, 1);
    const [output = []] = await rowsThrough(heads, weights, [[1, 3, -200, 0]]);
    const [one, two] = [1.5 / Math.sqrt(5), 4.5 / Math.sqrt(5)];
    expect(largestDifference(output, [one, two, -1.5 * Math.SQRT2, 0])).toBeLessThan(1e-6);
  });
});

it('a fused projection has its values side by side, or a part of each in each group', async () => {
  const product = linear('qkv', 12, 12);
  const input = [Array.from({ length: 12 }, (_, at) => at)];
  const whole = fusedProjection(product, [6, 4, 2]);
  expect(await rowsThrough(whole, identity, input)).toEqual(input);
  const grouped = fusedProjection(product, [4, 4, 4], 2);
  expect(await rowsThrough(grouped, identity, input)).toEqual([
    [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11],
  ]);
});

describe('rotary positions', () => {
  /** Rows of two heads of width six with four rotated dimensions, computed as complex numbers in float64. */
  function rotated(
    rows: readonly (readonly number[])[],
    pairOf: (j: number) => readonly [number, number],
    frequencies: readonly number[],
    amplitude = 1,
  ): number[] {
    return rows.flatMap((row, position) => {
      const result = [...row];
      for (const head of [0, 6]) {
        for (const [j, frequency] of frequencies.entries()) {
          const [at, other] = pairOf(j);
          const [a, b] = [row[head + at] ?? 0, row[head + other] ?? 0];
          const angle = position * frequency;
          result[head + at] = amplitude * (a * Math.cos(angle) - b * Math.sin(angle));
          result[head + other] = amplitude * (b * Math.cos(angle) + a * Math.sin(angle));
        }
      }
      return result;
    });
  }

  const ROWS = Array.from({ length: 5 }, (_, row) =>
    Array.from({ length: 12 }, (_, at) => Math.sin(7 * row + at)),
  );
  const SIZES = { base: 100, headDim: 6, rotatedDim: 4 };

  it.each([
    ['halves', (j: number) => [j, j + 2] as const],
    ['neighbours', (j: number) => [2 * j, 2 * j + 1] as const],
  ] as const)('rotate a part of a head, by %s', async (pairs, pairOf) => {
    const layer = rotary('rope', { ...SIZES, pairs });
    const output = await rowsThrough(layer, identity, ROWS);
    expect(largestDifference(output.flat(), rotated(ROWS, pairOf, [1, 0.1]))).toBeLessThan(1e-6);
  });

  it('have the amplitude of their scaling, and depend on the input length', async () => {
    const scaling = {
      kind: 'longrope' as const,
      shortDivisors: [1, 2],
      longDivisors: [4, 5],
      originalPositions: 4,
      amplitude: 1.25,
    };
    const layer = rotary('rope', { ...SIZES, scaling });
    const pairOf = (j: number) => [j, j + 2] as const;
    const long = await rowsThrough(layer, identity, ROWS);
    const expected = rotated(ROWS, pairOf, [1 / 4, 0.1 / 5], 1.25);
    expect(largestDifference(long.flat(), expected)).toBeLessThan(1e-6);
    const short = await rowsThrough(layer, identity, ROWS.slice(0, 4));
    const before = rotated(ROWS.slice(0, 4), pairOf, [1, 0.1 / 2], 1.25);
    expect(largestDifference(short.flat(), before)).toBeLessThan(1e-6);
  });
});
