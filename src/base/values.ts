/** Helpers for lists, records and numbers that many rooms use. */

/** Whether `value` is an object with named entries, not a list or null. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The items of a list without those that a condition leaves out: `present([first, isLong && second])`. */
export const present = <Item>(items: readonly (Item | false | null | undefined)[]): Item[] =>
  items.filter((item) => item !== false && item !== null && item !== undefined) as Item[];

/** Items by a key, in order. */
export function groupBy<Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item) => Key,
): Map<Key, [Item, ...Item[]]> {
  const groups = new Map<Key, [Item, ...Item[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** Sum of a number per item, in order. */
export function sumOf<Item>(items: Iterable<Item>, numberOf: (item: Item) => number): number {
  let sum = 0;
  if (Array.isArray(items)) {
    // Sums run over all kinds of collections, and the iterator of a list costs more than the list.
    for (let at = 0; at < items.length; at++) sum += numberOf(items[at]);
    return sum;
  }
  for (const item of items) sum += numberOf(item);
  return sum;
}

/** Ascending numbers as ranges, the first and the last number of each. */
export function runsOf(numbers: readonly number[]): [from: number, to: number][] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}

/** All items: the first of each group, then the second ones, and so on. */
export function inTurn<Item>(groups: readonly (readonly Item[])[]): Item[] {
  const longest = Math.max(0, ...groups.map(({ length }) => length));
  return Array.from({ length: longest }, (_, turn) =>
    groups.flatMap((group) => group.slice(turn, turn + 1)),
  ).flat();
}

/** The value of a key that a user typed; undefined for names that every object has, such as `constructor`. */
export const ownValue = <Value>(
  table: Readonly<Record<string, Value>>,
  key: string,
): Value | undefined => (Object.hasOwn(table, key) ? table[key] : undefined);

/**
 * A value out of a file as text: a scalar as JavaScript writes it, a list as its items with commas, `{…}` for an object.
 * `String` asks an object for its `toString`, which a file can replace: it throws for `{"toString": 1}`.
 */
export const asText = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(asText).join(',');
  return typeof value === 'object' && value !== null ? '{…}' : String(value);
};

/** A value out of a file as a number: of a scalar as JavaScript reads it; NaN for a list or an object, which `Number` asks for text. */
export const asNumber = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Number.NaN : Number(value);

/** Whether two values of plain data are equal: the same scalars in the same lists, and under the same keys in any order. */
export function isEqualData(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a)) {
    return (
      Array.isArray(b) && a.length === b.length && a.every((each, at) => isEqualData(each, b[at]))
    );
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isEqualData(a[key], b[key]))
  );
}

/** The middle value, or the mean of the two in the middle. One slow step or run does not change it. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [Math.floor((sorted.length - 1) / 2), Math.ceil((sorted.length - 1) / 2)];
  return ((sorted[low] ?? Number.NaN) + (sorted[high] ?? Number.NaN)) / 2;
}
