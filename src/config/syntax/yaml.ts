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
  YAMLParseError,
  type YAMLSeq,
} from 'yaml';
import type { ProblemText } from '../../base/errors.js';
import { isRecord } from '../../base/values.js';
import { type LocatedFinding, Unreadable, unreadableAt } from '../document-problems.js';
import { nearest } from '../nearest.js';
import { describeValue, quote } from '../quote.js';
import type { LocatedValue, Source, SourcePosition } from '../source.js';
import { explainMistakes } from './yaml-messages.js';

/** A typical config has a few hundred values, or some thousand in lists. */
const MAX_NODES = 150_000;

/** Maximum number of values with all aliases expanded: enough for a file of lists. */
const MAX_VALUES = 1_000_000;

/** Maximum nesting depth of mappings and lists. */
export const MAX_DEPTH = 100;

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

/** Characters below U+0020 except tab and line break: YAML forbids them everywhere, even in quotes. */
const FORBIDDEN = /[^\P{Cc}\t\n\u007f-\u009f]/u;

/** This file itself compares keys, follows aliases, merges, and rejects tags. */
const OPTIONS = {
  schema: 'core',
  version: '1.2',
  merge: false,
  uniqueKeys: false,
  resolveKnownTags: false,
  logLevel: 'error',
} as const;

/**
 * Parses the one YAML value in `text`, of any kind, and reports recoverable mistakes. The value is null for an
 * empty text, and undefined for an alias without a target. Time and memory are linear in the text.
 *
 * @param isJson Whether it is JSON, also with NaN and Infinity.
 * @throws Unreadable when no value remains
 */
export function parseYaml(
  text: string,
  source: Source,
  { isJson = false }: { readonly isJson?: boolean } = {},
): { readonly root: LocatedValue; readonly found: readonly LocatedFinding[] } {
  const forbidden = text.search(FORBIDDEN);
  if (forbidden !== -1) throw unreadableAt({ source, offset: forbidden }, CONTROL_CHARACTER);
  const document = compose(text, source);
  const mistakes = [...document.errors, ...document.warnings];
  const found = explainMistakes(mistakes, document, text, source);
  if (mistakes.some(({ code }) => code !== 'TAG_RESOLVE_FAILED')) throw new Unreadable(found);
  const start = { source, offset: 0 };
  if (document.contents === null) return { root: { value: null, place: start }, found };
  const builder = new Builder(found, isJson);
  const root = builder.build(document.contents, start);
  checkExpandedSize(root, builder.found);
  return { root, found: builder.found };
}

