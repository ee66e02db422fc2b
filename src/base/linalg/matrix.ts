/** Dense matrices in float64. */

// Arithmetic on rows of a matrix stored consecutively; `at` is the start of a row.

/** Dot product of two rows of `length` numbers. */
export function dotOf(values: Float64Array, at: number, other: number, length: number): number {
  // Four independent sums, so that additions need not wait for each other.
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

/** Multiplies the row at `at` by `factor`. */
export function scaleRow(values: Float64Array, at: number, factor: number, length: number): void {
  for (let k = at; k < at + length; k++) values[k] = (values[k] ?? 0) * factor;
}

/** Row-major without gaps: value (r, c) is `values[r * columns + c]`. */
export interface Matrix {
  readonly values: Float64Array;
  readonly rows: number;
  readonly columns: number;
}

/** View of the rows from `first` up to `end`. */
export function rowsView({ values, columns }: Matrix, first: number, end: number): Matrix {
  return {
    values: values.subarray(first * columns, end * columns),
    rows: end - first,
    columns,
  };
}

/** Start of row `row` in a lower triangle stored as consecutive rows of lengths 1, 2, 3, … */
export const triangleRow = (row: number): number => (row * (row + 1)) / 2;

/** Lower triangle of a symmetric matrix, row by row. */
export interface SymmetricMatrix {
  /** size · (size + 1) / 2 numbers. */
  readonly values: Float64Array;
  readonly size: number;
}

/** A zero matrix. */
export function symmetricMatrix(size: number): SymmetricMatrix {
  return { values: new Float64Array(triangleRow(size)), size };
}

/** Value (row, column), on either side of the diagonal. */
export function symmetricValue({ values }: SymmetricMatrix, row: number, column: number): number {
  return values[triangleRow(Math.max(row, column)) + Math.min(row, column)] ?? Number.NaN;
}

// Compares tables with their mean, a block at a time. All sums are in float64

/** Writes the mean of the rows of `x`, [n, k], to the first k numbers of `target`. */
export function meanOfRows(x: Matrix, target: Float64Array): void {
  const row = (index: number) => rowsView(x, index, index + 1).values;
  target.fill(0, 0, x.columns);
  let done = 0;
  // Four rows at a time take half the time, with the same order of additions.
  for (; done + 4 <= x.rows; done += 4) {
    addFour(target, row(done), row(done + 1), row(done + 2), row(done + 3));
  }
  for (; done < x.rows; done++) addTo(target, row(done));
  for (let k = 0; k < x.columns; k++) target[k] = (target[k] ?? 0) / x.rows;
}

function addTo(target: Float64Array, values: Float64Array): void {
  for (let k = 0; k < values.length; k++) target[k] = (target[k] ?? 0) + (values[k] ?? 0);
}

function addFour(
  target: Float64Array,
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  d: Float64Array,
): void {
  for (let k = 0; k < a.length; k++) {
    target[k] = (target[k] ?? 0) + (a[k] ?? 0) + (b[k] ?? 0) + (c[k] ?? 0) + (d[k] ?? 0);
  }
}

/** Comparison of a table with the mean, over all blocks added so far. */
export interface TableDistance {
  /** Sum of the squares of the table's values. */
  squaredNorm: number;
  /** Sum of the products of their values. */
  dot: number;
  /** Sum of the squared differences. */
  squaredDistance: number;
  /** Largest absolute difference. */
  largestDifference: number;
}

/** Comparison before the first block. */
export const emptyComparison = (): TableDistance => ({
  squaredNorm: 0,
  dot: 0,
  squaredDistance: 0,
  largestDifference: 0,
});

/** Adds a block of a table and the same block of the mean. Sums are computed per block. */
export function addComparison(to: TableDistance, values: Float64Array, mean: Float64Array): void {
  let norm = 0;
  let dot = 0;
  let squares = 0;
  let largest = 0;
  for (let k = 0; k < values.length; k++) {
    const value = values[k] ?? 0;
    const other = mean[k] ?? 0;
    const difference = Math.abs(value - other);
    norm += value * value;
    dot += value * other;
    squares += difference * difference;
    // Branch-free, because a branch takes 1.5 times as long.
    largest = Math.max(largest, difference);
  }
  to.squaredNorm += norm;
  to.dot += dot;
  to.squaredDistance += squares;
  to.largestDifference = Math.max(to.largestDifference, largest);
}

/** Sum of the squares. */
export function squaredNorm(values: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < values.length; k++) {
    const value = values[k] ?? 0;
    sum += value * value;
  }
  return sum;
}

/** Writes a product to the first m · n numbers of `target`, row-major [m, n]. */
export type MatrixProduct = (a: Matrix, b: Matrix, target: Float64Array) => void | Promise<void>;

/** Products behind all arithmetic of cubic cost, so that a faster engine can replace plain JavaScript. */
export interface MatrixProducts {
  /** Relative rounding error of their arithmetic: 2⁻⁵³ for float64. */
  readonly rounding: number;
  /** a · bᵀ, for a of shape [m, k] and b of shape [n, k]. */
  readonly timesTransposed: MatrixProduct;
  /** a · b, for a of shape [m, k] and b of shape [k, n]. */
  readonly times: MatrixProduct;
  /**
   * Announces that several products use this matrix object. Its values must stay unchanged until the returned
   * function is called, so an engine can cache its own copy.
   */
  hold(matrix: Matrix): () => void;
}

/**
 * Products in plain JavaScript. Results are summed in the order of a's columns, 256 at a time, so equal rows give
 * equal results at any position.
 */
export const plainProducts: MatrixProducts = createPlainProducts();

