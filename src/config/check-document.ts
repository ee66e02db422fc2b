import type { z } from 'zod';
import type { Confusion, DocumentRule, ProblemText, PropertyPath, Severity } from '../errors.js';
import { groupBy, isRecord } from '../text/words.js';
import type { ConfigDocument } from './document.js';
import type { LocatedFinding, Problems } from './document-problems.js';
import { toProblems } from './document-problems.js';
import type { UnknownKey } from './issue-words.js';
import { EXPLANATIONS } from './issue-words.js';
import { nearest, nearSynonymAmong, synonymAmong } from './nearest.js';
import { areRelated, pathKey, splitDotted, valueAt } from './quote.js';
import type { Allowed, Definition, Schema } from './schema-structure.js';
import {
  allowedBy,
  childOf,
  chooseOption,
  definitionOf,
  knownKeys,
  schemaAt,
} from './schema-structure.js';
import { follow, isUncertain } from './source.js';

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

class Check<T> {
  readonly found: LocatedFinding[];
  readonly #document: ConfigDocument;
  readonly #schema: z.ZodType<T>;
  readonly #parsed: z.ZodSafeParseResult<T>;
  readonly #unknownKeys: readonly UnknownKey[];
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
    this.#unknownKeys = [...unknownKeys(schema, document.value)].map((unknown) =>
      // A file may have keys for other programs; an override is meant for minimind.
      isOverride(document, unknown.path) ? { ...unknown, severity: 'error' } : unknown,
    );
  }

  get value(): T | undefined {
    return this.#parsed.data;
  }

  findConfusions(confusions: readonly Confusion[]): void {
    for (const { path: dotted, value, message, suggestion } of confusions) {
      const path = splitDotted(dotted);
      if (!this.#document.has(path) || this.#isExplained(path)) continue;
      if (value !== undefined && String(valueAt(this.#document.value, path)) !== value) continue;
      const finding = suggestion === undefined ? { message } : { message, suggestion };
      const severity = this.#severityAt(path);
      if (severity === 'error') this.#wrong.push(path);
      const place = this.#document.place(path, value === undefined ? 'key' : 'value');
      if (!this.#isFlawed(path)) this.found.push({ severity, place, path, finding });
      this.#explained.add(pathKey(path));
      // A missing key stays missing if the advice is only a warning.
      if (severity === 'error') this.#expectNamedKeys(path, `${message} ${suggestion ?? ''}`);
    }
  }

  findUnknownKeys(): void {
    for (const unknown of this.#unknownKeys) this.#unknown(unknown);
  }

  findMistakes(): void {
    const issues = this.#parsed.error?.issues ?? [];
    for (const mistake of schemaMistakes(issues, this.#schema, this.#document.value)) {
      const { path, kind, explain } = mistake;
      this.#wrong.push(path);
      if (this.#isExplained(path) || this.#isFlawed(path)) continue;
      if (kind === 'missing' && this.#meant.has(pathKey(path))) continue;
      const place = this.#document.place(path, kind === 'wrong' ? 'value' : 'key');
      this.found.push({ severity: 'error', place, path, finding: explain });
    }
  }

  runRules(rules: readonly DocumentRule<T>[]): void {
    const value = this.#wrong.length === 0 ? this.value : this.#valueWithout(this.#wrong);
    if (value === undefined) return;
    for (const { severity, reads, check } of rules) {
      const paths = reads.map(splitDotted);
      if (paths.some((path) => this.#isUnsure(path))) continue;
      const finding = check(value);
      if (finding === undefined) continue;
      // If the value is a default and not in the file, show the value that conflicts with it.
      const path = paths.find((each) => this.#document.has(each)) ?? paths[0] ?? [];
      this.found.push({ severity, place: this.#document.place(path), path, finding });
    }
  }

  #unknown(unknown: UnknownKey): void {
    const { path, severity, meant } = unknown;
    if (this.#isExplained(path)) return;
    this.#explained.add(pathKey(path));
    if (severity === 'error') {
      this.#wrong.push(path);
      // Rules must not check the default of a misspelled key.
      const meantPath = meant === undefined ? path : [...path.slice(0, -1), meant];
      this.#wrong.push(meantPath);
      this.#meant.add(pathKey(meantPath));
    }
    if (this.#isFlawed(path)) return;
    const finding = () => EXPLANATIONS.unknownKey(unknown, this.#schema);
    this.found.push({ severity, place: this.#document.place(path, 'key'), path, finding });
  }

  /** A warning where unknown keys are allowed. */
  #severityAt(path: PropertyPath): Severity {
    const isHere = ({ path: other }: UnknownKey) => pathKey(other) === pathKey(path);
    return this.#unknownKeys.find(isHere)?.severity ?? 'error';
  }

  /** If the advice names a key of the same mapping, do not also report it as missing. */
  #expectNamedKeys(path: PropertyPath, advice: string): void {
    const parent = path.slice(0, -1);
    for (const [word] of advice.matchAll(/[\w-]+/g)) this.#meant.add(pathKey([...parent, word]));
  }

  /** Whether the document already reports a mistake at `path`, or a reason for a missing value. */
  #isFlawed(path: PropertyPath): boolean {
    if (this.#document.found.length === 0) return false;
    const { at, isWhole } = follow(this.#document.root, path);
    return isWhole ? at.flaw === 'wrong' : at.flaw !== undefined;
  }

  /** Whether the value at `path`, a parent or a child is invalid. */
  #isUnsure(path: PropertyPath): boolean {
    if (this.#wrong.some((wrong) => areRelated(path, wrong))) return true;
    return this.#document.found.length > 0 && isUncertain(this.#document.root, path);
  }

  /** Whether `path` or a parent needs no further message. */
  #isExplained(path: PropertyPath): boolean {
    for (let length = 1; length <= path.length; length++) {
      if (this.#explained.has(pathKey(path.slice(0, length)))) return true;
    }
    return false;
  }

  #parse(value: unknown): z.ZodSafeParseResult<T> {
    return this.#schema.safeParse(value, { error: () => OWN_MESSAGE });
  }

  /** The value with defaults for invalid parts; undefined if it is still invalid. */
  #valueWithout(wrong: readonly PropertyPath[]): T | undefined {
    return this.#parse(without(this.#document.value, wrong)).data;
  }
}

const isOverride = (document: ConfigDocument, path: PropertyPath): boolean =>
  document.place(path).source.rank > 0;

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
    const inner = issue.path.map((segment) => (typeof segment === 'symbol' ? '' : segment));
    const path = [...base, ...inner];
    const meant = issue.code === 'invalid_union' ? meantOption(issue, schema, value, inner) : null;
    if (meant === null) yield { path, issue };
    else yield* resolveUnions(meant.issues, meant.schema, meant.value, path);
  }
}

function meantOption(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  schema: Schema,
  value: unknown,
  path: PropertyPath,
): { issues: readonly Issue[]; schema: Schema; value: unknown } | null {
  const union = schemaAt(schema, value, path);
  const definition = union && definitionOf(union);
  if (definition?.type !== 'union') return null;
  const inner = valueAt(value, path);
  const index = chooseOption(definition, inner) ?? -1;
  const option = definition.options[index];
  const issues = issue.errors[index] ?? [];
  return option === undefined || issues.length === 0
    ? null
    : { issues, schema: option, value: inner };
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
  const definition = definitionOf(schema);
  if (definition.type === 'union') {
    const option = definition.options[chooseOption(definition, value) ?? -1];
    if (option !== undefined) yield* unknownKeys(option, value, path);
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const inner = childOf(schema, value, index);
      if (inner !== undefined) yield* unknownKeys(inner, item, [...path, index]);
    }
  } else if (isRecord(value)) {
    const known = knownKeys(definition) ?? [];
    const isKnown = new Set(known);
    for (const key of Object.keys(value)) {
      const inner = [...path, key];
      const found = schemaOrSeverity(definition, isKnown, key);
      if (found === 'error' || found === 'warning') {
        yield { path: inner, severity: found, known, meant: suggestedKey(key, known, value) };
      } else if (found !== undefined) {
        yield* unknownKeys(found, value[key], inner);
      }
    }
  }
}

/** Schema of the value if the key is valid in the mapping, else the severity of the key. */
function schemaOrSeverity(
  definition: Definition,
  known: ReadonlySet<string>,
  key: string,
): Severity | Schema | undefined {
  if (definition.type === 'record') {
    // zod would silently drop __proto__.
    if (key === '__proto__') return 'error';
    return known.size === 0 || known.has(key) ? definition.valueType : 'error';
  }
  if (definition.type === 'intersection') {
    const [left, right] = [definition.left, definition.right].map((side) => {
      const own = definitionOf(side);
      return schemaOrSeverity(own, new Set(knownKeys(own)), key);
    });
    return left === 'error' || (left === 'warning' && typeof right === 'object') ? right : left;
  }
  if (definition.type !== 'object') return undefined;
  if (known.has(key)) return definition.shape[key];
  const { catchall } = definition;
  const type = catchall && definitionOf(catchall).type;
  if (catchall === undefined || type === 'never') return 'error';
  return type === 'unknown' || type === 'any' || key === '__proto__' ? 'warning' : catchall;
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