/** The library's `parseDocument`, with limits on the tokens that it reads. */
function compose(text: string, source: Source): Document.Parsed {
  const { stackTraceLimit } = Error;
  // The library creates an Error per mistake, whose stacks would take ten times the memory.
  Error.stackTraceLimit = 0;
  try {
    const composer = new Composer(OPTIONS);
    const [document, second] = composer.compose(limitedTokens(text, source), true, text.length);
    if (document === undefined) throw new TypeError('The composer makes one document at least.');
    if (second !== undefined) {
      const [start, end] = second.range;
      const multiple = new YAMLParseError([start, end], 'MULTIPLE_DOCS', '');
      document.errors = [...document.errors, ...second.errors, multiple];
      document.warnings = [...document.warnings, ...second.warnings];
    }
    return document;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Lexemes between or after values. */
const NO_NODE = new Set(['', ' ', '\t', '\n', '\r', '#', '\u0002', '\u0018', '\u001f', '\uFEFF']);

/** Lexemes that each belong to a value; without one, they are mistakes. */
const OF_A_NODE = new Set([',', ':', ']', '}']);

/** Lexemes that the library's lexer adds: they stand for no character of the text. */
const ADDED = new Set(['\u0002', '\u0018', '\u001f']);

/**
 * Lexemes of `text` in order; a number stands for as many blank lines, which outside of scalars mean nothing. All are
 * counted before the library makes a tree of them, which takes three times as long, and for a million nodes or errors a
 * gigabyte.
 *
 * @throws Unreadable when the document has too many values
 */
function limitedLexemes(text: string, source: Source): readonly (string | number)[] {
  const lexemes: (string | number)[] = [];
  const counts = new Map<string, number>();
  let offset = 0;
  let [previous, blank] = ['', 0];
  for (const lexeme of new Lexer().lex(text)) {
    if (lexeme === '\n' && previous === '\n') {
      blank += 1;
      continue;
    }
    if (blank > 0) lexemes.push(blank);
    lexemes.push(lexeme);
    offset += blank;
    [previous, blank] = [lexeme, 0];
    const first = lexeme.charAt(0);
    if (!ADDED.has(first)) offset += lexeme.length;
    if (NO_NODE.has(first)) continue;
    const kind = OF_A_NODE.has(first) ? first : '';
    const count = (counts.get(kind) ?? 0) + 1;
    if (count > MAX_NODES) throw unreadableAt({ source, offset }, TOO_MANY_NODES);
    counts.set(kind, count);
  }
  if (blank > 0) lexemes.push(blank);
  return lexemes;
}

/**
 * Tokens of `text`, which may nest only as deep as the stack allows.
 *
 * @throws Unreadable when the document has too many values or nests too deep
 */
function* limitedTokens(text: string, source: Source): Generator<CST.Token, void, undefined> {
  const parser = new Parser();
  for (const lexeme of limitedLexemes(text, source)) {
    if (typeof lexeme === 'number') {
      parser.offset += lexeme;
      continue;
    }
    yield* parser.next(lexeme);
    const { stack } = parser;
    // The stack also holds the document, and possibly a text.
    if (stack.length > MAX_DEPTH + 1) {
      const top = stack.at(-1);
      const depth = stack.length - (top !== undefined && 'items' in top ? 1 : 2);
      if (depth > MAX_DEPTH) throw unreadableAt({ source, offset: parser.offset }, TOO_DEEP);
    }
  }
  yield* parser.end();
}

/**
 * Checks a value with all aliases expanded, because the checks of a document visit it in this form.
 *
 * @throws Unreadable when it has too many values or nests too deep
 */
function checkExpandedSize(root: LocatedValue, found: readonly LocatedFinding[]): void {
  let values = 0;
  const visit = ({ place, parts }: LocatedValue, depth: number, outer: SourcePosition): void => {
    // An alias is after its target, so the latest place is the outermost alias.
    const latest = place.offset > outer.offset ? place : outer;
    values++;
    if (values > MAX_VALUES) throw unreadableAt(latest, TOO_MANY_VALUES, found);
    if (parts === undefined) return;
    if (depth === MAX_DEPTH) throw unreadableAt(latest, TOO_DEEP, found);
    for (const part of parts.values()) visit(part, depth + 1, latest);
  };
  visit(root, 0, root.place);
}

/** Numbers that Python writes into JSON. */
const PYTHON_NUMBER = /^(?:-?Infinity|NaN)$/;

const WHOLE_NUMBER = /^[-+]?(\d+|0x[\da-f]+|0o[0-7]+)$/i;

/**
 * Builds the value of a syntax tree. The library's `toJS` gives no positions and changes keys such as `1.0`.
 * Aliases share values here, so a small file never becomes a large object.
 */
class Builder {
  readonly found: LocatedFinding[];
  readonly #refusesTags: boolean;
  readonly #isJson: boolean;
  /** Value of each anchor at this point of the text; undefined while it is being built. */
  readonly #anchors = new Map<string, LocatedValue | undefined>();
  #merged = 0;

  /**
   * @param refusedTags Tags already reported.
   * @param isJson Whether the text is JSON, where Python writes numbers as words.
   */
  constructor(refusedTags: readonly LocatedFinding[], isJson: boolean) {
    this.#isJson = isJson;
    this.#refusesTags = refusedTags.length > 0;
    this.found = [...refusedTags];
  }

  /** @param outer Place of a node without text of its own. */
  build(node: unknown, outer: SourcePosition): LocatedValue {
    const place = nodePosition(node, outer);
    if (isAlias(node)) return this.#alias(node, place);
    const anchor = isNode(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.#content(node, place);
    this.#anchors.set(anchor, undefined);
    const located = this.#content(node, place);
    // A nested value may have redefined the same anchor; the later one applies.
    if (this.#anchors.get(anchor) === undefined) this.#anchors.set(anchor, located);
    return located;
  }

  #content(node: unknown, place: SourcePosition): LocatedValue {
    if (isScalar(node)) return this.#scalar(node, place);
    if (isMap(node)) return this.#map(node, place);
    return isSeq(node) ? this.#list(node, place) : { value: null, place };
  }

  #scalar({ value, source: text = '', tag, type }: Scalar, place: SourcePosition): LocatedValue {
    // A rejected tag turns its value into text, regardless of the intended type.
    if (this.#refusesTags && tag !== undefined) return { value, place, flaw: 'wrong' };
    if (this.#isJson && type === Scalar.PLAIN && PYTHON_NUMBER.test(text)) {
      return { value: Number(text), place };
    }
    if (typeof value !== 'number') return { value, place };
    if (WHOLE_NUMBER.test(text) && !Number.isSafeInteger(value)) {
      this.#report(place, {
        message: `${text.slice(0, 60)}${text.length > 60 ? '…' : ''} is beyond 2^53 − 1`,
        suggestion: 'larger integers cannot be read exactly: write a smaller one',
      });
    } else if (!Number.isFinite(value) && !/inf|nan/i.test(text)) {
      this.#report(place, {
        message: `${text.slice(0, 60)} is too large for a number`,
        suggestion: 'write a smaller number',
      });
    } else return { value, place };
    return { value, place, flaw: 'wrong' };
  }

  #alias({ source: name }: Alias, place: SourcePosition): LocatedValue {
    const target = this.#anchors.get(name);
    // The parts keep their original positions.
    if (target !== undefined) return { ...target, place };
    const isInside = this.#anchors.has(name);
    this.#report(place, () => (isInside ? selfReference(name) : this.#unknownAnchor(name)));
    return { value: undefined, place, flaw: 'wrong' };
  }

  #list(node: YAMLSeq, place: SourcePosition): LocatedValue {
    const items = node.items.map((item) => this.build(item, place));
    return {
      value: items.map(({ value }) => value),
      place,
      parts: new Map(items.map((item, index) => [String(index), item])),
    };
  }

  #map(node: YAMLMap, place: SourcePosition): LocatedValue {
    const parts = new Map<string, LocatedValue>();
    const merges: LocatedValue[] = [];
    let isWhole = true;
    for (const pair of node.items) {
      const keyPlace = nodePosition(pair.key, place);
      const key = this.#key(pair.key, keyPlace);
      const built = this.build(pair.value, keyPlace);
      if (key === undefined) {
        isWhole = false;
      } else if (isMergeKey(pair.key)) {
        merges.push(built);
      } else {
        const earlier = parts.get(key.name)?.key;
        if (earlier !== undefined) this.#reportDuplicate(key.name, keyPlace, earlier);
        // The last duplicate is kept, though either may be intended.
        const isWrong = earlier !== undefined || key.isWrong;
        const part = { ...built, key: keyPlace };
        parts.set(key.name, isWrong ? { ...part, flaw: 'wrong' } : part);
      }
    }
    for (const merged of merges) if (!this.#merge(merged, parts)) isWhole = false;
    const value = Object.fromEntries([...parts].map(([key, part]) => [key, part.value]));
    return isWhole ? { value, place, parts } : { value, place, parts, flaw: 'incomplete' };
  }

  /** Text of a key as written: `1.0` stays `1.0`. Undefined when it has none. */
  #key(node: unknown, place: SourcePosition): { name: string; isWrong: boolean } | undefined {
    const { value, flaw } = this.build(node, place);
    const isWrong = flaw === 'wrong';
    if (isScalar(node)) {
      return { name: typeof node.value === 'string' ? node.value : (node.source ?? ''), isWrong };
    }
    // An invalid alias.
    if (value === undefined) return undefined;
    if (isAlias(node) && typeof value !== 'object') return { name: String(value), isWrong };
    if (node === null) return { name: '', isWrong };
    this.#report(place, {
      message: `a key must be a text, but is ${describeValue(value)}`,
      suggestion: 'put a key that begins with a bracket in quotes',
    });
    return undefined;
  }

  /**
   * Merges the mappings named by `<<`; the first definition of a key takes precedence. Returns whether all were
   * merged.
   */
  #merge(merged: LocatedValue, parts: Map<string, LocatedValue>): boolean {
    let isWhole = true;
    const mappings = Array.isArray(merged.value) ? (merged.parts?.values() ?? []) : [merged];
    for (const { value, flaw, parts: added = new Map<string, LocatedValue>() } of mappings) {
      // An invalid alias.
      if (value === undefined) isWhole = false;
      else if (isRecord(value)) {
        if (flaw !== undefined) isWhole = false;
        this.#merged += added.size;
        if (this.#merged > MAX_VALUES) {
          throw unreadableAt(merged.place, TOO_MANY_VALUES, this.found);
        }
        for (const [key, part] of added) if (!parts.has(key)) parts.set(key, part);
      } else {
        this.#report(merged.place, {
          message: `<< must name a mapping, or a list of mappings, but is ${describeValue(value)}`,
          suggestion: 'write "<<: *name", with the mapping marked as "&name" above',
        });
        return false;
      }
    }
    return isWhole;
  }

  #unknownAnchor(name: string): ProblemText {
    const near = nearest(name, this.#anchors.keys());
    const message = `no anchor ${quote(`&${name}`)} precedes this alias`;
    return near === undefined
      ? { message, suggestion: 'put a text that begins with * in quotes' }
      : { message, suggestion: `did you mean ${quote(`*${near}`)}?` };
  }

  #reportDuplicate(key: string, place: SourcePosition, earlier: SourcePosition): void {
    this.#report(place, () => {
      const { line, column } = earlier.source.at(earlier.offset);
      const where = line === undefined ? '' : `; the first is at ${line}:${column}`;
      return {
        message: `the key ${quote(key)} occurs twice in this mapping${where}`,
        suggestion: 'remove one of them',
      };
    });
  }

  #report(place: SourcePosition, finding: LocatedFinding['finding']): void {
    this.found.push({ severity: 'error', place, finding });
  }
}

const selfReference = (name: string): ProblemText => ({
  message: `the alias ${quote(`*${name}`)} is inside the value that it names`,
  suggestion: 'a value cannot contain itself: remove the alias',
});

/** Only a plain `<<`; a quoted one, as in JSON, is an ordinary key. */
const isMergeKey = (key: unknown): boolean =>
  isScalar(key) && key.type === Scalar.PLAIN && key.source === '<<' && key.tag === undefined;

const nodePosition = (node: unknown, { source, offset }: SourcePosition): SourcePosition => ({
  source,
  offset: (isNode(node) ? node.range?.[0] : undefined) ?? offset,
});
