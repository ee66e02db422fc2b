import type { Alias, CST, Document, ErrorCode, Node, ParsedNode, YAMLMap, YAMLSeq } from 'yaml';
import {
  Composer,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  Scalar,
  visit,
} from 'yaml';
import type { Finding } from '../errors.js';
import { nearest } from './nearest.js';
import { isMapping, setOwn } from './path.js';
import type { Found } from './problems.js';
import { Unreadable } from './problems.js';
import { describeValue, escapeText, quote } from './quote.js';
import type { Entry, Flaw, Mark, Source } from './source.js';

/** So much does the parser complain before it is not asked any more: it may about each character. */
const MAX_COMPLAINTS = 1000;

/** YAML 1.2, of which JSON is a part. Keys are compared, aliases followed and tags refused by us. */
const YAML_OPTIONS = {
  schema: 'core',
  version: '1.2',
  merge: false,
  uniqueKeys: false,
  resolveKnownTags: false,
  logLevel: 'error',
} as const;

const CONTROL_CHARACTER: Finding = {
  message: 'a control character stands here',
  suggestion: 'remove it, or write it as an escape in double quotes, as in "\\u0007"',
};

type ComposeErrorHandler = (
  at: number | readonly [number, number, ...unknown[]] | { offset: number; source?: string },
  code: ErrorCode,
  message: string,
) => void;

/** Most texts, numbers, brackets and dashes of a document. A config has a few hundred, or some thousand in lists. */
const MAX_NODES = 150_000;

const TOO_MANY: Finding = {
  message: 'the document has more than 150,000 values',
  suggestion: 'give a config: a short YAML or JSON file',
};

/** Lexemes that are not the beginning of a node: blanks, comments, and what is between nodes or after them. */
const NO_NODE = new Set([
  '',
  ' ',
  '\t',
  '\n',
  '\r',
  '#',
  ',',
  ':',
  ']',
  '}',
  '\u0002',
  '\u0018',
  '\u001f',
  '\uFEFF',
]);

/** Thrown and caught in this file, to leave the parser when there is no use in going on. */
class Stop extends Error {}

/** What the parser makes of a text. */
interface Syntax {
  /** Null when the text is empty. Whole only when nothing was found. */
  readonly root: ParsedNode | null;
  readonly found: readonly Found[];
  /** Whether what was found leaves no tree: all but tags that are not known. */
  readonly isBroken: boolean;
  /** Whether there may be more to find: the parser gave up. */
  readonly isCut: boolean;
}

/**
 * The syntax tree of the one document in `text`, and what is wrong with the syntax. Takes time and
 * memory linear in the text.
 *
 * @throws Unreadable when the document has too many nodes.
 */
export function parseSyntax(text: string, source: Source): Syntax {
  const control = findControlCharacter(text);
  if (control !== undefined) {
    const place = { source, offset: control };
    const found = { severity: 'error', place, finding: CONTROL_CHARACTER } as const;
    return { root: null, found: [found], isBroken: true, isCut: true };
  }

  const complaints: Complaint[] = [];
  const complain = (complaint: Complaint): void => {
    if (complaints.length === MAX_COMPLAINTS) throw new Stop();
    complaints.push(complaint);
  };
  let first: Document.Parsed | undefined;
  try {
    const composer = new Composer(YAML_OPTIONS);
    // The composer's own handler keeps an Error with a stack for each complaint: a gigabyte of them
    // for a hostile file. Should it be renamed, they are still found in the document below.
    Object.assign(composer, { onError: handlerOf(complain) });
    for (const document of composer.compose(
      readTokens(text, source, complain),
      true,
      text.length,
    )) {
      if (first !== undefined) {
        complain({ pos: document.range, code: 'MULTIPLE_DOCS', message: '' });
        break;
      }
      first = document;
      for (const complaint of [...document.errors, ...document.warnings]) complain(complaint);
    }
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
  }
  const isCut = complaints.length === MAX_COMPLAINTS;
  return {
    root: first?.contents ?? null,
    found: explain(complaints, first, text, source),
    isBroken: isCut || complaints.some(({ code }) => code !== 'TAG_RESOLVE_FAILED'),
    isCut,
  };
}

