/** Makes text from untrusted files safe and short for display. */
import type { PropertyPath } from '../base/errors.js';

/** Control characters, invisible and direction-changing ones, line separators, lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\r', '\\r'],
]);

function escapeCharacter(character: string): string {
  const short = SHORT_ESCAPES.get(character);
  if (short !== undefined) return short;
  if (!UNPRINTABLE.test(character)) return character;
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`;
}

/**
 * Escapes all characters of `text` that a terminal would interpret or hide, so it is safe to print. Cuts to at
 * most `limit` characters, ending in `…`.
 */
export function escapeText(text: string, limit = Number.POSITIVE_INFINITY): string {
  let escaped = '';
  let length = 0;
  let cut = 0;
  for (const character of text) {
    const piece = escapeCharacter(character);
    if (length + piece.length > limit) return `${escaped.slice(0, cut)}…`;
    escaped += piece;
    length += piece.length;
    if (length < limit) cut = escaped.length;
  }
  return escaped;
}

/** `text` in double quotes, escaped as in JSON and by `escapeText`, and cut to about `limit` characters. */
export function quote(text: string, limit = 60): string {
  // Cut first, to avoid work on a huge text.
  const head = text.slice(0, 2 * limit).replace(/["\\]/g, '\\$&');
  return `"${escapeText(head, limit)}"`;
}

/** Short description of any document value: `"abc"`, `12`, `null`, `a list`, `a mapping`. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'a mapping';
  return String(value);
}

/** Keys written plainly in a dotted path; others are written `["…"]`. */
const PLAIN_SEGMENT = /^[\p{L}\p{N}_-]+$/u;

/** `model.layers.0.kind`, with unusual keys in brackets: `model["a.b"]`. `--set` accepts this form. */
export function formatPath(path: PropertyPath): string {
  let text = '';
  for (const segment of path) {
    const key = String(segment);
    if (!PLAIN_SEGMENT.test(key) || key.length > 100) text += `[${quote(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** Path named by a `Rule` or `Confusion`; schema keys contain no dots. */
export function splitDotted(dotted: string): string[] {
  return dotted.split('.');
}

/** Whether the paths are equal, or one is above the other. */
export function areRelated(a: PropertyPath, b: PropertyPath): boolean {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (String(a[i]) !== String(b[i])) return false;
  return true;
}

/** Key for sets of paths; equal for equal paths. */
export function pathKey(path: PropertyPath): string {
  return JSON.stringify(path.map(String));
}

/** Value at `path` below `value`, or undefined if missing. Own properties only. */
export function valueAt(value: unknown, path: PropertyPath): unknown {
  let at = value;
  for (const segment of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, segment)) return undefined;
    at = Reflect.get(at, segment);
  }
  return at;
}
