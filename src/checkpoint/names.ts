/** Turns the names of a file into the names of the model. Knows no model. */
import type { Checkpoint } from './checkpoint.js';
import { refusal } from './checkpoint-rules.js';
import type { StoredTensor } from './stored-tensor.js';

/** Prefixes that wrappers add to every name: data parallelism and torch.compile. */
const WRAPPERS = ['module.', '_orig_mod.'] as const;

/** Name part that torch.compile adds when only a submodule is compiled. */
const COMPILED = '_orig_mod';

/**
 * Maps each name of a file to its name without wrapper prefixes, in the order of `names`. Removes `module.` and
 * `_orig_mod.` at the front, in any order and number, only if every name has them. Always removes `._orig_mod.`
 * inside a name.
 * @param file File name for error messages.
 * @throws UserError if two names become equal.
 */
export function canonicalNames(names: Iterable<string>, file: string): ReadonlyMap<string, string> {
  const own = [...names];
  const short = withoutPrefixes(own, file);
  return new Map(own.map((name, index) => [name, short[index] ?? name]));
}

/** The names without wrapper prefixes, in their order. */
function withoutPrefixes(own: readonly string[], file: string): readonly string[] {
  const stripped = withoutWrappers(own.map(withoutCompiledParts));
  // As they are, names cannot become equal.
  if (stripped.every((short, index) => short === own[index])) return own;
  const owners = new Map<string, string>();
  for (const [index, name] of own.entries()) {
    const short = stripped[index] ?? name;
    const owner = owners.get(short);
    if (owner !== undefined && owner !== name) {
      throw refusal(file, {
        rule: 'names-collide',
        place: `tensor ${JSON.stringify(name)}`,
        message: `is ${JSON.stringify(short)} without the prefixes of wrappers, and so is tensor ${JSON.stringify(owner)}`,
        suggestion: 'save the state dict of the model itself, not of its wrapper',
      });
    }
    owners.set(short, name);
  }
  return stripped;
}

function withoutCompiledParts(name: string): string {
  if (!name.includes(`.${COMPILED}.`)) return name;
  const isInside = (index: number, parts: readonly string[]) =>
    index > 0 && index < parts.length - 1;
  return name
    .split('.')
    .filter((part, index, parts) => part !== COMPILED || !isInside(index, parts))
    .join('.');
}

function withoutWrappers(names: readonly string[]): readonly string[] {
  let rest = names;
  // Each round shortens every name, so the rounds end.
  for (;;) {
    const prefix = WRAPPERS.find((wrapper) => rest.every((name) => name.startsWith(wrapper)));
    if (prefix === undefined || rest.length === 0) return rest;
    rest = rest.map((name) => name.slice(prefix.length));
  }
}

/** `0`, or up to five ASCII digits without a leading zero. */
const LAYER_NUMBER = /^(?:0|[1-9]\d{0,4})$/;

/** Layer number that a name part gives; undefined if it is not one. */
export function layerNumber(text: string): number | undefined {
  return LAYER_NUMBER.test(text) ? Number(text) : undefined;
}

/** A tensor and its name in the file. */
export interface StoredName {
  readonly own: string;
  readonly tensor: StoredTensor;
}

/** Tensors by name without wrapper prefixes, aliases in safetensors metadata included, in file order. */
export type StoredNames = ReadonlyMap<string, StoredName>;

/**
 * Tensors of a checkpoint under the names of the model.
 * @throws UserError if two names are equal without their prefixes.
 */
export function storedNames(checkpoint: NamedTensors): StoredNames {
  const { path, tensors, aliases } = checkpoint;
  const before = known.get(tensors);
  if (before && before.aliases === aliases && before.path === path) return before.stored;
  const stored = new Map<string, StoredName>();
  const own = aliases.size === 0 ? [...tensors.keys()] : [...tensors.keys(), ...aliases.keys()];
  const short = withoutPrefixes(own, path);
  let index = 0;
  for (const name of own) {
    const tensor = tensors.get(name) ?? tensors.get(aliases.get(name) ?? name);
    if (tensor) stored.set(short[index] ?? name, { own: name, tensor });
    index++;
  }
  known.set(tensors, { path, aliases, stored });
  return stored;
}

type NamedTensors = Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>;

/** Names by the index they come from, which never changes after it is read. */
const known = new WeakMap<
  NamedTensors['tensors'],
  Pick<NamedTensors, 'path' | 'aliases'> & { readonly stored: StoredNames }
>();

/** Prefix that the file adds to the names of the model, as `module.`; may be empty. */
export function prefixOf(stored: StoredNames): string {
  for (const [name, { own }] of stored) return own.endsWith(name) ? own.slice(0, -name.length) : '';
  return '';
}

