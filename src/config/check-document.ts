import type { z } from 'zod';
import type {
  Confusion,
  DocumentRule,
  ProblemText,
  PropertyPath,
  Severity,
} from '../base/errors.js';
import { asText, groupBy, isRecord } from '../base/values.js';
import type { ConfigDocument } from './document.js';
import type { LocatedFinding, Problems } from './document-problems.js';
import { toProblems } from './document-problems.js';
import type { UnknownKey } from './issue-words.js';
import { EXPLANATIONS } from './issue-words.js';
import { nearest, nearSynonymAmong, synonymAmong } from './nearest.js';
import { areRelated, pathKey, splitDotted, valueAt } from './quote.js';
import type { Allowed, Schema } from './schema-structure.js';
import {
  allowedBy,
  childOf,
  chooseOption,
  definitionFor,
  isList,
  knownKeys,
  schemaAt,
} from './schema-structure.js';
import { isUncertain, isWrong } from './source.js';

/** Schema, rules and known mistakes of a document. */
export interface Expectations<T> {
  readonly schema: z.ZodType<T>;
  /** Checks that relate several values, beyond the schema. */
  readonly rules?: readonly DocumentRule<T>[];
  /** Known mistakes with specific advice. */
  readonly confusions?: readonly Confusion[];
}

/** The value of a document, and all its problems. */
export interface CheckedDocument<T> extends Problems {
  /** Undefined exactly when there are errors. */
  readonly value: T | undefined;
}

/**
 * Checks a document against a schema and rules, and includes the findings of the reader. Never throws for a
 * document's content.
 *
 * Unknown keys are errors, even where zod would silently drop them, and warnings in a loose object of a file. A
 * rule runs when all values that it reads are valid, even if the document is wrong elsewhere.
 */
export function checkDocument<T>(
  document: ConfigDocument,
  { schema, rules = [], confusions = [] }: Expectations<T>,
): CheckedDocument<T> {
  const check = new Check(document, schema);
  check.findConfusions(confusions);
  check.findUnknownKeys();
  check.findMistakes();
  check.runRules(rules);
  const problems = toProblems(check.found);
  return { value: problems.errors > 0 ? undefined : check.value, ...problems };
}

/** Keys of the document missing in `schema`, as errors. */
export const unreadKeys = (document: ConfigDocument, schema: Schema): LocatedFinding[] =>
  [...unknownKeys(schema, document.value)].map((unknown) => ({
    severity: 'error',
    place: document.place(unknown.path),
    path: unknown.path,
    finding: () => EXPLANATIONS.unknownKey(unknown, schema),
  }));

/** Number of unknown keys whose meaning is looked for. */
const MOST_MISSPELLED = 1000;

class Check<T> {
  readonly found: LocatedFinding[];
  readonly #document: ConfigDocument;
  readonly #schema: z.ZodType<T>;
  readonly #parsed: z.ZodSafeParseResult<T>;
  /** By `pathKey`. */
  readonly #unknownKeys: ReadonlyMap<string, UnknownKey>;
  /** Paths that need no further message. */
  readonly #explained = new Set<string>();
  /** Keys that are missing only because they were misspelled. */
  readonly #meant = new Set<string>();
  /** Paths of invalid values. */
  readonly #wrong: PropertyPath[] = [];

  constructor(document: ConfigDocument, schema: z.ZodType<T>) {
    this.#document = document;
    this.found = [...document.found];
    this.#schema = schema;
    this.#parsed = this.#parse(document.value);
    const unknown = [...unknownKeys(schema, document.value)];
    this.#unknownKeys = new Map(unknown.map((each) => [pathKey(each.path), each]));
  }

  get value(): T | undefined {
    return this.#parsed.data;
  }

