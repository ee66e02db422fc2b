import fc from 'fast-check';
import { expect, it } from 'vitest';
import { plainProduct, plainProducts } from '../../../src/base/linalg/matrix.js';
import { generator, integerMatrix, naiveProduct, randomMatrix, transposed } from './matrices.js';

it('plainProduct is correct at all sizes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 0, max: 9 }),
      fc.integer(),
      async (m, n, k, seed) => {
        const random = generator(seed);
        const [a, b] = [integerMatrix(m, k, random), integerMatrix(n, k, random)];
        const target = new Float64Array(m * n + 1).fill(1e9);
        await plainProduct(a, b, target);
        expect(target.subarray(0, m * n)).toEqual(naiveProduct(a, b));
        // Values after the result are not written.
        expect(target[m * n]).toBe(1e9);
        await plainProducts.times(a, transposed(b), target);
        expect(target.subarray(0, m * n)).toEqual(naiveProduct(a, b));
        expect(target[m * n]).toBe(1e9);
      },
    ),
  );
});

it.each([
  // Just below, at and beyond the blocks of 64 rows and 256 columns.
  [63, 65, 255],
  [64, 64, 256],
  [67, 129, 257],
  [1, 66, 700],
])('plainProduct is correct for [%d, k] and [%d, k], k = %d', async (m, n, k) => {
  const random = generator(m * n * k);
  const [a, b] = [integerMatrix(m, k, random), integerMatrix(n, k, random)];
  const target = new Float64Array(m * n);
  await plainProduct(a, b, target);
  expect(target).toEqual(naiveProduct(a, b));
  target.fill(Number.NaN);
  await plainProducts.times(a, transposed(b), target);
  expect(target).toEqual(naiveProduct(a, b));
});

it('plainProduct gives identical results for the same rows at any position', async () => {
  const random = generator(5);
  const row = randomMatrix(1, 777, random).values;
  const other = randomMatrix(1, 777, random).values;
  const a = { values: Float64Array.from([...other, ...row, ...other]), rows: 3, columns: 777 };
  const rows = Array.from({ length: 71 }, () => [...row]).flat();
  const b = { values: Float64Array.from(rows), rows: 71, columns: 777 };
  const target = new Float64Array(3 * 71);
  await plainProduct(a, b, target);
  expect(new Set(target.subarray(71, 142)).size).toBe(1);
  expect(new Set([...target.subarray(0, 71), ...target.subarray(142)]).size).toBe(1);
});

it('plainProduct limits NaN to the rows that have it', async () => {
  const random = generator(6);
  const [a, b] = [integerMatrix(3, 5, random), integerMatrix(5, 5, random)];
  a.values[1 * 5 + 2] = Number.NaN;
  b.values[4 * 5 + 3] = Number.NaN;
  const target = new Float64Array(15);
  await plainProduct(a, b, target);
  expect(target).toEqual(naiveProduct(a, b));
  expect(target.filter(Number.isNaN)).toHaveLength(5 + 3 - 1);
});
