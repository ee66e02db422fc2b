/** Divides work into shares of about equal cost. */
import { sumOf } from '../base/values.js';

interface Share<Item> {
  readonly index: number;
  cost: number;
  /** Items with their positions. */
  readonly items: [position: number, item: Item][];
}

/** Items in `count` shares of about equal cost: the largest first, each to the share with the least. */
export function equalShares<Item>(
  items: readonly Item[],
  count: number,
  costOf: (item: Item) => number,
): (readonly Item[])[] {
  const shares = Array.from({ length: count }, (_, index): Share<Item> => {
    return { index, cost: 0, items: [] };
  });
  const bySize = [...items.entries()].toSorted(([a, one], [b, other]) => {
    return costOf(other) - costOf(one) || a - b;
  });
  const heap = [...shares];
  for (const entry of bySize) {
    const [least] = heap;
    if (least === undefined) throw new RangeError('no shares');
    least.items.push(entry);
    least.cost += costOf(entry[1]);
    settleFirst(heap);
  }
  return shares.map((share) => share.items.toSorted(([a], [b]) => a - b).map(([, item]) => item));
}

type Costed = Pick<Share<unknown>, 'index' | 'cost'>;

/** Restores a binary heap, with the share of the least cost on top, after that of the first has grown. */
function settleFirst<Each extends Costed>(heap: Each[]): void {
  for (let at = 0; ; ) {
    let next = at;
    for (const child of [2 * at + 1, 2 * at + 2]) {
      if (isLess(heap[child], heap[next])) next = child;
    }
    const [one, other] = [heap[at], heap[next]];
    if (next === at || one === undefined || other === undefined) return;
    heap[at] = other;
    heap[next] = one;
    at = next;
  }
}

const isLess = (one: Costed | undefined, other: Costed | undefined): boolean =>
  one !== undefined &&
  other !== undefined &&
  (one.cost < other.cost || (one.cost === other.cost && one.index < other.index));

/** Units from the first one to the one before the end. Both are 0 where there are none. */
export interface UnitRange {
  readonly first: number;
  readonly end: number;
  readonly cost: number;
}

/**
 * Units in `count` ranges of about equal cost: none differs from the mean by more than the cost of a unit.
 * @param costs Cost of each unit.
 */
export function equalRanges(costs: readonly number[], count: number): UnitRange[] {
  const total = sumOf(costs, (cost) => cost);
  const ranges = Array.from({ length: count }, () => ({ first: 0, end: 0, cost: 0 }));
  let before = 0;
  for (const [unit, cost] of costs.entries()) {
    const middle = total > 0 ? (before + cost / 2) / total : unit / costs.length;
    before += cost;
    const range = ranges[Math.min(count - 1, Math.floor(count * middle))];
    if (range === undefined) continue;
    if (range.first === range.end) range.first = unit;
    range.end = unit + 1;
    range.cost += cost;
  }
  return ranges;
}
