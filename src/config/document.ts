import { stringify } from 'yaml';
import type { Finding, PropertyPath } from '../errors.js';
import { isMapping, setOwn } from './path.js';
import type { Found } from './problems.js';
import { invalidConfig, toProblems, Unreadable } from './problems.js';
import { describeValue } from './quote.js';
import type { Entry, Location, Mark, Place, Source } from './source.js';
import { DataSource, decode, follow, TextSource } from './source.js';
import { buildValue, parseSyntax } from './yaml.js';

/** A document that was read: its value, and where each part of it stands. Never changed. */
export class ConfigDocument {
  /** As the user wrote it, or `<stdin>`. */
  readonly file: string;
  readonly value: Record<string, unknown>;
  /** For the other files of this folder. */
  readonly mark: Mark;
  /** Findings of the reading. `checkDocument` reports them. */
  readonly found: readonly Found[];

  constructor(
    file: string,
    value: Record<string, unknown>,
    mark: Mark,
    found: readonly Found[] = [],
  ) {
    this.file = file;
    this.value = value;
    this.mark = mark;
    this.found = found;
  }

  /** Whether something stands at `path`. */
  has(path: PropertyPath): boolean {
    return follow(this.mark, path).isWhole;
  }

  /**
   * Where the value at `path` stands, or its key. For a path that the document does not have: the key
   * of the nearest mapping above it that it has.
   */
  locate(path: PropertyPath, of: 'value' | 'key' = 'value'): Location {
    const { source, offset } = this.place(path, of);
    return source.at(offset);
  }

  /** `locate`, before the work of finding line and column. */
  place(path: PropertyPath, of: 'value' | 'key' = 'value'): Place {
    const { entry, isWhole } = follow(this.mark, path);
    const wantsKey = of === 'key' || !isWhole;
    return wantsKey && entry.key !== undefined ? entry.key : entry.mark.place;
  }
}

/**
 * The document in `text`: YAML 1.2, of which JSON is a part. `file` is its name in messages. Mistakes
 * that leave a document, such as a key that stands twice, are not thrown: they are its `found`.
 *
 * @throws UserError `refused-file` when it is too large or not text; `invalid-config`, with all its
 * problems, when it is not one mapping in good YAML.
 */
export function parseDocument(text: string | Uint8Array, file: string): ConfigDocument {
  const decoded = decode(text, file);
  const source = new TextSource(file, decoded);
  try {
    const { value, mark, found } = parseValue(decoded, source);
    if (isMapping(value)) return new ConfigDocument(file, value, mark, found);
    if (mark.flaw === 'wrong') throw new Unreadable(found);
    const { place } = mark;
    throw new Unreadable([...found, { severity: 'error', place, finding: rootFinding(value) }]);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const { problems, errors } = toProblems(error.found, error.isCut);
    throw invalidConfig(file, problems, errors, error.isCut);
  }
}

/**
 * One YAML value of any kind, and the mistakes in it that leave a value; null when the text is empty.
 *
 * @throws Unreadable when no value is left
 */
export function parseValue(
  text: string,
  source: Source,
): { value: unknown; mark: Mark; found: readonly Found[] } {
  const { root, found, isBroken, isCut } = parseSyntax(text, source);
  if (isBroken) throw new Unreadable(found, isCut);
  if (root === null) return { value: null, mark: { place: { source, offset: 0 } }, found };
  return buildValue(root, source, found);
}

/**
 * The document that a mapping of plain data is: strings, numbers, truth values, null, lists and mappings.
 * `file` is its name in messages. The parts of it have no lines.
 */
export function documentOfData(value: Record<string, unknown>, file: string): ConfigDocument {
  return new ConfigDocument(file, value, markData(value, new DataSource(file), { next: 0 }));
}

/** Marks each part with its number in the order of the data, which is the order of problems. */
function markData(value: unknown, source: Source, order: { next: number }): Mark {
  const place = { source, offset: order.next++ };
  if (Array.isArray(value)) {
    return { place, items: value.map((item) => ({ mark: markData(item, source, order) })) };
  }
  if (!isMapping(value)) return { place };
  const entries = new Map<string, Entry>();
  for (const [key, inner] of Object.entries(value)) {
    const mark = markData(inner, source, order);
    entries.set(key, { key: mark.place, mark });
  }
  return { place, entries };
}

