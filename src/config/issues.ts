import type { z } from 'zod';
import type { Finding, PropertyPath } from '../errors.js';
import { correction } from './correction.js';
import { expectation } from './expectation.js';
import { formatPath, isMapping, pathKey, valueAt } from './path.js';
import { describeValue, quote } from './quote.js';
import {
  chooseOption,
  definitionOf,
  isOptional,
  knownKeys,
  type Schema,
  schemaAt,
} from './schema.js';
import { type Wanted, wantedBy } from './wanted.js';

type Issue = z.core.$ZodIssue;

/** Stands for a message of our own; what zod reports instead was written by the schema's author. */
export const OUR_WORDS = '\0';

/** A mistake that the schema found, other than an unknown key. */
export interface Mistake {
  readonly path: PropertyPath;
  readonly kind: 'wrong' | 'missing' | 'key';
  readonly explain: () => Finding;
}

/** What zod says of `document`, at most one mistake in our words per place. */
export function mistakesOf(issues: readonly Issue[], schema: Schema, document: unknown): Mistake[] {
  const seen = new Set<string>();
  const mistakes: Mistake[] = [];
  for (const { path, issue } of resolveUnions(issues, schema, document, [])) {
    const key = issue.message === OUR_WORDS ? pathKey(path) : `${pathKey(path)}${issue.message}`;
    if (issue.code === 'unrecognized_keys' || seen.has(key)) continue;
    seen.add(key);
    mistakes.push(toMistake(path, issue, schema, document));
  }
  return mistakes;
}

/** The keys that zod finds unknown, for the kinds of schema that `unknownKeys` does not look into. */
export function* unrecognizedKeys(
  issues: readonly Issue[],
  schema: Schema,
  document: unknown,
): Generator<PropertyPath> {
  for (const { path, issue } of resolveUnions(issues, schema, document, [])) {
    if (issue.code !== 'unrecognized_keys') continue;
    for (const key of issue.keys) yield [...path, key];
  }
}

/** The issues with those of a union replaced by those of the option that was meant. */
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

function toMistake(path: PropertyPath, issue: Issue, root: Schema, document: unknown): Mistake {
  const key = String(path.at(-1) ?? '');
  if (issue.code === 'invalid_key') {
    return { path, kind: 'key', explain: () => explainKey(key, issue) };
  }
  if (issue.message !== OUR_WORDS) {
    return { path, kind: 'wrong', explain: () => ({ message: issue.message }) };
  }
  const wanted = () => wantedAt(path, issue, root, document);
  const value = valueAt(document, path);
  if (value === undefined && path.length > 0) {
    return { path, kind: 'missing', explain: () => explainMissing(key, wanted()) };
  }
  return { path, kind: 'wrong', explain: () => explainWrong(path, value, wanted()) };
}

function wantedAt(
  path: PropertyPath,
  issue: Issue,
  root: Schema,
  document: unknown,
): (Wanted & { readonly isOptional?: boolean }) | undefined {
  // The key that tells the options of a union apart belongs to none of them yet.
  if (issue.code === 'invalid_union' && 'options' in issue && issue.options !== undefined) {
    return { literals: issue.options, others: [], isNullable: false };
  }
  const schema = schemaAt(root, document, path);
  return schema && { ...wantedBy(schema), isOptional: isOptional(schema) };
}

function explainKey(key: string, issue: Extract<Issue, { code: 'invalid_key' }>): Finding {
  const own = issue.issues.map(({ message }) => message).find((message) => message !== OUR_WORDS);
  return {
    message: `${quote(key)} cannot be a key here${own === undefined ? '' : `: ${own}`}`,
    suggestion: 'rename it or remove it',
  };
}

function explainMissing(key: string, wanted: Wanted | undefined): Finding {
  return {
    message: `the key ${quote(key)} is missing`,
    suggestion:
      wanted === undefined ? `add ${key}` : `add ${key}: it must be ${expectation(wanted)}`,
  };
}

function explainWrong(
  path: PropertyPath,
  value: unknown,
  wanted: (Wanted & { readonly isOptional?: boolean }) | undefined,
): Finding {
  if (wanted === undefined) return { message: `is not valid here: ${describeValue(value)}` };
  const isInfinite = typeof value === 'number' && !Number.isFinite(value);
  const words = expectation(wanted).replace(/^a number/, isInfinite ? 'a finite number' : '$&');
  const suggestion =
    correction(wanted, value) ??
    keysInstead(path, value, wanted) ??
    (value === null && wanted.isOptional ? 'leave the key out, or give it a value' : undefined);
  const message = `must be ${words}, but is ${describeValue(value)}`;
  return suggestion === undefined ? { message } : { message, suggestion };
}

/** What to do when keys are wanted and something else stands there. */
function keysInstead(path: PropertyPath, value: unknown, { others }: Wanted): string | undefined {
  const [mapping] = others;
  const isForKeys = others.every(({ type }) => type === 'object' || type === 'record');
  if (mapping === undefined || !isForKeys || isMapping(value)) return undefined;
  if (value === null) return 'write keys below it, or {}';
  const [key] = knownKeys(mapping) ?? [];
  // It may stand in a file or in an override: a path with its value can be written in both.
  return key === undefined
    ? 'write {key: value}'
    : `give its keys values instead, such as ${formatPath([...path, key])}`;
}
