/** Runs of equal neighbours in a list, and groups that repeat: `a b b a b b a` is 2 × (a, 2 × b), a. */

/** Items that repeat: one repetition, and how often it follows itself. */
export interface Fold<Item> {
  readonly count: number;
  /** Position of the first item. */
  readonly at: number;
  /** Items of the whole fold. */
  readonly length: number;
  /** One repetition: a single item, or several folds. */
  readonly of: Item | readonly Fold<Item>[];
}

/**
 * Folds a list. At each place the repetition that reaches furthest is taken; of equal reach, the one with the shortest period,
 * so that `a a a a` is 4 × a and not 2 × (a, a).
 * @param keys Equal for items that are equal.
 */
export function folded<Item>(
  items: readonly Item[],
  keys: readonly string[],
  from = 0,
  to = items.length,
): Fold<Item>[] {
  const folds: Fold<Item>[] = [];
  for (let at = from; at < to; ) {
    const { period, count } = longestFrom(keys, at, to);
    const length = period * count;
    folds.push({
      count,
      at,
      length,
      of: period === 1 ? (items[at] as Item) : folded(items, keys, at, at + period),
    });
    at += length;
  }
  return folds;
}

interface Repetition {
  readonly period: number;
  readonly count: number;
}

function longestFrom(keys: readonly string[], at: number, to: number): Repetition {
  let best: Repetition = { period: 1, count: 1 };
  for (let period = 1; at + 2 * period <= to; period++) {
    let same = 0;
    while (at + period + same < to && keys[at + same] === keys[at + period + same]) same++;
    const count = 1 + Math.floor(same / period);
    if (count > 1 && count * period > best.count * best.period) best = { period, count };
  }
  return best;
}
