import fc from 'fast-check';
import { expect, it } from 'vitest';
import { positiveEigen, symmetricEigenvalues } from '../../../src/base/linalg/eigenvalues.js';
import type { Matrix } from '../../../src/base/linalg/matrix.js';
import {
  at,
  generator,
  largestDifference,
  naiveProduct,
  orthonormalRows,
  randomMatrix,
  symmetric,
  withSingularValues,
} from './matrices.js';

/** x · xᵀ */
function gramOf(x: Matrix) {
  const products = naiveProduct(x, x);
  return symmetric(x.rows, (row, column) => products[row * x.rows + column] ?? Number.NaN);
}

it('positiveEigen gives eigenvalues and vectors that rebuild the matrix', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 14 }),
      fc.integer({ min: 0, max: 5 }),
      fc.integer(),
      async (size, more, seed) => {
        const gram = gramOf(randomMatrix(size, size + more, generator(seed)));
        const { values, vectors } = await positiveEigen(gram);
        const rebuilt = symmetric(size, (row, column) =>
          values.reduce(
            (sum, value, k) => sum + value * at(vectors, k, row) * at(vectors, k, column),
            0,
          ),
        );
        const [largest = 0] = values;
        expect(largestDifference(rebuilt.values, gram.values)).toBeLessThan(1e-13 * largest);
        expect(largestDifference(values, await symmetricEigenvalues(gram))).toBeLessThan(
          1e-13 * largest,
        );
      },
    ),
  );
});

it('positiveEigen gives zeros and no vectors for rounding errors', async () => {
  const gram = gramOf(withSingularValues(6, 9, [3, 2, 1], generator(1)));
  const { values, vectors } = await positiveEigen(gram);
  expect([...values.subarray(0, 3)]).toEqual([9, 4, 1].map((value) => expect.closeTo(value, 12)));
  expect([...values.subarray(3)]).toEqual([0, 0, 0]);
  expect(vectors.values.subarray(18).every((value) => value === 0)).toBe(true);
});

it('positiveEigen is precise for small eigenvalues of orthogonal rows', async () => {
  const sizes = [1, 1e-4, 1e-8, 1e-12];
  const rows = orthonormalRows(4, 30, generator(2));
  for (const [row, size] of sizes.entries()) {
    for (let k = row * 30; k < row * 30 + 30; k++) rows.values[k] = (rows.values[k] ?? 0) * size;
  }
  const { values } = await positiveEigen(gramOf(rows));
  expect([...values].map((value, k) => value / (sizes[k] ?? 0) ** 2)).toEqual(
    sizes.map(() => expect.closeTo(1, 12)),
  );
});

it('positiveEigen accepts equal eigenvalues and zeros', async () => {
  const ones = await positiveEigen(symmetric(5, (row, column) => Number(row === column)));
  expect([...ones.values]).toEqual([1, 1, 1, 1, 1]);
  const none = await positiveEigen(symmetric(3, () => 0));
  expect([...none.values, ...none.vectors.values]).toEqual(new Array(12).fill(0));
});

it.each([1e-280, 1e280])('positiveEigen accepts values of about %d', async (size) => {
  const gram = symmetric(2, (row, column) => size * (row === column ? 2 : 1));
  const { values } = await positiveEigen(gram);
  expect([...values].map((value) => value / size)).toEqual([
    expect.closeTo(3, 14),
    expect.closeTo(1, 14),
  ]);
});
