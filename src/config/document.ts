import { stringify } from 'yaml';
import type { ProblemText, PropertyPath } from '../base/errors.js';
import { jsonOrUndefined } from '../base/text/json.js';
import { joined } from '../base/text/words.js';
import { isRecord } from '../base/values.js';
import {
  invalidConfig,
  type LocatedFinding,
  toProblems,
  Unreadable,
  unreadableAt,
} from './document-problems.js';
import { describeValue } from './quote.js';
import {
  dataSource,
  decodeText,
  follow,
  type LocatedValue,
  type Location,
  type Source,
  type SourcePosition,
  TextSource,
} from './source.js';
import type { Edit } from './syntax/json-edits.js';
import { editedJson } from './syntax/json-edits.js';
import { jsonMistake } from './syntax/json-syntax.js';
import { type PythonSettings, pythonSettings } from './syntax/python-text.js';
import { parseYaml } from './syntax/yaml.js';

/** A parsed document: its value, and the location of each part. Immutable. */
export class ConfigDocument {
  /** Name as given by the user, or `<stdin>`. */
  readonly file: string;
  readonly value: Record<string, unknown>;
  /** Location tree for the other files of this folder. */
  readonly root: LocatedValue;
  /** Findings of the reader; `checkDocument` reports them. */
  readonly found: readonly LocatedFinding[];

  constructor(file: string, root: LocatedValue, found: readonly LocatedFinding[] = []) {
    if (!isRecord(root.value)) throw new TypeError('A document must be a mapping.');
    this.file = file;
    this.value = root.value;
    this.root = root;
    this.found = found;
  }

  has(path: PropertyPath): boolean {
    return follow(this.root, path).isWhole;
  }

  /**
   * Location of the value at `path`, or of its key. For a missing path, the key of the nearest existing mapping
   * above it.
   */
  locate(path: PropertyPath, of: 'value' | 'key' = 'value'): Location {
    const { source, offset } = this.place(path, of);
    return source.at(offset);
  }

  /** Like `locate`, without computing line and column. */
  place(path: PropertyPath, of: 'value' | 'key' = 'value'): SourcePosition {
    const { at, isWhole } = follow(this.root, path);
    return of === 'key' || !isWhole ? (at.key ?? at.place) : at.place;
  }
}

/**
 * Parses `text` as YAML 1.2, which includes JSON; a file named `.json` must be JSON. `file` is its name in
 * messages. Recoverable mistakes, such as a duplicate key, are not thrown but added to `found`.
 *
 * @throws UserError `refused-file` when it is too large or not text; `invalid-config`, with all its problems, when
 * it is not one valid YAML mapping.
 */
export function parseDocument(text: string | Uint8Array, file: string): ConfigDocument {
  const decoded = decodeText(text, file);
  const python = /\.json$/i.test(file) ? undefined : pythonSettings(decoded);
  const source = new TextSource(file, python?.yaml ?? decoded, python && decoded);
  try {
    const isJson = jsonOrUndefined(source.text) !== undefined;
    const { root, found } = parseYaml(source.text, source, { isJson });
    if (isRecord(root.value)) {
      const more = python ? pythonFindings(python, source) : jsonFindings(source);
      return new ConfigDocument(file, root, [...found, ...more]);
    }
    if (root.flaw === 'wrong') throw new Unreadable(found);
    throw unreadableAt(root.place, rootFinding(root.value), found);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const { problems, errors } = toProblems(error.found);
    throw invalidConfig(file, problems, errors);
  }
}

/** A warning about statements other than settings, which are not read. */
function pythonFindings({ unread }: PythonSettings, source: TextSource): LocatedFinding[] {
  const [line] = unread;
  if (line === undefined) return [];
  const before = source.text.split('\n').slice(0, line - 1);
  const offset = before.reduce((sum, each) => sum + each.length + 1, 0);
  const finding = {
    message: `Python that is not read: ${unread.length === 1 ? 'line' : 'statements on lines'} ${joined(unread.map(String))}`,
    suggestion: 'leave it out: only the settings of dictionaries and calls are read',
  };
  return [{ severity: 'warning', place: { source, offset }, finding }];
}

/** An error for syntax that only YAML allows: transformers and other readers of a `config.json` refuse it. */
function jsonFindings(source: TextSource): LocatedFinding[] {
  const mistake = /\.json$/i.test(source.file) ? jsonMistake(source.text) : undefined;
  if (mistake === undefined) return [];
  const { offset, finding } = mistake;
  return [{ severity: 'error', place: { source, offset }, finding }];
}

