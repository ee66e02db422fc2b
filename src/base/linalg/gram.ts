/** Products of all rows with each other, and the Gram matrix of a matrix read in blocks. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Matrix, MatrixProduct, SymmetricMatrix } from './matrix.js';
import {
  addMultiple,
  dotOf,
  plainProduct,
  rowsView,
  scaleRow,
  symmetricMatrix,
  triangleRow,
} from './matrix.js';

/** Rows and columns of a result tile; the loop yields between tiles. */
const LARGEST_TILE = 128;
const SMALLEST_TILE = 8;

/** Diagonal tiles are computed in full, so several tiles are needed to save work. */
const tileSize = (size: number): number =>
  Math.min(LARGEST_TILE, Math.max(SMALLEST_TILE, Math.ceil(size / 32) * 4));

/**
 * Adds x · xᵀ to `target`, for x of shape [size, k]: every row times every other. Yields to signals and timers now
 * and then. Rounding error of a result: at most about k · 2⁻⁵³ · ‖row‖ · ‖other row‖.
 */
export async function addRowProducts(
  target: SymmetricMatrix,
  x: Matrix,
  product: MatrixProduct = plainProduct,
): Promise<void> {
  const tile = tileSize(target.size);
  const results = new Float64Array(tile * tile);
  for (let row = 0; row < target.size; row += tile) {
    const rows = rowsView(x, row, Math.min(target.size, row + tile));
    for (let column = 0; column <= row; column += tile) {
      const columns = rowsView(x, column, Math.min(target.size, column + tile));
      await product(rows, columns, results);
      addLowerPart(target, results, row, column, rows.rows, columns.rows);
      await breathe();
    }
  }
}

/** Adds the lower triangle's part of a tile [rows, columns] that begins at (row, column). */
function addLowerPart(
  { values }: SymmetricMatrix,
  tile: Float64Array,
  row: number,
  column: number,
  rows: number,
  columns: number,
): void {
  for (let i = 0; i < rows; i++) {
    const at = triangleRow(row + i) + column;
    const width = Math.min(columns, row + i - column + 1);
    for (let j = 0; j < width; j++) {
      values[at + j] = (values[at + j] ?? 0) + (tile[i * columns + j] ?? 0);
    }
  }
}

/** Rows of a tall matrix to collect before multiplying. */
const PANEL_ROWS = 128;

/**
 * Gram matrix of A, of shape [rows, columns], read in blocks of rows: AᵀA for a tall A, AAᵀ for a wide one. The
 * eigenvalues of both are the squares of A's singular values. Only a wide A is kept in memory.
 */
export class GramAccumulator {
  readonly #gram: SymmetricMatrix;
  readonly #product: MatrixProduct;
  readonly #columns: number;
  /** Rows of A: all of a wide one, [rows, columns]; some of a tall one, transposed, [columns, panelRows]. */
  readonly #panel: Float64Array;
  readonly #panelRows: number;
  readonly #isTall: boolean;
  #gathered = 0;

  constructor(rows: number, columns: number, product: MatrixProduct = plainProduct) {
    this.#isTall = rows >= columns;
    this.#columns = columns;
    this.#product = product;
    this.#panelRows = this.#isTall ? Math.min(rows, PANEL_ROWS) : rows;
    this.#panel = new Float64Array(this.#panelRows * columns);
    this.#gram = symmetricMatrix(Math.min(rows, columns));
  }

  /** Bytes needed for an A of this shape. */
  static bytes(rows: number, columns: number): number {
    const panelRows = rows >= columns ? Math.min(rows, PANEL_ROWS) : rows;
    return 8 * (triangleRow(Math.min(rows, columns)) + panelRows * columns);
  }

  /** Adds the next rows of A, row-major. */
  async add(block: Float64Array): Promise<void> {
    for (let at = 0; at < block.length; at += this.#columns) {
      this.#take(block, at);
      if (this.#gathered === this.#panelRows) await this.#multiply();
    }
  }

  /** Returns the Gram matrix after all rows were added. The caller may overwrite it. */
  async finish(): Promise<SymmetricMatrix> {
    if (this.#gathered > 0) await this.#multiply();
    return this.#gram;
  }

  /** Copies the row at `at` into the panel. */
  #take(block: Float64Array, at: number): void {
    const [row, stride] = [this.#gathered, this.#panelRows];
    this.#gathered++;
    if (!this.#isTall) {
      this.#panel.set(block.subarray(at, at + this.#columns), row * this.#columns);
      return;
    }
    for (let column = 0; column < this.#columns; column++) {
      this.#panel[column * stride + row] = block[at + column] ?? 0;
    }
  }

  async #multiply(): Promise<void> {
    const panel = this.#isTall
      ? { values: this.#panel, rows: this.#columns, columns: this.#panelRows }
      : { values: this.#panel, rows: this.#panelRows, columns: this.#columns };
    await addRowProducts(this.#gram, panel, this.#product);
    // Zeros the rows of the panel that stay unused.
    this.#panel.fill(0);
    this.#gathered = 0;
  }
}

// Orthonormal rows

/** If a row keeps less than this part of its length, twice over, the rest is rounding error. */
const DEPENDENT = 1e-14;
/** If the first projection keeps this part of a direction, the second does not shorten it. */
const KEPT_LENGTH = 0.5;
/** Maximum random replacements of a row; almost every one is independent of all other rows. */
const MOST_TRIES = 8;

/**
 * Orthonormalises the rows of `x` in place and in order, so the span of the first rows stays. Requires at most as
 * many rows as columns. Uses Gram-Schmidt twice, which is enough (Giraud, Langou and Rozložník, Computers &
 * Mathematics with Applications 50, 2005). `replace` overwrites rows that depend on earlier ones to within
 * rounding.
 */
export async function orthonormaliseRows(
  x: Matrix,
  replace: (row: Float64Array) => void,
): Promise<void> {
  for (let row = 0; row < x.rows; row++) {
    const at = row * x.columns;
    let tries = 0;
    while (!normaliseRow(x, row)) {
      if (++tries > MOST_TRIES) throw new Error('there are more rows than independent directions');
      replace(x.values.subarray(at, at + x.columns));
    }
    await breathe();
  }
}

/** Returns whether a part of the row remained. */
function normaliseRow(x: Matrix, row: number): boolean {
  const at = row * x.columns;
  // Normalises first, so that squares of a tiny row do not underflow.
  if (!toLengthOne(x, at, 0)) return false;
  project(x, row);
  if (!toLengthOne(x, at, DEPENDENT)) return false;
  project(x, row);
  return toLengthOne(x, at, KEPT_LENGTH);
}

function project({ values, columns }: Matrix, row: number): void {
  const at = row * columns;
  for (let before = 0; before < row; before++) {
    const other = before * columns;
    addMultiple(values, at, other, -dotOf(values, at, other, columns), columns);
  }
}

/** Returns false and leaves the row unchanged when it is not longer than `least`. */
function toLengthOne({ values, columns }: Matrix, at: number, least: number): boolean {
  let largest = 0;
  for (let k = at; k < at + columns; k++) largest = Math.max(largest, Math.abs(values[k] ?? 0));
  if (largest === 0) return false;
  scaleRow(values, at, 1 / largest, columns);
  const length = Math.sqrt(dotOf(values, at, at, columns));
  scaleRow(values, at, 1 / length, columns);
  return length * largest > least;
}
