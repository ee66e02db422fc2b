import type { RowSource } from '../../../src/base/linalg/low-rank.js';
import type { Matrix, SymmetricMatrix } from '../../../src/base/linalg/matrix.js';

/** A reproducible generator: Marsaglia's xorshift32. */
export function generator(seed: number): () => number {
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Values between -1 and 1. */
export function randomMatrix(rows: number, columns: number, random: () => number): Matrix {
  return {
    values: Float64Array.from({ length: rows * columns }, () => 2 * random() - 1),
    rows,
    columns,
  };
}

/** Small integers, with which float64 arithmetic is exact. */
export function integerMatrix(rows: number, columns: number, random: () => number): Matrix {
  return {
    values: Float64Array.from({ length: rows * columns }, () => Math.floor(random() * 9) - 4),
    rows,
    columns,
  };
}

export const at = ({ values, columns }: Matrix, row: number, column: number): number =>
  values[row * columns + column] ?? Number.NaN;

export function transposed(matrix: Matrix): Matrix {
  const values = new Float64Array(matrix.values.length);
  for (let row = 0; row < matrix.rows; row++) {
    for (let column = 0; column < matrix.columns; column++) {
      values[column * matrix.rows + row] = at(matrix, row, column);
    }
  }
  return { values, rows: matrix.columns, columns: matrix.rows };
}

/** a · bᵀ by definition. */
export function naiveProduct(a: Matrix, b: Matrix): Float64Array {
  const result = new Float64Array(a.rows * b.rows);
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j < b.rows; j++) {
      let sum = 0;
      for (let k = 0; k < a.columns; k++) sum += at(a, i, k) * at(b, j, k);
      result[i * b.rows + j] = sum;
    }
  }
  return result;
}

export function symmetric(size: number, value: (row: number, column: number) => number) {
  const values: number[] = [];
  for (let row = 0; row < size; row++) {
    for (let column = 0; column <= row; column++) values.push(value(row, column));
  }
  return { values: Float64Array.from(values), size } satisfies SymmetricMatrix;
}

/** A matrix with orthonormal rows, by Gram–Schmidt, applied twice. */
export function orthonormalRows(rows: number, columns: number, random: () => number): Matrix {
  const matrix = randomMatrix(rows, columns, random);
  for (let row = 0; row < rows; row++) {
    const own = matrix.values.subarray(row * columns, (row + 1) * columns);
    for (let round = 0; round < 2; round++) {
      for (let before = 0; before < row; before++) {
        const other = matrix.values.subarray(before * columns, (before + 1) * columns);
        let dot = 0;
        for (let k = 0; k < columns; k++) dot += (own[k] ?? 0) * (other[k] ?? 0);
        for (let k = 0; k < columns; k++) own[k] = (own[k] ?? 0) - dot * (other[k] ?? 0);
      }
      const norm = Math.hypot(...own);
      for (let k = 0; k < columns; k++) own[k] = (own[k] ?? 0) / norm;
    }
  }
  return matrix;
}

/** A matrix with these singular values; all others are zero. */
export function withSingularValues(
  rows: number,
  columns: number,
  singular: readonly number[],
  random: () => number,
): Matrix {
  const u = orthonormalRows(singular.length, rows, random);
  const v = orthonormalRows(singular.length, columns, random);
  const values = new Float64Array(rows * columns);
  for (const [k, value] of singular.entries()) {
    const across = v.values.subarray(k * columns, (k + 1) * columns);
    for (let i = 0; i < rows; i++) {
      const factor = value * at(u, k, i);
      const row = values.subarray(i * columns, (i + 1) * columns);
      for (let j = 0; j < columns; j++) row[j] = (row[j] ?? 0) + factor * (across[j] ?? 0);
    }
  }
  return { values, rows, columns };
}

/** Frobenius norm. */
export const norm = (values: Float64Array): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));

/** Largest difference of two arrays of equal length; NaN if they contain one. */
export const largestDifference = (a: Float64Array, b: Float64Array): number =>
  a.reduce((largest, value, k) => Math.max(largest, Math.abs(value - (b[k] ?? Number.NaN))), 0);

/** A source of the rows of a matrix. */
export const sourceOf = ({ values, rows, columns }: Matrix): RowSource => ({
  rows,
  columns,
  read(first, count, target) {
    if (target.length !== count * columns) throw new Error(`${count} rows into ${target.length}`);
    target.set(values.subarray(first * columns, (first + count) * columns));
  },
});