function rootFinding(value: unknown): ProblemText {
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

/**
 * Document of plain data: strings, numbers, booleans, null, lists and mappings. `file` is its name in messages.
 * Its parts have no lines.
 */
export function documentOfData(value: Record<string, unknown>, file: string): ConfigDocument {
  return new ConfigDocument(file, locateData(value, dataSource(file), { next: 0 }));
}

/** Numbers each part in data order, which is the order of problems. */
function locateData(value: unknown, source: Source, order: { next: number }): LocatedValue {
  const place = { source, offset: order.next++ };
  if (typeof value !== 'object' || value === null) return { value, place };
  const parts = new Map<string, LocatedValue>();
  for (const [key, inner] of Object.entries(value)) {
    const part = locateData(inner, source, order);
    parts.set(key, Array.isArray(value) ? part : { ...part, key: part.place });
  }
  return { value, place, parts };
}

interface Origins {
  /** Source path in the document for each key of the section, present or not. */
  readonly of: ReadonlyMap<string, PropertyPath>;
  /** Path to show for all other keys. */
  readonly otherwise: PropertyPath;
  /** Findings about the values themselves. */
  readonly found?: readonly LocatedFinding[];
}

/**
 * Document with the single key `name` and `values` derived from those of `document`. Problems point at the
 * original values.
 */
export function documentOfSection(
  document: ConfigDocument,
  name: string,
  values: Record<string, unknown>,
  { of, otherwise, found = [] }: Origins,
): ConfigDocument {
  const { file, root } = document;
  const key = document.place(otherwise, 'key');
  const place = document.place(otherwise);
  const parts = new Map<string, LocatedValue>();
  for (const [each, value] of Object.entries(values)) parts.set(each, { value, key, place });
  for (const [each, path] of of) parts.set(each, { ...follow(root, path).at, value: values[each] });
  const section: LocatedValue = { ...root, value: values, key, place, parts };
  return new ConfigDocument(
    file,
    { value: { [name]: values }, place: root.place, parts: new Map([[name, section]]) },
    [...document.found, ...found],
  );
}

/** The document with further findings. */
export const withFindings = (
  { file, root, found }: ConfigDocument,
  more: readonly LocatedFinding[],
): ConfigDocument => new ConfigDocument(file, root, [...found, ...more]);

/** The document with a value that its file does not have, at the place of its section. */
export function withSetting(
  document: ConfigDocument,
  [section = '', key = '']: PropertyPath,
  value: string,
): ConfigDocument {
  const at = document.root.parts?.get(String(section));
  if (at === undefined || !isRecord(at.value)) return document;
  const place = at.key ?? at.place;
  const changed = {
    ...at,
    value: { ...at.value, [key]: value },
    parts: new Map([...(at.parts ?? []), [String(key), { value, place, key: place }]]),
  };
  const { root } = document;
  const whole = {
    ...root,
    value: { ...document.value, [section]: changed.value },
    parts: new Map([...(root.parts ?? []), [String(section), changed]]),
  };
  return new ConfigDocument(document.file, whole, document.found);
}

/**
 * The document with another name of a key, at the same place; unchanged if the new name is present already.
 * @param path Path of the key.
 */
export function withRenamedKey(
  document: ConfigDocument,
  path: PropertyPath,
  name: string,
): ConfigDocument {
  if (!document.has(path) || document.has([...path.slice(0, -1), name])) return document;
  return new ConfigDocument(document.file, renamedIn(document.root, path, name), document.found);
}

function renamedIn(at: LocatedValue, [first, ...rest]: PropertyPath, name: string): LocatedValue {
  const key = String(first);
  const inner = at.parts?.get(key);
  const { value } = at;
  // A section that is derived from another can have the places of other values.
  if (!isRecord(value) || !Object.hasOwn(value, key)) return at;
  const changed = inner && rest.length > 0 ? renamedIn(inner, rest, name) : inner;
  const current = rest.length > 0 ? key : name;
  return {
    ...at,
    value: Object.fromEntries(
      Object.entries(value).map(([each, content]) =>
        each === key ? [current, changed?.value ?? content] : [each, content],
      ),
    ),
    parts: new Map(
      [...(at.parts ?? [])].map(([each, part]) =>
        each === key && changed ? [current, changed] : [each, part],
      ),
    ),
  };
}

/**
 * Text of a JSON document with changed values and otherwise unchanged characters. Undefined for a document without text
 * or in YAML.
 */
export function editedText(document: ConfigDocument, edits: readonly Edit[]): string | undefined {
  const { source } = document.root.place;
  if (!(source instanceof TextSource) || jsonOrUndefined(source.text) === undefined) {
    return undefined;
  }
  return editedJson(source.original, edits);
}

/** YAML text of a document. Numbers stay numbers in YAML 1.1 too: `1.0e-5`, not `1e-5`. */
export function documentText(value: Record<string, unknown>): string {
  // YAML 1.1 reads an exponent without a decimal point as text.
  return stringify(value, { lineWidth: 100 }).replace(
    /^(\s*(?:- )*(?:[^:\n"']+: )?-?\d+)(e[-+]?\d+)$/gim,
    '$1.0$2',
  );
}
