import { expect } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import {
  type Ids,
  type ModuleDtype,
  type Tensor,
  tensor,
  toFloat32,
} from '../../../src/model/modules/index.js';

/** A tensor of the fixtures: numbers for float32, codes for the other types. */
export interface Stored {
  readonly shape: readonly number[];
  readonly dtype: ModuleDtype;
  readonly data: readonly number[];
}

export const tensorOf = ({ shape, dtype, data }: Stored): Tensor =>
  dtype === 'f32'
    ? { dtype, shape, data: Float32Array.from(data) }
    : { dtype, shape, data: Uint16Array.from(data) };

export const idsOf = ({ shape, data }: Pick<Stored, 'shape' | 'data'>): Ids => ({
  shape,
  data: Int32Array.from(data),
});

type Nested = number | readonly Nested[];

function shapeOf(nested: Nested): number[] {
  if (typeof nested === 'number') return [];
  return [nested.length, ...(nested[0] === undefined ? [] : shapeOf(nested[0]))];
}

const flat = (nested: Nested): number[] =>
  typeof nested === 'number' ? [nested] : nested.flatMap(flat);

/** A tensor from nested lists. */
export const nestedTensor = (nested: Nested, dtype: ModuleDtype = 'f32'): Tensor =>
  tensor(shapeOf(nested), flat(nested), dtype);

export const nestedIds = (nested: Nested): Ids => ({
  shape: shapeOf(nested),
  data: Int32Array.from(flat(nested)),
});

export function largestDifference(a: Tensor, b: Tensor): number {
  expect(a.shape).toEqual(b.shape);
  expect(a.dtype).toBe(b.dtype);
  const [left, right] = [toFloat32(a), toFloat32(b)];
  return left.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - (right[at] ?? Number.NaN))),
    0,
  );
}

/** Expects a UserError with this message and a suggestion. */
export function expectMistake(attempt: () => unknown, message: RegExp): void {
  let caught: unknown;
  try {
    attempt();
  } catch (error) {
    caught = error;
  }
  expect(caught).toBeInstanceOf(UserError);
  expect((caught as UserError).message).toMatch(message);
  expect((caught as UserError).suggestion).toMatch(/^[^A-Z].*[^.]$/);
}
