/** One pass over a matrix A that is read in blocks of rows: what it makes of a few directions. */
import { addRowProducts } from './gram.js';
import type { Matrix, MatrixProducts, SymmetricMatrix } from './matrix.js';
import { plainProduct, rowsOf, symmetricMatrix } from './matrix.js';

/** A matrix that is read in blocks of rows, as often as needed. */
export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  /** Writes `rows` rows from `firstRow` on to `target`, [rows, columns], row-major. */
  read(firstRow: number, rows: number, target: Float64Array): void | Promise<void>;
}

/** How a source is read and multiplied. */
export interface Reading {
  readonly products: MatrixProducts;
  /** Rows read at a time. */
  readonly blockRows: number;
  /** Called after each block, with its rows. */
  readonly onRows?: (rows: number) => void;
}

export interface Pass {
  /** XAᵀAXᵀ, for X's rows: what the directions catch of A. */
  readonly gram: SymmetricMatrix;
  /** XAᵀA, of X's shape. */
  readonly image: Matrix;
}

/** A pass with the rows of `x`, [k, columns]. @param see Called with each block that was read. */
export async function passOver(
  source: RowSource,
  x: Matrix,
  reading: Reading,
  see: (values: Float64Array) => void,
): Promise<Pass> {
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
      const a = rowsOf(block, 0, count);
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
  /** Memory for what a block adds to the image. */
  readonly part: Float64Array;
  /** Memory for X · blockᵀ. */
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
  // In float64 whoever multiplies: this decides which directions count, and how much.
  await addRowProducts(sums.gram, caught, plainProduct);
}

// What the passes of a subspace iteration have found, and whether another would find more.

/** What one pass found. */
export interface Found {
  /** Squares of singular values as far as they are known, the largest first, [k]. */
  readonly energies: Float64Array;
  /** Squared Frobenius norm of the whole matrix. */
  readonly squaredNorm: number;
  /** Whether the k directions are all that there are. */
  readonly isWhole: boolean;
}

/**
 * Squared Frobenius norm of what an approximation leaves out, by its rank: from 0 up to k. What lies
 * outside the k directions is the difference of two large numbers, so precise to about `rounding` times
 * the squared norm; nothing is ever said to be smaller than what the other directions hold.
 */
export function squaredLossesOf(found: Found): Float64Array {
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
 * The largest part of the squared loss that may still be gained when the passes end. Half as much of the
 * loss itself, 0.01 %: gains shrink more slowly as they go on, so that the estimate may be some times too
 * small.
 */
const TOLERANCE = 2e-4;
/** Changes of a singular value by so many of the products' rounding errors mean nothing. */
const ROUNDINGS = 4;
/** How slowly the gains may shrink, from one pass to the next, and be believed. */
const SLOWEST = 0.95;

/** Watches the gains of the passes with the same number of directions. */
export class Convergence {
  readonly #rounding: number;
  #before: Float64Array | undefined;
  #gainBefore: number | undefined;

  /** @param rounding Relative rounding error of the products. */
  constructor(rounding: number) {
    this.#rounding = rounding;
  }

  /**
   * Takes what a pass found, and says whether the approximation of that rank is as good as it gets: the
   * gains shrink from pass to pass by some factor, so that all that are to come add up to a geometric
   * series. Never after less than three passes.
   */
  isReached(found: Found, rank: number): boolean {
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

  /** Forgets, when the directions become others. */
  restart(): void {
    this.#before = undefined;
    this.#gainBefore = undefined;
  }

  /**
   * Value by value, so that the rounding of the large ones does not hide the gains of the small ones. A
   * singular value σ is found to within rounding · σ₁, its square to within 2σ times as much.
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
 * What the best approximations of lower ranks to a matrix A lose: for each rank the squared Frobenius norm
 * of the difference, the sum of the squared singular values beyond that rank. No other approximation of
 * that rank loses less (Eckart and Young, Psychometrika 1, 1936).
 *
 * AᵀA holds squares, so that a loss below about 10⁻⁷ of A's norm cannot be told from rounding. What
 * rounding made negative counts as zero.
 *
 * @param eigenvalues Of AᵀA or AAᵀ, the largest first.
 */
export function squaredLosses(eigenvalues: Float64Array, ranks: readonly number[]): number[] {
  // tails[r]: the sum from place r on. From the smallest up, so that they are not lost in the large ones.
  const tails = new Float64Array(eigenvalues.length + 1);
  for (let i = eigenvalues.length - 1; i >= 0; i--) {
    tails[i] = (tails[i + 1] ?? 0) + Math.max(0, eigenvalues[i] ?? 0);
  }
  return ranks.map((rank) => tails[rank] ?? 0);
}
