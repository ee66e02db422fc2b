import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { symmetricEigenvalues } from '../../../src/base/linalg/eigenvalues.js';
import { GramAccumulator } from '../../../src/base/linalg/gram.js';
import type { Matrix } from '../../../src/base/linalg/matrix.js';
import { squaredLosses } from '../../../src/base/linalg/subspace-iteration.js';
import {
  generator,
  naiveProduct,
  orthonormalRows,
  randomMatrix,
  transposed,
  withSingularValues,
} from './matrices.js';

async function lossesOf(a: Matrix): Promise<number[]> {
  const gram = new GramAccumulator(a.rows, a.columns);
  await gram.add(a.values);
  const eigenvalues = await symmetricEigenvalues(await gram.finish());
  return squaredLosses(
    eigenvalues,
    Array.from({ length: Math.min(a.rows, a.columns) + 1 }, (_, rank) => rank),
  );
}

const squares = (values: Float64Array) => values.reduce((sum, value) => sum + value * value, 0);

describe('the squared loss of a rank', () => {
  it('is the sum of the omitted values', () => {
    expect(squaredLosses(Float64Array.of(9, 4, 1, 0), [0, 1, 2, 3, 4])).toEqual([14, 5, 1, 0, 0]);
  });

  it('does not count eigenvalues that rounding made negative', () => {
    expect(squaredLosses(Float64Array.of(9, 1e-16, -3e-16), [1, 2])).toEqual([1e-16, 0]);
  });

  it('includes small eigenvalues next to large ones', () => {
    const eigenvalues = Float64Array.from([1, ...new Array<number>(1000).fill(1e-18)]);
    expect(squaredLosses(eigenvalues, [1])[0]).toBeCloseTo(1e-15, 25);
  });

  it.each([
    [20, 6],
    [6, 20],
  ])('matches the singular values of a matrix [%d, %d]', async (rows, columns) => {
    const singular = [7, 5, 3, 1, 0.1, 0];
    const losses = await lossesOf(withSingularValues(rows, columns, singular, generator(rows)));
    for (const [rank, loss] of losses.entries()) {
      const expected = singular.slice(rank).reduce((sum, value) => sum + value * value, 0);
      expect(loss).toBeCloseTo(expected, 12);
    }
  });

  it('is at most that of any projection of this rank, and the whole norm at rank 0', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 12 }),
        fc.integer({ min: 2, max: 12 }),
        fc.integer(),
        async (rows, columns, seed) => {
          const random = generator(seed);
          const a = randomMatrix(rows, columns, random);
          const losses = await lossesOf(a);
          const total = squares(a.values);
          expect(losses[0]).toBeCloseTo(total, 12);
          for (let rank = 1; rank <= Math.min(rows, columns); rank++) {
            // ‖A − AQᵀQ‖² = ‖A‖² − ‖AQᵀ‖² for orthonormal rows of Q.
            const kept = squares(naiveProduct(a, orthonormalRows(rank, columns, random)));
            expect(losses[rank]).toBeLessThanOrEqual(total - kept + 1e-12);
            expect(losses[rank]).toBeLessThanOrEqual((losses[rank - 1] ?? 0) + 1e-15);
          }
        },
      ),
    );
  });

  it('is the same for the transposed matrix', async () => {
    const a = randomMatrix(30, 9, generator(4));
    const [losses, others] = [await lossesOf(a), await lossesOf(transposed(a))];
    for (const [rank, loss] of losses.entries()) expect(others[rank]).toBeCloseTo(loss, 12);
  });
});
