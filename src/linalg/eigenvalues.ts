/** Eigenvalues of a symmetric matrix, all of them. */
import type { SymmetricMatrix } from './matrix.js';
import { type Tridiagonal, tridiagonalise } from './tridiagonal.js';

/**
 * All eigenvalues, the largest first. Overwrites `matrix`, which must be finite. Each is right to within a
 * small multiple of size · 2⁻⁵³ · the largest in size: one that is much smaller than that is noise, and
 * may be negative where it should be zero. Takes about 2/3 · size³ multiplications.
 *
 * @throws Error when they do not converge, which for finite values does not happen.
 */
export async function symmetricEigenvalues(matrix: SymmetricMatrix): Promise<Float64Array> {
  const eigenvalues = tridiagonalEigenvalues(await tridiagonalise(matrix));
  return eigenvalues.sort().reverse();
}

/** Sweeps for one eigenvalue; two are usual. */
const MOST_SWEEPS = 60;

/**
 * The QL algorithm with Wilkinson's implicit shift (Golub and Van Loan, Matrix Computations, section
 * 8.3.5, where it is QR; Bowdler, Martin, Reinsch and Wilkinson, Numerische Mathematik 11, 1968). In no
 * order.
 */
function tridiagonalEigenvalues({ diagonal, offDiagonal }: Tridiagonal): Float64Array {
  const size = diagonal.length;
  const scale = largest(diagonal, largest(offDiagonal, 0));
  if (scale === 0) return diagonal;
  // Scaled to at most 1: squares can neither overflow nor vanish where they count.
  const d = diagonal.map((value) => value / scale);
  // To the right of each value of the diagonal.
  const e = new Float64Array(size);
  for (let i = 1; i < size; i++) e[i - 1] = (offDiagonal[i] ?? 0) / scale;
  for (let first = 0; first < size; first++) {
    for (let sweeps = 0; ; sweeps++) {
      const last = endOfBlock(d, e, first);
      if (last === first) break;
      if (sweeps === MOST_SWEEPS) throw new Error('the eigenvalues do not converge');
      sweep(d, e, first, last);
    }
  }
  return d.map((value) => value * scale);
}

const largest = (values: Float64Array, least: number): number =>
  values.reduce((most, value) => Math.max(most, Math.abs(value)), least);

/** The first place from `first` on with nothing that counts to the right of it. */
function endOfBlock(d: Float64Array, e: Float64Array, first: number): number {
  for (let i = first; i < d.length - 1; i++) {
    const neighbours = Math.abs(d[i] ?? 0) + Math.abs(d[i + 1] ?? 0);
    // The second term is for neighbours that are both zero.
    if (Math.abs(e[i] ?? 0) <= Number.EPSILON * (neighbours + Number.EPSILON)) return i;
  }
  return d.length - 1;
}

/** One sweep of plane rotations from `last` up to `first`, which chase the shift's bulge out of the block. */
function sweep(d: Float64Array, e: Float64Array, first: number, last: number): void {
  const [corner, beside] = [d[first] ?? 0, e[first] ?? 0];
  const half = ((d[first + 1] ?? 0) - corner) / (2 * beside);
  const root = Math.sqrt(half * half + 1);
  let g = (d[last] ?? 0) - corner + beside / (half + (half < 0 ? -root : root));
  let sine = 1;
  let cosine = 1;
  let shift = 0;
  for (let i = last - 1; i >= first; i--) {
    const f = sine * (e[i] ?? 0);
    const b = cosine * (e[i] ?? 0);
    const radius = Math.sqrt(f * f + g * g);
    e[i + 1] = radius;
    // Not zero: within a block no value beside the diagonal is, and none is small enough to vanish.
    sine = f / radius;
    cosine = g / radius;
    const before = (d[i + 1] ?? 0) - shift;
    const turned = ((d[i] ?? 0) - before) * sine + 2 * cosine * b;
    shift = sine * turned;
    d[i + 1] = before + shift;
    g = cosine * turned - b;
  }
  d[first] = (d[first] ?? 0) - shift;
  e[first] = g;
  e[last] = 0;
}
