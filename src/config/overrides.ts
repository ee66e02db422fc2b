import { type Finding, type PropertyPath, UserError } from '../errors.js';
import { ConfigDocument, parseValue } from './document.js';
import type { Entry, Mark } from './mark.js';
import { splitOverride } from './override-path.js';
import { formatPath, isMapping, setOwn } from './path.js';
import { type Found, toProblems } from './problems.js';
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
 * made. `document` itself is not changed.
 *
 * @throws UserError `invalid-config` with all the overrides that cannot be read or have no place
 */
export function applyOverrides(document: ConfigDocument, sets: readonly string[]): ConfigDocument {
  let root: Part = document;
  const found: Found[] = [];
  for (const [index, text] of sets.entries()) {
    const source = new OverrideSource(text, index + 1);
    const place = { source, offset: 0 };
    try {
      const { path, part } = readOverride(text, source);
      root = put(root, path, 0, part, place);
    } catch (error) {
      const findings = findingsOf(error);
      found.push(...findings.map((finding) => ({ severity: 'error' as const, place, finding })));
    }
  }
  if (found.length > 0) {
    const message = 'not all --set overrides can be applied';
    throw new UserError('invalid-config', message, { problems: toProblems(found) });
  }
  if (!isMapping(root.value)) throw new TypeError('An override replaced the document.');
  return new ConfigDocument(document.file, root.value, root.mark);
}

function findingsOf(error: unknown): readonly Finding[] {
  if (error instanceof Mistake) return [error.finding];
  if (error instanceof UserError) return error.problems;
  throw error;
}

function readOverride(text: string, source: Source): { path: PropertyPath; part: Part } {
  const split = splitOverride(text);
  if ('mistake' in split) {
    throw new Mistake({
      message: `${quote(text)} ${split.mistake}`,
      suggestion: 'write --set path.to.key=value',
    });
  }
  const value = split.value.trim();
  if (value.startsWith('#')) {
    throw new Mistake({
      message: `the value ${quote(value)} is a comment in YAML`,
      suggestion: 'put a value that begins with # in quotes inside the override',
    });
  }
  const part = parseValue(value, source);
  if (typeof part.value === 'object' && part.value !== null && !/^[[{&!]/.test(value)) {
    throw new Mistake({
      message: `the value ${quote(value)} is ${describeValue(part.value)}`,
      suggestion: 'write {key: value} or [item, item], or put a text in quotes',
    });
  }
  return { path: split.path, part };
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
  if (at.value !== null && !isMapping(at.value)) {
    throw new Mistake({
      message: `${formatPath(path.slice(0, depth))} is ${describeValue(at.value)}, so it has no key ${quote(key)}`,
      suggestion: `set ${formatPath(path.slice(0, depth))} itself, or check the path`,
    });
  }
  const entry = at.mark.entries?.get(key);
  const own = at.value !== null && Object.hasOwn(at.value, key) ? at.value[key] : null;
  const next = inner(own, entry);
  const value = { ...at.value };
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
