/**
 * Quantities that are fractional or inexact, with their derivation: seconds, rates, bytes with a margin. As in a
 * `Figure`, the formula and inputs give the value.
 */
import { doubleOf, type Expression } from './expression.js';
import { type Statement, stated } from './figure.js';

export interface Quantity {
  /** Short description. */
  readonly label: string;
  /** Double precision. */
  readonly value: number;
  readonly unit: QuantityUnit;
  /** Real arithmetic over `inputs`: + - * /, brackets, min, max, ceil, ln and exp. */
  readonly formula: string;
  readonly inputs: Readonly<Record<string, number | bigint>>;
  /** Source of the formula or of a constant in it. */
  readonly source: string;
}

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
  /** A fraction or a ratio. */
  | 'ratio';

/** Bounds of a value and its estimate. `lower` ≤ `expected` ≤ `upper`. */
export interface Bounds {
  readonly lower: Quantity;
  readonly expected: Quantity;
  readonly upper: Quantity;
}

/** States a quantity; its value is computed from its formula. */
export const quantity = (statement: Statement<Quantity>): Quantity =>
  stated(statement, realValue(statement.formula));

/** The value of an expression in real numbers, for searches that need no derivation. */
export const realValue = (formula: Expression): number => doubleOf(formula, false);
