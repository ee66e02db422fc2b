/** Eigenvalues and eigenvectors of a matrix of the form YᵀY. */
import { setImmediate as breathe } from 'node:timers/promises';
import { type Matrix, type SymmetricMatrix, valueAt } from './matrix.js';
import { addMultiple, dotOf, scale } from './vectors.js';

export interface PositiveEigen {
  /** [size], the largest first; zero for those that are lost in rounding. */
  readonly values: Float64Array;
  /** [size, size]: rows of length 1, at right angles; rows of zeros where the value is zero. */
  readonly vectors: Matrix;
}

/**
 * Eigenvalues and eigenvectors of a symmetric matrix without negative eigenvalues: Cholesky's factor with
 * pivots, whose columns are then turned until they are at right angles (Veselić and Hari, Numerische
 * Mathematik 56, 1989). When the matrix is close to diagonal — Y's columns almost at right angles — small
 * eigenvalues are as precise as large ones, whatever their ratio (Demmel and Veselić, SIAM Journal on
 * Matrix Analysis and Applications 13, 1992).
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
    scale(vectors.values, place * size, 1 / Math.sqrt(square), size);
  }
  return { values: eigenvalues, vectors };
}

/**
 * The columns of Cholesky's factor as rows, [rank, size]: their outer products add up to the matrix. Each
 * step takes the largest value left on the diagonal, until what is left is rounding.
 */
function choleskyRows(matrix: SymmetricMatrix): Matrix {
  const { size } = matrix;
  const factor = new Float64Array(size * size);
  const diagonal = Float64Array.from({ length: size }, (_, i) => valueAt(matrix, i, i));
  const least = diagonal.map((value) => value * size * Number.EPSILON);
  let rank = 0;
  for (; rank < size; rank++) {
    const pivot = largestLeft(diagonal, least);
    if (pivot === undefined) break;
    const at = rank * size;
    for (let i = 0; i < size; i++) factor[at + i] = valueAt(matrix, i, pivot);
    for (let before = 0; before < rank; before++) {
      addMultiple(factor, at, before * size, -(factor[before * size + pivot] ?? 0), size);
    }
    scale(factor, at, 1 / Math.sqrt(diagonal[pivot] ?? 1), size);
    factor[at + pivot] = Math.sqrt(diagonal[pivot] ?? 0);
    for (let i = 0; i < size; i++) {
      // Rows that were pivots are done: what rounding leaves there is no part of the factor.
      if (diagonal[i] === 0 && i !== pivot) factor[at + i] = 0;
      else diagonal[i] = (diagonal[i] ?? 0) - (factor[at + i] ?? 0) ** 2;
    }
    diagonal[pivot] = 0;
  }
  return { values: factor.subarray(0, rank * size), rows: rank, columns: size };
}

/** The place of the largest value that is above what rounding makes of it. */
function largestLeft(diagonal: Float64Array, least: Float64Array): number | undefined {
  let place: number | undefined;
  for (let i = 0; i < diagonal.length; i++) {
    const value = diagonal[i] ?? 0;
    if (value > (least[i] ?? 0) && value > (diagonal[place ?? -1] ?? 0)) place = i;
  }
  return place;
}

/** Sweeps over all pairs; five to eight are usual. */
const MOST_SWEEPS = 40;
/** Rows whose cosine is less count as at right angles. */
const RIGHT_ANGLE = 32 * Number.EPSILON;

/** Turns the rows in pairs until all are at right angles (Hestenes, Journal of SIAM 6, 1958). */
async function makeOrthogonal(x: Matrix): Promise<void> {
  const { values, rows, columns } = x;
  for (let sweep = 0; sweep < MOST_SWEEPS; sweep++) {
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

/** Turns two rows within their plane, unless they are at right angles. */
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

/** Of a row whose square changed; summed anew where most of it went. */
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
