import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  addComparison,
  emptyComparison,
  meanOfRows,
  squaredNorm,
} from '../../../src/base/linalg/matrix.js';

it('meanOfRows gives the mean of the rows', () => {
  const x = { values: Float64Array.of(1, 2, 3, 5, 6, 10), rows: 2, columns: 3 };
  const target = Float64Array.of(9, 9, 9, 9);
  meanOfRows(x, target);
  expect([...target]).toEqual([3, 4, 6.5, 9]);
});

it.each([1, 3, 4, 5, 8, 11])('meanOfRows adds %i rows in order, to the last bit', (rows) => {
  const values = Float64Array.from({ length: rows }, (_, row) => 3 ** (row % 7) / 10);
  const target = new Float64Array(1);
  meanOfRows({ values, rows, columns: 1 }, target);
  expect(target[0]).toBe(values.reduce((sum, value) => sum + value, 0) / rows);
});

it('meanOfRows does not overflow where only the mean fits into float16', () => {
  const x = { values: Float64Array.of(65504, 65504, 65504), rows: 3, columns: 1 };
  const target = new Float64Array(1);
  meanOfRows(x, target);
  expect(target[0]).toBe(65504);
});

it('addComparison sums over blocks', () => {
  const comparison = emptyComparison();
  addComparison(comparison, Float64Array.of(1, 2), Float64Array.of(3, 1));
  expect(comparison).toEqual({ squaredNorm: 5, dot: 5, squaredDistance: 5, largestDifference: 2 });
  addComparison(comparison, Float64Array.of(-1), Float64Array.of(-2));
  expect(comparison).toEqual({ squaredNorm: 6, dot: 7, squaredDistance: 6, largestDifference: 2 });
});

it('addComparison finds distance 0 between equal values, and twice the norm between opposite ones', () => {
  const numbers = fc.array(fc.float({ min: -1e6, max: 1e6, noNaN: true }), { maxLength: 20 });
  fc.assert(
    fc.property(numbers, (list) => {
      const values = Float64Array.from(list);
      const same = emptyComparison();
      addComparison(same, values, values);
      expect(same).toMatchObject({ squaredDistance: 0, largestDifference: 0 });
      expect(same.dot).toBe(squaredNorm(values));
      const opposite = emptyComparison();
      addComparison(
        opposite,
        values,
        values.map((value) => -value),
      );
      expect(opposite.squaredDistance).toBe(4 * squaredNorm(values));
      expect(opposite.dot + squaredNorm(values)).toBe(0);
    }),
  );
});
