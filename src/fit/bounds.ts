/** Quantities between which something lies. */
import type { Figure } from '../budget/figure.js';
import { type Bounds, type Quantity, quantity } from '../budget/quantity.js';

type Statement = Omit<Quantity, 'value'>;

/** Bounds that share a label, unit and inputs, each with its own formula and source. */
export function boundsOf(
  shared: Pick<Statement, 'label' | 'unit' | 'inputs'>,
  formulas: Readonly<Record<keyof Bounds, Pick<Statement, 'formula' | 'source'>>>,
): Bounds {
  return {
    lower: quantity({ ...shared, ...formulas.lower }),
    expected: quantity({ ...shared, ...formulas.expected }),
    upper: quantity({ ...shared, ...formulas.upper }),
  };
}

/** The sum of figures and bounds, bound by bound; each is an input by its name. */
export function sumBounds(
  label: string,
  unit: Quantity['unit'],
  parts: Readonly<Record<string, Bounds | Figure>>,
  source: string,
): Bounds {
  const sumOf = (which: keyof Bounds) =>
    quantity({
      label,
      unit,
      formula: Object.keys(parts).join(' + ') || '0',
      inputs: Object.fromEntries(
        Object.entries(parts).map(([name, part]) => [
          name,
          'lower' in part ? part[which].value : part.value,
        ]),
      ),
      source,
    });
  return { lower: sumOf('lower'), expected: sumOf('expected'), upper: sumOf('upper') };
}

/** Bounds that are made alike, each of its own value. */
export const eachBound = <T>(
  values: Readonly<Record<keyof Bounds, T>>,
  make: (value: T, name: keyof Bounds) => Quantity,
): Bounds => ({
  lower: make(values.lower, 'lower'),
  expected: make(values.expected, 'expected'),
  upper: make(values.upper, 'upper'),
});
