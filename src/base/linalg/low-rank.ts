/**
 * Best low-rank approximation of a matrix read in blocks of rows: A ≈ U·Σ·Vᵀ. Seeded, deterministic, randomised
 * subspace iteration (Halko, Martinsson and Tropp, SIAM Review 53, 2011) with dynamic shifts (Feng, Yu and Xie,
 * ACM Transactions on Mathematical Software 50, 2024).
 */
import { fillNormal, streamKey } from '../tensor/random.js';
import { positiveEigen } from './eigenvalues.js';
import { orthonormaliseRows } from './gram.js';
import type { Matrix, MatrixProducts } from './matrix.js';
import { plainProducts, rowsView, scaleRow, squaredNorm as squaredNormOf } from './matrix.js';
import type { ProjectionResult, RowSource, SourceReading } from './subspace-iteration.js';
import { Convergence, projectRows, squaredLossesOf } from './subspace-iteration.js';

export type { RowSource } from './subspace-iteration.js';

export interface LowRankOptions extends SourceReading {
  /**
   * The rank, or the largest relative Frobenius error, which selects the smallest sufficient rank; `mostRank` if
   * no smaller one is enough.
   */
  readonly want:
    | { readonly rank: number }
    | { readonly relativeError: number; readonly mostRank?: number };
  readonly seed: number;
}

export interface LowRank {
  readonly rank: number;
  /** Largest first, [rank]. Zero for values below rounding error. */
  readonly singularValues: Float64Array;
  /** All that were found, largest first: those of the rank, and some beyond it, which are at most the true ones. */
  readonly spectrum: Float64Array;
  /** Squared Frobenius norm of the matrix. */
  readonly squaredNorm: number;
  /** V·√Σ, [columns, rank]. */
  readonly projection: Matrix;
  /** Writes rows of U·√Σ, [rows, rank], for rows of A: (rows of A) · V · Σ^(−1/2). Columns with σ = 0 are zero. */
  left(rows: Matrix, target: Float64Array): Promise<void>;
  /** Number of times the matrix was read. */
  readonly passes: number;
}

/** Up to this many rows or columns, all directions are used, and the result is exact to rounding. */
const EXACT_SIZE = 128;
/** Extra directions beyond the rank reduce the passes: at least this many, and a part of the rank. */
const LEAST_SPARE = 16;
const SPARE_PART = 1 / 8;
/** Initial directions when the rank is unknown. */
const FIRST_DIRECTIONS = 48;
/** Passes before an insufficient number of directions doubles. */
const PASSES_TO_WIDEN = 2;
/** Maximum passes. Five to ten are usual; noise needs the most. */
export const MOST_PASSES = 40;
/**
 * Part of the least energy of the directions, which is at most its value after all passes. At one half, the shift
 * would keep zero values: they would be as far below zero as the least wanted one is above.
 */
const SHIFT_PART = 0.4;
/** Assumed passes in work estimates. */
const USUAL_PASSES = 8;

function directionsFor(rank: number, rows: number, columns: number): number {
  const all = Math.min(rows, columns);
  if (all <= EXACT_SIZE) return all;
  return Math.min(all, rank + Math.max(LEAST_SPARE, Math.ceil(rank * SPARE_PART)));
}

/** Approximate multiplications of a low-rank approximation by the given products. */
export function lowRankMultiplications(rows: number, columns: number, rank: number): number {
  return USUAL_PASSES * 2 * rows * columns * directionsFor(rank, rows, columns);
}

/** Peak bytes of `lowRank`, including the block it reads, excluding memory of the products. */
export function lowRankBytes(
  rows: number,
  columns: number,
  rank: number,
  blockRows: number,
): number {
  const directions = directionsFor(rank, rows, columns);
  const block = Math.min(rows, blockRows) * (columns + directions);
  // Directions, their image, one rotated copy, a block's contribution; the Gram matrix, its factor, its vectors.
  return 8 * (block + 5 * directions * columns + 3 * directions ** 2);
}

