/** Mistakes that a schema finds in a value. */
import type { z } from 'zod';
import type { ProblemText, PropertyPath, Severity } from '../errors.js';
import { isRecord } from '../text/words.js';
import { EXPLANATIONS, type UnknownKey } from './issue-words.js';
import { nearest, nearSynonymAmong, synonymAmong } from './nearest.js';
import { pathKey, valueAt } from './quote.js';
import {
  type Allowed,
  allowedBy,
  childOf,
  chooseOption,
  type Definition,
  definitionOf,
  knownKeys,
  type Schema,
  schemaAt,
} from './schema-structure.js';

type Issue = z.core.$ZodIssue;

/** Placeholder for minimind's message; any other text is the schema author's message. */
export const OWN_MESSAGE = '\0';

/** A mistake found by the schema, other than an unknown key. */
export interface SchemaMistake {
  readonly path: PropertyPath;
  readonly kind: 'wrong' | 'missing' | 'key';
  readonly explain: () => ProblemText;
}

/** Converts zod's issues to mistakes, with at most one generic message per path. */
export function schemaMistakes(
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
export function* unknownKeys(
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
