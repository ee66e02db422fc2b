/** Dense matrices in float64. */

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
