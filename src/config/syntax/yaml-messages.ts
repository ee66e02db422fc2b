/** Explains the YAML library's errors to users who do not know YAML's grammar. */
import { type Document, type ErrorCode, visit, type YAMLError } from 'yaml';
import type { ProblemText } from '../../base/errors.js';
import type { LocatedFinding } from '../document-problems.js';
import { escapeText, quote } from '../quote.js';
import type { Source } from '../source.js';

type YamlExplanation = readonly [
  /** The library's code or message. */
  by: ErrorCode | RegExp,
  message: string | ((text: string) => string),
  suggestion?: string,
  /** Character that opens the value, of which the library only reports the end. */
  opening?: string,
];

const KEY_VALUE = 'write "key: value", with a space after the colon';

const TABS = {
  message: 'a tab is used as indentation',
  suggestion: 'indent with spaces: YAML does not allow tabs',
} as const satisfies ProblemText;

/** Explanations in order; the first match applies. A message may quote the text. */
const EXPLANATIONS: readonly YamlExplanation[] = [
  ['TAB_AS_INDENT', TABS.message, TABS.suggestion],
  [/^Missing closing "quote/, 'a double quote is not closed', 'add the closing "', '"'],
  [/^Missing closing 'quote/, 'a single quote is not closed', "add the closing '", "'"],
  [/end with a \}/, 'a { is not closed', 'add the closing }', '{'],
  [/end with a \]/, 'a [ is not closed', 'add the closing ]', '['],
  [/^Implicit map keys need/, 'this line is not "key: value"', KEY_VALUE],
  [/^Missing ,( or :)? between/, 'a comma is missing', 'add a comma'],
  [/^Missing space after :/, 'a space is missing after the colon', 'write ": "'],
  [/^Unexpected flow-(map|seq)-end/, 'a closing bracket has no opening one', 'remove it'],
  [
    /^Unexpected block-seq-ind/,
    'a list cannot begin on the line of its key',
    'put each item on a line of its own, or write the list as [a, b]',
  ],
  [
    /at node end(: "|$)|^Unexpected [a-z-]*scalar token/,
    'this text belongs to nothing: the value before it has ended',
    'put the whole value in quotes, or write "key: value" on a line of its own',
  ],
  [
    'BAD_DQ_ESCAPE',
    'this backslash begins no escape that YAML knows',
    'write \\\\ for a backslash, or use single quotes',
  ],
  [
    'BAD_INDENT',
    'the indentation does not fit the lines above',
    'indent all keys of one mapping by the same number of spaces, and close every bracket',
  ],
  [
    'BAD_SCALAR_START',
    (text) => `a value cannot begin with ${quote(text.slice(0, 1))}`,
    'put the value in quotes',
  ],
  [
    'BLOCK_AS_IMPLICIT_KEY',
    'another key or list begins inside this value',
    'check the indentation of the next lines, and quote a value that contains ": "',
  ],
  [
    'BLOCK_IN_FLOW',
    'indented lines are not allowed inside brackets',
    'close the bracket, or use brackets inside it too',
  ],
  ['KEY_OVER_1024_CHARS', 'a key is longer than 1024 characters', 'use a shorter key'],
  [
    'MULTIPLE_DOCS',
    'a second document begins here',
    'keep one document, and remove the line "---" before the other',
  ],
  [
    'MULTILINE_IMPLICIT_KEY',
    'this line is not "key: value", or a key goes over several lines',
    KEY_VALUE,
  ],
  ['MULTIPLE_ANCHORS', 'a value can have only one anchor'],
  ['MULTIPLE_TAGS', 'a value can have only one tag'],
  [
    'TAG_RESOLVE_FAILED',
    (text) => `the tag ${quote(text)} does not fit or is not known here`,
    'remove the tag: a config needs none',
  ],
];

/** One finding per line: after the first mistake on a line, further parser errors are unreliable. */
export function explainMistakes(
  mistakes: readonly YAMLError[],
  document: Document.Parsed,
  text: string,
  source: Source,
): LocatedFinding[] {
  if (mistakes.length === 0) return [];
  const found: LocatedFinding[] = [];
  const openings = openingsOf(document, text);
  let lineEnd = -1;
  for (const mistake of mistakes.toSorted((a, b) => a.pos[0] - b.pos[0])) {
    const [start] = mistake.pos;
    if (start <= lineEnd) continue;
    lineEnd = text.indexOf('\n', start);
    if (lineEnd === -1) lineEnd = text.length;
    const [offset, finding] = explain(text, mistake, openings);
    found.push({ severity: 'error', place: { source, offset }, finding });
  }
  return found;
}

/** Start of each value by its opening character and its end. The innermost where several end together. */
function openingsOf(document: Document.Parsed, text: string): ReadonlyMap<string, number> {
  const openings = new Map<string, number>();
  visit(document, {
    Node: (_, { range }) => {
      if (range) openings.set(`${text[range[0]]}${range[1]}`, range[0]);
    },
  });
  return openings;
}

/** Position of a mistake in `text`, the whole document, and its message. */
function explain(
  text: string,
  { pos: [start, end], code, message: own }: YAMLError,
  openings: ReadonlyMap<string, number>,
): readonly [offset: number, ProblemText] {
  const tab = tabInIndentation(text, start);
  if (tab !== undefined) return [tab, TABS];
  const explanation = EXPLANATIONS.find(([by]) =>
    by instanceof RegExp ? by.test(own) : by === code,
  );
  if (explanation === undefined) return [start, { message: firstLine(own) }];
  const [, message, suggestion, opening] = explanation;
  const meant = text.slice(start, Math.min(end, start + 1000));
  return [
    openings.get(`${opening}${start}`) ?? start,
    {
      message: typeof message === 'string' ? message : message(meant),
      ...(suggestion !== undefined && { suggestion }),
    },
  ];
}

/** Offset of a tab in the indentation of the line at `offset`. */
function tabInIndentation(text: string, offset: number): number | undefined {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  for (let i = lineStart; text[i] === ' ' || text[i] === '\t'; i++) {
    if (text[i] === '\t') return i;
  }
  return undefined;
}

/** First line of the library's message, without the quoted file text at its end. */
function firstLine(message: string): string {
  const [first = ''] = message.split('\n', 1);
  const line = escapeText(first.replace(/: "(?:[^"\\]|\\.)*"$/, ''), 120);
  return line.slice(0, 1).toLowerCase() + line.slice(1);
}
