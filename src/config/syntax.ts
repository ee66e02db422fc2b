import {
  Composer,
  type CST,
  type Document,
  type ErrorCode,
  Lexer,
  type ParsedNode,
  Parser,
} from 'yaml';
import type { Finding } from '../errors.js';
import { type Found, Unreadable } from './problems.js';
import type { Source } from './source.js';
import { type Complaint, explainSyntax, MAX_DEPTH, openingsOf } from './syntax-messages.js';

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
