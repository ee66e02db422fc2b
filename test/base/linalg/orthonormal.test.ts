import fc from 'fast-check';
import { expect, it } from 'vitest';
import { orthonormaliseRows } from '../../../src/base/linalg/gram.js';
import type { Matrix } from '../../../src/base/linalg/matrix.js';
import { generator, largestDifference, naiveProduct, randomMatrix } from './matrices.js';

const identity = (size: number) =>
  Float64Array.from({ length: size * size }, (_, k) => Number(k % (size + 1) === 0));

/** Distance of the rows from orthonormality. */
const defect = (x: Matrix) => largestDifference(naiveProduct(x, x), identity(x.rows));

function replacing(columns: number) {
  const random = generator(9);
  const replaced: Float64Array[] = [];
  return {
    replaced,
    replace: (row: Float64Array) => {
      row.set(randomMatrix(1, columns, random).values);
      replaced.push(row);
    },
  };
}

it('orthonormaliseRows makes any rows orthonormal, up to the number of columns', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 0, max: 12 }),
      fc.integer(),
      async (rows, more, seed) => {
        const x = randomMatrix(rows, rows + more, generator(seed));
        await orthonormaliseRows(x, replacing(rows + more).replace);
        expect(defect(x)).toBeLessThan(1e-14);
      },
    ),
  );
});

it('orthonormaliseRows keeps the span of the first rows, in order', async () => {
  const x = randomMatrix(4, 9, generator(2));
  const before = { ...x, values: x.values.slice() };
  await orthonormaliseRows(x, replacing(9).replace);
  const products = naiveProduct(before, x);
  // Old row i is a combination of new rows 0 to i.
  for (let i = 0; i < 4; i++) {
    for (let j = i + 1; j < 4; j++) expect(Math.abs(products[i * 4 + j] ?? 1)).toBeLessThan(1e-14);
    expect(products[i * 4 + i]).toBeGreaterThan(0);
  }
});

it.each([
  ['rows of zeros', (_: number) => 0],
  ['equal rows', (k: number) => k + 1],
])('orthonormaliseRows replaces %s', async (_, value) => {
  const values = Float64Array.from({ length: 3 * 5 }, (_, k) => value(k % 5));
  const x = { values, rows: 3, columns: 5 };
  const { replaced, replace } = replacing(5);
  await orthonormaliseRows(x, replace);
  expect(defect(x)).toBeLessThan(1e-14);
  expect(replaced.length).toBe(value(0) === 0 ? 3 : 2);
});

it.each([1e-300, 1e-160, 1e160, 1e300])(
  'orthonormaliseRows accepts values of about %d',
  async (size) => {
    const x = randomMatrix(3, 5, generator(4));
    for (const k of x.values.keys()) x.values[k] = (x.values[k] ?? 0) * size;
    const { replaced, replace } = replacing(5);
    await orthonormaliseRows(x, replace);
    expect(defect(x)).toBeLessThan(1e-14);
    expect(replaced).toEqual([]);
  },
);

it('orthonormaliseRows is precise for almost equal rows', async () => {
  const [first, other] = [randomMatrix(1, 50, generator(5)), randomMatrix(1, 50, generator(6))];
  const near = first.values.map((value, k) => value + 1e-10 * (other.values[k] ?? 0));
  const x = { values: Float64Array.from([...first.values, ...near]), rows: 2, columns: 50 };
  await orthonormaliseRows(x, replacing(50).replace);
  expect(defect(x)).toBeLessThan(1e-14);
});

it('orthonormaliseRows refuses more rows than columns', async () => {
  const x = randomMatrix(3, 2, generator(7));
  await expect(orthonormaliseRows(x, replacing(2).replace)).rejects.toThrow('independent');
});
