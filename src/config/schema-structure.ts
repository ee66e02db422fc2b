import type { z } from 'zod';
import type { PropertyPath } from '../errors.js';
import { isRecord } from '../text/words.js';
import { valueAt } from './quote.js';

export type Schema = z.core.$ZodType;
export type Definition = z.core.$ZodTypes['_zod']['def'];
type UnionDefinition = Extract<Definition, { type: 'union' }> & { readonly discriminator?: string };

/** Definition of a schema without wrappers such as optional. */
export function definitionOf(schema: Schema): Definition {
  let definition = bare(schema);
  for (let inner = innerOf(definition); inner !== undefined; inner = innerOf(definition)) {
    definition = bare(inner);
  }
  return definition;
}

/** Whether `null` is valid. */
function isNullable(schema: Schema): boolean {
  for (let at: Schema | undefined = schema; at !== undefined; at = innerOf(bare(at))) {
    const definition = bare(at);
    if (definition.type === 'nullable' || definition.type === 'null') return true;
    if (definition.type === 'union') return definition.options.some(isNullable);
  }
  return false;
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

/** Schema of the value at `key`; undefined if the schema does not cover it. */
export function childOf(schema: Schema, value: unknown, key: string | number): Schema | undefined {
  const definition = definitionOf(schema);
  switch (definition.type) {
    case 'object':
      if (Object.hasOwn(definition.shape, key)) return definition.shape[key];
      return definition.catchall;
    case 'record':
      return definition.valueType;
    case 'array':
      return definition.element;
    case 'tuple':
      return definition.items[Number(key)] ?? definition.rest ?? undefined;
    case 'union': {
      const option = definition.options[chooseOption(definition, value) ?? -1];
      return option && childOf(option, value, key);
    }
    case 'intersection':
      return childOf(definition.left, value, key) ?? childOf(definition.right, value, key);
    default:
      return undefined;
  }
}

/** Schema at `path`; `value` selects the options of unions. */
export function schemaAt(schema: Schema, value: unknown, path: PropertyPath): Schema | undefined {
  let at: Schema | undefined = schema;
  let inner = value;
  for (const segment of path) {
    if (at === undefined) return undefined;
    at = childOf(at, inner, segment);
    inner = valueAt(inner, [segment]);
  }
  return at;
}

/**
 * Index of the most likely option for a mapping or list: the one with its fixed values, or most of its keys.
 * Undefined when none fits.
 */
export function chooseOption(definition: UnionDefinition, value: unknown): number | undefined {
  let best: number | undefined;
  let bestScore = Number.NEGATIVE_INFINITY;
  for (const [index, option] of definition.options.entries()) {
    const score = fitness(option, value, definition.discriminator);
    if (score !== undefined && score > bestScore) {
      best = index;
      bestScore = score;
    }
  }
  return best;
}

/** Score of a mapping or list for a schema; undefined when it does not fit. */
function fitness(schema: Schema, value: unknown, discriminator?: string): number | undefined {
  const definition = definitionOf(schema);
  if (Array.isArray(value)) return isListType(definition.type) ? 0 : undefined;
  if (!isRecord(value)) return undefined;
  if (definition.type === 'record') return 0;
  if (definition.type === 'union') {
    const index = chooseOption(definition, value);
    const option = definition.options[index ?? -1];
    return option && fitness(option, value, discriminator);
  }
  if (definition.type !== 'object') return undefined;
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

function isListType(type: Definition['type']): boolean {
  return type === 'array' || type === 'tuple';
}

function bare(schema: Schema): Definition {
  return (schema as z.core.$ZodTypes)._zod.def;
}

function innerOf(definition: Definition): Schema | undefined {
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
      return bare(definition.in).type === 'transform' ? definition.out : definition.in;
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
  const visit = (option: Schema, depth: number): void => {
    const definition = definitionOf(option);
    if (definition.type === 'enum') literals.push(...Object.values(definition.entries));
    else if (definition.type === 'literal') literals.push(...definition.values);
    else if (definition.type !== 'union') kinds.push(definition);
    // A lazy schema can make a union recursive.
    else if (depth < 5) for (const each of definition.options) visit(each, depth + 1);
  };
  visit(schema, 0);
  return {
    literals: [...new Set(literals)],
    kinds,
    isNullable: isNullable(schema),
    // A missing value becomes a default or stays absent.
    isOptional: schema._zod.optin !== undefined,
  };
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
