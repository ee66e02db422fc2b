/** All eigenvalues of a symmetric matrix. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Matrix, SymmetricMatrix } from './matrix.js';
import { addMultiple, dotOf, scaleRow, symmetricValue, triangleRow } from './matrix.js';

/**
 * All eigenvalues, largest first. Overwrites `matrix`, which must be finite. The absolute error is a small
 * multiple of size · 2⁻⁵³ · the largest magnitude. Much smaller values are noise and may be negative instead of
 * zero. Takes about 2/3 · size³ multiplications.
 *
 * @throws Error without convergence, which does not happen for finite values.
 */
export async function symmetricEigenvalues(matrix: SymmetricMatrix): Promise<Float64Array> {
  const eigenvalues = tridiagonalEigenvalues(await tridiagonalise(matrix));
  return eigenvalues.sort().reverse();
}

/** Maximum sweeps for one eigenvalue; two are usual. */
const MAX_QL_SWEEPS = 60;

/**
 * QL algorithm with Wilkinson's implicit shift (Golub and Van Loan, Matrix Computations, section 8.3.5, where it
 * is QR; Bowdler, Martin, Reinsch and Wilkinson, Numerische Mathematik 11, 1968). Unordered.
 */
function tridiagonalEigenvalues({ diagonal, offDiagonal }: Tridiagonal): Float64Array {
  const size = diagonal.length;
  const scale = largestMagnitude(diagonal, largestMagnitude(offDiagonal, 0));
  if (scale === 0) return diagonal;
  // Scaled to at most 1, so squares neither overflow nor underflow significantly.
  const d = diagonal.map((value) => value / scale);
  // Values to the right of the diagonal.
  const e = new Float64Array(size);
  for (let i = 1; i < size; i++) e[i - 1] = (offDiagonal[i] ?? 0) / scale;
  for (let first = 0; first < size; first++) {
    for (let sweeps = 0; ; sweeps++) {
      const last = endOfBlock(d, e, first);
      if (last === first) break;
      if (sweeps === MAX_QL_SWEEPS) throw new Error('the eigenvalues do not converge');
      sweep(d, e, first, last);
    }
  }
  return d.map((value) => value * scale);
}

const largestMagnitude = (values: Float64Array, least: number): number =>
  values.reduce((most, value) => Math.max(most, Math.abs(value)), least);

