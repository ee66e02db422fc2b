/** Dense matrices in float64. */

// Arithmetic of rows: those of a matrix stand one after the other, and `at` is where one begins.

/** The product of two rows of `length` numbers. */
export function dotOf(values: Float64Array, at: number, other: number, length: number): number {
  // Four sums at once: each addition need not wait for the one before.
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  const whole = length - (length % 4);
  for (let k = 0; k < whole; k += 4) {
    s0 += (values[at + k] ?? 0) * (values[other + k] ?? 0);
    s1 += (values[at + k + 1] ?? 0) * (values[other + k + 1] ?? 0);
    s2 += (values[at + k + 2] ?? 0) * (values[other + k + 2] ?? 0);
    s3 += (values[at + k + 3] ?? 0) * (values[other + k + 3] ?? 0);
  }
  for (let k = whole; k < length; k++) s0 += (values[at + k] ?? 0) * (values[other + k] ?? 0);
  return s0 + s1 + (s2 + s3);
}

/** Adds `factor` times the row at `other` to the row at `at`. */
export function addMultiple(
  values: Float64Array,
  at: number,
  other: number,
  factor: number,
  length: number,
): void {
  for (let k = 0; k < length; k++) {
    values[at + k] = (values[at + k] ?? 0) + factor * (values[other + k] ?? 0);
  }
}

/** Multiplies the row at `at`. */
export function scale(values: Float64Array, at: number, factor: number, length: number): void {
  for (let k = at; k < at + length; k++) values[k] = (values[k] ?? 0) * factor;
}

/** Row-major, no gap between the rows: value (r, c) is `values[r * columns + c]`. */
export interface Matrix {
  readonly values: Float64Array;
  readonly rows: number;
  readonly columns: number;
}

/** The rows from `first` up to `end`, on the same memory. */
export function rowsOf({ values, columns }: Matrix, first: number, end: number): Matrix {
  return {
    values: values.subarray(first * columns, end * columns),
    rows: end - first,
    columns,
  };
}

/** Where row `row` of a lower triangle begins, when its rows [1], [2], [3], … stand one after the other. */
export const triangleRow = (row: number): number => (row * (row + 1)) / 2;

/** A symmetric matrix: the lower triangle alone, row after row. */
export interface SymmetricMatrix {
  /** size · (size + 1) / 2 numbers. */
  readonly values: Float64Array;
  readonly size: number;
}

/** All zero. */
export function symmetricMatrix(size: number): SymmetricMatrix {
  return { values: new Float64Array(triangleRow(size)), size };
}

/** Value (row, column), on either side of the diagonal. */
export function valueAt({ values }: SymmetricMatrix, row: number, column: number): number {
  return values[triangleRow(Math.max(row, column)) + Math.min(row, column)] ?? Number.NaN;
}
