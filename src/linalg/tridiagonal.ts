/** A symmetric matrix made tridiagonal, with the same eigenvalues. */
import { setImmediate as breathe } from 'node:timers/promises';
import { type SymmetricMatrix, triangleRow } from './matrix.js';

export interface Tridiagonal {
  /** [size] */
  readonly diagonal: Float64Array;
  /** [size]: the value to the left of each of the diagonal's, and nothing at 0. */
  readonly offDiagonal: Float64Array;
}

/**
 * Householder's reduction (Golub and Van Loan, Matrix Computations, algorithm 8.3.1), from the last row
 * up, on the lower triangle alone. The rank-2 update that each step asks for is put off and done while the
 * next one multiplies, so that the matrix passes through the caches once for each row, not twice.
 *
 * Overwrites `matrix`. Lets signals and timers through now and then. The eigenvalues of the result differ
 * from those of the matrix by a small multiple of size · 2⁻⁵³ · its largest one.
 */
export async function tridiagonalise(matrix: SymmetricMatrix): Promise<Tridiagonal> {
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

/** A − u·wᵀ − w·uᵀ is to take the place of A. */
interface Update {
  readonly u: Float64Array;
  readonly w: Float64Array;
}

/** Brings row `row`, its diagonal value included, up to date. */
function updateRow(values: Float64Array, row: number, { u, w }: Update): void {
  const at = triangleRow(row);
  const [uRow, wRow] = [u[row] ?? 0, w[row] ?? 0];
  for (let k = 0; k <= row; k++) {
    values[at + k] = (values[at + k] ?? 0) - (uRow * (w[k] ?? 0) + wRow * (u[k] ?? 0));
  }
}

/**
 * Writes the u for which I − u·uᵀ / divisor turns the values of a row left of the diagonal into one value
 * beside it and zeros. The values are scaled first, so that no square overflows or vanishes.
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
  // Of the other sign, so that nothing cancels.
  const norm = last > 0 ? -Math.sqrt(squares) : Math.sqrt(squares);
  u[row - 1] = last - norm;
  return { divisor: squares - last * norm, beside: scale * norm };
}

/** Brings the first `size` rows up to date, and writes what they are times next.u to next.w. */
function updateAndMultiply(
  values: Float64Array,
  size: number,
  pending: Update,
  next: Update,
): void {
  next.w.fill(0, 0, size);
  const paired = size - (size % 2);
  for (let row = 0; row < paired; row += 2) updatePair(values, row, pending, next);
  if (paired < size) updateLast(values, paired, pending, next);
}

/** Rows `row` and `row` + 1 at once: half as many passes over the vectors. */
function updatePair(values: Float64Array, row: number, pending: Update, next: Update): void {
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

/** The last row, when their number is odd. */
function updateLast(values: Float64Array, row: number, pending: Update, next: Update): void {
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

/** From A·u to the w of the update: w = p − (uᵀp / (2 · divisor)) · u with p = A·u / divisor. */
function completeUpdate({ u, w }: Update, size: number, divisor: number): void {
  let dot = 0;
  for (let k = 0; k < size; k++) {
    const value = (w[k] ?? 0) / divisor;
    w[k] = value;
    dot += (u[k] ?? 0) * value;
  }
  const half = dot / (2 * divisor);
  for (let k = 0; k < size; k++) w[k] = (w[k] ?? 0) - half * (u[k] ?? 0);
}
