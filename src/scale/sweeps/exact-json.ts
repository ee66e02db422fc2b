/** JSON that gives back exactly the values that were written, those that JSON lacks too. */
import { parseJson } from '../../base/text/json.js';
import { asNumber, isRecord } from '../../base/values.js';

/** Key of an object in place of a value that JSON lacks. */
const TAG = '$';

/** One line of JSON, also for readers that end lines at the separators of Unicode. */
export const exactJson = (value: unknown): string =>
  JSON.stringify(encodedValue(value)).replaceAll(/[\u2028\u2029]/g, (character) =>
    character === '\u2028' ? '\\u2028' : '\\u2029',
  );

/** @throws SyntaxError when the text is not JSON of `exactJson`. */
export const fromExactJson = (text: string): unknown => decoded(parseJson(text));

/** The value; undefined when the text is not JSON of `exactJson`. */
export function exactJsonOrUndefined(text: string): unknown {
  try {
    return fromExactJson(text);
  } catch {
    return undefined;
  }
}

function encodedValue(value: unknown): unknown {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { [TAG]: 'number', value: Object.is(value, -0) ? '-0' : String(value) };
    case 'bigint':
      return { [TAG]: 'bigint', value: String(value) };
    case 'undefined':
      return { [TAG]: 'undefined' };
    case 'object':
      return encodedObject(value);
    default:
      return value;
  }
}

function encodedObject(value: object | null): unknown {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(encodedValue);
  if (value instanceof Map) {
    return { [TAG]: 'map', value: [...value].map(encodedValue) };
  }
  const entries = Object.entries(value).map(([key, each]) => [key, encodedValue(each)] as const);
  return Object.hasOwn(value, TAG)
    ? { [TAG]: 'object', value: entries }
    : Object.fromEntries(entries);
}

function decoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decoded);
  if (!isRecord(value)) return value;
  const entriesOf = (list: unknown) =>
    (list as unknown[]).map(decoded) as readonly (readonly [string, unknown])[];
  switch (Object.hasOwn(value, TAG) ? value[TAG] : undefined) {
    case undefined:
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, decoded(each)]));
    case 'number':
      return asNumber(value.value);
    case 'bigint':
      return BigInt(value.value as string);
    case 'undefined':
      return undefined;
    case 'map':
      return new Map(entriesOf(value.value));
    case 'object':
      return Object.fromEntries(entriesOf(value.value));
    default:
      throw new SyntaxError(`unknown kind of value ${JSON.stringify(value[TAG])}`);
  }
}
