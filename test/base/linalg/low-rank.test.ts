import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type LowRank,
  type LowRankOptions,
  lowRank,
  lowRankBytes,
  lowRankMultiplications,
  MOST_PASSES,
} from '../../../src/base/linalg/low-rank.js';
import type { Matrix } from '../../../src/base/linalg/matrix.js';
import { plainProducts } from '../../../src/base/linalg/matrix.js';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import {
  generator,
  largestDifference,
  naiveProduct,
  norm,
  randomMatrix,
  sourceOf,
  transposed,
  withSingularValues,
} from './matrices.js';

const factorise = (a: Matrix, options: Partial<LowRankOptions>) =>
  lowRank(sourceOf(a), {
    want: { rank: 1 },
    seed: 1,
    products: plainProducts,
    blockRows: 7,
    ...options,
  });

/** The product of the two factors. */
async function productOf(factors: LowRank, a: Matrix): Promise<Float64Array> {
  const left = {
    values: new Float64Array(a.rows * factors.rank),
    rows: a.rows,
    columns: factors.rank,
  };
  await factors.left(a, left.values);
  return naiveProduct(left, factors.projection);
}

/** ‖A − left · projectionᵀ‖ */
const errorOf = async (factors: LowRank, a: Matrix) => {
  const product = await productOf(factors, a);
  return norm(a.values.map((value, k) => value - (product[k] ?? Number.NaN)));
};

const sequence = <T>(count: number, value: (k: number) => T) =>
  Array.from({ length: count }, (_, k) => value(k));

/** Least possible error of a rank (Eckart and Young). */
const leastError = (singular: readonly number[], rank: number) =>
  norm(Float64Array.from(singular.toSorted((a, b) => b - a).slice(rank)));

const smallestRank = (singular: readonly number[], relativeError: number) =>
  singular.findIndex(
    (_, rank) => leastError(singular, rank) <= relativeError * leastError(singular, 0),
  );