/** First index from `first` on with a negligible value to the right. */
function endOfBlock(d: Float64Array, e: Float64Array, first: number): number {
  for (let i = first; i < d.length - 1; i++) {
    const neighbours = Math.abs(d[i] ?? 0) + Math.abs(d[i + 1] ?? 0);
    // The second term handles neighbours that are both zero.
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
    // Not zero: within a block, no off-diagonal value is negligible.
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

// Reduces a symmetric matrix to tridiagonal form with the same eigenvalues.

export interface Tridiagonal {
  /** [size] */
  readonly diagonal: Float64Array;
  /** [size]: the value to the left of each diagonal value; index 0 is unused. */
  readonly offDiagonal: Float64Array;
}

/**
 * Householder's reduction (Golub and Van Loan, Matrix Computations, algorithm 8.3.1), from the last row up, on the
 * lower triangle only. Each step's rank-2 update is delayed and applied during the next multiplication. The matrix
 * then passes through the caches once per row instead of twice.
 *
 * Overwrites `matrix`. Yields to signals and timers now and then. Eigenvalues change by a small multiple of size ·
 * 2⁻⁵³ · the largest one.
 */
async function tridiagonalise(matrix: SymmetricMatrix): Promise<Tridiagonal> {
  const { values, size } = matrix;
  const diagonal = new Float64Array(size);
  const offDiagonal = new Float64Array(size);
  let pending = { u: new Float64Array(size), w: new Float64Array(size) };
  let next = { u: new Float64Array(size), w: new Float64Array(size) };
  for (let row = size - 1; row >= 0; row--) {
    updateRow(values, row, pending);
    diagonal[row] = values[triangleRow(row) + row] ?? 0;
    const { divisor, beside } = reflector(values, row, next.u);
    offDiagonal[row] = beside;
    updateAndMultiply(values, row, pending, next);
    completeUpdate(next, row, divisor);
    [pending, next] = [next, pending];
    await breathe();
  }
  return { diagonal, offDiagonal };
}

/** Pending replacement of A by A − u·wᵀ − w·uᵀ. */
interface RankTwoUpdate {
  readonly u: Float64Array;
  readonly w: Float64Array;
}

/** Applies the update to row `row`, including its diagonal value. */
function updateRow(values: Float64Array, row: number, { u, w }: RankTwoUpdate): void {
  const at = triangleRow(row);
  const [uRow, wRow] = [u[row] ?? 0, w[row] ?? 0];
  for (let k = 0; k <= row; k++) {
    values[at + k] = (values[at + k] ?? 0) - (uRow * (w[k] ?? 0) + wRow * (u[k] ?? 0));
  }
}

/**
 * Writes the u for which I − u·uᵀ / divisor turns the values of a row left of the diagonal into zeros and one
 * value next to it. Values are scaled first to avoid overflow and underflow of squares.
 */
function reflector(values: Float64Array, row: number, u: Float64Array) {
  const at = triangleRow(row);
  let scale = 0;
  for (let k = 0; k < row; k++) scale = Math.max(scale, Math.abs(values[at + k] ?? 0));
  if (scale === 0) {
    u.fill(0);
    return { divisor: 1, beside: 0 };
  }
  let squares = 0;
  for (let k = 0; k < row; k++) {
    const value = (values[at + k] ?? 0) / scale;
    u[k] = value;
    squares += value * value;
  }
  const last = u[row - 1] ?? 0;
  // Opposite sign, to avoid cancellation.
  const norm = last > 0 ? -Math.sqrt(squares) : Math.sqrt(squares);
  u[row - 1] = last - norm;
  return { divisor: squares - last * norm, beside: scale * norm };
}

/** Updates the first `size` rows, and writes their product with next.u to next.w. */
function updateAndMultiply(
  values: Float64Array,
  size: number,
  pending: RankTwoUpdate,
  next: RankTwoUpdate,
): void {
  next.w.fill(0, 0, size);
  const paired = size - (size % 2);
  for (let row = 0; row < paired; row += 2) updatePair(values, row, pending, next);
  if (paired < size) updateLast(values, paired, pending, next);
}

/** Rows `row` and `row` + 1 together, which halves the passes over the vectors. */
function updatePair(
  values: Float64Array,
  row: number,
  pending: RankTwoUpdate,
  next: RankTwoUpdate,
): void {
  const { u, w } = pending;
  const { u: v, w: product } = next;
  const [at, below] = [triangleRow(row), triangleRow(row + 1)];
  const [u0, w0, v0] = [u[row] ?? 0, w[row] ?? 0, v[row] ?? 0];
  const [u1, w1, v1] = [u[row + 1] ?? 0, w[row + 1] ?? 0, v[row + 1] ?? 0];
  let sum0 = 0;
  let sum1 = 0;
  for (let k = 0; k < row; k++) {
    const uk = u[k] ?? 0;
    const wk = w[k] ?? 0;
    const vk = v[k] ?? 0;
    const a = (values[at + k] ?? 0) - (u0 * wk + w0 * uk);
    const b = (values[below + k] ?? 0) - (u1 * wk + w1 * uk);
    values[at + k] = a;
    values[below + k] = b;
    sum0 += a * vk;
    sum1 += b * vk;
    product[k] = (product[k] ?? 0) + a * v0 + b * v1;
  }
  const corner = (values[at + row] ?? 0) - 2 * u0 * w0;
  const beside = (values[below + row] ?? 0) - (u1 * w0 + w1 * u0);
  const last = (values[below + row + 1] ?? 0) - 2 * u1 * w1;
  values[at + row] = corner;
  values[below + row] = beside;
  values[below + row + 1] = last;
  product[row] = (product[row] ?? 0) + sum0 + corner * v0 + beside * v1;
  product[row + 1] = (product[row + 1] ?? 0) + sum1 + beside * v0 + last * v1;
}

/** The last row of an odd number. */
function updateLast(
  values: Float64Array,
  row: number,
  pending: RankTwoUpdate,
  next: RankTwoUpdate,
): void {
  updateRow(values, row, pending);
  const { u: v, w: product } = next;
  const at = triangleRow(row);
  const ownV = v[row] ?? 0;
  let sum = (values[at + row] ?? 0) * ownV;
  for (let k = 0; k < row; k++) {
    const value = values[at + k] ?? 0;
    sum += value * (v[k] ?? 0);
    product[k] = (product[k] ?? 0) + value * ownV;
  }
  product[row] = (product[row] ?? 0) + sum;
}

/** Turns A·u into the w of the update: w = p − (uᵀp / (2 · divisor)) · u with p = A·u / divisor. */
function completeUpdate({ u, w }: RankTwoUpdate, size: number, divisor: number): void {
  let dot = 0;
  for (let k = 0; k < size; k++) {
    const value = (w[k] ?? 0) / divisor;
    w[k] = value;
    dot += (u[k] ?? 0) * value;
  }
  const half = dot / (2 * divisor);
  for (let k = 0; k < size; k++) w[k] = (w[k] ?? 0) - half * (u[k] ?? 0);
}

// Eigenvalues and eigenvectors of a matrix of the form YᵀY.

export interface PositiveEigen {
  /** [size], largest first; zero for values below rounding error. */
  readonly values: Float64Array;
  /** [size, size]: orthonormal rows; zero rows for zero values. */
  readonly vectors: Matrix;
}

/**
 * Eigenvalues and eigenvectors of a symmetric matrix without negative eigenvalues: a pivoted Cholesky factor whose
 * columns are rotated until orthogonal (Veselić and Hari, Numerische Mathematik 56, 1989). If the matrix is close
 * to diagonal (Y's columns almost orthogonal), small eigenvalues are as precise as large ones, at any ratio
 * (Demmel and Veselić, SIAM Journal on Matrix Analysis and Applications 13, 1992).
 */
export async function positiveEigen(matrix: SymmetricMatrix): Promise<PositiveEigen> {
  const factor = choleskyRows(matrix);
  await makeOrthogonal(factor);
  const { rows, columns: size, values } = factor;
  const squares = Array.from({ length: rows }, (_, row) =>
    dotOf(values, row * size, row * size, size),
  );
  const order = squares.map((_, row) => row).sort((a, b) => (squares[b] ?? 0) - (squares[a] ?? 0));
  const vectors = { values: new Float64Array(size * size), rows: size, columns: size };
  const eigenvalues = new Float64Array(size);
  for (const [place, row] of order.entries()) {
    const square = squares[row] ?? 0;
    eigenvalues[place] = square;
    vectors.values.set(values.subarray(row * size, (row + 1) * size), place * size);
    scaleRow(vectors.values, place * size, 1 / Math.sqrt(square), size);
  }
  return { values: eigenvalues, vectors };
}

/**
 * Columns of Cholesky's factor as rows, [rank, size]: their outer products add up to the matrix. Each step pivots
 * on the largest remaining diagonal value, until only rounding error remains.
 */
function choleskyRows(matrix: SymmetricMatrix): Matrix {
  const { size } = matrix;
  const factor = new Float64Array(size * size);
  const diagonal = Float64Array.from({ length: size }, (_, i) => symmetricValue(matrix, i, i));
  const least = diagonal.map((value) => value * size * Number.EPSILON);
  let rank = 0;
  for (; rank < size; rank++) {
    const pivot = largestLeft(diagonal, least);
    if (pivot === undefined) break;
    const at = rank * size;
    for (let i = 0; i < size; i++) factor[at + i] = symmetricValue(matrix, i, pivot);
    for (let before = 0; before < rank; before++) {
      addMultiple(factor, at, before * size, -(factor[before * size + pivot] ?? 0), size);
    }
    scaleRow(factor, at, 1 / Math.sqrt(diagonal[pivot] ?? 1), size);
    factor[at + pivot] = Math.sqrt(diagonal[pivot] ?? 0);
    for (let i = 0; i < size; i++) {
      // Finished pivot rows: the rounding error left there is not part of the factor.
      if (diagonal[i] === 0 && i !== pivot) factor[at + i] = 0;
      else diagonal[i] = (diagonal[i] ?? 0) - (factor[at + i] ?? 0) ** 2;
    }
    diagonal[pivot] = 0;
  }
  return { values: factor.subarray(0, rank * size), rows: rank, columns: size };
}

/** Index of the largest value above its rounding error. */
function largestLeft(diagonal: Float64Array, least: Float64Array): number | undefined {
  let place: number | undefined;
  for (let i = 0; i < diagonal.length; i++) {
    const value = diagonal[i] ?? 0;
    if (value > (least[i] ?? 0) && value > (diagonal[place ?? -1] ?? 0)) place = i;
  }
  return place;
}

/** Maximum sweeps over all pairs; five to eight are usual. */
const MAX_JACOBI_SWEEPS = 40;
/** Rows with a smaller cosine count as orthogonal. */
const RIGHT_ANGLE = 32 * Number.EPSILON;

/** Rotates pairs of rows until all are orthogonal (Hestenes, Journal of SIAM 6, 1958). */
async function makeOrthogonal(x: Matrix): Promise<void> {
  const { values, rows, columns } = x;
  for (let sweep = 0; sweep < MAX_JACOBI_SWEEPS; sweep++) {
    const squares = Float64Array.from({ length: rows }, (_, row) =>
      dotOf(values, row * columns, row * columns, columns),
    );
    let turned = 0;
    for (let row = 0; row < rows; row++) {
      for (let other = row + 1; other < rows; other++) {
        if (turnPair(x, row, other, squares)) turned++;
      }
      await breathe();
    }
    if (turned === 0) return;
  }
  throw new Error('the eigenvectors do not converge');
}

/** Rotates two rows within their plane, unless they are orthogonal. */
function turnPair(x: Matrix, row: number, other: number, squares: Float64Array): boolean {
  const { values, columns } = x;
  const [a, b] = [row * columns, other * columns];
  const [alpha, beta] = [squares[row] ?? 0, squares[other] ?? 0];
  const gamma = dotOf(values, a, b, columns);
  if (Math.abs(gamma) <= RIGHT_ANGLE * Math.sqrt(alpha) * Math.sqrt(beta)) return false;
  const zeta = (beta - alpha) / (2 * gamma);
  const tangent = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
  const cosine = 1 / Math.hypot(1, tangent);
  turn(values, a, b, cosine, cosine * tangent, columns);
  squares[row] = squareAfter(values, a, alpha, -tangent * gamma, columns);
  squares[other] = squareAfter(values, b, beta, tangent * gamma, columns);
  return true;
}

/** Updated squared norm of a row; recomputed if most of it cancelled. */
function squareAfter(
  values: Float64Array,
  at: number,
  before: number,
  change: number,
  length: number,
): number {
  const after = before + change;
  return after > before / 2 ? after : dotOf(values, at, at, length);
}

function turn(
  values: Float64Array,
  a: number,
  b: number,
  cosine: number,
  sine: number,
  length: number,
): void {
  for (let k = 0; k < length; k++) {
    const x = values[a + k] ?? 0;
    const y = values[b + k] ?? 0;
    values[a + k] = cosine * x - sine * y;
    values[b + k] = sine * x + cosine * y;
  }
}
