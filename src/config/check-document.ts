import type { z } from 'zod';
import type { Confusion, DocumentRule, PropertyPath, Severity } from '../errors.js';
import { groupBy, isRecord } from '../text/words.js';
import type { ConfigDocument } from './document.js';
import type { LocatedFinding, Problems } from './document-problems.js';
import { toProblems } from './document-problems.js';
import type { UnknownKey } from './issue-words.js';
import { EXPLANATIONS } from './issue-words.js';
import { OWN_MESSAGE, schemaMistakes, unknownKeys } from './issues.js';
import { areRelated, pathKey, splitDotted, valueAt } from './quote.js';
import type { Schema } from './schema-structure.js';
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