/** One finding per line, for after the first mistake on a line the parser is only confused. */
function explain(
  complaints: readonly Complaint[],
  document: Document.Parsed | undefined,
  text: string,
  source: Source,
): Found[] {
  if (complaints.length === 0) return [];
  const byLine = new Map<number, Found>();
  const openings = openingsOf(document);
  for (const complaint of complaints.toSorted((a, b) => a.pos[0] - b.pos[0])) {
    const line = source.lineAt(complaint.pos[0]);
    if (byLine.has(line)) continue;
    const [offset, finding] = explainSyntax(text, complaint, openings);
    byLine.set(line, { severity: 'error', place: { source, offset }, finding });
  }
  return [...byLine.values()];
}

/**
 * Reads `text` token by token, and stops before its nesting can exhaust the stack, or its tree the memory.
 * @throws Unreadable when it has too many nodes.
 */
function* readTokens(
  text: string,
  source: Source,
  complain: (complaint: Complaint) => void,
): Generator<CST.Token, void, undefined> {
  const parser = new Parser();
  let nodes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) {
      if (token.type !== 'error') yield token;
      else complain({ pos: positionOf(token), code: 'UNEXPECTED_TOKEN', message: token.message });
    }
    if (!NO_NODE.has(lexeme.charAt(0)) && ++nodes > MAX_NODES) {
      const place = { source, offset: parser.offset };
      throw new Unreadable([{ severity: 'error', place, finding: TOO_MANY }]);
    }
    const top = parser.stack.at(-1);
    // Besides mappings and lists, the document stands on the stack, and perhaps a text.
    const depth = parser.stack.length - (top !== undefined && 'items' in top ? 1 : 2);
    if (depth > MAX_DEPTH) {
      const pos = [parser.offset, parser.offset] as const;
      complain({ pos, code: 'RESOURCE_EXHAUSTION', message: '' });
      throw new Stop();
    }
  }
  yield* parser.end();
}

function handlerOf(complain: (complaint: Complaint) => void): ComposeErrorHandler {
  return (at, code, message) => complain({ pos: positionOf(at), code, message });
}

function positionOf(at: Parameters<ComposeErrorHandler>[0]): readonly [number, number] {
  if (typeof at === 'number') return [at, at + 1];
  if ('offset' in at) return [at.offset, at.offset + (at.source?.length ?? 1)];
  return [at[0], at[1]];
}

/** The offset of the first character that YAML allows nowhere, not even in quotes. */
function findControlCharacter(text: string): number | undefined {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 && code !== 0x09 && code !== 0x0a) return i;
  }
  return undefined;
}

/** A complaint of the YAML parser. */
export interface Complaint {
  /** UTF-16 offsets of the first character that is meant and of the one behind the last. */
  readonly pos: readonly [number, number, ...unknown[]];
  readonly code: ErrorCode;
  readonly message: string;
}

