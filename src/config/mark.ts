import type { PropertyPath } from '../errors.js';
import type { Place } from './source.js';

/**
 * What was found wrong about a value while it was read: it is `wrong` as a whole, so that nothing more
 * is to be said about it; or it is an `incomplete` mapping, which lacks what was written badly.
 */
export type Flaw = 'wrong' | 'incomplete';

/** Where a value stands, and all that is in it. Parallel to the value; shared where that is shared. */
export interface Mark {
  readonly place: Place;
  /** Only where a problem tells of it already. */
  readonly flaw?: Flaw;
  /** Of a mapping. */
  readonly entries?: ReadonlyMap<string, Entry>;
  /** Of a list. */
  readonly items?: readonly Entry[];
}

/** What a mapping or a list holds at one key. */
export interface Entry {
  /** Where the key stands; an item of a list has none. */
  readonly key?: Place;
  readonly mark: Mark;
}

/** The entry of `mark` at a key, or at an index given as a number or as text. */
function entryOf(mark: Mark, segment: string | number): Entry | undefined {
  if (mark.items !== undefined) return mark.items[Number(segment)];
  return mark.entries?.get(String(segment));
}

/** The entry at `path`, and how far the document reaches on the way there. */
export function follow(
  root: Mark,
  path: PropertyPath,
): { readonly entry: Entry; readonly isWhole: boolean } {
  let entry: Entry = { mark: root };
  for (const segment of path) {
    const next = entryOf(entry.mark, segment);
    if (next === undefined) return { entry, isWhole: false };
    entry = next;
  }
  return { entry, isWhole: true };
}

/** Whether a mistake that was told already makes the value at `path`, or that it is not there, unsure. */
export function isDoubtful(root: Mark, path: PropertyPath): boolean {
  let mark = root;
  for (const segment of path) {
    if (mark.flaw === 'wrong') return true;
    const next = entryOf(mark, segment);
    if (next === undefined) return mark.flaw !== undefined;
    mark = next.mark;
  }
  return holdsFlaw(mark);
}

function holdsFlaw({ flaw, entries, items = [] }: Mark): boolean {
  if (flaw !== undefined) return true;
  return [...(entries?.values() ?? []), ...items].some(({ mark }) => holdsFlaw(mark));
}
