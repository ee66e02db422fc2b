/** Reads YAML 1.2, which includes JSON, into values with positions. */
import {
  type Alias,
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { ProblemText } from '../errors.js';
import { isRecord } from '../text/words.js';
import { type LocatedFinding, Unreadable } from './document-problems.js';
import { nearest } from './nearest.js';
import { describeValue, quote, setOwn } from './quote.js';
import type { Located, Source } from './source.js';
import { explainMistakes, type YamlMistake } from './yaml-messages.js';

/** A typical config has a few hundred values, or some thousand in lists. */
const MAX_NODES = 150_000;

/** Maximum number of values with all aliases expanded: enough for a file of lists. */
const MAX_VALUES = 1_000_000;

/** Maximum nesting depth of mappings and lists. */
export const MAX_DEPTH = 100;

/** Maximum number of explained mistakes; a hostile file has one per character. */
const MAX_MISTAKES = 1000;

const TOO_MANY_NODES: ProblemText = {
  message: 'the document has more than 150,000 values',
  suggestion: 'give a config: a short YAML or JSON file',
};

const TOO_MANY_VALUES: ProblemText = {
  message: 'the aliases multiply this document to more than 1,000,000 values',
  suggestion: 'use fewer aliases',
};

const TOO_DEEP: ProblemText = {
  message: `nested deeper than ${MAX_DEPTH} levels`,
  suggestion: 'use fewer levels',
};

const CONTROL_CHARACTER: ProblemText = {
  message: 'control character in the text',
  suggestion: 'remove it, or write it as an escape in double quotes, as in "\\u0007"',
};

/**
 * Parses the one YAML value in `text`, of any kind, and reports recoverable mistakes. The value is null for an
 * empty text, and undefined for an alias without a target. Time and memory are linear in the text.
 *
 * @throws Unreadable when no value remains
 */
export function parseYaml(
  text: string,
  source: Source,
): { readonly root: Located; readonly found: readonly LocatedFinding[] } {
  const control = findControlCharacter(text);
  if (control !== undefined) throw stop(source, control, CONTROL_CHARACTER, true);
  const { document, mistakes: all } = compose(text, source);
  const isCut = all.length >= MAX_MISTAKES;
  const found = explainMistakes(all.slice(0, MAX_MISTAKES), document, text, source);
  if (isCut || all.some(({ code }) => code !== 'TAG_RESOLVE_FAILED')) {
    throw new Unreadable(found, isCut);
  }
  if (document.contents === null) {
    return { root: { value: null, place: { source, offset: 0 } }, found };
  }
  const builder = new Builder(source, found);
  return { root: builder.build(document.contents, 0), found: builder.found };
}

const stop = (source: Source, offset: number, finding: ProblemText, isCut = false): Unreadable =>
  new Unreadable([{ severity: 'error', place: { source, offset }, finding }], isCut);

/** Offset of the first character that YAML forbids everywhere, even in quotes. */
function findControlCharacter(text: string): number | undefined {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 && code !== 0x09 && code !== 0x0a) return i;
  }
  return undefined;
}

/** Lexemes between or after values. */
const NO_NODE = new Set(['', ' ', '\t', '\n', '\r', '#', '\u0002', '\u0018', '\u001f', '\uFEFF']);

/** Lexemes that each belong to a value; without one, they are mistakes. */
const OF_A_NODE = new Set([',', ':', ']', '}']);

/** This file itself compares keys, follows aliases, merges, and rejects tags. */
const OPTIONS = {
  schema: 'core',
  version: '1.2',
  merge: false,
  uniqueKeys: false,
  resolveKnownTags: false,
  logLevel: 'error',
} as const;

