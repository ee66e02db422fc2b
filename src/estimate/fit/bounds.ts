/** Lower bound, estimate and upper bound of a quantity. */
import { add, inputNamed } from '../../model/budget/expression.js';
import type { Bounds, ByBound, Derivation, Figure, Quantity } from '../../model/budget/figure.js';
import { quantity } from '../../model/budget/figure.js';

type QuantityDerivation = Derivation<Quantity>;

/** A value for each bound. */
export const byBound = <T>(make: (bound: keyof Bounds) => T): ByBound<T> => ({
  lower: make('lower'),
  expected: make('expected'),
  upper: make('upper'),
});

/** Memory that an implementation can do without. */
export const NOT_REQUIRED = { formula: add(), source: 'not required' } as const;

/** Bounds that share a label, unit and inputs, each with its own formula and source. */
export function boundsOf(
  shared: Pick<QuantityDerivation, 'label' | 'unit'> & Required<Pick<QuantityDerivation, 'inputs'>>,
  formulas: ByBound<Pick<QuantityDerivation, 'formula' | 'source'>>,
): Bounds {
  return byBound((bound) => quantity({ ...shared, ...formulas[bound] }));
}

/** Sum of bytes, figures and bounds, bound by bound. Each part is an input under its own name. */
export function sumBounds(
  label: string,
  parts: Readonly<Record<string, Bounds | Figure>>,
  source: string,
): Bounds {
  return byBound((bound) =>
    quantity({
      label,
      unit: 'bytes',
      formula: add(
        ...Object.entries(parts).map(([name, part]) =>
          inputNamed(name, ('lower' in part ? part[bound] : part).value),
        ),
      ),
      source,
    }),
  );
}

/** Makes the three bounds, each from its own value. */
export const eachBound = <T>(
  values: ByBound<T>,
  make: (value: T, name: keyof Bounds) => Quantity,
): Bounds => byBound((bound) => make(values[bound], bound));

/** Largest number from 1 to `most` that `holds`, 0 for none. Larger numbers than a failing one must fail too. */
export function largestCount(most: number, holds: (count: number) => boolean): number {
  let [held, fails] = [0, 1];
  // Start by doubling: most answers are far below `most`, and each test takes time.
  while (fails <= most && holds(fails)) [held, fails] = [fails, 2 * fails];
  fails = Math.min(fails, most + 1);
  while (fails - held > 1) {
    const middle = held + Math.floor((fails - held) / 2);
    if (holds(middle)) held = middle;
    else fails = middle;
  }
  return held;
}