function rootFinding(value: unknown): Finding {
  if (value === null) {
    const suggestion = 'write at least one line such as "key: value"';
    return { message: 'the document is empty', suggestion };
  }
  const message = `must be a mapping of keys to values, but is ${describeValue(value)}`;
  const suggestion =
    typeof value === 'string' && value.includes(':')
      ? 'put a space after the colon: "key: value"'
      : 'write lines such as "key: value"';
  return { message, suggestion };
}

// A document made from another, of which it keeps the places.

interface Origins {
  /** Where the document has what a key of the section stands for, whether the section has the key or not. */
  readonly of: ReadonlyMap<string, PropertyPath>;
  /** What is shown for all else. */
  readonly otherwise: PropertyPath;
  /** Findings about the values themselves. */
  readonly found?: readonly Found[];
}

/**
 * A document whose only key is `name`, with `values` that were made from those of `document`. What is wrong
 * with them is told where the values that they come from stand; what was found when `document` was read, too.
 */
export function documentOfSection(
  document: ConfigDocument,
  name: string,
  values: Record<string, unknown>,
  { of, otherwise, found: odd = [] }: Origins,
): ConfigDocument {
  const { file, mark, found } = document;
  const key = document.place(otherwise, 'key');
  const rest: Entry = { key, mark: { place: document.place(otherwise) } };
  const entries = new Map<string, Entry>(Object.keys(values).map((each) => [each, rest]));
  for (const [each, path] of of) entries.set(each, follow(mark, path).entry);
  const section = { key, mark: { ...mark, place: rest.mark.place, entries } };
  const value = {};
  setOwn(value, name, values);
  return new ConfigDocument(
    file,
    value as Record<string, unknown>,
    {
      place: mark.place,
      entries: new Map([[name, section]]),
    },
    [...found, ...odd],
  );
}

// Single values changed in the text of a JSON document, which else stays as its writer left it.

export interface Edit {
  readonly path: PropertyPath;
  readonly value: unknown;
}

/** A text, a number, a truth value or null, as JSON has them. */
const SCALAR = /"(?:[^"\\]|\\.)*"|[-+.\w]+/y;

/**
 * The text of a document with other values; undefined where there is none, or a change is not of a single
 * value. What comes of it is to be read again: this does not look at what it replaces.
 */
export function editedText(document: ConfigDocument, edits: readonly Edit[]): string | undefined {
  const { source } = document.mark.place;
  if (!(source instanceof TextSource)) return undefined;
  const changes = edits.map((edit) => changeOf(document, source.text, edit));
  let { text } = source;
  // From the end, so that places before stay where they are.
  for (const change of changes.toSorted((a, b) => (b?.from ?? 0) - (a?.from ?? 0))) {
    if (change === undefined) return undefined;
    text = text.slice(0, change.from) + change.text + text.slice(change.to);
  }
  return text;
}

interface Change {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

function changeOf(
  document: ConfigDocument,
  text: string,
  { path, value }: Edit,
): Change | undefined {
  const written = JSON.stringify(value);
  if (document.has(path)) {
    const { offset } = document.place(path);
    SCALAR.lastIndex = offset;
    const [old] = SCALAR.exec(text) ?? [];
    return old === undefined ? undefined : { from: offset, to: offset + old.length, text: written };
  }
  const [key, ...rest] = path;
  const { offset } = document.mark.place;
  if (rest.length > 0 || text[offset] !== '{') return undefined;
  const from = offset + 1;
  return { from, to: from, text: `\n  ${JSON.stringify(String(key))}: ${written},` };
}

/** A document as YAML text. Numbers stay numbers to readers of YAML 1.1 too: `1.0e-5`, not `1e-5`. */
export function documentText(value: Record<string, unknown>): string {
  // Such readers take an exponent without a dot before it for a text.
  return stringify(value, { lineWidth: 100 }).replace(
    /^(\s*(?:- )*(?:[^:\n"']+: )?-?\d+)(e[-+]?\d+)$/gim,
    '$1.0$2',
  );
}
