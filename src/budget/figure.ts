/**
 * Figures that carry their own derivation. A figure's value is what its formula gives for its inputs,
 * by this evaluator and by any other: so an explanation cannot drift from the number it explains.
 */
import {
  type Arithmetic,
  add,
  type Exact,
  type Expression,
  evaluateIn,
  type Input,
  inputNamed,
  inputsOf,
  textOf,
  valuesOf,
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

/** What explains a statement: its formula as text, and its inputs. */
export const explained = (parts: Pick<Statement<Figure>, 'formula' | 'inputs'>) => ({
  formula: textOf(parts.formula),
  inputs: valuesOf(inputsOf(...Object.values(parts.inputs ?? {}), parts.formula)),
});

/** States a figure; its value is computed from its formula. */
export function figure({ source, ...stated }: Statement<Figure>): Figure {
  return { ...stated, ...explained(stated), source, value: evaluate(stated.formula) };
}

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
export const evaluate = (formula: Expression): Exact => exact(evaluateIn(WHOLE_NUMBERS, formula));

const WHOLE_NUMBERS: Arithmetic<bigint> = {
  of: BigInt,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => (b === 0n || a % b !== 0n ? undefined : a / b),
  functions: {
    min: (values) => values.reduce((a, b) => (a < b ? a : b)),
    max: (values) => values.reduce((a, b) => (a > b ? a : b)),
    ceildiv: ([a = 0n, b = 1n]) => (a + b - 1n) / b,
  },
};