/** What to say for the parser's codes whose own messages do not help; `text` is the place meant. */
const EXPLANATIONS: Partial<Record<ErrorCode, (text: string) => Finding>> = {
  BAD_DQ_ESCAPE: () => ({
    message: 'this backslash begins no escape that YAML knows',
    suggestion: 'write \\\\ for a backslash, or use single quotes',
  }),
  BAD_INDENT: () => ({
    message: 'the indentation does not fit the lines above',
    suggestion:
      'indent all keys of one mapping by the same number of spaces, and close every bracket',
  }),
  BAD_SCALAR_START: (text) => ({
    message: `a value cannot begin with ${quote(text.slice(0, 1))}`,
    suggestion: 'put the value in quotes',
  }),
  BLOCK_AS_IMPLICIT_KEY: () => ({
    message: 'another key or list begins inside this value',
    suggestion: 'check the indentation of the next lines, and quote a value that contains ": "',
  }),
  BLOCK_IN_FLOW: () => ({
    message: 'indented lines cannot stand inside brackets',
    suggestion: 'close the bracket, or use brackets inside it too',
  }),
  KEY_OVER_1024_CHARS: () => ({
    message: 'a key is longer than 1024 characters',
    suggestion: 'use a shorter key',
  }),
  MULTIPLE_DOCS: () => ({
    message: 'a second document begins here',
    suggestion: 'keep one document, and remove the line "---" before the other',
  }),
  RESOURCE_EXHAUSTION: () => TOO_DEEP,
  MULTILINE_IMPLICIT_KEY: () => ({
    message: 'this line is no "key: value", or a key goes over several lines',
    suggestion: 'write "key: value", with a space after the colon',
  }),
  MULTIPLE_ANCHORS: () => ({ message: 'a value can have only one anchor' }),
  MULTIPLE_TAGS: () => ({ message: 'a value can have only one tag' }),
  TAG_RESOLVE_FAILED: (text) => ({
    message: `the tag ${quote(text)} does not fit or is not known here`,
    suggestion: 'remove the tag: a config needs none',
  }),
};

/** Mappings and lists may stand in each other this deep. */
export const MAX_DEPTH = 100;

const TOO_DEEP: Finding = {
  message: `nested deeper than ${MAX_DEPTH} levels`,
  suggestion: 'use fewer levels',
};

const TABS: Finding = {
  message: 'a tab is used as indentation',
  suggestion: 'indent with spaces: YAML does not allow tabs',
};

/** What an error is about when the parser only says where it ends. */
type Unclosed = keyof Openings;

/** The parser's own messages that can be said better, and what was left open, if that is it. */
const PHRASES: readonly (readonly [RegExp, Finding, Unclosed?])[] = [
  [
    /^Missing closing "quote/,
    { message: 'a double quote is not closed', suggestion: 'add the closing "' },
    'quotes',
  ],
  [
    /^Missing closing 'quote/,
    { message: 'a single quote is not closed', suggestion: "add the closing '" },
    'quotes',
  ],
  [/end with a \}/, { message: 'a { is not closed', suggestion: 'add the closing }' }, 'brackets'],
  [/end with a \]/, { message: 'a [ is not closed', suggestion: 'add the closing ]' }, 'brackets'],
  [
    /^Implicit map keys need/,
    {
      message: 'this line is no "key: value"',
      suggestion: 'write "key: value", with a space after the colon',
    },
  ],
  [/^Missing ,( or :)? between/, { message: 'a comma is missing', suggestion: 'add a comma' }],
  [
    /^Missing space after :/,
    { message: 'a space is missing after the colon', suggestion: 'write ": "' },
  ],
  [
    /^Unexpected flow-(map|seq)-end/,
    { message: 'a closing bracket has no opening one', suggestion: 'remove it' },
  ],
  [
    /^Unexpected block-seq-ind/,
    {
      message: 'a list cannot begin on the line of its key',
      suggestion: 'put each item on a line of its own, or write the list as [a, b]',
    },
  ],
  [
    /at node end$|^Unexpected [a-z-]*scalar token/,
    {
      message: 'this text belongs to nothing: the value before it has ended',
      suggestion: 'put the whole value in quotes, or write "key: value" on a line of its own',
    },
  ],
];

/** By where a quoted text or a bracket ends, where it begins. */
interface Openings {
  readonly quotes: ReadonlyMap<number, number>;
  readonly brackets: ReadonlyMap<number, number>;
}

/** The openings in a document, the innermost where several end together. */
function openingsOf(document: Document.Parsed | undefined): Openings {
  const quotes = new Map<number, number>();
  const brackets = new Map<number, number>();
  visit(document ?? null, {
    Node: (_, node) => {
      if (!node.range) return;
      if (isScalar(node)) quotes.set(node.range[1], node.range[0]);
      else if (isCollection(node) && node.flow) brackets.set(node.range[1], node.range[0]);
    },
  });
  return { quotes, brackets };
}

