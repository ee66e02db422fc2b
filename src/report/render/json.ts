import { printableJson } from '../kit/escape.js';

/**
 * `value` as JSON, indented by two spaces, with a newline at its end. Integers beyond ±(2^53 − 1), NaN and
 * infinities become strings, because JSON's readers would lose them; fields that are undefined are left
 * out; characters that are invisible or obeyed by terminals are written as `\uXXXX`.
 * @throws TypeError for what is no data: a cycle, a function, undefined.
 */
export function toJson(value: unknown): string {
  const json: string | undefined = JSON.stringify(value, exactNumber, 2);
  if (json === undefined) throw new TypeError(`${typeof value} is not JSON`);
  return `${printableJson(json)}\n`;
}

function exactNumber(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (typeof value !== 'number') return value;
  if (!Number.isFinite(value)) return String(value);
  // All digits of the double, where String() would round: 2^63 is 9223372036854775808.
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(BigInt(value)) : value;
}