describe('a low-rank approximation', () => {
  it('of a table of a checkpoint equals that of numpy', async () => {
    const checkpoint = openCheckpoint(inPackage('fixtures/checkpoints/valid/zip_proto5.pt'));
    const tables = [0, 1].map((layer) => {
      const stored = checkpoint.tensors.get(`layers.${layer}.srte.freqs`);
      if (!stored) throw new Error(`layer ${layer}`);
      const values = new Float64Array(stored.elements);
      decodeValues(stored.dtype, readTensor(stored), values);
      return values;
    });
    checkpoint.close();
    const [one, other] = tables as [Float64Array, Float64Array];
    const mean = {
      values: one.map((value, k) => (value + (other[k] ?? 0)) / 2),
      rows: 16,
      columns: 8,
    };
    const whole = await factorise(mean, { want: { rank: 8 } });
    expect([...whole.singularValues]).toEqual(
      // numpy.linalg.svd
      [
        4.722607586040307, 3.935346105025559, 3.382919396653565, 3.012382168694436,
        2.6147691700010336, 2.0098102548414336, 1.5184587773490135, 1.0427806087441445,
      ].map((value) => expect.closeTo(value, 13)),
    );
    expect(Math.sqrt(whole.squaredNorm)).toBeCloseTo(8.519273729721517, 13);
    for (const [rank, error] of [
      [2, 0.6923289497823981],
      [4, 0.4434056781384548],
    ] as const) {
      const factors = await factorise(mean, { want: { rank } });
      expect((await errorOf(factors, mean)) / norm(mean.values)).toBeCloseTo(error, 13);
    }
  });

  // Beyond 128 rows and columns, it does not use all directions.
  const spectra: Record<string, readonly number[]> = {
    'a flat spectrum': sequence(200, () => 1),
    'a slow one': sequence(200, (k) => (k + 1) ** -0.25),
    'a straight one': sequence(200, (k) => 1 - k / 300),
    'a usual one': sequence(200, (k) => 1 / (k + 1)),
    'a steep one': sequence(200, (k) => Math.exp(-k / 4)),
    'a very steep one': sequence(200, (k) => Math.exp(-k)),
    'clusters around the rank': sequence(200, (k) => (k < 10 ? 10 : k < 50 ? 1 + k * 1e-5 : 0.5)),
    'equal values, then zeros': sequence(200, (k) => (k < 60 ? 1 : 0)),
    'pairs of equal values': sequence(200, (k) => 1 / (1 + Math.floor(k / 2))),
  };
  it.each(Object.entries(spectra))(
    'has an error within 0.1 %% of the least possible one, for %s',
    async (_, singular) => {
      const a = withSingularValues(260, 200, singular, generator(3));
      for (const rank of [1, 16]) {
        const factors = await factorise(a, { want: { rank }, blockRows: 100 });
        const least = leastError(singular, rank);
        const error = await errorOf(factors, a);
        expect(error).toBeLessThan(least * 1.001);
        expect(error).toBeGreaterThan(least * (1 - 1e-6));
        expect(factors.passes).toBeLessThan(20);
      }
    },
  );

  it.each([
    ['tall', 40, 12],
    ['wide', 12, 40],
    ['wide and larger than a block', 150, 160],
  ])(
    'has singular values exact up to rounding, for a small matrix that is %s',
    async (_, rows, columns) => {
      const singular = sequence(12, (k) => 10 ** -k);
      const a = withSingularValues(rows, columns, singular, generator(4));
      const { singularValues } = await factorise(a, { want: { rank: 10 } });
      for (const [k, value] of singularValues.entries()) {
        // Rounding the matrix to float64 alone changes them by about 1e-16 of the largest.
        expect(Math.abs(value - (singular[k] ?? 0))).toBeLessThan(1e-14);
      }
    },
  );

  it('is exact when the matrix has no higher rank', async () => {
    const a = withSingularValues(170, 150, [5, 4, 3, 1e-3], generator(5));
    for (const rank of [4, 9]) {
      const factors = await factorise(a, { want: { rank } });
      expect([...factors.singularValues.subarray(0, 4)]).toEqual(
        [5, 4, 3, 1e-3].map((value) => expect.closeTo(value, 13)),
      );
      expect(await errorOf(factors, a)).toBeLessThan(1e-13);
    }
  });

  it('has balanced factors: the columns of both have the length √σ', async () => {
    const a = randomMatrix(30, 20, generator(6));
    const factors = await factorise(a, { want: { rank: 5 } });
    const left = { values: new Float64Array(150), rows: 30, columns: 5 };
    await factors.left(a, left.values);
    for (const factor of [left, factors.projection]) {
      const turned = transposed(factor);
      const products = naiveProduct(turned, turned);
      for (let i = 0; i < 5; i++) {
        for (let j = 0; j < 5; j++) {
          const expected = i === j ? (factors.singularValues[i] ?? 0) : 0;
          expect(products[i * 5 + j]).toBeCloseTo(expected, 11);
        }
      }
    }
  });

  it('is the same to the last bit each time, and hardly depends on the seed', async () => {
    const a = randomMatrix(200, 160, generator(7));
    const options = { want: { rank: 8 }, blockRows: 64 };
    const [one, same] = [await factorise(a, options), await factorise(a, options)];
    expect(same.projection).toEqual(one.projection);
    expect(same.singularValues).toEqual(one.singularValues);
    const other = await factorise(a, { ...options, seed: 2 });
    expect(other.projection).not.toEqual(one.projection);
    expect(await errorOf(other, a)).toBeCloseTo(await errorOf(one, a), 2);
  });

  it('has signs that do not depend on the seed', async () => {
    const a = withSingularValues(30, 20, [4, 3, 2, 1], generator(8));
    const factors = await Promise.all(
      [1, 2, 3].map((seed) => factorise(a, { want: { rank: 4 }, seed })),
    );
    const [first, ...others] = factors.map(({ projection }) => projection.values);
    for (const other of others) {
      expect(largestDifference(first ?? new Float64Array(), other)).toBeLessThan(1e-12);
    }
  });

  it('reports all rows that it reads, in order, a block at a time', async () => {
    const a = randomMatrix(20, 5, generator(9));
    const blocks: number[] = [];
    const { passes } = await factorise(a, { onRows: (rows) => blocks.push(rows) });
    expect(blocks).toEqual(sequence(passes, () => [7, 7, 6]).flat());
    expect(passes).toBeLessThanOrEqual(MOST_PASSES);
  });
});

describe('the smallest rank within an error', () => {
  it('is correct for any error', async () => {
    const singular = sequence(150, (k) => Math.exp(-k / 12));
    const a = withSingularValues(160, 150, singular, generator(10));
    for (const relativeError of [0.9, 0.3, 0.05, 1e-3, 1e-4]) {
      const factors = await factorise(a, { want: { relativeError }, blockRows: 160 });
      expect(factors.rank).toBe(smallestRank(singular, relativeError));
      expect(await errorOf(factors, a)).toBeLessThanOrEqual(relativeError * norm(a.values));
    }
  });

  it('is limited to the largest allowed rank', async () => {
    const singular = sequence(150, (k) => 0.98 ** k);
    const a = withSingularValues(160, 150, singular, generator(16));
    const limited = { want: { relativeError: 0.2, mostRank: 60 }, blockRows: 160 };
    const factors = await factorise(a, limited);
    expect(factors.rank).toBe(60);
    const fixed = await factorise(a, { want: { rank: 60 }, blockRows: 160 });
    expect(await errorOf(factors, a)).toBeCloseTo(await errorOf(fixed, a), 4);
    const enough = await factorise(a, { ...limited, want: { relativeError: 0.2, mostRank: 100 } });
    expect(enough.rank).toBe(smallestRank(singular, 0.2));
  });

  it('is 1 for a large error, and the rank of the matrix for 0', async () => {
    const a = withSingularValues(20, 10, [3, 2, 1], generator(11));
    expect((await factorise(a, { want: { relativeError: 2 } })).rank).toBe(1);
    expect((await factorise(a, { want: { relativeError: 1e-9 } })).rank).toBe(3);
    const full = randomMatrix(10, 10, generator(12));
    expect((await factorise(full, { want: { relativeError: 0 } })).rank).toBe(10);
  });
});

