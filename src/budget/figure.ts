/**
 * Figures with their own derivation. The value is computed from the formula and inputs, so an explanation always
 * matches its number.
 */
import {
  add,
  doubleOf,
  type Exact,
  type Expression,
  type Input,
  inputNamed,
  inputsOf,
  inputValues,
  textOf,
  wholeNumberOf,
} from './expression.js';

export type { Exact } from './expression.js';

export interface Figure {
  /** Short description. */
  readonly label: string;
  readonly value: Exact;
  readonly unit: 'parameters' | 'values' | 'bytes' | 'FLOP' | 'MAC';
  /**
   * Whole-number arithmetic over `inputs`: + - * /, brackets, min, max and ceildiv (division rounded up).
   * Divisions by / are exact.
   */
  readonly formula: string;
  readonly inputs: Readonly<Record<string, Exact>>;
  /** Source of the formula. */
  readonly source: string;
}

/** A figure or quantity before evaluation: its value and inputs follow from its formula. */
export interface Statement<Stated extends { readonly unit: string }> {
  readonly label: string;
  readonly unit: Stated['unit'];
  readonly formula: Expression;
  /** Inputs to list first: for a different order, or for inputs outside the formula. */
  readonly inputs?: Readonly<Record<string, Input>>;
  readonly source: string;
}

/**
 * A statement with its value. The text of its formula and its inputs are made when they are first read: searches state
 * thousands of figures and read their values alone.
 */
export function stated<Unit extends string, Value>(
  { label, unit, formula, inputs = {}, source }: Statement<{ readonly unit: Unit }>,
  value: Value,
) {
  let text: string | undefined;
  let values: Record<string, Exact> | undefined;
  return {
    label,
    unit,
    get formula() {
      text ??= textOf(formula);
      return text;
    },
    get inputs() {
      values ??= inputValues(inputsOf(...Object.values(inputs), formula));
      return values;
    },
    source,
    value,
  };
}

/** States a figure; its value is computed from its formula. */
export const figure = (statement: Statement<Figure>): Figure =>
  stated(statement, evaluate(statement.formula));

/** Figure that sums others, each of which becomes an input. */
export const sumFigure = (
  label: string,
  unit: Figure['unit'],
  parts: Readonly<Record<string, Figure>>,
  source: string,
): Figure =>
  figure({
    label,
    unit,
    formula: add(...Object.entries(parts).map(([name, { value }]) => inputNamed(name, value))),
    source,
  });

/** Smallest type that holds an integer exactly. */
export function exact(value: bigint): Exact {
  const asNumber = Number(value);
  return Number.isSafeInteger(asNumber) ? asNumber : value;
}

/**
 * Value of an expression in whole numbers.
 * @throws Error for a division with a remainder, which is a bug.
 */
export function evaluate(formula: Expression): Exact {
  const small = doubleOf(formula, true);
  return Number.isNaN(small) ? exact(wholeNumberOf(formula)) : small;
}
