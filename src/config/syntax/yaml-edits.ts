/** Changes of single values in a YAML or JSON text, which leave comments and layout as they are. */
import type { Document, Pair, YAMLMap } from 'yaml';
import { isMap, isNode, isScalar, parseDocument, stringify } from 'yaml';
import type { PropertyPath } from '../../base/errors.js';
import { isEqualData } from '../../base/values.js';
import type { Edit } from './json-edits.js';

/** Scalars may be longer than a line of the library's default. */
const WRITTEN = { lineWidth: 0 } as const;

/**
 * The text with a value at a path, or without it for undefined.
 * @param text YAML or JSON within the limits of `parseYaml`.
 * @returns undefined for a text that is not one YAML mapping, or cannot have a value there.
 */
export function editedYaml(text: string, { path, value }: Edit): string | undefined {
  const document = parseDocument(text, { logLevel: 'error' });
  if (document.errors.length > 0 || !isMap(document.contents)) return undefined;
  const local = localEdit(text, document, { path, value });
  try {
    if (value === undefined) document.deleteIn(path);
    else document.setIn(path, value);
  } catch {
    return undefined;
  }
  // A local edit of an unusual layout can have another effect, so its result is read again.
  if (local !== undefined && meansSame(local, document)) return local;
  return document.toString(WRITTEN);
}

/** Whether a text has the value of a document. */
function meansSame(text: string, document: Document): boolean {
  const read = parseDocument(text, { logLevel: 'error' });
  return read.errors.length === 0 && isEqualData(read.toJS(), document.toJS());
}

/** An edit of only the characters of the value. Undefined where the layout has no obvious place. */
function localEdit(
  text: string,
  { contents }: Document,
  { path, value }: Edit,
): string | undefined {
  const mapping = mappingAt(contents, path.slice(0, -1));
  if (mapping === undefined) return undefined;
  const key = String(path.at(-1));
  const pair = mapping.items.find((each) => isScalar(each.key) && String(each.key.value) === key);
  if (value === undefined) return pair && withoutLine(text, mapping, pair);
  if (pair === undefined) return withLine(text, mapping, key, value);
  const range = isScalar(pair.value) ? pair.value.range : undefined;
  if (!range || (isScalar(pair.value) && pair.value.anchor !== undefined)) return undefined;
  const [from, to] = range;
  // An empty value has no space after its colon.
  const space = from > 0 && text[from - 1] === ':' ? ' ' : '';
  return text.slice(0, from) + space + scalarText(value, mapping.flow) + text.slice(to);
}

function mappingAt(root: unknown, path: PropertyPath): YAMLMap | undefined {
  let at = root;
  for (const key of path) at = isMap(at) ? at.get(key, true) : undefined;
  return isMap(at) ? at : undefined;
}

/** The text without the line of a pair, which must have one of its own. */
function withoutLine(text: string, mapping: YAMLMap, { key, value }: Pair): string | undefined {
  const start = isScalar(key) ? key.range?.[0] : undefined;
  const end = isScalar(value) ? value.range?.[1] : undefined;
  if (mapping.flow || start === undefined || end === undefined) return undefined;
  if (mapping.items.length === 1) return undefined;
  const from = text.lastIndexOf('\n', start - 1) + 1;
  const to = text.indexOf('\n', end);
  if (text.slice(from, start).trim() !== '') return undefined;
  return text.slice(0, from) + (to === -1 ? '' : text.slice(to + 1));
}

/** The text with a new pair: after the last line of a mapping, or as the first one within braces. */
function withLine(text: string, mapping: YAMLMap, key: string, value: unknown): string | undefined {
  const [first] = mapping.items;
  const start = isScalar(first?.key) ? first.key.range?.[0] : undefined;
  if (start === undefined) return undefined;
  if (mapping.flow) {
    const pair = `${JSON.stringify(key)}: ${scalarText(value, true)}, `;
    return text.slice(0, start) + pair + text.slice(start);
  }
  const last = mapping.items.at(-1)?.value;
  const end = isNode(last) ? last.range?.[1] : undefined;
  if (end === undefined) return undefined;
  const indent = text.slice(text.lastIndexOf('\n', start - 1) + 1, start);
  if (indent.trim() !== '') return undefined;
  const line = text.indexOf('\n', text[end - 1] === '\n' ? end - 1 : end);
  const at = line === -1 ? text.length : line;
  const pair = `\n${indent}${scalarText(key, false)}: ${scalarText(value, false)}`;
  return text.slice(0, at) + pair + text.slice(at);
}

const scalarText = (value: unknown, isJson: boolean | undefined): string =>
  isJson ? JSON.stringify(value) : stringify(value, WRITTEN).trimEnd();