describe('a matrix', () => {
  it.each([
    [1, 1],
    [1, 9],
    [9, 1],
    [2, 300],
    [300, 2],
    [8, 8],
  ])('of %d rows and %d columns is exact at full rank', async (rows, columns) => {
    const a = randomMatrix(rows, columns, generator(rows * 31 + columns));
    const rank = Math.min(rows, columns);
    const factors = await factorise(a, { want: { rank } });
    expect(await errorOf(factors, a)).toBeLessThan(1e-13 * norm(a.values));
  });

  it.each([
    ['zeros', (_: number) => 0, 0],
    ['one value', (_: number) => 3, Math.sqrt(9 * 12 * 10)],
    ['equal rows', (k: number) => k % 10, Math.sqrt(12 * 285)],
  ])('of %s has one singular value, and zeros', async (_, value, expected) => {
    const a = { values: Float64Array.from(sequence(120, value)), rows: 12, columns: 10 };
    const factors = await factorise(a, { want: { rank: 4 } });
    expect(factors.singularValues[0]).toBeCloseTo(expected, 11);
    expect([...factors.singularValues.subarray(1)]).toEqual([0, 0, 0]);
    expect(largestDifference(await productOf(factors, a), a.values)).toBeLessThan(1e-12);
    // Columns 1 to 3 of the projection are zeros, without a sign or a NaN.
    expect(factors.projection.values.filter((each, k) => k % 4 > 0 && each !== 0)).toHaveLength(0);
    expect(await factorise(a, { want: { relativeError: 1e-3 } })).toMatchObject({ rank: 1 });
  });

  it.each([2 ** -149, 1e-30, 1e30, 2 ** 127])(
    'with values of about %d has the same relative error',
    async (size) => {
      const a = randomMatrix(20, 10, generator(13));
      const own = await factorise(a, { want: { rank: 3 } });
      const scaled = { ...a, values: a.values.map((value) => value * size) };
      const factors = await factorise(scaled, { want: { rank: 3 } });
      expect((await errorOf(factors, scaled)) / norm(scaled.values)).toBeCloseTo(
        (await errorOf(own, a)) / norm(a.values),
        12,
      );
    },
  );

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e200])(
    'with the value %d is refused',
    async (value) => {
      const a = randomMatrix(20, 10, generator(14));
      a.values[77] = value;
      await expect(factorise(a, {})).rejects.toThrow(RangeError);
    },
  );

  it.each([
    { rank: 0 },
    { rank: 11 },
    { rank: 2.5 },
    { relativeError: Number.NaN },
    { relativeError: 0.1, mostRank: 11 },
  ])('is refused for the invalid request %j', async (want) => {
    await expect(factorise(randomMatrix(20, 10, generator(15)), { want })).rejects.toThrow(
      RangeError,
    );
  });

  it('has an error that complements the kept energy', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer(),
        async (rows, columns, requested, seed) => {
          const rank = Math.min(requested, rows, columns);
          const a = randomMatrix(rows, columns, generator(seed));
          const factors = await factorise(a, { want: { rank }, seed });
          const kept = norm(factors.singularValues) ** 2;
          const error = await errorOf(factors, a);
          // Pythagoras holds for a projection.
          expect(kept + error ** 2).toBeCloseTo(factors.squaredNorm, 10);
          const tall = await factorise(transposed(a), { want: { rank } });
          expect(norm(tall.singularValues) ** 2).toBeCloseTo(kept, 10);
        },
      ),
    );
  });
});

describe('the cost of a low-rank approximation', () => {
  it('is known beforehand', () => {
    // 144 directions: eight passes of two products.
    expect(lowRankMultiplications(32768, 4096, 128)).toBe(8 * 2 * 32768 * 4096 * 144);
    // A block of 512 rows is 16 MiB of it.
    expect(lowRankBytes(32768, 4096, 128, 512) / 2 ** 20).toBeCloseTo(39.6, 0);
    expect(lowRankBytes(100, 10, 3, 512)).toBe(8 * (100 * 20 + 5 * 100 + 300));
  });
});
