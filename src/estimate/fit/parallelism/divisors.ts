/** Numbers that divide other numbers, and doubles, to suggest them. */

/** Largest number of GPUs to suggest. */
export const MOST_GPUS = 65_536;

/** Greatest number that divides both. */
export function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** `from` and its doubles up to `to`. */
export const doubled = (from: number, to: number): number[] =>
  from > to ? [] : [from, ...doubled(2 * from, to)];

/** Divisors of `of` nearest to `to`, from below and from above. */
export function nearestDivisors(of: number, to: number): number[] {
  const divides = (value: number) => of % value === 0;
  let below = Math.min(of, to);
  while (below > 1 && !divides(below)) below--;
  const above = of > to ? firstFrom(to, of, divides) : undefined;
  return above === undefined || above === below ? [below] : [below, above];
}

function firstFrom(from: number, to: number, isFound: (value: number) => boolean) {
  // Larger divisors are never suggested.
  const last = Math.min(to, MOST_GPUS);
  for (let value = from; value <= last; value++) if (isFound(value)) return value;
  return undefined;
}
