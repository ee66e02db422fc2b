/** Changes of single values in a JSON text, which leave all other characters as they are. */

import type { PropertyPath } from '../../base/errors.js';
import { formatJson, parseJson } from '../../base/text/json.js';
import { isEqualData, isRecord } from '../../base/values.js';

/** A value to write at a path; undefined removes the key. */
export interface Edit {
  readonly path: PropertyPath;
  readonly value: unknown;
}

/** A JSON value with the place of its text. */
export interface JsonNode {
  /** UTF-16 offset of its first character. */
  readonly from: number;
  /** Offset after its last character. */
  readonly to: number;
  readonly parts:
    | { readonly kind: 'object'; readonly members: ReadonlyMap<string, JsonMember> }
    | { readonly kind: 'list'; readonly items: readonly JsonNode[] }
    | { readonly kind: 'scalar' };
}

interface JsonMember {
  /** Offset of the quote before its key. */
  readonly from: number;
  readonly node: JsonNode;
}

/** A text, a bracket or separator, or a word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/gsu;

interface Token {
  readonly text: string;
  readonly from: number;
}

/** Places of the values of a JSON text. @param text Valid JSON, nested as deep as a document may be. */
export function jsonNodes(text: string): JsonNode {
  const tokens: Token[] = [...text.matchAll(TOKEN)].map(({ 0: token, index }) => ({
    text: token,
    from: index,
  }));
  let at = 0;
  const take = (): Token => {
    const token = tokens[at++];
    if (token === undefined) throw new SyntaxError('the JSON text ends early');
    return token;
  };
  const isNext = (word: string): boolean => tokens[at]?.text === word;
  /** Reads to the closing bracket, with `read` for every part. */
  const collection = (closing: string, read: () => void): number => {
    while (!isNext(closing)) {
      read();
      if (isNext(',')) at++;
    }
    return take().from + 1;
  };
  const node = (): JsonNode => {
    const { text: token, from } = take();
    if (token === '{') {
      const members = new Map<string, JsonMember>();
      const to = collection('}', () => {
        const key = take();
        take();
        members.set(JSON.parse(key.text) as string, { from: key.from, node: node() });
      });
      return { from, to, parts: { kind: 'object', members } };
    }
    if (token === '[') {
      const items: JsonNode[] = [];
      const to = collection(']', () => items.push(node()));
      return { from, to, parts: { kind: 'list', items } };
    }
    return { from, to: from + token.length, parts: { kind: 'scalar' } };
  };
  return node();
}

/**
 * A JSON text with changed values. A new key comes first in its mapping, or last where `added` says so.
 * @param text Valid JSON, also with the words that Python adds.
 */
export function editedJson(
  text: string,
  edits: readonly Edit[],
  added: 'first' | 'last' = 'first',
): string {
  return edits.reduce((edited, edit) => withEdit(edited, edit, added), text);
}

function withEdit(text: string, { path, value }: Edit, added: 'first' | 'last'): string {
  let at = jsonNodes(text);
  for (const [index, segment] of path.entries()) {
    const key = String(segment);
    const { parts } = at;
    const inner =
      parts.kind === 'object'
        ? parts.members.get(key)?.node
        : parts.kind === 'list'
          ? parts.items[Number(key)]
          : undefined;
    const rest = path.slice(index + 1);
    if (inner === undefined) {
      if (value === undefined) return text;
      const nested = rest.reduceRight<unknown>((content, each) => ({ [each]: content }), value);
      return parts.kind === 'object'
        ? withMember(text, at, { key, value: nested, added })
        : spliced(text, at, writtenValue(text, at, { [key]: nested }));
    }
    if (rest.length === 0 && value === undefined) return withoutMember(text, at, key);
    at = inner;
  }
  return value === undefined ? text : withValue(text, at, value);
}

const spliced = (text: string, { from, to }: Pick<JsonNode, 'from' | 'to'>, by: string): string =>
  text.slice(0, from) + by + text.slice(to);

/** Replaces a value; parts that are equal keep their text. */
function withValue(text: string, node: JsonNode, value: unknown): string {
  const { parts } = node;
  const isSameMapping =
    parts.kind === 'object' &&
    isRecord(value) &&
    isEqualData(Object.keys(value), [...parts.members.keys()]);
  const isSameList =
    parts.kind === 'list' && Array.isArray(value) && value.length === parts.items.length;
  if (!isSameMapping && !isSameList) return spliced(text, node, writtenValue(text, node, value));
  const inner: [JsonNode, unknown][] = isSameMapping
    ? [...parts.members].map(([key, member]) => [member.node, value[key]])
    : parts.kind === 'list'
      ? parts.items.map((item, index) => [item, (value as readonly unknown[])[index]])
      : [];
  // From the end, so that earlier places stay valid.
  return inner.reverse().reduce((edited, [part, each]) => withValue(edited, part, each), text);
}

/** Text of a value in the place of another, indented as its line. */
function writtenValue(text: string, { from, to, parts }: JsonNode, value: unknown): string {
  const old = text.slice(from, to);
  if (parts.kind === 'scalar') {
    if (isEqualData(parseJson(old), value)) return old;
  }
  return indented(value, text, from);
}

/** A value as text: over several lines where the text has them. */
function indented(value: unknown, text: string, from: number): string {
  const lineStart = text.lastIndexOf('\n', from - 1) + 1;
  const margin = /^[ \t]*/.exec(text.slice(lineStart, from))?.[0] ?? '';
  const step = /^[[{]\r?\n([ \t]+)/.exec(text)?.[1];
  if (step === undefined) return formatJson(value).replaceAll('\n', ' ');
  return formatJson(value, step).replaceAll('\n', `${lineBreak(text)}${margin}`);
}

const lineBreak = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

function withMember(
  text: string,
  object: JsonNode,
  { key, value, added }: { key: string; value: unknown; added: 'first' | 'last' },
): string {
  const members = object.parts.kind === 'object' ? [...object.parts.members.values()] : [];
  const [first, last] = [members[0], members.at(-1)];
  if (first === undefined || last === undefined) {
    const content = `${JSON.stringify(key)}: ${formatJson(value)}`;
    return spliced(text, object, `{${content}}`);
  }
  const gap = text.slice(object.from + 1, first.from);
  const content = `${JSON.stringify(key)}: ${indented(value, text, first.from)}`;
  const at = added === 'first' ? object.from + 1 : last.node.to;
  const insertion =
    added === 'first' ? `${gap}${content},${gap === '' ? ' ' : ''}` : `,${gap || ' '}${content}`;
  return text.slice(0, at) + insertion + text.slice(at);
}

/** Removes a key with its comma. */
function withoutMember(text: string, { parts }: JsonNode, key: string): string {
  const members = parts.kind === 'object' ? [...parts.members] : [];
  const index = members.findIndex(([name]) => name === key);
  const own = members[index]?.[1];
  if (own === undefined) return text;
  const [before, after] = [members[index - 1]?.[1], members[index + 1]?.[1]];
  if (after) return spliced(text, { from: own.from, to: after.from }, '');
  return spliced(text, { from: before ? before.node.to : own.from, to: own.node.to }, '');
}
