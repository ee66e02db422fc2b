import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { symmetricEigenvalues } from '../../../src/base/linalg/eigenvalues.js';
import { type SymmetricMatrix, symmetricValue } from '../../../src/base/linalg/matrix.js';
import { at, generator, orthonormalRows, symmetric } from './matrices.js';

/** Expects each eigenvalue within 10⁻¹³ of the largest. */
function expectClose(actual: Float64Array, expected: readonly number[]): void {
  const largest = Math.max(...expected.map(Math.abs));
  const sorted = [...expected].sort((a, b) => b - a);
  expect(actual).toHaveLength(expected.length);
  for (const [index, value] of sorted.entries()) {
    expect(Math.abs((actual[index] ?? Number.NaN) - value)).toBeLessThanOrEqual(1e-13 * largest);
  }
}

/** A matrix with these eigenvalues and random eigenvectors. */
function rotated(eigenvalues: readonly number[], random: () => number): SymmetricMatrix {
  const size = eigenvalues.length;
  const q = orthonormalRows(size, size, random);
  return symmetric(size, (row, column) =>
    eigenvalues.reduce((sum, value, k) => sum + value * at(q, k, row) * at(q, k, column), 0),
  );
}

/** Rosser, Lanczos, Hestenes and Karush, Journal of Research of the NBS 47, 1951: a difficult case. */
const ROSSER = [
  [611],
  [196, 899],
  [-192, 113, 899],
  [407, -192, 196, 611],
  [-8, -71, 61, 8, 411],
  [-52, -43, 49, 44, -599, 411],
  [-49, -8, 8, 59, 208, 208, 99],
  [29, -44, 52, -23, 208, 208, -911, 99],
];

describe('the eigenvalues of', () => {
  it('a matrix of size 1 or 2 are correct', async () => {
    expect([...(await symmetricEigenvalues(symmetric(1, () => -5)))]).toEqual([-5]);
    // [[2, 1], [1, 2]]
    expectClose(await symmetricEigenvalues(symmetric(2, (i, j) => (i === j ? 2 : 1))), [3, 1]);
  });

  it('a diagonal matrix are its values, the largest first', async () => {
    const matrix = symmetric(5, (i, j) => (i === j ? [3, -7, 0, 12, 3][i] : 0) ?? 0);
    expect([...(await symmetricEigenvalues(matrix))]).toEqual([12, 3, 3, 0, -7]);
  });

  it('a matrix of zeros are zeros', async () => {
    expect([...(await symmetricEigenvalues(symmetric(4, () => 0)))]).toEqual([0, 0, 0, 0]);
  });

  it('the second difference are 2 − 2cos(kπ/(n + 1))', async () => {
    const size = 50;
    const matrix = symmetric(size, (i, j) => (i === j ? 2 : i - j === 1 ? -1 : 0));
    expectClose(
      await symmetricEigenvalues(matrix),
      Array.from({ length: size }, (_, k) => 2 - 2 * Math.cos(((k + 1) * Math.PI) / (size + 1))),
    );
  });

  it('min(i, j) are 1 / (4 sin²((2k − 1)π / (4n + 2)))', async () => {
    const size = 61;
    const matrix = symmetric(size, (i, j) => Math.min(i, j) + 1);
    expectClose(
      await symmetricEigenvalues(matrix),
      Array.from(
        { length: size },
        (_, k) => 1 / (4 * Math.sin(((2 * k + 1) * Math.PI) / (4 * size + 2)) ** 2),
      ),
    );
  });

  it("Rosser's matrix are correct: three close, two equal, one small and one zero", async () => {
    const matrix = symmetric(8, (i, j) => ROSSER[i]?.[j] ?? 0);
    const [far, near] = [10 * Math.sqrt(10405), 100 * Math.sqrt(26)];
    expectClose(await symmetricEigenvalues(matrix), [
      far,
      1020,
      510 + near,
      1000,
      1000,
      510 - near,
      0,
      -far,
    ]);
  });

  it('a matrix of ones are its size and zeros', async () => {
    expectClose(await symmetricEigenvalues(symmetric(40, () => 1)), [
      40,
      ...new Array<number>(39).fill(0),
    ]);
  });

  it.each([1e-150, 1e150])('a matrix times %d are multiplied by the same factor', async (scale) => {
    const matrix = symmetric(2, (i, j) => scale * (i === j ? 2 : 1));
    const eigenvalues = await symmetricEigenvalues(matrix);
    expectClose(
      eigenvalues.map((value) => value / scale),
      [3, 1],
    );
  });

  it('a matrix of separate parts are those of its parts', async () => {
    // [[2, 1], [1, 2]], [5] and [[0, 4], [4, 0]]
    const rows = [[2], [1, 2], [0, 0, 5], [0, 0, 0, 0], [0, 0, 0, 4, 0]];
    const matrix = symmetric(5, (i, j) => rows[i]?.[j] ?? 0);
    expectClose(await symmetricEigenvalues(matrix), [3, 1, 5, 4, -4]);
  });

  it('a matrix of almost separate parts are those of its parts', async () => {
    // A 1, and two zeros with a tiny value between them, whose square underflows.
    const rows = [[1], [0, 0], [0, 1e-200, 0]];
    expectClose(await symmetricEigenvalues(symmetric(3, (i, j) => rows[i]?.[j] ?? 0)), [1, 0, 0]);
  });

  it('an almost diagonal matrix are those of its diagonal', async () => {
    // More than rounding, but so small that rotations underflow.
    const values = Array.from({ length: 30 }, (_, k) => ((k * 7) % 30) + 1);
    const matrix = symmetric(30, (i, j) => (i === j ? (values[i] ?? 0) : i - j === 1 ? 3e-14 : 0));
    expectClose(await symmetricEigenvalues(matrix), values);
  });

  it('a large matrix are computed without blocking the process', async () => {
    let turns = 0;
    const count = () => {
      turns++;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await symmetricEigenvalues(symmetric(40, () => 1));
    clearImmediate(timer);
    expect(turns).toBeGreaterThanOrEqual(30);
  });

  const spectra = fc
    .array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1, maxLength: 24 })
    .filter((values) => values.some((value) => Math.abs(value) > 1e-3));

  it('a rotated diagonal matrix are those of the diagonal one', async () => {
    await fc.assert(
      fc.asyncProperty(spectra, fc.integer(), async (values, seed) => {
        expectClose(await symmetricEigenvalues(rotated(values, generator(seed))), values);
      }),
    );
  });

  it('any matrix sum to its trace, and their squares to its squared norm', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer(), async (size, seed) => {
        const random = generator(seed);
        const matrix = symmetric(size, () => 2 * random() - 1);
        let [trace, squares] = [0, 0];
        for (let i = 0; i < size; i++) {
          trace += symmetricValue(matrix, i, i);
          for (let j = 0; j < size; j++) squares += symmetricValue(matrix, i, j) ** 2;
        }
        const eigenvalues = await symmetricEigenvalues(matrix);
        const sum = eigenvalues.reduce((total, value) => total + value, 0);
        expect(sum).toBeCloseTo(trace, 11);
        expect(eigenvalues.reduce((total, value) => total + value ** 2, 0)).toBeCloseTo(squares, 9);
      }),
    );
  });
});