/**
 * Reads the matrix at most `MOST_PASSES` times, until the error is within 0.1 % of the minimum for the rank. The
 * same seed and blocks give identical bits. Singular values below the products' rounding error times A's norm
 * count as zero.
 *
 * @throws RangeError for an invalid rank, and for values that are not finite.
 */
export async function lowRank(source: RowSource, options: LowRankOptions): Promise<LowRank> {
  const found = await new SubspaceIteration(source, options).run();
  return factorsOf(found, options.products);
}

/** Final state of the iteration. */
interface Subspace extends ProjectionResult {
  readonly rank: number;
  /** Right singular vectors as rows, [k, columns]. */
  readonly directions: Matrix;
  readonly passes: number;
}

class SubspaceIteration {
  readonly #source: RowSource;
  readonly #options: LowRankOptions;
  /** The smaller of rows and columns. */
  readonly #all: number;
  readonly #mostRank: number;
  readonly #convergence: Convergence;
  #x: Matrix;
  /** Number of random rows created so far. */
  #made = 0;
  /** Passes with the same number of directions. */
  #passesAtWidth = 0;

  constructor(source: RowSource, options: LowRankOptions) {
    const { want, products } = options;
    const { rows, columns } = source;
    this.#source = source;
    this.#options = options;
    this.#all = Math.min(rows, columns);
    this.#mostRank = 'rank' in want ? want.rank : (want.mostRank ?? this.#all);
    this.#convergence = new Convergence(products.rounding);
    const isRank = Number.isInteger(this.#mostRank) && this.#mostRank >= 1;
    const isError = 'rank' in want || want.relativeError >= 0;
    if (!isRank || this.#mostRank > this.#all || !isError) {
      throw new RangeError(`${JSON.stringify(want)} of a matrix of ${rows} × ${columns}`);
    }
    const first = 'rank' in want ? want.rank : Math.min(this.#mostRank, FIRST_DIRECTIONS);
    this.#x = this.#random(this.#directionsFor(first));
  }

  async run(): Promise<Subspace> {
    await this.#orthonormalise();
    let shift = 0;
    let squaredNorm = 0;
    for (let passes = 1; ; passes++) {
      const x = this.#x;
      const { gram, image } = await projectRows(this.#source, x, this.#options, (block) => {
        if (passes === 1) squaredNorm += squaredNormOf(block);
      });
      if (!Number.isFinite(squaredNorm)) throw notFinite();
      this.#passesAtWidth++;
      const { values: energies, vectors } = await positiveEigen(gram);
      const found = { energies, squaredNorm, isWhole: x.rows === this.#all };
      const directions = await turned(x, vectors);
      const rank = this.#rankOf(found);
      const isDone =
        rank !== undefined && this.#hasSpare(rank) && this.#convergence.isReached(found, rank);
      if (isDone || (passes >= MOST_PASSES && rank !== undefined)) {
        return { ...found, rank, directions, passes };
      }
      // With all directions, only zeros need separating, so no shift is used.
      if (!found.isWhole) shift = Math.max(shift, SHIFT_PART * (energies.at(-1) ?? 0));
      this.#x = shifted(await turned(image, vectors), directions, shift);
      if (this.#widen(rank)) shift = 0;
      await this.#orthonormalise();
    }
  }

  /** Requested rank; undefined when more directions are needed to determine it. */
  #rankOf(found: ProjectionResult): number | undefined {
    const { want } = this.#options;
    if ('rank' in want) return want.rank;
    const largest = want.relativeError ** 2 * found.squaredNorm;
    const rank = squaredLossesOf(found).findIndex((loss) => loss <= largest);
    if (rank >= 0 && rank <= this.#mostRank) return Math.max(1, rank);
    return this.#hasSpare(this.#mostRank) ? this.#mostRank : undefined;
  }

  /** Whether there are enough directions for a rank. */
  #hasSpare(rank: number): boolean {
    return this.#x.rows >= this.#directionsFor(rank);
  }

  #directionsFor(rank: number): number {
    return directionsFor(rank, this.#source.rows, this.#source.columns);
  }

  /** Adds directions if there are too few for the requested error. Returns whether it did. */
  #widen(rank: number | undefined): boolean {
    const { columns } = this.#source;
    if (rank !== undefined && this.#hasSpare(rank)) return false;
    if (this.#passesAtWidth < PASSES_TO_WIDEN) return false;
    const width =
      rank === undefined
        ? Math.min(this.#directionsFor(this.#mostRank), 2 * this.#x.rows)
        : this.#directionsFor(rank);
    const wider = this.#random(width - this.#x.rows);
    const values = new Float64Array(width * columns);
    values.set(this.#x.values);
    values.set(wider.values, this.#x.values.length);
    this.#x = { values, rows: width, columns };
    this.#passesAtWidth = 0;
    this.#convergence.restart();
    return true;
  }

  #orthonormalise(): Promise<void> {
    return orthonormaliseRows(this.#x, (row) => this.#fill(row));
  }

  #random(rows: number): Matrix {
    const { columns } = this.#source;
    const matrix = { values: new Float64Array(rows * columns), rows, columns };
    for (let row = 0; row < rows; row++) this.#fill(rowsView(matrix, row, row + 1).values);
    return matrix;
  }

  #fill(row: Float64Array): void {
    fillNormal(streamKey(this.#options.seed, 'directions'), this.#made * row.length, row, 1);
    this.#made++;
  }
}

const notFinite = () =>
  new RangeError('the matrix holds a value that is not finite, or whose square is not');

/** vectors · x */
async function turned(x: Matrix, vectors: Matrix): Promise<Matrix> {
  const values = new Float64Array(x.values.length);
  await plainProducts.times(vectors, x, values);
  return { ...x, values };
}

/** Subtracts `shift` times the directions from their image, which separates the wanted values better. */
function shifted(image: Matrix, directions: Matrix, shift: number): Matrix {
  for (let k = 0; k < image.values.length; k++) {
    image.values[k] = (image.values[k] ?? 0) - shift * (directions.values[k] ?? 0);
  }
  return image;
}

function factorsOf(found: Subspace, products: MatrixProducts): LowRank {
  const { rank, squaredNorm, passes } = found;
  const least = products.rounding * Math.sqrt(squaredNorm);
  const spectrum = found.energies.map((energy) =>
    Math.sqrt(energy) > least ? Math.sqrt(energy) : 0,
  );
  const singularValues = spectrum.slice(0, rank);
  const directions = withSigns(rowsView(found.directions, 0, rank));
  const roots = singularValues.map(Math.sqrt);
  const inverse = rowsTimes(
    directions,
    roots.map((root) => (root > 0 ? 1 / root : 0)),
  );
  products.hold(inverse);
  return {
    rank,
    singularValues,
    spectrum,
    squaredNorm,
    passes,
    projection: transposed(rowsTimes(directions, roots)),
    left: async (rows, target) => products.timesTransposed(rows, inverse, target),
  };
}

/** Makes the largest value of each row positive; its sign would otherwise be arbitrary. */
function withSigns(x: Matrix): Matrix {
  const signs = Float64Array.from({ length: x.rows }, (_, row) => {
    const { values } = rowsView(x, row, row + 1);
    return Math.sign(values.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0));
  });
  return rowsTimes(x, signs);
}

function rowsTimes(x: Matrix, factors: Float64Array): Matrix {
  const result = { ...x, values: x.values.slice() };
  for (const [row, factor] of factors.entries()) {
    scaleRow(result.values, row * x.columns, factor, x.columns);
  }
  return result;
}

function transposed({ values, rows, columns }: Matrix): Matrix {
  const result = new Float64Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      result[column * rows + row] = values[row * columns + column] ?? 0;
    }
  }
  return { values: result, rows: columns, columns: rows };
}
