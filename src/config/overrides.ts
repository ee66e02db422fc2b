import { type PropertyPath, usageError } from '../base/errors.js';
import { setting } from '../base/text/setting.js';
import { counted } from '../base/text/words.js';
import { isRecord } from '../base/values.js';
import { ConfigDocument } from './document.js';
import { type LocatedFinding, Unreadable, unreadableAt } from './document-problems.js';
import { describeValue, formatPath, quote, valueAt } from './quote.js';
import { keyPaths, type Schema } from './schema-structure.js';
import { follow, type LocatedValue, overrideSource, type SourcePosition } from './source.js';
import { MAX_DEPTH, parseYaml } from './syntax/yaml.js';

/** One step of the path of a `--set`, from its first character on. */
const SEGMENT =
  /\["((?:[^"\\]|\\.)*)"\]|\[(\d{1,15})\]|"((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^\\.=["']|\\.)(?:[^\\.=[]|\\.)*)/suy;

/**
 * Splits `path=value`. Dots separate the keys of the path. A key with a dot or `=` needs quotes or a backslash:
 * `a.b`, `a."b.c"`, `a["b.c"]`, `a.b\.c`, `a.0`, `a[0]`.
 *
 * @returns the path and the text of the value, or an error message
 */
export function splitOverride(
  text: string,
): { readonly path: PropertyPath; readonly value: string } | { readonly mistake: string } {
  const path: string[] = [];
  let at = 0;
  for (;;) {
    SEGMENT.lastIndex = at;
    const match = SEGMENT.exec(text);
    if (match === null) return { mistake: mistakeAt(text, at) };
    path.push(segmentKey(match));
    at = SEGMENT.lastIndex;
    if (path.length > MAX_DEPTH) return { mistake: `its path has more than ${MAX_DEPTH} keys` };
    const next = text[at];
    if (next === '=') return { path, value: text.slice(at + 1) };
    if (next === '.') at++;
    else if (next !== '[') return { mistake: mistakeAt(text, at) };
  }
}

function segmentKey([, bracketed, index, doubled, single, bare]: RegExpExecArray): string {
  return index ?? single ?? unguard(bracketed ?? doubled ?? bare ?? '');
}

/** A backslash escapes the next character. */
function unguard(text: string): string {
  return text.replace(/\\(.)/gsu, '$1');
}

function mistakeAt(text: string, at: number): string {
  if (!text.includes('=', at)) return 'has no =';
  const next = text[at];
  if (next === '=' || next === '.') return 'has an empty key';
  return `cannot be read from character ${at + 1} on`;
}

/** Key paths of schemas: a sweep asks for those of one schema thousands of times. */
const knownPaths = new WeakMap<Schema, readonly PropertyPath[]>();

function pathsOf(schema: Schema): readonly PropertyPath[] {
  const paths = knownPaths.get(schema) ?? [...keyPaths(schema)];
  knownPaths.set(schema, paths);
  return paths;
}

/** Overrides with full paths: `num_layers=12` becomes `model.num_layers=12` if only `model` has such a key. */
export function correctedOverrides(schema: Schema, sets: readonly string[]): string[] {
  const paths = pathsOf(schema);
  return sets.map((text) => {
    const parts = splitOverride(text);
    if ('mistake' in parts || paths.some(([first]) => first === parts.path[0])) return text;
    const [only, ...others] = paths.filter((path) => path.at(-1) === parts.path[0]);
    const isOfModel = only?.length === 2 && only[0] === 'model' && others.length === 0;
    return isOfModel ? `model.${text}` : text;
  });
}

/**
 * Applies each `path=value` of `sets` to a copy of the document, in order. Values are YAML: `3`, `true`, `text`,
 * `[1, 2]`, `{a: 1}`; an empty value is null. Missing mappings are created. Invalid overrides are skipped and
 * reported in `found` of the result.
 */
export function applyOverrides(document: ConfigDocument, sets: readonly string[]): ConfigDocument {
  const before = lastApplied.get(document) ?? [];
  const first = sets.findIndex((text, at) => before[at]?.text !== text);
  const applied = before.slice(0, first < 0 ? sets.length : first);
  let last: Overridden = applied.at(-1) ?? document;
  for (let at = applied.length; at < sets.length; at++) {
    const text = sets[at] ?? '';
    last = withOverride(last, text, at + 1);
    applied.push({ text, root: last.root, found: last.found });
  }
  lastApplied.set(document, applied.slice(0, MOST_APPLIED));
  return new ConfigDocument(document.file, last.root, last.found);
}

/** A document with some overrides. */
type Overridden = Pick<ConfigDocument, 'root' | 'found'>;

/** The last list of overrides of a document, with the document after each. Points of a sweep differ only in the last ones. */
const lastApplied = new WeakMap<ConfigDocument, readonly AppliedOverride[]>();

/** Maximum overrides of a list whose documents are remembered. */
const MOST_APPLIED = 64;

interface AppliedOverride extends Overridden {
  /** The last override that is applied. */
  readonly text: string;
}

/** @param number Place on the command line, from 1 on. */
function withOverride({ root, found }: Overridden, text: string, number: number): Overridden {
  const { path, value, place, found: own } = readOverride(text, number);
  const all = own.length === 0 ? found : [...found, ...own];
  // An unreadable value replaces nothing, but the key counts as set.
  const isKept = path === undefined || (value.value === undefined && follow(root, path).isWhole);
  if (isKept) return { root, found: all };
  try {
    return { root: put(root, path, 0, value, place), found: all };
  } catch (error) {
    return { root, found: [...all, ...foundIn(error)] };
  }
}

/** An override as it is written. */
interface ReadOverride {
  /** Undefined for text that is not `path=value`. */
  readonly path: PropertyPath | undefined;
  readonly value: LocatedValue;
  readonly place: SourcePosition;
  /** Problems of its text. */
  readonly found: readonly LocatedFinding[];
}

/** Overrides by number and text. A comparison of lists applies few of them to thousands of models. */
const readOverrides = new Map<string, ReadOverride>();

/** Overrides that are remembered at once. */
const MOST_READ = 4096;

/** @param number Place on the command line, from 1 on. */
function readOverride(text: string, number: number): ReadOverride {
  const key = `${number} ${text}`;
  const known = readOverrides.get(key);
  if (known) return known;
  if (readOverrides.size >= MOST_READ) readOverrides.clear();
  const place = { source: overrideSource(text, number), offset: 0 };
  const found: LocatedFinding[] = [];
  const unread = { path: undefined, value: { value: undefined, place }, place, found };
  const read = parseOverride(text, place, found) ?? unread;
  readOverrides.set(key, read);
  return read;
}

/** Undefined for text that is not `path=value`; adds problems to `found`. */
function parseOverride(
  text: string,
  place: SourcePosition,
  found: LocatedFinding[],
): ReadOverride | undefined {
  try {
    const parts = splitOverride(text);
    if ('mistake' in parts) {
      throw misplaced(
        place,
        `${quote(text)} ${parts.mistake}`,
        `write ${setting('set', 'path.to.key=value')}`,
      );
    }
    const value = readValue(parts.value.trim(), place, found);
    return { path: parts.path, value, place, found };
  } catch (error) {
    found.push(...foundIn(error));
    return undefined;
  }
}

const misplaced = (place: SourcePosition, message: string, suggestion: string) =>
  unreadableAt(place, { message, suggestion });

/** Problems of an override that cannot be read; rethrows other errors. */
function foundIn(error: unknown): readonly LocatedFinding[] {
  if (error instanceof Unreadable) return error.found;
  throw error;
}

/** The value of an override, undefined when it has none; adds its problems to `found`. */
function readValue(text: string, place: SourcePosition, found: LocatedFinding[]): LocatedValue {
  try {
    if (text.startsWith('#')) {
      throw misplaced(
        place,
        `the value ${quote(text)} is a comment in YAML`,
        'put a value that begins with # in quotes inside the override',
      );
    }
    const read = parseYaml(text, place.source);
    const { value } = read.root;
    if (typeof value === 'object' && value !== null && !/^[[{&!]/.test(text)) {
      throw misplaced(
        place,
        `the value ${quote(text)} is ${describeValue(value)}`,
        'write {key: value} or [item, item], or put a text in quotes',
      );
    }
    for (const each of read.found) found.push(each);
    return read.root;
  } catch (error) {
    for (const each of foundIn(error)) found.push(each);
    return { value: undefined, place, flaw: 'wrong' };
  }
}

/** Copies `at` with `part` at `path`, from its key `depth` on; shares the rest. */
function put(
  at: LocatedValue,
  path: PropertyPath,
  depth: number,
  part: LocatedValue,
  place: SourcePosition,
): LocatedValue {
  const segment = path[depth];
  if (segment === undefined) return part;
  // Undefined marks an invalid value.
  const whole = at.value ?? {};
  const above = path.slice(0, depth);
  const key = Array.isArray(whole)
    ? itemIndex(whole, String(segment), above, place)
    : String(segment);
  if (!Array.isArray(whole) && !isRecord(whole)) {
    throw misplaced(
      place,
      `${formatPath(above)} is ${describeValue(at.value)}, so it has no key ${quote(key)}`,
      `set ${formatPath(above)} itself, or check the path`,
    );
  }
  const old: LocatedValue = at.parts?.get(key) ?? { value: null, place };
  const next = put({ ...old, value: valueAt(whole, [key]) ?? null }, path, depth + 1, part, place);
  const value = Array.isArray(whole)
    ? Object.assign([...whole], { [key]: next.value })
    : { ...whole, [key]: next.value };
  const located = Array.isArray(whole) ? next : { ...next, key: old.key ?? place };
  return { ...at, value, parts: new Map(at.parts).set(key, located) };
}

/** Index of `key` in `list`; the index after the last appends an item. */
function itemIndex(
  list: readonly unknown[],
  key: string,
  path: PropertyPath,
  place: SourcePosition,
): string {
  const index = Number(key);
  if (/^\d+$/.test(key) && index <= list.length) return String(index);
  const last = list.length - 1;
  throw misplaced(
    place,
    `${formatPath(path)} is a list of ${counted(list.length, 'item')}, and has no ${quote(key)}`,
    last < 0
      ? 'use the index 0 to add an item'
      : `use an index from 0 to ${last}, or ${list.length} to add an item`,
  );
}

// Overrides with several values per key: `--set model.num_layers=12,24`

/** One choice among the values. */
export interface SweepPoint {
  /** All overrides, with one value each, in flag order. */
  readonly set: readonly string[];
  /** The chosen text of each swept key. */
  readonly chosen: readonly string[];
}

export interface OverrideSweep {
  /** Dotted paths with several values, in flag order. */
  readonly keys: readonly string[];
  /** Number of points, known before they are created. */
  readonly size: number;
  /** Every combination, with the first key changing slowest, or the lists in step. */
  points(): SweepPoint[];
}

interface Swept {
  readonly path: string;
  /** Text before the value: `model.num_layers=`. */
  readonly prefix: string;
  readonly values: readonly string[];
}

/**
 * Reads comma-separated lists in overrides. Commas within `[…]`, `{…}` or quotes do not separate values, so a list
 * or text can be one value. `applyOverrides` reports invalid paths and values.
 *
 * @param inStep Whether to pair the lists item by item instead of combining them.
 * @throws UserError for a list with an empty item, a key that is swept and set again, or paired lists of different
 * lengths.
 */
export function sweepOf(sets: readonly string[], inStep = false): OverrideSweep {
  const all = sets.map(sweptOf);
  const keys = all.filter(({ values }) => values.length > 1).map(({ path }) => path);
  const paths = all.map(({ path }) => path);
  const twice = keys.find((key) => paths.indexOf(key) !== paths.lastIndexOf(key));
  if (twice !== undefined) {
    throw usageError(
      `${setting('set')}: ${twice} has several values, and is set again`,
      `write all its values in one ${setting('set')}, with commas between them`,
    );
  }
  if (inStep) return { keys, ...sweepPoints(all) };
  return {
    keys,
    size: all.reduce((size, { values }) => size * values.length, 1),
    points: () => all.reduce(eachWith, [{ set: [], chosen: [] }]),
  };
}

/** The n-th values of all lists together; a single value combines with each. */
function sweepPoints(all: readonly Swept[]): Omit<OverrideSweep, 'keys'> {
  const lists = all.filter(({ values }) => values.length > 1);
  const size = lists[0]?.values.length ?? 1;
  const other = lists.find(({ values }) => values.length !== size);
  if (other) {
    throw usageError(
      `${setting('zip')}: ${lists[0]?.path} has ${size} values, and ${other.path} has ${other.values.length}`,
      `give all lists of ${setting('set')} the same number of values`,
    );
  }
  const at = ({ values }: Swept, step: number) => values[step] ?? values[0] ?? '';
  const point = (step: number): SweepPoint => ({
    set: all.map((each) => each.prefix + at(each, step)),
    chosen: lists.map((each) => at(each, step)),
  });
  return { size, points: () => Array.from({ length: size }, (_, step) => point(step)) };
}

const eachWith = (points: SweepPoint[], { prefix, values }: Swept): SweepPoint[] =>
  points.flatMap(({ set, chosen }) =>
    values.map((value) => ({
      set: [...set, prefix + value],
      chosen: values.length > 1 ? [...chosen, value] : chosen,
    })),
  );

function sweptOf(text: string): Swept {
  const parts = splitOverride(text);
  if ('mistake' in parts) return { path: text, prefix: '', values: [text] };
  const { path, value } = parts;
  const values = splitList(value);
  if (values.length > 1 && values.includes('')) {
    throw usageError(
      `${setting('set')}: ${quote(text)} has an empty value among others`,
      'leave the comma out, or write null',
    );
  }
  return {
    path: formatPath(path),
    prefix: text.slice(0, text.length - value.length),
    values: values.length > 1 ? values : [value],
  };
}

const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' };

/** Items of a list, trimmed. Brackets and quotes only count at the start of a value, as in YAML. */
function splitList(text: string): string[] {
  const items: string[] = [];
  const open: string[] = [];
  let start = 0;
  let isValueStart = true;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    const quoted = isValueStart ? quotedAt(text, at) : '';
    if (quoted !== '') {
      at += quoted.length - 1;
      isValueStart = false;
    } else if (character === ',' && open.length === 0) {
      items.push(text.slice(start, at).trim());
      start = at + 1;
      isValueStart = true;
    } else if (isValueStart && CLOSING[character] !== undefined) {
      open.push(CLOSING[character]);
    } else if (character === open.at(-1)) {
      open.pop();
      isValueStart = false;
    } else if (character !== ' ') {
      isValueStart = open.length > 0 && ',:'.includes(character);
    }
  }
  return [...items, text.slice(start).trim()];
}

/** Text in quotes, to the end where they are not closed. */
const QUOTED = /"(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?/suy;

function quotedAt(text: string, at: number): string {
  QUOTED.lastIndex = at;
  return QUOTED.exec(text)?.[0] ?? '';
}