/**
 * Where the mistake is and what to say about it, in words for people who never read YAML's grammar.
 * `text` is the whole of the document.
 */
function explainSyntax(
  text: string,
  error: Complaint,
  openings: Openings,
): readonly [number, Finding] {
  const [start, end] = error.pos;
  const tab = tabInIndentation(text, start);
  if (tab !== undefined) return [tab, TABS];
  if (error.code === 'TAB_AS_INDENT') return [start, TABS];
  const phrase = PHRASES.find(([pattern]) => pattern.test(error.message));
  if (phrase !== undefined) {
    const [, finding, unclosed] = phrase;
    return [(unclosed && openings[unclosed].get(start)) ?? start, finding];
  }
  const explained = EXPLANATIONS[error.code]?.(text.slice(start, Math.min(end, start + 1000)));
  return [start, explained ?? { message: inLowerCase(error.message) }];
}

/** The offset of a tab before the first other character of the line that `offset` is on. */
function tabInIndentation(text: string, offset: number): number | undefined {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  for (let i = lineStart; text[i] === ' ' || text[i] === '\t'; i++) {
    if (text[i] === '\t') return i;
  }
  return undefined;
}

/** The parser's message on one line, without what it quotes from the file at length. */
function inLowerCase(message: string): string {
  const line = escapeText(message.split('\n', 1)[0] ?? '', 120);
  return line.slice(0, 1).toLowerCase() + line.slice(1);
}

/** Aliases may multiply what is written, up to this many values: enough for a file of lists. */
const MAX_VALUES = 1_000_000;

const WHOLE_NUMBER = /^[-+]?(\d+|0x[\da-f]+|0o[0-7]+)$/i;

interface Built {
  readonly value: unknown;
  readonly mark: Mark;
  /** How many values it holds with all aliases written out. */
  readonly size: number;
  /** How many mappings and lists stand in each other, with all aliases written out. */
  readonly height: number;
}

/**
 * The JavaScript value of a syntax tree, with the place of each of its parts, and what is wrong with
 * it; `refusedTags` are the tags that were already found wrong. A value that is undefined, and one
 * whose mark has a flaw, is told of in what is found. Parts that aliases share are shared here too, so
 * a small file never becomes a large object.
 *
 * @throws Unreadable when the value is too large or too deep
 */
export function buildValue(
  root: Node,
  source: Source,
  refusedTags: readonly Found[],
): { value: unknown; mark: Mark; found: readonly Found[] } {
  const builder = new Builder(source, refusedTags);
  const { value, mark } = builder.build(root, 0);
  return { value, mark, found: builder.found };
}

class Builder {
  readonly found: Found[];
  readonly #source: Source;
  readonly #refusesTags: boolean;
  /** What each anchor names at this point of the text; 'open' while it is being built. */
  readonly #anchors = new Map<string, Built | 'open'>();
  #values = 0;

  constructor(source: Source, refusedTags: readonly Found[]) {
    this.#source = source;
    this.#refusesTags = refusedTags.length > 0;
    this.found = [...refusedTags];
  }

  build(node: unknown, depth: number, fallbackOffset = 0): Built {
    if (isAlias(node)) return this.#alias(node, depth);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.#content(node, depth, fallbackOffset);
    this.#anchors.set(anchor, 'open');
    const built = this.#content(node, depth, fallbackOffset);
    // The same name may have been given to something inside, which then is the later of the two.
    if (this.#anchors.get(anchor) === 'open') this.#anchors.set(anchor, built);
    return built;
  }

  #content(node: unknown, depth: number, fallbackOffset: number): Built {
    this.#count(1, fallbackOffset);
    if (isMap(node)) return this.#map(node, depth);
    if (isSeq(node)) return this.#list(node, depth);
    if (isScalar(node)) return this.#scalar(node);
    return this.#leaf(null, fallbackOffset);
  }