  findConfusions(confusions: readonly Confusion[]): void {
    for (const { path: dotted, value, message, suggestion } of confusions) {
      const path = namedPath(dotted);
      if (!this.#document.has(path) || this.#isExplained(path)) continue;
      if (value !== undefined && asText(valueAt(this.#document.value, path)) !== value) continue;
      const unknown = this.#unknownKeys.get(pathKey(path));
      const severity = unknown ? this.#severityOf(unknown) : 'error';
      const finding = suggestion === undefined ? { message } : { message, suggestion };
      this.#report(severity, path, value === undefined ? 'key' : 'value', finding);
      this.#explained.add(pathKey(path));
      // A missing key stays missing if the advice is only a warning.
      if (severity === 'warning') continue;
      this.#wrong.push(path);
      // If the advice names a key of the same mapping, do not also report it as missing.
      const words = `${message} ${suggestion ?? ''}`.match(/[\w-]+/g) ?? [];
      for (const word of words) this.#meant.add(pathKey([...path.slice(0, -1), word]));
    }
  }

  findUnknownKeys(): void {
    let misspelled = 0;
    for (const [key, unknown] of this.#unknownKeys) {
      const { path } = unknown;
      if (this.#isExplained(path)) continue;
      this.#explained.add(key);
      const severity = this.#severityOf(unknown);
      if (severity === 'error') {
        // Rules must not check the default of a misspelled key. A file with thousands of them is not a config.
        const meant = misspelled++ < MOST_MISSPELLED ? unknown.meant() : undefined;
        const meantPath = meant === undefined ? path : [...path.slice(0, -1), meant];
        this.#wrong.push(path, meantPath);
        this.#meant.add(pathKey(meantPath));
      }
      this.#report(severity, path, 'key', () => EXPLANATIONS.unknownKey(unknown, this.#schema));
    }
  }

  findMistakes(): void {
    const issues = this.#parsed.error?.issues ?? [];
    for (const mistake of schemaMistakes(issues, this.#schema, this.#document.value)) {
      const { path, kind, explain } = mistake;
      this.#wrong.push(path);
      if (this.#isExplained(path)) continue;
      if (kind === 'missing' && this.#meant.has(pathKey(path))) continue;
      this.#report('error', path, kind === 'wrong' ? 'value' : 'key', explain);
    }
  }

  runRules(rules: readonly DocumentRule<T>[]): void {
    const wrong = this.#wrong;
    const value =
      wrong.length === 0 ? this.value : this.#parse(without(this.#document.value, wrong)).data;
    if (value === undefined) return;
    for (const { severity, reads, check } of rules) {
      const paths = reads.map(namedPath);
      if (paths.some((path) => this.#isUnsure(path))) continue;
      const finding = check(value);
      // If the value is a default and not in the file, show the value that conflicts with it.
      const path = paths.find((each) => this.#document.has(each)) ?? paths[0] ?? [];
      if (finding !== undefined) this.#report(severity, path, 'value', finding);
    }
  }

  /** Adds a finding, unless the document already has one there or a reason for a missing value. */
  #report(
    severity: Severity,
    path: PropertyPath,
    of: 'key' | 'value',
    finding: LocatedFinding['finding'],
  ): void {
    if (isWrong(this.#document.root, path)) return;
    this.found.push({ severity, place: this.#document.place(path, of), path, finding });
  }

  /** A file may have keys for other programs; an override is meant for minimind. */
  #severityOf({ path, severity }: UnknownKey): Severity {
    return this.#document.place(path).source.rank > 0 ? 'error' : severity;
  }

  /** Whether the value at `path`, a parent or a child is invalid. */
  #isUnsure(path: PropertyPath): boolean {
    const isWrongNear = this.#wrong.some((wrong) => areRelated(path, wrong));
    return isWrongNear || isUncertain(this.#document.root, path);
  }

  /** Whether `path` or a parent needs no further message. */
  #isExplained(path: PropertyPath): boolean {
    if (this.#explained.size === 0) return false;
    return path.some((_, index) => this.#explained.has(pathKey(path.slice(0, index + 1))));
  }

  #parse(value: unknown): z.ZodSafeParseResult<T> {
    return this.#schema.safeParse(value, { error: () => OWN_MESSAGE });
  }
}

/** Paths in the tables of rules and confusions, by their texts: a sweep asks for them in thousands of documents. */
const namedPaths = new Map<string, PropertyPath>();

function namedPath(dotted: string): PropertyPath {
  const path = namedPaths.get(dotted) ?? splitDotted(dotted);
  namedPaths.set(dotted, path);
  return path;
}

/** Copies `value` without the keys at `paths`; drops a list with an invalid item. */
function without(value: Record<string, unknown>, paths: readonly PropertyPath[]): object {
  const below = groupBy(paths, ([key]) => String(key));
  const kept = Object.entries(value).flatMap(([key, inner]): [string, unknown][] => {
    const rest = below.get(key)?.map((path) => path.slice(1));
    if (rest === undefined) return [[key, inner]];
    const isPartial = isRecord(inner) && rest.every((path) => path.length > 0);
    return isPartial ? [[key, without(inner, rest)]] : [];
  });
  return Object.fromEntries(kept);
}

// Mistakes that a schema finds in a value

type Issue = z.core.$ZodIssue;

/** Placeholder for minimind's message; any other text is the schema author's message. */
const OWN_MESSAGE = '\0';

/** A mistake found by the schema, other than an unknown key. */
export interface SchemaMistake {
  readonly path: PropertyPath;
  readonly kind: 'wrong' | 'missing' | 'key';
  readonly explain: () => ProblemText;
}

/** Converts zod's issues to mistakes, with at most one generic message per path. */
function schemaMistakes(
  issues: readonly Issue[],
  schema: Schema,
  document: unknown,
): SchemaMistake[] {
  const seen = new Set<string>();
  const mistakes: SchemaMistake[] = [];
  for (const { path, issue } of resolveUnions(issues, schema, document, [])) {
    const key = issue.message === OWN_MESSAGE ? pathKey(path) : `${pathKey(path)}${issue.message}`;
    if (issue.code === 'unrecognized_keys' || seen.has(key)) continue;
    seen.add(key);
    mistakes.push(toMistake(path, issue, schema, document));
  }
  return mistakes;
}

/** Replaces issues of a union with those of its most likely option. */
function* resolveUnions(
  issues: readonly Issue[],
  schema: Schema,
  value: unknown,
  base: PropertyPath,
): Generator<{ path: PropertyPath; issue: Issue }> {
  for (const issue of issues) {
    // Documents have no symbols as keys.
    const inner = issue.path as PropertyPath;
    const path = [...base, ...inner];
    const found = valueAt(value, inner);
    const union = issue.code === 'invalid_union' ? schemaAt(schema, value, inner) : undefined;
    const option = union && chooseOption(union, found);
    const own = issue.code === 'invalid_union' && option ? issue.errors[option.index] : undefined;
    if (option && own?.length) yield* resolveUnions(own, option.schema, found, path);
    else yield { path, issue };
  }
}

function toMistake(
  path: PropertyPath,
  issue: Issue,
  root: Schema,
  document: unknown,
): SchemaMistake {
  const key = String(path.at(-1) ?? '');
  if (issue.code === 'invalid_key') {
    const own = issue.issues.map(({ message }) => message).find((each) => each !== OWN_MESSAGE);
    return { path, kind: 'key', explain: () => EXPLANATIONS.badKey(key, own) };
  }
  if (issue.message !== OWN_MESSAGE) {
    return { path, kind: 'wrong', explain: () => ({ message: issue.message }) };
  }
  const allowed = () => allowedAt(path, issue, root, document);
  const value = valueAt(document, path);
  return value === undefined && path.length > 0
    ? { path, kind: 'missing', explain: () => EXPLANATIONS.missing(key, allowed()) }
    : { path, kind: 'wrong', explain: () => EXPLANATIONS.wrong(path, value, allowed()) };
}

function allowedAt(
  path: PropertyPath,
  issue: Issue,
  root: Schema,
  document: unknown,
): Allowed | undefined {
  // The discriminator key belongs to no option yet.
  if (issue.code === 'invalid_union' && 'options' in issue && issue.options !== undefined) {
    return { literals: issue.options, kinds: [], isNullable: false, isOptional: false };
  }
  const schema = schemaAt(root, document, path);
  return schema && allowedBy(schema);
}

/** Every key of `value` missing in `schema`: an error, or a warning in a loose object. */
function* unknownKeys(
  schema: Schema,
  value: unknown,
  path: PropertyPath = [],
): Generator<UnknownKey> {
  const definition = definitionFor(schema, value);
  const isMapping = isRecord(value) && !isList(definition);
  if (definition === undefined || !(isMapping || Array.isArray(value))) return;
  const known = knownKeys(definition) ?? [];
  for (const [key, content] of Object.entries(value)) {
    const inner = [...path, key];
    const child = childOf(definition, key);
    if (typeof child === 'object') yield* unknownKeys(child, content, inner);
    else if (child !== undefined && isMapping) {
      const meant = () => suggestedKey(key, known, value);
      yield { path: inner, severity: child, known, meant };
    }
  }
}

/**
 * Most likely intended key: the equivalent name here, else a similar spelling. Missing keys take precedence over
 * present ones.
 */
export function suggestedKey(
  key: string,
  known: readonly string[],
  mapping: Record<string, unknown>,
): string | undefined {
  const missing = known.filter((each) => !Object.hasOwn(mapping, each));
  return (
    synonymAmong(key, known) ??
    nearest(key, missing) ??
    nearest(key, known) ??
    nearSynonymAmong(key, known)
  );
}
