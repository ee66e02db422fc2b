import { describeValue } from './quote.js';
import type { Definition } from './schema.js';
import { type Limit, type Literal, limitsOf, type Wanted } from './wanted.js';

/** So many values of an enumeration are listed. */
const LISTED_VALUES = 12;

/** Schemas that need no more than a name. */
const NAMES: Partial<Record<Definition['type'], string>> = {
  array: 'a list',
  boolean: 'true or false',
  never: 'left out',
  null: 'null',
  object: 'a mapping',
  record: 'a mapping',
  string: 'a text',
};

/** What is wanted, in words that follow "must be": `an integer ≥ 1`, `one of "a", "b"`. */
export function expectation({ literals, others, isNullable }: Wanted): string {
  const parts = [...new Set(others.map(nameOf))];
  if (literals.length > 0) parts.push(listLiterals(literals));
  if (isNullable && !parts.includes('null')) parts.push('null');
  return parts.join(' or ');
}

function listLiterals(literals: readonly Literal[]): string {
  const shown = literals.slice(0, LISTED_VALUES).map(describeValue);
  if (literals.length > LISTED_VALUES) shown.push(`… (${literals.length} in all)`);
  return shown.length === 1 ? shown.join() : `one of ${shown.join(', ')}`;
}

function nameOf(definition: Definition): string {
  const limits = limitsOf(definition);
  if (definition.type === 'number') return numberName(definition, limits);
  if (definition.type === 'tuple') return `a list of ${count(definition.items.length, 'item')}`;
  const name = NAMES[definition.type] ?? 'a valid value';
  const unit = definition.type === 'string' ? 'character' : 'item';
  const parts = limits.flatMap((limit) => lengthOrForm(limit, unit));
  return parts.length === 0 ? name : `${name} ${parts.join(' and ')}`;
}

function lengthOrForm(limit: Limit, unit: string): string[] {
  switch (limit.check) {
    case 'length_equals':
      return [`with ${count(limit.length, unit)}`];
    case 'min_length':
      return [`with at least ${count(limit.minimum, unit)}`];
    case 'max_length':
      return [`with at most ${count(limit.maximum, unit)}`];
    case 'string_format':
      if (limit.format === 'regex') return [`that matches ${limit.pattern}`];
      return [`in the form of: ${limit.format.replaceAll('_', ' ')}`];
    default:
      return [];
  }
}

function numberName(definition: Definition, limits: readonly Limit[]): string {
  const isInteger = [definition, ...limits].some(
    (each) => 'format' in each && /int/.test(String(each.format)),
  );
  const multiple = limits.find((limit) => limit.check === 'multiple_of');
  const name = multiple ? `a multiple of ${multiple.value}` : isInteger ? 'an integer' : 'a number';
  const bounds = limits.flatMap((limit) => {
    if (limit.check === 'greater_than') return [`${limit.inclusive ? '≥' : '>'} ${limit.value}`];
    if (limit.check === 'less_than') return [`${limit.inclusive ? '≤' : '<'} ${limit.value}`];
    return [];
  });
  return bounds.length === 0 ? name : `${name} ${bounds.join(' and ')}`;
}

function count(number: number, unit: string): string {
  return `${number} ${unit}${number === 1 ? '' : 's'}`;
}
