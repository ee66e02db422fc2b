/** Rows made orthonormal. */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Matrix } from './matrix.js';
import { addMultiple, dotOf, scale } from './vectors.js';

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
