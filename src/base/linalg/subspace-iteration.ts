/** One pass over a matrix A in blocks of rows, applied to a few directions. */
import { addRowProducts } from './gram.js';
import type { Matrix, MatrixProducts, SymmetricMatrix } from './matrix.js';
import { plainProduct, rowsView, symmetricMatrix } from './matrix.js';

/** A matrix that can be read repeatedly in blocks of rows. */
export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  /** Writes `rows` rows from `firstRow` on to `target`, [rows, columns], row-major. */
  read(firstRow: number, rows: number, target: Float64Array): void | Promise<void>;
}

/** Settings for reading and multiplying a source. */
export interface SourceReading {
  readonly products: MatrixProducts;
  /** Rows per block. */
  readonly blockRows: number;
  /** Called after each block with its number of rows. */
  readonly onRows?: (rows: number) => void;
}

export interface SourcePass {
  /** XAᵀAXᵀ, for X's rows: the energy of A in the directions. */
  readonly gram: SymmetricMatrix;
  /** XAᵀA, of X's shape. */
  readonly image: Matrix;
}

/** Runs a pass with the rows of `x`, [k, columns]. @param see Called with each block read. */
export async function projectRows(
  source: RowSource,
  x: Matrix,
  reading: SourceReading,
  see: (values: Float64Array) => void,
): Promise<SourcePass> {
  const { products, blockRows, onRows } = reading;
  const { rows, columns } = source;
  const most = Math.min(rows, blockRows);
  const block = { values: new Float64Array(most * columns), rows: most, columns };
  const caught = { values: new Float64Array(x.rows * most), rows: x.rows, columns: most };
  const image = { ...x, values: new Float64Array(x.values.length) };
  const part = new Float64Array(x.values.length);
  const gram = symmetricMatrix(x.rows);
  const letGo = products.hold(x);
  try {
    for (let row = 0; row < rows; row += most) {
      const count = Math.min(most, rows - row);
      const a = rowsView(block, 0, count);
      await source.read(row, count, a.values);
      see(a.values);
      await addBlock(a, x, { gram, image, part, caught: caught.values }, products);
      onRows?.(count);
    }
  } finally {
    letGo();
  }
  return { gram, image };
}

interface Sums {
  readonly gram: SymmetricMatrix;
  readonly image: Matrix;
  /** Buffer for a block's contribution to the image. */
  readonly part: Float64Array;
  /** Buffer for X · blockᵀ. */
  readonly caught: Float64Array;
}

async function addBlock(a: Matrix, x: Matrix, sums: Sums, products: MatrixProducts): Promise<void> {
  const values = sums.caught.subarray(0, x.rows * a.rows);
  const caught = { values, rows: x.rows, columns: a.rows };
  const letGo = products.hold(a);
  try {
    await products.timesTransposed(x, a, values);
    await products.times(caught, a, sums.part);
  } finally {
    letGo();
  }
  const { values: image } = sums.image;
  for (let k = 0; k < image.length; k++) image[k] = (image[k] ?? 0) + (sums.part[k] ?? 0);
  // Always in float64: this decides which directions matter, and how much.
  await addRowProducts(sums.gram, caught, plainProduct);
}

// Results of the passes of a subspace iteration, and their convergence

/** Result of one pass. */
export interface ProjectionResult {
  /** Known squares of singular values, largest first, [k]. */
  readonly energies: Float64Array;
  /** Squared Frobenius norm of the whole matrix. */
  readonly squaredNorm: number;
  /** Whether the k directions span the whole space. */
  readonly isWhole: boolean;
}

/**
 * Squared Frobenius norm of an approximation's error, by rank from 0 to k. The part outside the k directions is
 * the difference of two large numbers, with a precision of about `rounding` times the squared norm. No result is
 * below the energy of the remaining directions.
 */
export function squaredLossesOf(found: ProjectionResult): Float64Array {
  const { energies, squaredNorm, isWhole } = found;
  const losses = new Float64Array(energies.length + 1);
  const caught = energies.reduce((sum, energy) => sum + energy, 0);
  losses[energies.length] = isWhole ? 0 : Math.max(0, squaredNorm - caught);
  for (let rank = energies.length - 1; rank >= 0; rank--) {
    losses[rank] = (losses[rank + 1] ?? 0) + (energies[rank] ?? 0);
  }
  return losses;
}

/**
 * Largest remaining gain, relative to the squared loss, at which the passes end. The loss itself may gain half of
 * that, 0.01 %. Gains shrink more slowly over time, so the estimate may be several times too small.
 */
const TOLERANCE = 2e-4;
/** Changes of a singular value within this many rounding errors of the products are noise. */
const ROUNDINGS = 4;
/** Largest ratio of successive gains accepted as convergence. */
const SLOWEST = 0.95;

/** Tracks the gains of passes with the same number of directions. */
export class Convergence {
  readonly #rounding: number;
  #before: Float64Array | undefined;
  #gainBefore: number | undefined;

  /** @param rounding Relative rounding error of the products. */
  constructor(rounding: number) {
    this.#rounding = rounding;
  }

  /**
   * Adds a pass's result and returns whether the approximation of that rank has converged. Gains shrink by some
   * factor per pass, so the remaining ones form a geometric series. Requires at least three passes.
   */
  isReached(found: ProjectionResult, rank: number): boolean {
    const before = this.#before;
    this.#before = found.energies;
    if (!before) return false;
    const gain = this.#gain(before, found.energies, rank);
    const gainBefore = this.#gainBefore;
    this.#gainBefore = gain;
    if (gainBefore === undefined) return false;
    const ratio = Math.min(SLOWEST, gain / gainBefore || 0);
    const toCome = (gain * ratio) / (1 - ratio);
    return toCome <= TOLERANCE * (squaredLossesOf(found)[rank] ?? 0);
  }

  /** Resets when the directions change. */
  restart(): void {
    this.#before = undefined;
    this.#gainBefore = undefined;
  }

  /**
   * Computed per value, so that rounding of large values does not hide the gains of small ones. A singular value σ
   * has an error of rounding · σ₁, its square 2σ times as much.
   */
  #gain(before: Float64Array, after: Float64Array, rank: number): number {
    const [largest = 0] = after;
    let sum = 0;
    for (let i = 0; i < rank; i++) {
      const energy = after[i] ?? 0;
      const gain = Math.abs(energy - (before[i] ?? 0));
      const error = 2 * ROUNDINGS * this.#rounding * Math.sqrt(largest);
      if (gain > error * (Math.sqrt(energy) + error)) sum += gain;
    }
    return sum;
  }
}

/**
 * Loss of the best approximation of a matrix A at each rank: the squared Frobenius norm of the difference, which
 * is the sum of the squared singular values beyond that rank. It is the minimum for that rank (Eckart and Young,
 * Psychometrika 1, 1936).
 *
 * AᵀA holds squares, so a loss below about 10⁻⁷ of A's norm cannot be distinguished from rounding. Negative values
 * from rounding count as zero.
 *
 * @param eigenvalues Eigenvalues of AᵀA or AAᵀ, largest first.
 */
export function squaredLosses(eigenvalues: Float64Array, ranks: readonly number[]): number[] {
  // tails[r]: sum from index r on, added from the smallest up to preserve small values.
  const tails = new Float64Array(eigenvalues.length + 1);
  for (let i = eigenvalues.length - 1; i >= 0; i--) {
    tails[i] = (tails[i + 1] ?? 0) + Math.max(0, eigenvalues[i] ?? 0);
  }
  return ranks.map((rank) => tails[rank] ?? 0);
}
