/** A document made from another, of which it keeps the places. */
import type { PropertyPath } from '../errors.js';
import { ConfigDocument } from './document.js';
import { type Entry, follow } from './mark.js';
import { setOwn } from './path.js';
import type { Found } from './problems.js';

interface Origins {
  /** Where the document has what a key of the section stands for, whether the section has the key or not. */
  readonly of: ReadonlyMap<string, PropertyPath>;
  /** What is shown for all else. */
  readonly otherwise: PropertyPath;
  /** Findings about the values themselves. */
  readonly found?: readonly Found[];
}

/**
 * A document whose only key is `name`, with `values` that were made from those of `document`. What is wrong
 * with them is told where the values that they come from stand; what was found when `document` was read, too.
 */
export function documentOfSection(
  document: ConfigDocument,
  name: string,
  values: Record<string, unknown>,
  { of, otherwise, found: odd = [] }: Origins,
): ConfigDocument {
  const { file, mark, found } = document;
  const key = document.place(otherwise, 'key');
  const rest: Entry = { key, mark: { place: document.place(otherwise) } };
  const entries = new Map<string, Entry>(Object.keys(values).map((each) => [each, rest]));
  for (const [each, path] of of) entries.set(each, follow(mark, path).entry);
  const section = { key, mark: { ...mark, place: rest.mark.place, entries } };
  const value = {};
  setOwn(value, name, values);
  return new ConfigDocument(
    file,
    value as Record<string, unknown>,
    {
      place: mark.place,
      entries: new Map([[name, section]]),
    },
    [...found, ...odd],
  );
}