/** a · bᵀ in plain JavaScript. */
export const plainProduct: MatrixProduct = plainProducts.timesTransposed;

/**
 * Copies bands of both matrices so that they fit in the nearest caches, and multiplies them in tiles of 2 × 4
 * results with sums in registers (Golub and Van Loan, Matrix Computations, section 1.5).
 * Sizes and bands are constants of this closure so that V8's compiler knows lengths and addresses: the inner loop
 * is 1.5 times as fast as one over array arguments.
 */
function createPlainProducts(): MatrixProducts {
  const BAND_ROWS = 64;
  const BAND_COLUMNS = 256;
  const TILE_ROWS = 2;
  const TILE_COLUMNS = 4;
  const left = new Float64Array(BAND_ROWS * BAND_COLUMNS);
  const right = new Float64Array(BAND_ROWS * BAND_COLUMNS);
  const sums = new Float64Array(TILE_ROWS * TILE_COLUMNS);

  /** Copies the available rows and columns from (row, column) on to a band; the rest of the band is undefined. */
  function loadRows(band: Float64Array, matrix: Matrix, row: number, column: number): void {
    const rows = Math.min(BAND_ROWS, matrix.rows - row);
    const columns = Math.min(BAND_COLUMNS, matrix.columns - column);
    for (let index = 0; index < rows; index++) {
      const at = (row + index) * matrix.columns + column;
      band.set(matrix.values.subarray(at, at + columns), index * BAND_COLUMNS);
    }
  }

  /** The same for the transposed matrix. */
  function loadColumns(band: Float64Array, matrix: Matrix, row: number, column: number): void {
    const rows = Math.min(BAND_ROWS, matrix.columns - row);
    const columns = Math.min(BAND_COLUMNS, matrix.rows - column);
    for (let k = 0; k < columns; k++) {
      const at = (column + k) * matrix.columns + row;
      for (let index = 0; index < rows; index++) {
        band[index * BAND_COLUMNS + k] = matrix.values[at + index] ?? 0;
      }
    }
  }

  /** Sums of the tile that begins at these rows of the bands, over `columns` columns. */
  function sumTile(leftRow: number, rightRow: number, columns: number): void {
    const a = leftRow * BAND_COLUMNS;
    const b = rightRow * BAND_COLUMNS;
    let s00 = 0;
    let s01 = 0;
    let s02 = 0;
    let s03 = 0;
    let s10 = 0;
    let s11 = 0;
    let s12 = 0;
    let s13 = 0;
    for (let k = 0; k < columns; k++) {
      const a0 = left[a + k] ?? 0;
      const a1 = left[a + BAND_COLUMNS + k] ?? 0;
      const b0 = right[b + k] ?? 0;
      const b1 = right[b + BAND_COLUMNS + k] ?? 0;
      const b2 = right[b + 2 * BAND_COLUMNS + k] ?? 0;
      const b3 = right[b + 3 * BAND_COLUMNS + k] ?? 0;
      s00 += a0 * b0;
      s01 += a0 * b1;
      s02 += a0 * b2;
      s03 += a0 * b3;
      s10 += a1 * b0;
      s11 += a1 * b1;
      s12 += a1 * b2;
      s13 += a1 * b3;
    }
    sums[0] = s00;
    sums[1] = s01;
    sums[2] = s02;
    sums[3] = s03;
    sums[4] = s10;
    sums[5] = s11;
    sums[6] = s12;
    sums[7] = s13;
  }

  /** Adds the tile's sums to the results from (row, column) on, within bounds. */
  function addTile(target: Matrix, row: number, column: number): void {
    const rows = Math.min(TILE_ROWS, target.rows - row);
    const columns = Math.min(TILE_COLUMNS, target.columns - column);
    for (let i = 0; i < rows; i++) {
      const at = (row + i) * target.columns + column;
      for (let j = 0; j < columns; j++) {
        target.values[at + j] = (target.values[at + j] ?? 0) + (sums[i * TILE_COLUMNS + j] ?? 0);
      }
    }
  }

  /** Adds the product of the two bands to the results from (row, column) on. */
  function addBands(target: Matrix, row: number, column: number, columns: number): void {
    const endRow = Math.min(target.rows, row + BAND_ROWS);
    const endColumn = Math.min(target.columns, column + BAND_ROWS);
    for (let i = row; i < endRow; i += TILE_ROWS) {
      for (let j = column; j < endColumn; j += TILE_COLUMNS) {
        sumTile(i - row, j - column, columns);
        addTile(target, i, j);
      }
    }
  }

  /** Product of a with the transpose of the matrix that `loadRight` reads from b. */
  function multiply(
    a: Matrix,
    b: Matrix,
    rows: number,
    loadRight: typeof loadRows,
    target: Float64Array,
  ): void {
    const result = { values: target, rows: a.rows, columns: rows };
    target.fill(0, 0, a.rows * rows);
    for (let k = 0; k < a.columns; k += BAND_COLUMNS) {
      const columns = Math.min(BAND_COLUMNS, a.columns - k);
      for (let j = 0; j < rows; j += BAND_ROWS) {
        loadRight(right, b, j, k);
        for (let i = 0; i < a.rows; i += BAND_ROWS) {
          loadRows(left, a, i, k);
          addBands(result, i, j, columns);
        }
      }
    }
  }

  return {
    rounding: 2 ** -53,
    timesTransposed: (a, b, target) => multiply(a, b, b.rows, loadRows, target),
    times: (a, b, target) => multiply(a, b, b.columns, loadColumns, target),
    hold: () => () => {},
  };
}
