/** What the passes of a subspace iteration have found, and whether another would find more. */

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
