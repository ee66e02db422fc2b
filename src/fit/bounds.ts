/** Quantities between which something lies. */
import { add, inputNamed } from '../budget/expression.js';
import type { Figure, Statement } from '../budget/figure.js';
import type { Bounds, Quantity } from '../budget/quantity.js';
import { quantity } from '../budget/quantity.js';

type Stated = Statement<Quantity>;

/** Bounds that share a label, unit and inputs, each with its own formula and source. */
export function boundsOf(
  shared: Pick<Stated, 'label' | 'unit'> & Required<Pick<Stated, 'inputs'>>,
  formulas: Readonly<Record<keyof Bounds, Pick<Stated, 'formula' | 'source'>>>,
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
      formula: add(
        ...Object.entries(parts).map(([name, part]) =>
          inputNamed(name, ('lower' in part ? part[which] : part).value),
        ),
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

/** The largest number from 1 to `most` that holds, of what holds for no number beyond one that fails; 0 for none. */
export function largest(most: number, holds: (count: number) => boolean): number {
  let [held, fails] = [0, 1];
  // Doubling first: answers are mostly far below `most`, and trying is not free.
  while (fails <= most && holds(fails)) [held, fails] = [fails, 2 * fails];
  fails = Math.min(fails, most + 1);
  while (fails - held > 1) {
    const middle = held + Math.floor((fails - held) / 2);
    if (holds(middle)) held = middle;
    else fails = middle;
  }
  return held;
}
