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
