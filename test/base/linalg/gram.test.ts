import { describe, expect, it } from 'vitest';
import { addRowProducts, GramAccumulator } from '../../../src/base/linalg/gram.js';
import type { Matrix } from '../../../src/base/linalg/matrix.js';
import { plainProduct, symmetricMatrix, symmetricValue } from '../../../src/base/linalg/matrix.js';
import { generator, integerMatrix, naiveProduct, transposed } from './matrices.js';

/** The full matrix, [size, size]. */
const whole = (size: number, value: (row: number, column: number) => number) =>
  Float64Array.from({ length: size * size }, (_, index) =>
    value(Math.floor(index / size), index % size),
  );

async function gramOf({ values, rows, columns }: Matrix, blockRows: number) {
  const gram = new GramAccumulator(rows, columns);
  for (let row = 0; row < rows; row += blockRows) {
    const block = values.slice(row * columns, Math.min(rows, row + blockRows) * columns);
    await gram.add(block);
    // The memory of a block may be reused.
    block.fill(Number.NaN);
  }
  return gram.finish();
}

describe('the products of rows', () => {
  // 300 rows are three tiles of the result, the last one partial.
  it.each([1, 2, 7, 33, 300])('of a matrix with %d rows are added to the target', async (size) => {
    const x = integerMatrix(size, 70, generator(size));
    const target = symmetricMatrix(size);
    target.values.fill(1000);
    await addRowProducts(target, x);
    expect(whole(size, (row, column) => symmetricValue(target, row, column) - 1000)).toEqual(
      naiveProduct(x, x),
    );
  });

  it('use the given product', async () => {
    const x = integerMatrix(40, 10, generator(3));
    const [own, other] = [symmetricMatrix(40), symmetricMatrix(40)];
    await addRowProducts(own, x);
    await addRowProducts(other, x, async (a, b, target) => {
      await plainProduct(a, b, target);
      for (let i = 0; i < a.rows * b.rows; i++) target[i] = 3 * (target[i] ?? 0);
    });
    expect(other.values).toEqual(own.values.map((value) => 3 * value));
  });

  it('are computed without blocking the process', async () => {
    let turns = 0;
    const count = () => {
      turns++;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await addRowProducts(symmetricMatrix(300), integerMatrix(300, 5, generator(1)));
    clearImmediate(timer);
    // A turn for each of the six tiles on and below the diagonal.
    expect(turns).toBeGreaterThanOrEqual(5);
  });
});

describe('the Gram matrix of a matrix in blocks', () => {
  // 128 rows of a tall matrix are gathered for each multiplication.
  it.each([
    [128, 20, 128],
    [300, 130, 7],
    [300, 130, 1],
    [300, 3, 299],
    [50, 50, 16],
    [5, 4, 2],
    [1, 1, 1],
  ])('is AᵀA for a tall one [%d, %d], %d rows at a time', async (rows, columns, blockRows) => {
    const a = integerMatrix(rows, columns, generator(rows + columns));
    const gram = await gramOf(a, blockRows);
    expect(gram.size).toBe(columns);
    const turned = transposed(a);
    expect(whole(columns, (row, column) => symmetricValue(gram, row, column))).toEqual(
      naiveProduct(turned, turned),
    );
  });

  it.each([
    [20, 300, 20],
    [140, 141, 9],
    [1, 5, 1],
  ])('is AAᵀ for a wide one [%d, %d], %d rows at a time', async (rows, columns, blockRows) => {
    const a = integerMatrix(rows, columns, generator(rows + columns));
    const gram = await gramOf(a, blockRows);
    expect(gram.size).toBe(rows);
    expect(whole(rows, (row, column) => symmetricValue(gram, row, column))).toEqual(
      naiveProduct(a, a),
    );
  });

  it('has a predictable size', () => {
    // Half of 4096², the diagonal whole, and 128 rows of 4096; eight bytes each.
    expect(GramAccumulator.bytes(65536, 4096)).toBe(8 * (8_390_656 + 524_288));
    // A wide matrix is kept: 3 + 2 + 1 and 3 × 100.
    expect(GramAccumulator.bytes(3, 100)).toBe(8 * (6 + 300));
  });
});
