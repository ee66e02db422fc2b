/** Products of all rows with each other, and the Gram matrix of a matrix that arrives in blocks. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Matrix, MatrixProduct, SymmetricMatrix } from './matrix.js';
import {
  addMultiple,
  dotOf,
  plainProduct,
  rowsOf,
  scale,
  symmetricMatrix,
  triangleRow,
} from './matrix.js';

/** Rows and columns of a tile of the result: what is worked on between two breaths. */
const LARGEST_TILE = 128;
const SMALLEST_TILE = 8;

/** Tiles on the diagonal are worked out whole, so there have to be several. */
const tileSize = (size: number): number =>
  Math.min(LARGEST_TILE, Math.max(SMALLEST_TILE, Math.ceil(size / 32) * 4));

/**
 * Adds x · xᵀ to `target`, for x of shape [size, k]: every row times every other. Lets signals and timers
 * through now and then. The rounding error of a result is at most about k · 2⁻⁵³ · ‖row‖ · ‖other row‖.
 */
export async function addRowProducts(
  target: SymmetricMatrix,
  x: Matrix,
  product: MatrixProduct = plainProduct,
): Promise<void> {
  const tile = tileSize(target.size);
  const results = new Float64Array(tile * tile);
  for (let row = 0; row < target.size; row += tile) {
    const rows = rowsOf(x, row, Math.min(target.size, row + tile));
    for (let column = 0; column <= row; column += tile) {
      const columns = rowsOf(x, column, Math.min(target.size, column + tile));
      await product(rows, columns, results);
      addLowerPart(target, results, row, column, rows.rows, columns.rows);
      await breathe();
    }
  }
}

/** Adds a tile [rows, columns], which begins at (row, column), as far as it is below the diagonal. */
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

/** Rows of a tall matrix that are gathered before they are multiplied. */
const PANEL_ROWS = 128;

/**
 * The Gram matrix of A, of shape [rows, columns], which arrives in blocks of rows: AᵀA when A is tall, AAᵀ
 * when it is wide. Both have the squares of A's singular values as eigenvalues. A tall A is not kept; a
 * wide one is.
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

  /** Bytes that it takes for A of such a shape. */
  static bytes(rows: number, columns: number): number {
    const panelRows = rows >= columns ? Math.min(rows, PANEL_ROWS) : rows;
    return 8 * (triangleRow(Math.min(rows, columns)) + panelRows * columns);
  }

  /** Takes the next rows of A, row-major. */
  async add(block: Float64Array): Promise<void> {
    for (let at = 0; at < block.length; at += this.#columns) {
      this.#take(block, at);
      if (this.#gathered === this.#panelRows) await this.#multiply();
    }
  }

  /** The Gram matrix, once all rows have been added. It has the memory to itself: it may be overwritten. */
  async finish(): Promise<SymmetricMatrix> {
    if (this.#gathered > 0) await this.#multiply();
    return this.#gram;
  }

  /** Puts the row at `at` into the panel. */
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
    // What the last rows leave free must count nothing.
    this.#panel.fill(0);
    this.#gathered = 0;
  }
}

// Rows made orthonormal.

/** What is left of a row is nothing but rounding when it keeps less than this of its length, twice over. */
const DEPENDENT = 1e-14;
/** A direction that is left whole by the first projection is not shortened by the second. */
const KEPT_LENGTH = 0.5;
/** Random rows to try in the place of one: each is independent of all others but for an accident. */
const MOST_TRIES = 8;

/**
 * Makes the rows of `x`, of which there are at most as many as columns, orthonormal in place, in their
 * order: what the first rows span stays. Gram and Schmidt's way, twice, which is enough (Giraud, Langou and
 * Rozložník, Computers & Mathematics with Applications 50, 2005). A row that depends on those before it to
 * within rounding is replaced by what `replace` writes.
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

/** Says whether there was something left of the row. */
function normaliseRow(x: Matrix, row: number): boolean {
  const at = row * x.columns;
  // To length 1 first, so that no square of a tiny row vanishes.
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

/** Does nothing and says so when the row is not longer than `least`. */
function toLengthOne({ values, columns }: Matrix, at: number, least: number): boolean {
  let largest = 0;
  for (let k = at; k < at + columns; k++) largest = Math.max(largest, Math.abs(values[k] ?? 0));
  if (largest === 0) return false;
  scale(values, at, 1 / largest, columns);
  const length = Math.sqrt(dotOf(values, at, at, columns));
  scale(values, at, 1 / length, columns);
  return length * largest > least;
}
