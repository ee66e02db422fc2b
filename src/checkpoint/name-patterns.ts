/** Names that are alike in many layers, written once: `layers.{0–31}.srte.freqs`. Knows no model. */
import { layerNumber } from './names.js';

/** A name around the number of its layer, or a name without one. */
export interface Template {
  /** `layers.` */
  readonly before: string;
  readonly number: number | undefined;
  /** `.srte.freqs` */
  readonly after: string;
}

/** Split at the first part that may be the number of a layer. */
export function templateOf(name: string): Template {
  const parts = name.split('.');
  const at = parts.findIndex((part, index) => index > 0 && layerNumber(part) !== undefined);
  if (at < 0) return { before: name, number: undefined, after: '' };
  const after = parts.slice(at + 1).map((part) => `.${part}`);
  return {
    before: `${parts.slice(0, at).join('.')}.`,
    number: layerNumber(parts[at] ?? ''),
    after: after.join(''),
  };
}

/**
 * Whether a name is as a pattern says: parts between dots, of which `*` is any number of a layer, and `**`
 * at the end one part or more.
 */
function isLike(name: string, pattern: string): boolean {
  const parts = name.split('.');
  const wanted = pattern.split('.');
  const isOpen = wanted.at(-1) === '**';
  if (isOpen) wanted.pop();
  if (isOpen ? parts.length <= wanted.length : parts.length !== wanted.length) return false;
  return wanted.every((part, index) =>
    part === '*' ? layerNumber(parts[index] ?? '') !== undefined : part === parts[index],
  );
}

/** The first of several patterns, with what else is said of it, that a name is as. */
export const firstLike = <T extends { readonly pattern: string }>(
  name: string,
  patterns: readonly T[],
): T | undefined => patterns.find(({ pattern }) => isLike(name, pattern));

/** The names of a template with these numbers. */
const patternOf = ({ before, after }: Template, numbers: ReadonlySet<number>): string =>
  `${before}${numbersText(numbers)}${after}`;

/** `3`, `{0–31}`, `{0, 2–5}`; nothing for no number. */
function numbersText(numbers: ReadonlySet<number>): string {
  const runs: [number, number][] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  const texts = runs.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`));
  return numbers.size > 1 ? `{${texts.join(', ')}}` : texts.join('');
}

/** Things that are one but for the numbers of their layers. */
export interface Alike<T> {
  readonly pattern: string;
  readonly template: Template;
  readonly first: T;
  /** In their order. */
  readonly members: readonly T[];
}

/**
 * Groups things by their names and whatever else tells them apart, in the order of the first of each.
 * @param of The name of a thing, and a text that those of a group have in common.
 */
export function groupAlike<T>(
  things: Iterable<T>,
  of: (thing: T) => { readonly template: Template; readonly key: string },
): Alike<T>[] {
  const groups = new Map<
    string,
    { template: Template; first: T; numbers: Set<number>; members: T[] }
  >();
  for (const thing of things) {
    const { template, key } = of(thing);
    const { before, number, after } = template;
    const whole = JSON.stringify([key, before, number === undefined, after]);
    const group = groups.get(whole) ?? { template, first: thing, numbers: new Set(), members: [] };
    groups.set(whole, group);
    group.members.push(thing);
    if (number !== undefined) group.numbers.add(number);
  }
  return Array.from(groups.values(), ({ numbers, ...group }) => ({
    ...group,
    pattern: patternOf(group.template, numbers),
  }));
}
