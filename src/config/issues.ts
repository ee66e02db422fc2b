import type { z } from 'zod';
import type { Finding, PropertyPath, Severity } from '../errors.js';
import { correction, expectation } from './issue-words.js';
import { nearest, nearSynonymAmong, synonymAmong } from './nearest.js';
import { splitOverride } from './overrides.js';
import { formatPath, isMapping, pathKey, valueAt } from './path.js';
import { describeValue, quote } from './quote.js';
import type { Definition, Schema, Wanted } from './schema.js';
import {
  childOf,
  chooseOption,
  definitionOf,
  isOptional,
  knownKeys,
  schemaAt,
  wantedBy,
} from './schema.js';

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

/** A key that its mapping's schema does not have. */
export interface UnknownKey {
  readonly path: PropertyPath;
  readonly severity: Severity;
  /** The keys that are valid in its place. */
  readonly known: readonly string[];
  /** The key that was probably meant. */
  readonly meant: string | undefined;
}

/** So many valid keys are named when none of them is near. */
const LISTED_KEYS = 8;

/** Every key of `value` that `schema` does not have: an error, but a warning in a loose object. */
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
  } else if (isMapping(value)) {
    const known = knownKeys(definition) ?? [];
    const isKnown = new Set(known);
    for (const key of Object.keys(value)) {
      const inner = [...path, key];
      const verdict = judge(definition, isKnown, key);
      if (verdict === 'error' || verdict === 'warning') {
        yield { path: inner, severity: verdict, known, meant: meantBy(key, known, value) };
      } else if (verdict !== undefined) {
        yield* unknownKeys(verdict, value[key], inner);
      }
    }
  }
}

/** How bad it is that a mapping has `key`, or the schema for what it holds if that is fine. */
function judge(
  definition: Definition,
  known: ReadonlySet<string>,
  key: string,
): Severity | Schema | undefined {
  if (definition.type === 'record') {
    // zod would leave __proto__ out without a word.
    if (key === '__proto__') return 'error';
    return known.size === 0 || known.has(key) ? definition.valueType : 'error';
  }
  if (definition.type !== 'object') return undefined;
  if (known.has(key)) return definition.shape[key];
  const { catchall } = definition;
  const type = catchall && definitionOf(catchall).type;
  if (catchall === undefined || type === 'never') return 'error';
  return type === 'unknown' || type === 'any' || key === '__proto__' ? 'warning' : catchall;
}

/**
 * The key that was probably meant: the same size by its name here, else one of similar letters. One that is
 * still missing comes before one that is there.
 */
export function meantBy(
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

/** What to say about an unknown key. `root` is the schema of the whole document. */
export function explainUnknownKey({ path, known, meant }: UnknownKey, root: Schema): Finding {
  const key = String(path.at(-1));
  const message = `unknown key ${quote(key)}`;
  const ofModel = path.length === 1 ? keysOfModel(root) : [];
  const synonym = synonymAmong(key, ofModel);
  if (synonym !== undefined) return { message, suggestion: `did you mean "model.${synonym}"?` };
  if (meant !== undefined) return { message, suggestion: `did you mean ${quote(meant)}?` };
  const [name = ''] = key.split(':', 1);
  if (known.includes(name)) {
    return { message, suggestion: `put a space after the colon: "${name}: …"` };
  }
  const elsewhere = findKey(root, key);
  if (elsewhere !== undefined) {
    const parent = formatPath(elsewhere.slice(0, -1));
    const where = parent === '' ? 'at the top of the document' : `under ${parent}`;
    return { message, suggestion: `it belongs ${where}` };
  }
  const alike = nearestAnywhere(root, key);
  if (alike !== undefined) {
    return { message, suggestion: `did you mean ${quote(formatPath(alike))}?` };
  }
  const near = nearSynonymAmong(key, ofModel);
  if (near !== undefined) return { message, suggestion: `did you mean "model.${near}"?` };
  if (known.length === 0) return { message, suggestion: 'remove it' };
  const inModel = ofModel.length > 0 ? `; keys of model: ${listed(ofModel)}` : '';
  return { message, suggestion: `valid keys here: ${listed(known)}${inModel}` };
}

function listed(keys: readonly string[]): string {
  const rest = keys.length > LISTED_KEYS ? `, … (${keys.length} in all)` : '';
  return `${keys.slice(0, LISTED_KEYS).join(', ')}${rest}`;
}

/** The keys of the section `model`, if a document has one. */
const keysOfModel = (root: Schema): readonly string[] =>
  [...keyPaths(root)]
    .filter((path) => path.length === 2 && path[0] === 'model')
    .map(([, key]) => String(key));

/** The outermost place where the schema has a key of exactly this name. */
const findKey = (schema: Schema, key: string): PropertyPath | undefined =>
  [...keyPaths(schema)]
    .filter((path) => path.at(-1) === key)
    .sort((a, b) => a.length - b.length)
    .at(0);

/** The one place whose key has nearly this name. */
function nearestAnywhere(schema: Schema, key: string): PropertyPath | undefined {
  const paths = [...keyPaths(schema)];
  const near = nearest(key, new Set(paths.map((path) => String(path.at(-1)))));
  const places = paths.filter((path) => path.at(-1) === near);
  return places.length === 1 ? places[0] : undefined;
}

/** The paths of all keys of mappings, outer ones first in each mapping. */
function* keyPaths(schema: Schema, path: PropertyPath = []): Generator<PropertyPath> {
  const definition = definitionOf(schema);
  // Schemas may be recursive; and a hint about a far place would help nobody.
  if (definition.type !== 'object' || path.length > 4) return;
  for (const [name, child] of Object.entries(definition.shape)) {
    yield [...path, name];
    yield* keyPaths(child, [...path, name]);
  }
}

/**
 * Overrides with the paths that they mean: `num_layers=12` is `model.num_layers=12` where `model` alone has
 * such a key.
 */
export function meantOverrides(schema: Schema, sets: readonly string[]): string[] {
  const paths = [...keyPaths(schema)];
  return sets.map((text) => {
    const parts = splitOverride(text);
    if ('mistake' in parts || paths.some(([first]) => first === parts.path[0])) return text;
    const [only, ...others] = paths.filter((path) => path.at(-1) === parts.path[0]);
    const isOfModel = only?.length === 2 && only[0] === 'model' && others.length === 0;
    return isOfModel ? `model.${text}` : text;
  });
}
