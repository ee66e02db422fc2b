import { usageError } from '../base/errors.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';

/**
 * The entries whose names match the glob of `--filter`; all of them without one.
 * @throws UserError when none does.
 */
export function filterByName<T>(
  entries: ReadonlyMap<string, T>,
  glob: string | undefined,
): ReadonlyMap<string, T> {
  if (glob === undefined) return entries;
  const isWanted = matcherOf(glob);
  const wanted = new Map([...entries].filter(([name]) => isWanted(name)));
  if (wanted.size > 0) return wanted;
  throw usageError(
    `--filter: no tensor has a name like ${quote(glob)}`,
    betterFilter(glob, [...entries.keys()]),
  );
}

function matcherOf(glob: string): (name: string) => boolean {
  try {
    return globMatcher(glob);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError(`--filter: ${quote(glob)}: ${error.message}`, undefined, error);
  }
}

function betterFilter(glob: string, names: readonly string[]): string {
  const within = `*${glob}*`;
  const lastParts = [...new Set(names.map((name) => name.split('.').at(-1) ?? name))];
  const part = nearest(glob, lastParts);
  const close = names.some(globMatcher(within))
    ? within
    : (nearest(glob, names) ?? (part === undefined ? undefined : `*.${part}`));
  if (close !== undefined) return `did you mean ${quote(close)}?`;
  const [first] = names;
  return first === undefined
    ? 'there are no tensors'
    : `--tensors lists them all; the first is ${quote(first)}`;
}

// Glob patterns for names of tensors. Packages for globs treat `.` and `/` as path separators. They also use regular
// expressions, which an untrusted name of a megabyte can keep busy for minutes. Here the time is at most the product of
// the lengths of name and pattern.

/** A run of any characters, or a test of one character. */
type Piece = '*' | ((character: string) => boolean);

/** Maximum patterns that braces may expand to. */
const MAX_ALTERNATIVES = 1000;

/**
 * Returns a function that matches names: `*` is any characters, dots too; `?` is one; `[ab]`, `[a-z]` and `[!ab]` are
 * one of some or of all others; `{a,b}` is either; `\` escapes the next character. Unclosed brackets are literal.
 * @throws RangeError when the braces expand to too many patterns.
 */
export function globMatcher(pattern: string): (name: string) => boolean {
  const alternatives = expandBraces(pattern).map(parsePieces);
  return (name) => {
    const characters = Array.from(name);
    return alternatives.some((pieces) => matches(pieces, characters));
  };
}

function expandBraces(pattern: string): string[] {
  const expanded: string[] = [];
  const waiting = [pattern];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const braces = firstBraces(next);
    if (!braces) {
      expanded.push(next);
    } else {
      const { start, end, options } = braces;
      for (const option of options) {
        waiting.push(next.slice(0, start) + option + next.slice(end));
      }
    }
    if (expanded.length + waiting.length > MAX_ALTERNATIVES) {
      throw new RangeError(`its braces expand to more than ${MAX_ALTERNATIVES} patterns`);
    }
  }
  return expanded;
}

interface Braces {
  readonly start: number;
  readonly end: number;
  readonly options: readonly string[];
}

/** The first braces with a comma in them; their options may contain braces. */
function firstBraces(pattern: string): Braces | undefined {
  for (let start = 0; start < pattern.length; start++) {
    if (pattern[start] === '\\') start++;
    else if (pattern[start] === '{') {
      const braces = bracesAt(pattern, start);
      if (braces) return braces;
    }
  }
  return undefined;
}

function bracesAt(pattern: string, start: number): Braces | undefined {
  const options: string[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === '\\') at++;
    else if (character === '{') depth++;
    else if (character === '}') depth--;
    const isEnd = depth === 0;
    if (isEnd || (character === ',' && depth === 1)) {
      options.push(pattern.slice(from, at));
      from = at + 1;
    }
    if (isEnd) return options.length > 1 ? { start, end: from, options } : undefined;
  }
  return undefined;
}

function parsePieces(pattern: string): Piece[] {
  const characters = Array.from(pattern);
  const pieces: Piece[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at];
    const set = character === '[' ? setAt(characters, at) : undefined;
    if (set) {
      pieces.push(set.piece);
      at = set.end;
    } else if (character === '*') {
      pieces.push('*');
    } else if (character === '?') {
      pieces.push(() => true);
    } else {
      if (character === '\\' && at + 1 < characters.length) at++;
      const literal = characters[at];
      pieces.push((each) => each === literal);
    }
  }
  return pieces;
}

/** Parses `[a-cx]` and finds its closing bracket; undefined when there is none. */
function setAt(characters: readonly string[], start: number) {
  const isNegated = characters[start + 1] === '!' || characters[start + 1] === '^';
  const from = start + (isNegated ? 2 : 1);
  // A bracket at the beginning belongs to the set.
  const end = characters.indexOf(']', from + 1);
  if (end < 0) return undefined;
  const ranges: [string, string][] = [];
  for (let at = from; at < end; at++) {
    const first = characters[at] ?? '';
    const isRange = characters[at + 1] === '-' && at + 2 < end;
    ranges.push([first, isRange ? (characters[at + 2] ?? '') : first]);
    if (isRange) at += 2;
  }
  const piece = (each: string) =>
    ranges.some(([first, last]) => code(first) <= code(each) && code(each) <= code(last)) !==
    isNegated;
  return { piece, end };
}

const code = (character: string) => character.codePointAt(0) ?? 0;

/** On a mismatch the last star takes one character more; earlier stars need not change. */
function matches(pieces: readonly Piece[], characters: readonly string[]): boolean {
  let piece = 0;
  let at = 0;
  let star = -1;
  let taken = 0;
  while (at < characters.length) {
    const wanted = pieces[piece];
    if (wanted === '*') {
      star = piece++;
      taken = at;
    } else if (wanted?.(characters[at] ?? '')) {
      piece++;
      at++;
    } else if (star >= 0) {
      piece = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  return pieces.slice(piece).every((rest) => rest === '*');
}
