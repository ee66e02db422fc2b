import type { Finding, PropertyPath } from '../errors.js';
import { ConfigDocument, parseValue } from './document.js';
import { type Entry, follow, type Mark } from './mark.js';
import { splitOverride } from './override-path.js';
import { formatPath, isMapping, setOwn } from './path.js';
import { type Found, Unreadable } from './problems.js';
import { describeValue, quote } from './quote.js';
import { OverrideSource, type Place, type Source } from './source.js';

/** A value and its marks, on their way into a document. */
interface Part {
  readonly value: unknown;
  readonly mark: Mark;
}

/** Thrown and caught in this file. */
class Mistake extends Error {
  readonly finding: Finding;

  constructor(finding: Finding) {
    super(finding.message);
    this.finding = finding;
  }
}

/**
 * The document with each `path=value` of `sets` put in, in their order. A value is read as YAML:
 * `3`, `true`, `text`, `[1, 2]`, `{a: 1}`; nothing is null. Mappings on the way that are missing are
 * made. `document` itself is not changed. Overrides that cannot be read or have no place are left out,
 * and told of in the `found` of the document that is returned.
 */
export function applyOverrides(document: ConfigDocument, sets: readonly string[]): ConfigDocument {
  let root: Part = document;
  const found: Found[] = [...document.found];
  for (const [index, text] of sets.entries()) {
    const source = new OverrideSource(text, index + 1);
    const place = { source, offset: 0 };
    try {
      const { path, value } = split(text);
      const part = readValue(value.trim(), source);
      for (const each of part.found) found.push(each);
      // What cannot be read replaces nothing. But a key that is set is not missing.
      if (part.value === undefined && follow(root.mark, path).isWhole) continue;
      root = put(root, path, 0, part, place);
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      found.push({ severity: 'error', place, finding: error.finding });
    }
  }
  if (!isMapping(root.value)) throw new TypeError('An override replaced the document.');
  return new ConfigDocument(document.file, root.value, root.mark, found);
}

function split(text: string): { readonly path: PropertyPath; readonly value: string } {
  const parts = splitOverride(text);
  if (!('mistake' in parts)) return parts;
  throw new Mistake({
    message: `${quote(text)} ${parts.mistake}`,
    suggestion: 'write --set path.to.key=value',
  });
}

/** The value of an override, undefined when there is none to be had, and what is wrong with it. */
function readValue(text: string, source: Source): Part & { readonly found: readonly Found[] } {
  const place = { source, offset: 0 };
  const nothing = (found: readonly Found[]) =>
    ({ value: undefined, mark: { place, flaw: 'wrong' }, found }) as const;
  const refused = (finding: Finding) => nothing([{ severity: 'error', place, finding }]);
  if (text.startsWith('#')) {
    return refused({
      message: `the value ${quote(text)} is a comment in YAML`,
      suggestion: 'put a value that begins with # in quotes inside the override',
    });
  }
  try {
    const part = parseValue(text, source);
    if (typeof part.value !== 'object' || part.value === null || /^[[{&!]/.test(text)) return part;
    return refused({
      message: `the value ${quote(text)} is ${describeValue(part.value)}`,
      suggestion: 'write {key: value} or [item, item], or put a text in quotes',
    });
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return nothing(error.found);
  }
}

/** A copy of `at` with `part` at `path`, of which `depth` keys lie behind. Shares all the rest. */
function put(at: Part, path: PropertyPath, depth: number, part: Part, place: Place): Part {
  const segment = path[depth];
  if (segment === undefined) return part;
  const key = String(segment);
  const inner = (value: unknown, entry: Entry | undefined): Part =>
    put({ value, mark: entry?.mark ?? { place } }, path, depth + 1, part, place);

  if (Array.isArray(at.value)) {
    const index = itemIndex(at.value, key, path.slice(0, depth));
    const next = inner(at.value[index] ?? null, at.mark.items?.[index]);
    const items = at.mark.items ?? [];
    return {
      value: withItem(at.value, index, next.value),
      mark: { ...at.mark, items: withItem(items, index, { mark: next.mark }) },
    };
  }
  // Undefined is what is left of a value that was found wrong.
  const mapping = at.value ?? {};
  if (!isMapping(mapping)) {
    throw new Mistake({
      message: `${formatPath(path.slice(0, depth))} is ${describeValue(at.value)}, so it has no key ${quote(key)}`,
      suggestion: `set ${formatPath(path.slice(0, depth))} itself, or check the path`,
    });
  }
  const entry = at.mark.entries?.get(key);
  const own = Object.hasOwn(mapping, key) ? mapping[key] : null;
  const next = inner(own, entry);
  const value = { ...mapping };
  setOwn(value, key, next.value);
  const entries = new Map(at.mark.entries).set(key, { key: entry?.key ?? place, mark: next.mark });
  return { value, mark: { ...at.mark, entries } };
}

/** The index that `key` means in `list`; one behind the last adds an item. */
function itemIndex(list: readonly unknown[], key: string, path: PropertyPath): number {
  const index = Number(key);
  if (/^\d+$/.test(key) && index <= list.length) return index;
  const last = list.length - 1;
  throw new Mistake({
    message: `${formatPath(path)} is a list of ${list.length} ${list.length === 1 ? 'item' : 'items'}, and has no ${quote(key)}`,
    suggestion:
      last < 0
        ? 'use the index 0 to add an item'
        : `use an index from 0 to ${last}, or ${list.length} to add an item`,
  });
}

function withItem<T>(list: readonly T[], index: number, item: T): T[] {
  const copy = [...list];
  copy[index] = item;
  return copy;
}
