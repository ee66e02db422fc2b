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

<<<<<<< HEAD
/** States a quantity; its value is computed from its formula. */
export const quantity = (statement: Statement<Quantity>): Quantity =>
  stated(statement, realValue(statement.formula));

/** The value of an expression in real numbers, for searches that need no derivation. */
export const realValue = (formula: Expression): number => doubleOf(formula, false);
=======
/** Creates a quantity; its value is computed from its formula. */
export function quantity({ source, ...stated }: Statement<Quantity>): Quantity {
  return {
    ...stated,
    ...explained(stated),
    source,
    value: realValue(stated.formula),
  };
}

/** Value of an expression in real numbers, for searches that need no derivation. */
export const realValue = (formula: Expression): number => evaluateIn(REALS, formula);

const REALS: Arithmetic<number> = {
  of: Number,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => (b === 0 ? undefined : a / b),
  functions: {
    min: (values) => Math.min(...values),
    max: (values) => Math.max(...values),
    ceil: ([value = 0]) => Math.ceil(value),
    ln: ([value = 0]) => Math.log(value),
    exp: ([value = 0]) => Math.exp(value),
  },
};
>>>>>>> w-e3
