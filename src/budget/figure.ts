/**
 * Figures that carry their own derivation. A figure's value is what its formula gives for its inputs,
 * by this evaluator and by any other: so an explanation cannot drift from the number it explains.
 */
import { type Arithmetic, evaluateIn } from './formula.js';

/** An exact whole number; a bigint beyond 2^53 − 1. */
export type Exact = number | bigint;

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

/** States a figure; its value is computed from its formula. */
export function figure(parts: Omit<Figure, 'value'>): Figure {
  return { ...parts, value: evaluate(parts.formula, parts.inputs) };
}

/** A figure that is the sum of others, each of which is one of its inputs. */
export function sumFigure(
  label: string,
  unit: Figure['unit'],
  parts: Readonly<Record<string, Figure>>,
  source: string,
): Figure {
  const inputs = Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, part.value]),
  );
  return figure({ label, unit, formula: Object.keys(parts).join(' + ') || '0', inputs, source });
}

/** The smallest type that holds an integer exactly. */
export function exact(value: bigint): Exact {
  const asNumber = Number(value);
  return Number.isSafeInteger(asNumber) ? asNumber : value;
}

/**
 * The value of a formula in whole numbers.
 * @throws Error when it is malformed, names an unknown input or divides with a rest: bugs of ours.
 */
export const evaluate = (formula: string, inputs: Figure['inputs']): Exact =>
  exact(evaluateIn(WHOLE_NUMBERS, formula, inputs));

const WHOLE_NUMBERS: Arithmetic<bigint> = {
  of: BigInt,
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
  divide: (a, b) => (b === 0n || a % b !== 0n ? undefined : a / b),
  functions: {
    min: (values) => values.reduce((a, b) => (a < b ? a : b)),
    max: (values) => values.reduce((a, b) => (a > b ? a : b)),
    ceildiv: ([a = 0n, b = 1n]) => (a + b - 1n) / b,
  },
};
