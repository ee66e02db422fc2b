/**
 * Figures that carry their own derivation. A figure's value is what its formula gives for its inputs,
 * by this evaluator and by any other: so an explanation cannot drift from the number it explains.
 */
import {
  add,
  doubleOf,
  type Exact,
  type Expression,
  type Input,
  inputNamed,
  inputsOf,
  textOf,
  valuesOf,
  wholeNumberOf,
} from './expression.js';

export type { Exact } from './expression.js';

export interface Figure {
  /** What it is, in a few words. */
  readonly label: string;
  readonly value: Exact;
  readonly unit: 'parameters' | 'values' | 'bytes' | 'FLOP' | 'MAC';
  /**
   * Whole-number arithmetic over `inputs`: + - * /, brackets, min, max and ceildiv (a division rounded
   * up). A division by / has no rest.
   */
  readonly formula: string;
  readonly inputs: Readonly<Record<string, Exact>>;
  /** Where the formula comes from. */
  readonly source: string;
}

/** A figure or a quantity before it is computed: its value and its inputs follow from its formula. */
export interface Statement<Stated extends { readonly unit: string }> {
  readonly label: string;
  readonly unit: Stated['unit'];
  readonly formula: Expression;
  /** Inputs to list first: for an order other than that of the formula, or for inputs that it does not name. */
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
      values ??= valuesOf(inputsOf(...Object.values(inputs), formula));
      return values;
    },
    source,
    value,
  };
}

/** States a figure; its value is computed from its formula. */
export const figure = (statement: Statement<Figure>): Figure =>
  stated(statement, evaluate(statement.formula));

/** A figure that is the sum of others, each of which is one of its inputs. */
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

/** The smallest type that holds an integer exactly. */
export function exact(value: bigint): Exact {
  const asNumber = Number(value);
  return Number.isSafeInteger(asNumber) ? asNumber : value;
}

/**
 * The value of an expression in whole numbers.
 * @throws Error when a division leaves a rest: a bug of ours.
 */
export function evaluate(formula: Expression): Exact {
  const small = doubleOf(formula, true);
  return Number.isNaN(small) ? exact(wholeNumberOf(formula)) : small;
}
