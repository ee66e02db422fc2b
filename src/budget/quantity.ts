/**
 * Quantities that are fractional or inexact, with their derivation: seconds, rates, bytes with a margin. As in a
 * `Figure`, the formula and inputs give the value.
 */
import { doubleOf, type Expression } from './expression.js';
import { type Derivation, DerivedValue } from './figure.js';

/** A number in double precision. Its formula is real arithmetic: + - * /, brackets, min, max, ceil, ln and exp. */
export type Quantity = DerivedValue<QuantityUnit, number>;

export type QuantityUnit =
  | 'bytes'
  | 'bytes/s'
  | 'FLOP'
  | 'FLOP/s'
  | 'seconds'
  | 'tokens'
  | 'tokens/s'
  | 'requests'
  | 'requests/s'
  | 'GPUs'
  | 'replicas'
  | 'steps'
  /** The currency of the user's price. */
  | 'currency'
  /** A fraction or a ratio. */
  | 'ratio';

/** Bounds of a value and its estimate. `lower` ≤ `expected` ≤ `upper`. */
export interface Bounds {
  readonly lower: Quantity;
  readonly expected: Quantity;
  readonly upper: Quantity;
}

/** States a quantity; its value is computed from its formula. */
export const quantity = (statement: Derivation<Quantity>): Quantity =>
  new DerivedValue(statement, realValue(statement.formula));

/** The value of an expression in real numbers, for searches that need no derivation. */
export const realValue = (formula: Expression): number => doubleOf(formula, false);