/** The library's `parseDocument`, with a guard between its parser and its composer. */
function compose(
  text: string,
  source: Source,
): { readonly document: Document.Parsed; readonly mistakes: readonly YamlMistake[] } {
  const { stackTraceLimit } = Error;
  // The library creates an Error per mistake, whose stacks would take ten times the memory.
  Error.stackTraceLimit = 0;
  try {
    const composer = new Composer(OPTIONS);
    const [document, second] = composer.compose(guardedTokens(text, source), true, text.length);
    if (document === undefined) throw new TypeError('The composer makes one document at least.');
    const mistakesOf = (each: Document.Parsed): YamlMistake[] => [...each.errors, ...each.warnings];
    const mistakes = mistakesOf(document);
    if (second === undefined) return { document, mistakes };
    const [start, end] = second.range;
    const multiple: YamlMistake = { pos: [start, end], code: 'MULTIPLE_DOCS', message: '' };
    return { document, mistakes: [...mistakes, ...mistakesOf(second), multiple] };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * Tokens of `text`. The library's own limits apply too late: deep nesting exhausts the stack, and a tree of a
 * million nodes or errors takes a gigabyte.
 *
 * @throws Unreadable when the document has too many values or nests too deep
 */
function* guardedTokens(text: string, source: Source): Generator<CST.Token, void, undefined> {
  const parser = new Parser();
  const counts = new Map<string, number>();
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    const top = parser.stack.at(-1);
    // The stack also holds the document, and possibly a text.
    const depth = parser.stack.length - (top !== undefined && 'items' in top ? 1 : 2);
    if (depth > MAX_DEPTH) throw stop(source, parser.offset, TOO_DEEP);
    const first = lexeme.charAt(0);
    if (NO_NODE.has(first)) continue;
    const kind = OF_A_NODE.has(first) ? first : '';
    const count = (counts.get(kind) ?? 0) + 1;
    if (count > MAX_NODES) throw stop(source, parser.offset, TOO_MANY_NODES);
    counts.set(kind, count);
  }
  yield* parser.end();
}

const WHOLE_NUMBER = /^[-+]?(\d+|0x[\da-f]+|0o[0-7]+)$/i;

/** Value of an anchor. */
interface Anchored {
  readonly located: Located;
  /** Number of values with all aliases expanded. */
  readonly size: number;
  /** Nesting depth with all aliases expanded. */
  readonly height: number;
}

/**
 * Builds the value of a syntax tree. The library's `toJS` gives no positions and changes keys such as `1.0`. Its
 * `maxAliasCount` ignores merged keys and depth. Aliases share values here, so a small file never becomes a large
 * object.
 */
class Builder {
  readonly found: LocatedFinding[];
  readonly #source: Source;
  readonly #refusesTags: boolean;
  /** Value of each anchor at this point of the text; 'open' while it is being built. */
  readonly #anchors = new Map<string, Anchored | 'open'>();
  #values = 0;
  #deepest = 0;

  /** @param refusedTags Tags already reported. */
  constructor(source: Source, refusedTags: readonly LocatedFinding[]) {
    this.#source = source;
    this.#refusesTags = refusedTags.length > 0;
    this.found = [...refusedTags];
  }

  build(node: unknown, depth: number, fallbackOffset = 0): Located {
    if (isAlias(node)) return this.#alias(node, depth);
    const anchor = isNode(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.#content(node, depth, fallbackOffset);
    const [valuesBefore, deepestBefore] = [this.#values, this.#deepest];
    this.#deepest = depth;
    this.#anchors.set(anchor, 'open');
    const located = this.#content(node, depth, fallbackOffset);
    // A nested value may have redefined the same anchor; the later one applies.
    if (this.#anchors.get(anchor) === 'open') {
      const [size, height] = [this.#values - valuesBefore, this.#deepest - depth];
      this.#anchors.set(anchor, { located, size, height });
    }
    this.#deepest = Math.max(this.#deepest, deepestBefore);
    return located;
  }

  #content(node: unknown, depth: number, fallbackOffset: number): Located {
    this.#count(1, fallbackOffset);
    if (isScalar(node)) return this.#scalar(node);
    const place = { source: this.#source, offset: offsetOf(node) ?? fallbackOffset };
    if (!isMap(node) && !isSeq(node)) return { value: null, place };
    this.#deepest = Math.max(this.#deepest, depth + 1);
    return isMap(node) ? this.#map(node, depth, place) : this.#list(node, depth, place);
  }

  #scalar(node: Scalar): Located {
    const place = { source: this.#source, offset: offsetOf(node) ?? 0 };
    const { value, source: text = '' } = node;
    // A rejected tag turns its value into text, regardless of the intended type.
    if (this.#refusesTags && node.tag !== undefined) return { value, place, flaw: 'wrong' };
    if (typeof value !== 'number') return { value, place };
    if (WHOLE_NUMBER.test(text) && !Number.isSafeInteger(value)) {
      this.#report(place.offset, {
        message: `${text.slice(0, 60)}${text.length > 60 ? '…' : ''} is beyond 2^53 − 1`,
        suggestion: 'larger integers cannot be read exactly: write a smaller one',
      });
    } else if (!Number.isFinite(value) && !/inf|nan/i.test(text)) {
      this.#report(place.offset, {
        message: `${text.slice(0, 60)} is too large for a number`,
        suggestion: 'write a smaller number',
      });
    } else return { value, place };
    return { value, place, flaw: 'wrong' };
  }

  #alias(node: Alias, depth: number): Located {
    const offset = offsetOf(node) ?? 0;
    const place = { source: this.#source, offset };
    const target = this.#anchors.get(node.source);
    if (target === undefined || target === 'open') {
      this.#report(offset, () =>
        target === undefined
          ? this.#explainUnknownAnchor(node.source)
          : {
              message: `the alias ${quote(`*${node.source}`)} is inside the value that it names`,
              suggestion: 'a value cannot contain itself: remove the alias',
            },
      );
      return { value: undefined, place, flaw: 'wrong' };
    }
    this.#count(target.size, offset);
    this.#deepest = Math.max(this.#deepest, depth + target.height);
    if (depth + target.height > MAX_DEPTH) throw this.#stop(offset, TOO_DEEP);
    // The parts keep their original positions.
    return { ...target.located, place };
  }

  #list(node: YAMLSeq, depth: number, place: Located['place']): Located {
    const items = node.items.map((item) => this.build(item, depth + 1, place.offset));
    return {
      value: items.map(({ value }) => value),
      place,
      parts: new Map(items.map((item, index) => [String(index), item])),
    };
  }

  #map(node: YAMLMap, depth: number, place: Located['place']): Located {
    const parts = new Map<string, Located>();
    const merges: { readonly offset: number; readonly merged: Located }[] = [];
    let isWhole = true;
    for (const pair of node.items) {
      const offset = offsetOf(pair.key) ?? place.offset;
      const key = this.#key(pair.key, offset);
      const built = this.build(pair.value, depth + 1, offset);
      if (key === undefined) {
        isWhole = false;
      } else if (isMergeKey(pair.key)) {
        merges.push({ offset: offsetOf(pair.value) ?? offset, merged: built });
      } else {
        const earlier = parts.get(key.name)?.key;
        if (earlier !== undefined) this.#reportDuplicate(key.name, offset, earlier.offset);
        // The last duplicate is kept, though either may be intended.
        const isWrong = earlier !== undefined || key.isWrong;
        const part = { ...built, key: { source: this.#source, offset } };
        parts.set(key.name, isWrong ? { ...part, flaw: 'wrong' } : part);
      }
    }
    for (const { offset, merged } of merges) {
      if (!this.#merge(merged, offset, parts)) isWhole = false;
    }
    const value: Record<string, unknown> = {};
    for (const [key, part] of parts) setOwn(value, key, part.value);
    return isWhole ? { value, place, parts } : { value, place, parts, flaw: 'incomplete' };
  }

  /** Text of a key as written: `1.0` stays `1.0`. Undefined when it has none. */
  #key(node: unknown, offset: number): { name: string; isWrong: boolean } | undefined {
    const { value, flaw } = this.build(node, 0, offset);
    const isWrong = flaw === 'wrong';
    if (isScalar(node)) {
      return { name: typeof node.value === 'string' ? node.value : (node.source ?? ''), isWrong };
    }
    // An invalid alias.
    if (value === undefined) return undefined;
    if (isAlias(node) && typeof value !== 'object') return { name: String(value), isWrong };
    if (node === null) return { name: '', isWrong };
    this.#report(offset, {
      message: `a key must be a text, but is ${describeValue(value)}`,
      suggestion: 'put a key that begins with a bracket in quotes',
    });
    return undefined;
  }

  /**
   * Merges the mappings named by `<<`; the first definition of a key takes precedence. Returns whether all were
   * merged.
   */
  #merge(merged: Located, offset: number, parts: Map<string, Located>): boolean {
    let isWhole = true;
    const mappings = Array.isArray(merged.value) ? (merged.parts?.values() ?? []) : [merged];
    for (const { value, flaw, parts: added = new Map<string, Located>() } of mappings) {
      // An invalid alias.
      if (value === undefined) isWhole = false;
      else if (isRecord(value)) {
        if (flaw !== undefined) isWhole = false;
        for (const [key, part] of added) if (!parts.has(key)) parts.set(key, part);
      } else {
        this.#report(offset, {
          message: `<< must name a mapping, or a list of mappings, but is ${describeValue(value)}`,
          suggestion: 'write "<<: *name", with the mapping marked as "&name" above',
        });
        return false;
      }
    }
    return isWhole;
  }

  #explainUnknownAnchor(name: string): ProblemText {
    const near = nearest(name, this.#anchors.keys());
    const message = `no anchor ${quote(`&${name}`)} precedes this alias`;
    return near === undefined
      ? { message, suggestion: 'put a text that begins with * in quotes' }
      : { message, suggestion: `did you mean ${quote(`*${near}`)}?` };
  }

  #reportDuplicate(key: string, offset: number, earlier: number): void {
    this.#report(offset, () => {
      const { line, column } = this.#source.at(earlier);
      const where = line === undefined ? '' : `; the first is at ${line}:${column}`;
      return {
        message: `the key ${quote(key)} occurs twice in this mapping${where}`,
        suggestion: 'remove one of them',
      };
    });
  }

  #count(values: number, offset: number): void {
    this.#values += values;
    if (this.#values > MAX_VALUES) throw this.#stop(offset, TOO_MANY_VALUES);
  }

  #report(offset: number, finding: LocatedFinding['finding']): void {
    this.found.push({ severity: 'error', place: { source: this.#source, offset }, finding });
  }

  #stop(offset: number, finding: ProblemText): Unreadable {
    this.#report(offset, finding);
    return new Unreadable(this.found);
  }
}

/** Only a plain `<<`; a quoted one, as in JSON, is an ordinary key. */
const isMergeKey = (key: unknown): boolean =>
  isScalar(key) && key.type === Scalar.PLAIN && key.source === '<<' && key.tag === undefined;

const offsetOf = (node: unknown): number | undefined =>
  isNode(node) ? node.range?.[0] : undefined;
