import { nearest } from './nearest.js';
import { describeValue, quote } from './quote.js';
import type { Definition } from './schema.js';
import { limitsOf, type Wanted } from './wanted.js';

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
