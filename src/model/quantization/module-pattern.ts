/**
 * Patterns of module names in quantization configs. They are Python regular expressions, of which a common
 * subset is supported. Matching time is bounded by the lengths of pattern and name.
 */

interface Atom {
  readonly matches: (character: string) => boolean;
  readonly isOptional: boolean;
  readonly isRepeated: boolean;
}

interface ParsedPattern {
  readonly atoms: readonly Atom[];
  /** Whether the pattern must match to the end of the name. */
  readonly isClosed: boolean;
}

/** Maximum alternatives; real lists of modules have fewer. */
const MOST_ALTERNATIVES = 64;

const GROUP = /(?<!\\)\((?:\?:)?([^()]*)\)(?![*+?{])/;
const CLASSES: Readonly<Record<string, RegExp>> = { d: /\d/, w: /\w/ };
const ATOM = /^(?:\\(.)|\[([\w-]+)\]|([^\\[\](){}|^$*+?]))([*+?]?)/;

/** Texts in which only the dot is special. */
const PLAIN = /^[\w.-]+$/;

export interface ModulePatterns {
  /** Whether one of the patterns matches at the start of a name, as Python's `re.match` does. */
  readonly matches: (name: string) => boolean;
  readonly notUnderstood: readonly string[];
}

/** Compiles many patterns; most are long lists of plain names. */
export function modulePatterns(texts: readonly string[]): ModulePatterns {
  const root: Letters = new Map();
  const patterns: ParsedPattern[] = [];
  const notUnderstood: string[] = [];
  for (const text of texts) {
    if (PLAIN.test(text)) insertText(root, text);
    else {
      const found = alternativesOf(text.replace(/^\^/, ''))?.map(patternOf);
      if (found?.every((pattern) => pattern !== undefined)) patterns.push(...found);
      else notUnderstood.push(text);
    }
  }
  return {
    matches: (name) =>
      isAmong(root, name) || patterns.some((pattern) => isBeginning(pattern, name)),
    notUnderstood,
  };
}

/** Trie of plain texts; `end` marks the end of one. */
type Letters = Map<string, Letters>;
const END = 'end';

function insertText(root: Letters, text: string): void {
  let at = root;
  for (const letter of text) {
    const next: Letters = at.get(letter) ?? new Map();
    at.set(letter, next);
    at = next;
  }
  at.set(END, at);
}

/** Whether a text in the trie is a prefix of a name; its dots match any letter. */
function isAmong(root: Letters, name: string): boolean {
  let nodes: Letters[] = [root];
  for (const letter of name) {
    const dots = letter === '.' ? [] : nodes.map((place) => place.get('.'));
    const next = [...nodes.map((place) => place.get(letter)), ...dots];
    nodes = next.filter((place) => place !== undefined);
    if (nodes.some((place) => place.has(END))) return true;
    if (nodes.length === 0) return false;
  }
  return false;
}

/** Expands the groups in `text` into one pattern per alternative. */
function alternativesOf(text: string): string[] | undefined {
  const group = GROUP.exec(text);
  if (!group) return text.split('|');
  const [whole, inner = ''] = group;
  const before = text.slice(0, group.index);
  const after = text.slice(group.index + whole.length);
  const all: string[] = [];
  for (const choice of inner.split('|')) {
    const found = alternativesOf(before + choice + after);
    if (found === undefined) return undefined;
    all.push(...found);
    if (all.length > MOST_ALTERNATIVES) return undefined;
  }
  return all;
}

function patternOf(text: string): ParsedPattern | undefined {
  const isClosed = text.endsWith('$');
  let rest = isClosed ? text.slice(0, -1) : text;
  const atoms: Atom[] = [];
  while (rest !== '') {
    const found = ATOM.exec(rest);
    if (!found) return undefined;
    const [whole, escaped, set, plain, quantifier] = found;
    const matches = matcherOf(escaped, set, plain);
    if (matches === undefined) return undefined;
    const isOptional = quantifier === '*' || quantifier === '?';
    atoms.push({ matches, isOptional, isRepeated: quantifier === '*' || quantifier === '+' });
    rest = rest.slice(whole.length);
  }
  return { atoms, isClosed };
}

function matcherOf(
  escaped: string | undefined,
  set: string | undefined,
  plain: string | undefined,
): Atom['matches'] | undefined {
  if (set !== undefined) return setMatcher(set);
  if (escaped !== undefined) {
    const group = CLASSES[escaped];
    if (group) return (character) => group.test(character);
    return /\w/.test(escaped) ? undefined : (character) => character === escaped;
  }
  return plain === '.' ? () => true : (character) => character === plain;
}

/** Matcher for the characters and ranges of a set such as `[0-9a]`; undefined for a reversed range. */
function setMatcher(set: string): Atom['matches'] | undefined {
  const ranges = [...set.matchAll(/(.)-(.)|(.)/g)].map(([, first, last, only]) => ({
    first: first ?? only ?? '',
    last: last ?? only ?? '',
  }));
  if (ranges.some(({ first, last }) => first > last)) return undefined;
  return (character) => ranges.some(({ first, last }) => first <= character && character <= last);
}

/** Simulates all paths through a pattern in parallel. */
function isBeginning({ atoms, isClosed }: ParsedPattern, name: string): boolean {
  const end = atoms.length;
  let states = skipped(new Set([0]), atoms);
  for (const character of name) {
    if (states.has(end) && !isClosed) return true;
    const next = new Set<number>();
    for (const state of states) {
      const atom = atoms[state];
      if (!atom?.matches(character)) continue;
      next.add(state + 1);
      if (atom.isRepeated) next.add(state);
    }
    states = skipped(next, atoms);
  }
  return states.has(end);
}

/** Adds the states after optional atoms; a repeated atom is optional after its first match. */
function skipped(states: Set<number>, atoms: readonly Atom[]): Set<number> {
  // The loop also visits states that it adds.
  for (const state of states) if (atoms[state]?.isOptional) states.add(state + 1);
  return states;
}
