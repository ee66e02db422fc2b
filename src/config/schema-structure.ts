import type { z } from 'zod';
import type { PropertyPath, Severity } from '../base/errors.js';
import { isRecord } from '../base/values.js';
import { valueAt } from './quote.js';

export type Schema = z.core.$ZodType;
export type Definition = z.core.$ZodTypes['_zod']['def'];
type UnionDefinition = Extract<Definition, { type: 'union' }> & { readonly discriminator?: string };

/** Definition of a schema without wrappers such as optional. */
function definitionOf(schema: Schema): Definition {
  const definition = schemaDefinition(schema);
  const inner = innerSchema(definition);
  return inner === undefined ? definition : definitionOf(inner);
}

/** Definition that applies to `value`: of a union, that of the most likely option. Undefined when none fits. */
export function definitionFor(schema: Schema, value: unknown): Definition | undefined {
  const definition = definitionOf(schema);
  if (definition.type !== 'union') return definition;
  const option = chooseOption(schema, value);
  return option && definitionFor(option.schema, value);
}

/** Valid keys of a mapping; undefined when any key is valid. */
export function knownKeys(definition: Definition): readonly string[] | undefined {
  if (definition.type === 'object') return Object.keys(definition.shape);
  if (definition.type === 'intersection') {
    const left = knownKeys(definitionOf(definition.left));
    const right = knownKeys(definitionOf(definition.right));
    return left && right && [...left, ...right];
  }
  if (definition.type !== 'record') return undefined;
  const key = definitionOf(definition.keyType);
  if (key.type === 'enum') return Object.values(key.entries).map(String);
  return key.type === 'literal' ? key.values.map(String) : undefined;
}

/**
 * Schema of the value at `key` of a mapping or list, or the severity of a key that is not allowed. Undefined for
 * other kinds of values.
 */
export function childOf(
  definition: Definition,
  key: string | number,
): Schema | Severity | undefined {
  switch (definition.type) {
    case 'array':
      return definition.element;
    case 'tuple':
      return definition.items[Number(key)] ?? definition.rest ?? undefined;
    case 'record':
      // zod would silently drop __proto__.
      if (key === '__proto__') return 'error';
      return knownKeys(definition)?.includes(String(key)) === false
        ? 'error'
        : definition.valueType;
    case 'intersection': {
      const [left, right] = [definition.left, definition.right].map((side) =>
        childOf(definitionOf(side), key),
      );
      return left === 'error' || (left === 'warning' && typeof right === 'object') ? right : left;
    }
    case 'object': {
      if (Object.hasOwn(definition.shape, key)) return definition.shape[key];
      const { catchall } = definition;
      const type = catchall && definitionOf(catchall).type;
      if (type === undefined || type === 'never') return 'error';
      return type === 'unknown' || type === 'any' || key === '__proto__' ? 'warning' : catchall;
    }
    default:
      return undefined;
  }
}

/** Schema at `path`; `value` selects the options of unions. */
export function schemaAt(
  schema: Schema,
  value: unknown,
  [key, ...rest]: PropertyPath,
): Schema | undefined {
  if (key === undefined) return schema;
  const definition = definitionFor(schema, value);
  const child = definition && childOf(definition, key);
  return typeof child === 'object' ? schemaAt(child, valueAt(value, [key]), rest) : undefined;
}

/** Most likely option of a union for a mapping or list: the one with its fixed values, or most of its keys. */
export function chooseOption(
  union: Schema,
  value: unknown,
): { readonly schema: Schema; readonly index: number } | undefined {
  const definition = definitionOf(union);
  if (definition.type !== 'union') return undefined;
  const { options, discriminator } = definition as UnionDefinition;
  const fitting = options.flatMap((schema, index) => {
    const score = fitness(schema, value, discriminator);
    return score === undefined ? [] : [{ schema, index, score }];
  });
  return fitting.toSorted((a, b) => b.score - a.score)[0];
}

/** Score of a mapping or list for a schema; undefined when it does not fit. */
function fitness(schema: Schema, value: unknown, discriminator?: string): number | undefined {
  const definition = definitionFor(schema, value);
  if (Array.isArray(value)) return isList(definition) ? 0 : undefined;
  if (!isRecord(value)) return undefined;
  if (definition?.type === 'record') return 0;
  if (definition?.type !== 'object') return undefined;
  let score = 0;
  for (const [key, child] of Object.entries(definition.shape)) {
    const fixed = child._zod.values;
    const has = Object.hasOwn(value, key);
    const fits = fixed?.has(value[key] as z.core.util.Primitive) ?? false;
    if (key === discriminator && !fits) return undefined;
    // A fixed value is stronger evidence than any number of shared keys.
    if (has) score += fixed === undefined ? 1 : fits ? 1000 : -1000;
  }
  return score;
}

export const isList = (definition: Definition | undefined): boolean =>
  definition?.type === 'array' || definition?.type === 'tuple';

function schemaDefinition(schema: Schema): Definition {
  return (schema as z.core.$ZodTypes)._zod.def;
}

function innerSchema(definition: Definition): Schema | undefined {
  switch (definition.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
    case 'success':
      return definition.innerType;
    case 'lazy':
      return definition.getter();
    case 'pipe':
      // Users write the input, unless that is a function, as in z.preprocess.
      return schemaDefinition(definition.in).type === 'transform' ? definition.out : definition.in;
    default:
      return undefined;
  }
}

/** Value of an enumeration or literal. */
export type Literal = string | number | bigint | boolean | null | undefined | symbol;

/** A check attached to a schema, in zod's form: `{ check: 'multiple_of', value: 8 }`. */
export type Limit = z.core.$ZodChecks['_zod']['def'];

/** Values that a schema allows: some fixed ones, and those of some kinds. */
export interface Allowed {
  readonly literals: readonly Literal[];
  readonly kinds: readonly Definition[];
  readonly isNullable: boolean;
  readonly isOptional: boolean;
}

export function allowedBy(schema: Schema): Allowed {
  const literals: Literal[] = [];
  const kinds: Definition[] = [];
  let isNullable = false;
  const visit = (option: Schema, depth: number): void => {
    const definition = schemaDefinition(option);
    const inner = innerSchema(definition);
    if (definition.type === 'nullable' || definition.type === 'null') isNullable = true;
    if (inner !== undefined) visit(inner, depth);
    else if (definition.type === 'enum') literals.push(...Object.values(definition.entries));
    else if (definition.type === 'literal') literals.push(...definition.values);
    else if (definition.type !== 'union') kinds.push(definition);
    // A lazy schema can make a union recursive.
    else if (depth < 5) for (const each of definition.options) visit(each, depth + 1);
  };
  visit(schema, 0);
  // A missing value becomes a default or stays absent.
  const isOptional = schema._zod.optin !== undefined;
  return { literals: [...new Set(literals)], kinds, isNullable, isOptional };
}

/** Checks attached to a schema. */
export const checksOf = (definition: Definition): Limit[] =>
  (definition.checks ?? []).map((check) => check._zod.def as Limit);

/** Paths of all mapping keys, outer ones first within each mapping. */
export function* keyPaths(schema: Schema, path: PropertyPath = []): Generator<PropertyPath> {
  const definition = definitionOf(schema);
  // Schemas may be recursive, and hints about distant paths do not help.
  if (definition.type !== 'object' || path.length > 4) return;
  for (const [name, child] of Object.entries(definition.shape)) {
    yield [...path, name];
    yield* keyPaths(child, [...path, name]);
  }
}
