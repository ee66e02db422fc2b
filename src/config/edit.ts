/** Single values changed in the text of a JSON document, which else stays as its writer left it. */
import type { PropertyPath } from '../errors.js';
import type { ConfigDocument } from './document.js';
import { TextSource } from './source.js';

export interface Edit {
  readonly path: PropertyPath;
  readonly value: unknown;
}

/** A text, a number, a truth value or null, as JSON has them. */
const SCALAR = /"(?:[^"\\]|\\.)*"|[-+.\w]+/y;

/**
 * The text of a document with other values; undefined where there is none, or a change is not of a single
 * value. What comes of it is to be read again: this does not look at what it replaces.
 */
export function editedText(document: ConfigDocument, edits: readonly Edit[]): string | undefined {
  const { source } = document.mark.place;
  if (!(source instanceof TextSource)) return undefined;
  const changes = edits.map((edit) => changeOf(document, source.text, edit));
  let { text } = source;
  // From the end, so that places before stay where they are.
  for (const change of changes.toSorted((a, b) => (b?.from ?? 0) - (a?.from ?? 0))) {
    if (change === undefined) return undefined;
    text = text.slice(0, change.from) + change.text + text.slice(change.to);
  }
  return text;
}

interface Change {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

function changeOf(
  document: ConfigDocument,
  text: string,
  { path, value }: Edit,
): Change | undefined {
  const written = JSON.stringify(value);
  if (document.has(path)) {
    const { offset } = document.place(path);
    SCALAR.lastIndex = offset;
    const [old] = SCALAR.exec(text) ?? [];
    return old === undefined ? undefined : { from: offset, to: offset + old.length, text: written };
  }
  const [key, ...rest] = path;
  const { offset } = document.mark.place;
  if (rest.length > 0 || text[offset] !== '{') return undefined;
  const from = offset + 1;
  return { from, to: from, text: `\n  ${JSON.stringify(String(key))}: ${written},` };
}
