/** Tables held against their mean, a block at a time. All sums are in float64. */
import { type Matrix, rowsOf } from './matrix.js';

/** Writes the mean of the rows of `x`, [n, k], to the first k numbers of `target`. */
export function meanOfRows(x: Matrix, target: Float64Array): void {
  const row = (index: number) => rowsOf(x, index, index + 1).values;
  target.fill(0, 0, x.columns);
  let done = 0;
  // Four at a time take half as long, and are added up in the same order.
  for (; done + 4 <= x.rows; done += 4) {
    addFour(target, row(done), row(done + 1), row(done + 2), row(done + 3));
  }
  for (; done < x.rows; done++) addTo(target, row(done));
  for (let k = 0; k < x.columns; k++) target[k] = (target[k] ?? 0) / x.rows;
}

function addTo(target: Float64Array, values: Float64Array): void {
  for (let k = 0; k < values.length; k++) target[k] = (target[k] ?? 0) + (values[k] ?? 0);
}

function addFour(
  target: Float64Array,
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  d: Float64Array,
): void {
  for (let k = 0; k < a.length; k++) {
    target[k] = (target[k] ?? 0) + (a[k] ?? 0) + (b[k] ?? 0) + (c[k] ?? 0) + (d[k] ?? 0);
  }
}

/** What is known of a table and the mean, of all blocks that have been added. */
export interface Comparison {
  /** Sum of the squares of the table's values. */
  squaredNorm: number;
  /** Sum of the products of their values. */
  dot: number;
  /** Sum of the squared differences. */
  squaredDistance: number;
  /** The largest difference in size. */
  largestDifference: number;
}

/** Of nothing. */
export const emptyComparison = (): Comparison => ({
  squaredNorm: 0,
  dot: 0,
  squaredDistance: 0,
  largestDifference: 0,
});

/** Adds a block of a table and the same block of the mean. The sums of a block are worked out apart. */
export function addComparison(to: Comparison, values: Float64Array, mean: Float64Array): void {
  let norm = 0;
  let dot = 0;
  let squares = 0;
  let largest = 0;
  for (let k = 0; k < values.length; k++) {
    const value = values[k] ?? 0;
    const other = mean[k] ?? 0;
    const difference = Math.abs(value - other);
    norm += value * value;
    dot += value * other;
    squares += difference * difference;
    // Not a branch: with one it takes half as long again.
    largest = Math.max(largest, difference);
  }
  to.squaredNorm += norm;
  to.dot += dot;
  to.squaredDistance += squares;
  to.largestDifference = Math.max(to.largestDifference, largest);
}

/** Sum of the squares. */
export function squaredNorm(values: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < values.length; k++) {
    const value = values[k] ?? 0;
    sum += value * value;
  }
  return sum;
}
