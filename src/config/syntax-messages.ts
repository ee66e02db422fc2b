import { type Document, type ErrorCode, isCollection, isScalar, visit } from 'yaml';
import type { Finding } from '../errors.js';
import { escapeText, quote } from './quote.js';

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

export const TOO_DEEP: Finding = {
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
export function openingsOf(document: Document.Parsed | undefined): Openings {
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
export function explainSyntax(
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
