import { nearest } from './nearest.js';
import { describeValue, quote } from './quote.js';
import type { Definition, Limit, Literal, Wanted } from './schema.js';
import { limitsOf } from './schema.js';

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

/** What a person should write instead of `value`, where that can be guessed. */
export function correction(wanted: Wanted, value: unknown): string | undefined {
  if (Array.isArray(value)) return correctionOfList(wanted, value);
  if (typeof value === 'string') return correctionOfText(wanted, value);
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined;
  if (wanted.literals.includes(String(value)) || takes(wanted, 'string')) {
    return `put it in quotes: "${value}"`;
  }
  if (takes(wanted, 'array')) return `write a list: [${value}]`;
  return typeof value === 'number' ? nearestMultiples(wanted, value) : undefined;
}

function correctionOfText(wanted: Wanted, text: string): string | undefined {
  const near = nearest(text, wanted.literals.map(String));
  if (near !== undefined) {
    return `did you mean ${describeValue(wanted.literals.find((each) => String(each) === near))}?`;
  }
  return (
    (takes(wanted, 'number') ? numberInText(text) : undefined) ??
    (takes(wanted, 'boolean') ? booleanInText(text) : undefined) ??
    (wanted.isNullable && /^(none|nil|undefined)$/i.test(text) ? 'write null' : undefined) ??
    (takes(wanted, 'array') ? `write a list: [${quote(text)}]` : undefined)
  );
}

/** A list where one value is wanted: often the right value in brackets, or behind a dash. */
function correctionOfList(wanted: Wanted, list: readonly unknown[]): string | undefined {
  const isForOne = wanted.others.every(({ type }) => ONE_VALUE.has(type));
  if (!isForOne || list.length === 0) return undefined;
  const [only] = list;
  const isLiteral = wanted.literals.some((literal) => literal === only);
  const fits = isLiteral || wanted.others.some(({ type }) => type === typeof only);
  return list.length === 1 && fits
    ? `write ${describeValue(only)}, without a list around it`
    : 'write one value, not a list';
}

const ONE_VALUE: ReadonlySet<string> = new Set<Definition['type']>(['boolean', 'number', 'string']);

function takes({ others }: Wanted, type: Definition['type']): boolean {
  return others.some((definition) => definition.type === type);
}

/** Numbers between commas that group no thousands. */
const SEVERAL_NUMBERS = /^[\d.]+(?:, ?[\d.]+)+$/;
const THOUSANDS = /^\d{1,3}(?:, ?\d{3})+(?:\.\d+)?$/;

function numberInText(text: string): string | undefined {
  if (SEVERAL_NUMBERS.test(text.trim()) && !THOUSANDS.test(text.trim())) {
    return 'write one value; minimind compare takes several, and makes a model of each';
  }
  const digits = text.trim().replaceAll(/[_, ]/g, '');
  if (digits === '' || digits.length > 40 || !Number.isFinite(Number(digits))) return undefined;
  return digits === text ? `remove the quotes: ${digits}` : `write ${digits}`;
}

function booleanInText(text: string): string | undefined {
  if (/^(yes|on|true|1|y)$/i.test(text)) return 'write true';
  if (/^(no|off|false|0|n)$/i.test(text)) return 'write false';
  return undefined;
}

/** The good values on both sides of a number that is no multiple of what it should be. */
function nearestMultiples({ others }: Wanted, value: number): string | undefined {
  const limit = others.flatMap(limitsOf).find(({ check }) => check === 'multiple_of');
  if (limit?.check !== 'multiple_of' || !Number.isFinite(value)) return undefined;
  const step = Number(limit.value);
  if (value % step === 0) return undefined;
  const below = Math.floor(value / step) * step;
  return `the nearest are ${below} and ${below + step}`;
}
