import type { PropertyPath } from '../errors.js';
import { MAX_DEPTH } from './syntax-messages.js';

/** One step of the path of a `--set`, from its first character on. */
const SEGMENT =
  /\["((?:[^"\\]|\\.)*)"\]|\[(\d{1,15})\]|"((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^\\.=["']|\\.)(?:[^\\.=[]|\\.)*)/suy;

/**
 * Splits `path=value`. The keys of the path are parted by dots; a key with a dot, or with `=`, is
 * written in quotes or with a backslash before it: `a.b`, `a."b.c"`, `a["b.c"]`, `a.b\.c`, `a.0`,
 * `a[0]`.
 *
 * @returns the path and the text of the value, or what is wrong
 */
export function splitOverride(
  text: string,
): { readonly path: PropertyPath; readonly value: string } | { readonly mistake: string } {
  const path: string[] = [];
  let at = 0;
  for (;;) {
    SEGMENT.lastIndex = at;
    const match = SEGMENT.exec(text);
    if (match === null) return { mistake: mistakeAt(text, at) };
    path.push(keyOf(match));
    at = SEGMENT.lastIndex;
    if (path.length > MAX_DEPTH) return { mistake: `its path has more than ${MAX_DEPTH} keys` };
    const next = text[at];
    if (next === '=') return { path, value: text.slice(at + 1) };
    if (next === '.') at++;
    else if (next !== '[') return { mistake: mistakeAt(text, at) };
  }
}

function keyOf([, bracketed, index, doubled, single, bare]: RegExpExecArray): string {
  return index ?? single ?? unguard(bracketed ?? doubled ?? bare ?? '');
}

/** A backslash guards the character after it. */
function unguard(text: string): string {
  return text.replace(/\\(.)/gsu, '$1');
}

function mistakeAt(text: string, at: number): string {
  if (!text.includes('=', at)) return 'has no =';
  const next = text[at];
  if (next === '=' || next === '.') return 'has an empty key';
  return `cannot be read from character ${at + 1} on`;
}