/** The number n in a name `prefix.n.…`. */
export function numberUnder(prefix: string, name: string): number | undefined {
  if (!name.startsWith(`${prefix}.`)) return undefined;
  const from = prefix.length + 1;
  const to = name.indexOf('.', from);
  return to < 0 ? undefined : layerNumber(name.slice(from, to));
}

/** The numbers n in all names `prefix.n.…`, ascending. */
export function numbersUnder(prefix: string, names: Iterable<string>): number[] {
  const numbers = new Set<number>();
  for (const name of names) {
    const number = numberUnder(prefix, name);
    if (number !== undefined) numbers.add(number);
  }
  return [...numbers].sort((a, b) => a - b);
}

// Templates: one name for equal names in several layers: `layers.{0–31}.srte.freqs`.

/** A name split around its layer number, or a name without one. */
export interface Template {
  /** `layers.` */
  readonly before: string;
  readonly number: number | undefined;
  /** `.srte.freqs` */
  readonly after: string;
}

/** Splits a name at the first part that may be a layer number. */
export function templateOf(name: string): Template {
  for (let from = name.indexOf('.') + 1; from > 0; ) {
    const dot = name.indexOf('.', from);
    const end = dot < 0 ? name.length : dot;
    const number = layerNumber(name.slice(from, end));
    if (number !== undefined) {
      return { before: name.slice(0, from), number, after: name.slice(end) };
    }
    from = dot + 1;
  }
  return { before: name, number: undefined, after: '' };
}

/** Numbers in a name that are sorted by value: layers, and experts in a layer. */
const SORTED_NUMBERS = 2;

/** The order of the file, with layers.2 before layers.10. */
export function naturalOrder(
  names: readonly string[],
  numbers = SORTED_NUMBERS,
): readonly string[] {
  if (numbers === 0 || names.length < 2) return names;
  /** Rest of the names by number, in lists by what precedes the number; null for names without one. */
  const lists = new Map<string, Map<number, string[]> | null>();
  for (const name of names) {
    const { before, number, after } = templateOf(name);
    const list = lists.get(before);
    if (number === undefined) {
      if (list) list.set(-1, ['']);
      else lists.set(before, null);
    } else if (list) {
      const rest = list.get(number);
      if (rest) rest.push(after);
      else list.set(number, [after]);
    } else {
      const own = new Map([[number, [after]]]);
      lists.set(before, list === null ? own.set(-1, ['']) : own);
    }
  }
  const ordered: string[] = [];
  for (const [before, list] of lists) {
    if (list === null) {
      ordered.push(before);
      continue;
    }
    for (const [number, rests] of [...list].sort(([a], [b]) => a - b)) {
      for (const rest of naturalOrder(rests, numbers - 1)) {
        ordered.push(number < 0 ? before : `${before}${number}${rest}`);
      }
    }
  }
  return ordered;
}

/**
 * Whether a name matches a pattern: parts between dots, where `*` is any layer number and a final `**` is one
 * or more parts.
 */
function isLike(name: string, pattern: string): boolean {
  const parts = name.split('.');
  const patternParts = pattern.split('.');
  const isOpen = patternParts.at(-1) === '**';
  if (isOpen) patternParts.pop();
  if (isOpen ? parts.length <= patternParts.length : parts.length !== patternParts.length)
    return false;
  return patternParts.every((part, index) =>
    part === '*' ? layerNumber(parts[index] ?? '') !== undefined : part === parts[index],
  );
}

/** The first entry whose pattern matches the name; a regular expression can match a part of it. */
export const firstOfPattern = <T extends { readonly pattern: string | RegExp }>(
  name: string,
  patterns: readonly T[],
): T | undefined =>
  patterns.find(({ pattern }) =>
    typeof pattern === 'string' ? isLike(name, pattern) : pattern.test(name),
  );

const patternOf = ({ before, after }: Template, numbers: ReadonlySet<number>): string =>
  `${before}${numbersText(numbers)}${after}`;

/** `3`, `{0–31}`, `{0, 2–5}`; empty for an empty set. */
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

/** Things whose names differ only in the layer number. */
export interface NameGroup<T> {
  readonly pattern: string;
  readonly template: Template;
  readonly first: T;
  /** Members in their original order. */
  readonly members: readonly T[];
}

/**
 * Groups things by name pattern and by a text, in the order of the first member of each group.
 * @param of Returns the name of a thing, and the text that members of its group share.
 */
export function groupByPattern<T>(
  things: Iterable<T>,
  of: (thing: T) => { readonly template: Template; readonly key: string },
): NameGroup<T>[] {
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
