/**
 * What is not a whole number, or not known exactly, with its derivation: seconds, rates, bytes with a margin. As a
 * `Figure`, its value is what its formula gives for its inputs.
 */
import { doubleOf, type Expression } from './expression.js';
import { type Statement, stated } from './figure.js';

export interface Quantity {
  /** What it is, in a few words. */
  readonly label: string;
  /** As precise as a double is. */
  readonly value: number;
  readonly unit: QuantityUnit;
  /** Real arithmetic over `inputs`: + - * /, brackets, min, max, ceil, ln and exp. */
  readonly formula: string;
  readonly inputs: Readonly<Record<string, number | bigint>>;
  /** Where the formula, or a constant in it, comes from. */
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
  /** A share of one, or a ratio. */
  | 'ratio';

/** Between which two values something lies, and where it is expected. `lower` ≤ `expected` ≤ `upper`. */
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
