import type { z } from 'zod';
import { type Definition, definitionOf, isNullable, type Schema } from './schema.js';

/** A value of an enumeration or the like. */
export type Literal = string | number | bigint | boolean | null | undefined | symbol;

/** One check that is attached to a schema, as zod keeps it: `{ check: 'multiple_of', value: 8 }`. */
export type Limit = z.core.$ZodChecks['_zod']['def'];

/** What may stand in one place: some fixed values, and values of some kinds. */
export interface Wanted {
  readonly literals: readonly Literal[];
  readonly others: readonly Definition[];
  readonly isNullable: boolean;
}

/** What a schema wants. */
export function wantedBy(schema: Schema): Wanted {
  const literals: Literal[] = [];
  const others: Definition[] = [];
  const visit = (option: Schema, depth: number): void => {
    const definition = definitionOf(option);
    if (definition.type === 'enum') literals.push(...Object.values(definition.entries));
    else if (definition.type === 'literal') literals.push(...definition.values);
    else if (definition.type !== 'union') others.push(definition);
    // A union may come back to itself through a lazy schema.
    else if (depth < 5) for (const each of definition.options) visit(each, depth + 1);
  };
  visit(schema, 0);
  return { literals: [...new Set(literals)], others, isNullable: isNullable(schema) };
}

/** The checks that are attached to a schema. */
export function limitsOf(definition: Definition): Limit[] {
  return (definition.checks ?? []).map((check) => check._zod.def as Limit);
}