  #leaf(value: unknown, offset: number, flaw?: Flaw): Built {
    const place = { source: this.#source, offset };
    return { value, mark: flaw === undefined ? { place } : { place, flaw }, size: 1, height: 0 };
  }

  #scalar(node: Scalar): Built {
    const offset = node.range?.[0] ?? 0;
    const { value, source = '' } = node;
    // A refused tag makes a text of what it stands before, whatever that was meant to be.
    if (this.#refusesTags && node.tag !== undefined) return this.#leaf(value, offset, 'wrong');
    if (typeof value !== 'number') return this.#leaf(value, offset);
    if (WHOLE_NUMBER.test(source) && !Number.isSafeInteger(value)) {
      this.#report(offset, {
        message: `${source.slice(0, 60)}${source.length > 60 ? '…' : ''} is beyond 2^53 − 1`,
        suggestion: 'larger integers cannot be read exactly: write a smaller one',
      });
      return this.#leaf(value, offset, 'wrong');
    }
    if (!Number.isFinite(value) && !/inf|nan/i.test(source)) {
      this.#report(offset, {
        message: `${source.slice(0, 60)} is too large for a number`,
        suggestion: 'write a smaller number',
      });
      return this.#leaf(value, offset, 'wrong');
    }
    return this.#leaf(value, offset);
  }

  #alias(node: Alias, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const target = this.#anchors.get(node.source);
    if (target === undefined) {
      this.#report(offset, () => this.#explainUnknownAnchor(node.source));
      return this.#leaf(undefined, offset, 'wrong');
    }
    if (target === 'open') {
      this.#report(offset, {
        message: `the alias ${quote(`*${node.source}`)} stands inside what it names`,
        suggestion: 'a value cannot contain itself: remove the alias',
      });
      return this.#leaf(undefined, offset, 'wrong');
    }
    this.#count(target.size, offset);
    if (depth + target.height > MAX_DEPTH) throw this.#stop(offset, TOO_DEEP);
    // The alias stands here; what is inside it stands where it was written.
    return { ...target, mark: { ...target.mark, place: { source: this.#source, offset } } };
  }

  #list(node: YAMLSeq, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const value: unknown[] = [];
    const items: Entry[] = [];
    let size = 1;
    let height = 0;
    for (const item of node.items) {
      const built = this.build(item, depth + 1, offset);
      value.push(built.value);
      items.push({ mark: built.mark });
      size += built.size;
      height = Math.max(height, built.height);
    }
    const mark = { place: { source: this.#source, offset }, items };
    return { value, mark, size, height: height + 1 };
  }

  #map(node: YAMLMap, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const entries = new Map<string, Entry>();
    const value: Record<string, unknown> = {};
    const merges: { offset: number; built: Built }[] = [];
    let size = 1;
    let height = 0;
    let isWhole = true;
    for (const pair of node.items) {
      const keyOffset = offsetOf(pair.key) ?? offset;
      const key = this.#key(pair.key, keyOffset);
      const built = this.build(pair.value, depth + 1, keyOffset);
      size += built.size;
      height = Math.max(height, built.height);
      if (key === undefined) {
        isWhole = false;
        continue;
      }
      if (isMergeKey(pair.key)) {
        merges.push({ offset: offsetOf(pair.value) ?? keyOffset, built });
        continue;
      }
      const earlier = entries.get(key.name);
      if (earlier?.key !== undefined) this.#duplicate(key.name, keyOffset, earlier.key.offset);
      // Of a key that stands twice the last value is kept, though it is not known which was meant.
      const isWrong = earlier !== undefined || key.isWrong;
      const mark: Mark = isWrong ? { ...built.mark, flaw: 'wrong' } : built.mark;
      entries.set(key.name, { key: { source: this.#source, offset: keyOffset }, mark });
      setOwn(value, key.name, built.value);
    }
    for (const merge of merges) {
      if (!this.#merge(merge.built, merge.offset, value, entries)) isWhole = false;
    }
    const place = { source: this.#source, offset };
    const mark: Mark = isWhole ? { place, entries } : { place, entries, flaw: 'incomplete' };
    return { value, mark, size, height: height + 1 };
  }

  /** The text of a key as it is written: `1.0` stays `1.0`. Undefined when it is none. */
  #key(node: unknown, offset: number): { name: string; isWrong: boolean } | undefined {
    const built = this.build(node, 0, offset);
    const isWrong = built.mark.flaw === 'wrong';
    if (isScalar(node)) {
      return { name: typeof node.value === 'string' ? node.value : (node.source ?? ''), isWrong };
    }
    // An alias that was found wrong.
    if (built.value === undefined) return undefined;
    if (isAlias(node) && typeof built.value !== 'object') {
      return { name: String(built.value), isWrong };
    }
    if (node === null) return { name: '', isWrong };
    this.#report(offset, {
      message: `a key must be a text, but is ${describeValue(built.value)}`,
      suggestion: 'put a key that begins with a bracket in quotes',
    });
    return undefined;
  }

  /**
   * Takes over what `<<` names, unless it is already there: the first that gives a key wins. Returns
   * whether that was all of it.
   */
  #merge(
    merged: Built,
    offset: number,
    value: Record<string, unknown>,
    entries: Map<string, Entry>,
  ): boolean {
    let isWhole = true;
    const parts = Array.isArray(merged.value)
      ? merged.value.map((part: unknown, i) => ({
          value: part,
          mark: merged.mark.items?.[i]?.mark,
        }))
      : [merged];
    for (const part of parts) {
      // Undefined is what is left of an alias that was found wrong.
      if (part.value === undefined) {
        isWhole = false;
        continue;
      }
      if (!isMapping(part.value)) {
        this.#report(offset, {
          message: `<< must name a mapping, or a list of mappings, but is ${describeValue(part.value)}`,
          suggestion: 'write "<<: *name", with the mapping marked as "&name" above',
        });
        return false;
      }
      if (part.mark?.flaw !== undefined) isWhole = false;
      for (const [key, entry] of part.mark?.entries ?? []) {
        if (entries.has(key)) continue;
        entries.set(key, entry);
        setOwn(value, key, part.value[key]);
      }
    }
    return isWhole;
  }

  #explainUnknownAnchor(name: string): Finding {
    const near = nearest(name, this.#anchors.keys());
    const message = `no anchor ${quote(`&${name}`)} stands above this alias`;
    return near === undefined
      ? { message, suggestion: 'put a text that begins with * in quotes' }
      : { message, suggestion: `did you mean ${quote(`*${near}`)}?` };
  }

  #duplicate(key: string, offset: number, earlier: number): void {
    this.#report(offset, () => {
      const { line, column } = this.#source.at(earlier);
      const where = line === undefined ? '' : `; the first is at ${line}:${column}`;
      return {
        message: `the key ${quote(key)} stands twice in this mapping${where}`,
        suggestion: 'remove one of them',
      };
    });
  }

  #count(values: number, offset: number): void {
    this.#values += values;
    if (this.#values <= MAX_VALUES) return;
    throw this.#stop(offset, {
      message: 'the aliases multiply this document to more than 1,000,000 values',
      suggestion: 'use fewer aliases',
    });
  }

  #report(offset: number, finding: Found['finding']): void {
    this.found.push({ severity: 'error', place: { source: this.#source, offset }, finding });
  }

  #stop(offset: number, finding: Finding): Unreadable {
    this.#report(offset, finding);
    return new Unreadable(this.found);
  }
}

/** Only `<<` as it is: in quotes, as it would be in JSON, it is a key like any other. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) && key.type === Scalar.PLAIN && key.source === '<<' && key.tag === undefined;
}

function offsetOf(node: unknown): number | undefined {
  if (isAlias(node) || isScalar(node) || isMap(node) || isSeq(node)) return node.range?.[0];
  return undefined;
}
