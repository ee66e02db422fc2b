/** Helpers for values that many folders need. */

/** Whether `value` is an object with named entries, and not a list or null. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Sum over items of a number of each, in order. */
export function sumOf<Item>(items: Iterable<Item>, numberOf: (item: Item) => number): number {
  let sum = 0;
  for (const item of items) sum += numberOf(item);
  return sum;
}
