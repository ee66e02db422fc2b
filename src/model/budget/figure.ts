/**
 * Figures with their own derivation. The value is computed from the formula and inputs, so an explanation always
 * matches its number.
 */
import {
  add,
  doubleOf,
  type Exact,
  type Expression,
  expressionText,
  type Input,
  inputNamed,
  inputsOf,
  inputValues,
  wholeNumberOf,
} from './expression.js';

export type { Exact } from './expression.js';

/** A figure or quantity before evaluation: its value and inputs follow from its formula. */
export interface Derivation<Of extends { readonly unit: string }> {
  readonly label: string;
  readonly unit: Of['unit'];
  readonly formula: Expression;
  /** Inputs to list first: for a different order, or for inputs outside the formula. */
  readonly inputs?: Readonly<Record<string, Input>>;
  readonly source: string;
}

/** A value as JSON shows it, with its derivation. */
export interface StatedValue<Unit extends string, Value extends Exact> {
  /** Short description. */
  readonly label: string;
  /** Unit of the value. */
  readonly unit: Unit;
  /**
   * Arithmetic over the inputs: + - * /, brackets, min, max, ceildiv (division rounded up), ceil, floor, sqrt, ln and
   * exp.
   */
  readonly formula: string;
  /** Inputs of the formula by name. @real */
  readonly inputs: Readonly<Record<string, Value>>;
  /** Source of the formula, or of a constant in it. */
  readonly source: string;
  /** The value. @real */
  readonly value: Value;
}

/**
 * A statement with its value. The text of its formula and its inputs are made when they are read: searches state
 * thousands of figures and read their values alone. The accessors belong to the class: with its own accessors, each
 * object would have a shape of its own, which keeps the formula in memory until the whole heap is collected.
 */
export class DerivedValue<Unit extends string, Value extends Exact> {
  /** Short description. */
  readonly label: string;
  readonly unit: Unit;
  /** Source of the formula, or of a constant in it. */
  readonly source: string;
  readonly value: Value;
  readonly #formula: Expression;
  readonly #listed: Readonly<Record<string, Input>>;

  constructor(statement: Derivation<{ readonly unit: Unit }>, value: Value) {
    this.label = statement.label;
    this.unit = statement.unit;
    this.source = statement.source;
    this.value = value;
    this.#formula = statement.formula;
    this.#listed = statement.inputs ?? NO_INPUTS;
  }

  /** Arithmetic over `inputs`. */
  get formula(): string {
    return expressionText(this.#formula);
  }

  /** Inputs of the formula by name. */
  get inputs(): Readonly<Record<string, Exact>> {
    return inputValues(inputsOf(...Object.values(this.#listed), this.#formula));
  }

  /** The same value with another label or source. */
  reworded(words: Partial<Pick<Derivation<{ unit: Unit }>, 'label' | 'source'>>) {
    const { label = this.label, source = this.source } = words;
    const { unit, value } = this;
    const statement = { label, unit, formula: this.#formula, inputs: this.#listed, source };
    return new DerivedValue<Unit, Value>(statement, value);
  }

  toJSON(): StatedValue<Unit, Value> {
    const { label, unit, formula, source, value } = this;
    const inputs = this.inputs as StatedValue<Unit, Value>['inputs'];
    return { label, unit, formula, inputs, source, value };
  }
}

const NO_INPUTS: Readonly<Record<string, Input>> = {};

/**
 * An exact whole number. Its formula is whole-number arithmetic: + - * /, brackets, min, max and ceildiv (division
 * rounded up). Divisions by / are exact.
 */
export type Figure = DerivedValue<'parameters' | 'values' | 'bytes' | 'FLOP' | 'MAC', Exact>;

/** States a figure; its value is computed from its formula. */
export const figure = (statement: Derivation<Figure>): Figure =>
  new DerivedValue(statement, wholeNumberValue(statement.formula));

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
export function wholeNumberValue(formula: Expression): Exact {
  const small = doubleOf(formula, true);
  return Number.isNaN(small) ? exact(wholeNumberOf(formula)) : small;
}

/**
 * A number in double precision, which can be fractional or inexact: seconds, rates, bytes with a margin. Its formula is
 * real arithmetic: + - * /, brackets, min, max, ceil, ln and exp.
 */
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
  /** Lower bound. */
  readonly lower: Quantity;
  /** Estimate. */
  readonly expected: Quantity;
  /** Upper bound. */
  readonly upper: Quantity;
}

/** A value at each bound and at the estimate. */
export type ByBound<Value> = { readonly [Bound in keyof Bounds]: Value };

/** States a quantity; its value is computed from its formula. */
export const quantity = (statement: Derivation<Quantity>): Quantity =>
  new DerivedValue(statement, realValue(statement.formula));

/** The value of an expression in real numbers, for searches that need no derivation. */
export const realValue = (formula: Expression): number => doubleOf(formula, false);
