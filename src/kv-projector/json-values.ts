/** Values of PyTorch files as JSON and back, whole numbers and floats kept apart as Python's json does. */

import type { Value } from '../checkpoint/torch/values.js';
import { quoted } from '../checkpoint/wording.js';
import { UserError } from '../errors.js';

/** Deeper than any configuration. */
const MOST_DEPTH = 64;

/**
 * A value as JSON that `parseJson` reads as the same value, but that a tuple becomes a list and a dict a plain one.
 * @param name Of what is written, for the error.
 * @throws UserError for a value that JSON has no form for.
 */
export const jsonText = (name: string, value: Value): string => textOf(name, value, 0);

function textOf(name: string, value: Value, depth: number): string {
  if (depth > MOST_DEPTH) throw cannotHold(name, 'lists and dicts that deep');
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if (value instanceof Uint8Array) throw cannotHold(name, 'bytes');
  switch (value.kind) {
    case 'float':
      return floatText(value.value);
    case 'list':
    case 'tuple':
      return `[${value.items.map((item) => textOf(name, item, depth + 1)).join(', ')}]`;
    case 'dict':
      return `{${[...value.entries]
        .map(([key, part]) => {
          if (typeof key !== 'string') throw cannotHold(name, 'a key that is no text');
          return `${JSON.stringify(key)}: ${textOf(name, part, depth + 1)}`;
        })
        .join(', ')}}`;
    case 'set':
    case 'global':
    case 'opaque':
    case 'storage':
    case 'tensor':
      throw cannotHold(name, `a ${value.kind === 'opaque' ? value.type : value.kind}`);
  }
}

/** With a point or an exponent, by which a float is told from a whole number. */
function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : `${value}`;
  const text = Object.is(value, -0) ? '-0' : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

const cannotHold = (name: string, what: string) =>
  new UserError(
    'refused-file',
    `the argument ${quoted(name)} holds ${what}, which JSON has no form for`,
    {
      suggestion: 'write a PyTorch file, which can hold it',
    },
  );

/** What Python's json writes for floats that JSON has no number for. */
const ODD_FLOATS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

const TOKEN = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*/gs;

/**
 * The value that a text of JSON holds; undefined when it is none, or nested too deeply. Whole numbers beyond 2^53 − 1
 * are bigints.
 */
export function parseJson(text: string): Value | undefined {
  try {
    // As numbers, a float of a whole value and an exact integer would be lost: all but words become marked texts.
    JSON.parse(text.replace(TOKEN, (token) => (Object.hasOwn(ODD_FLOATS, token) ? '0' : token)));
    const marked = text.replace(TOKEN, (token) =>
      token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`,
    );
    return valueFrom(JSON.parse(marked), 0);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}

function valueFrom(data: unknown, depth: number): Value {
  if (depth > MOST_DEPTH) throw new RangeError('too deep');
  if (typeof data === 'string')
    return data.startsWith('s') ? data.slice(1) : numberOf(data.slice(1));
  if (Array.isArray(data)) {
    return { kind: 'list', items: data.map((item) => valueFrom(item, depth + 1)) };
  }
  if (typeof data !== 'object' || data === null) return data === null ? null : data === true;
  const entries = Object.entries(data).map(
    ([key, part]) => [key.slice(1), valueFrom(part, depth + 1)] as const,
  );
  return { kind: 'dict', type: 'dict', entries: new Map<Value, Value>(entries) };
}

function numberOf(token: string): Value {
  if (Object.hasOwn(ODD_FLOATS, token)) return { kind: 'float', value: ODD_FLOATS[token] ?? 0 };
  if (!/^-?\d+$/.test(token)) return { kind: 'float', value: Number(token) };
  const whole = Number(token);
  return Number.isSafeInteger(whole) ? whole + 0 : BigInt(token);
}
