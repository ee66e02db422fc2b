/** Keys in which two configs differ, with their lines. */
import { isDeepStrictEqual } from 'node:util';
import type { ConfigDocument } from '../config/document.js';
import { formatPath, splitDotted, valueAt } from '../config/quote.js';
import { TextSource } from '../config/source.js';
import type { PropertyPath } from '../errors.js';
import { asOurDocument, isHuggingFace } from '../model-input/hugging-face-document.js';
import { isRecord } from '../text/words.js';
import type { Side } from './sides.js';

export interface KeyPlace {
  /** Undefined where the key is absent and has no default. */
  readonly value?: unknown;
  /** Whether the key is absent, and `value` is its default. */
  readonly isDefault?: true;
  /** Line in the file; absent for a value without one. */
  readonly line?: number;
}

export interface KeyDifference {
  readonly change: 'added' | 'removed' | 'changed';
  /** Dotted path: `model.num_layers`. */
  readonly path: string;
  readonly before: KeyPlace;
  readonly after: KeyPlace;
  /** Whether the model is the same all the same: the written value is the default of the other side. */
  readonly isSameValue: boolean;
}

export interface ConfigKeyDifferences {
  /** `written`: keys as in the files. `read`: settings after both were read, with defaults, as the files have other forms. */
  readonly compared: 'written' | 'read';
  readonly keys: readonly KeyDifference[];
}

/** Differing keys in the order of the files; undefined where one of the two has no config. */
export async function configKeyDifferences(
  a: Side,
  b: Side,
  family: string | undefined,
): Promise<ConfigKeyDifferences | undefined> {
  if (!a.document || !b.document) return undefined;
  const isWritten =
    isHuggingFace(a.document) === isHuggingFace(b.document) &&
    [a.document, b.document].every(({ root }) => root.place.source instanceof TextSource);
  if (!isWritten && a.described && b.described) {
    const [first, second] = [await readOf(a, family), await readOf(b, family)];
    return { compared: 'read', keys: differencesOf(first, second) };
  }
  return { compared: 'written', keys: differencesOf(writtenOf(a), writtenOf(b)) };
}

/** One side: its values by path, the places of keys, and defaults of absent ones. */
interface Keys {
  readonly values: ReadonlyMap<string, { readonly path: PropertyPath; readonly value: unknown }>;
  readonly document: ConfigDocument | undefined;
  readonly defaults: unknown;
}

const writtenOf = ({ document, described }: Side): Keys => ({
  values: leavesOf(document?.value),
  document,
  // Keys of a config.json are not those of the document with defaults.
  defaults: document && !isHuggingFace(document) ? described?.document : undefined,
});

async function readOf({ document, described }: Side, family: string | undefined): Promise<Keys> {
  const own = document && (await asOurDocument(document, family));
  return { values: leavesOf(described?.document), document: own, defaults: undefined };
}

/** Values other than mappings, by path. */
function leavesOf(value: unknown, path: PropertyPath = []): Keys['values'] {
  const found = new Map<string, { path: PropertyPath; value: unknown }>();
  const visit = (at: unknown, here: PropertyPath) => {
    if (isRecord(at) && Object.keys(at).length > 0) {
      for (const [key, inner] of Object.entries(at)) visit(inner, [...here, key]);
    } else if (at !== undefined) found.set(formatPath(here), { path: here, value: at });
  };
  visit(value, path);
  return found;
}

function differencesOf(a: Keys, b: Keys): KeyDifference[] {
  const paths = [...new Set([...a.values.keys(), ...b.values.keys()])];
  return paths.flatMap((path): KeyDifference[] => {
    const [before, after] = [placeOf(a, path), placeOf(b, path)];
    const [isThere, isHere] = [a.values.has(path), b.values.has(path)];
    const isSameValue = isDeepStrictEqual(before.value, after.value);
    if (isThere && isHere && isSameValue) return [];
    const change = isThere ? (isHere ? 'changed' : 'removed') : 'added';
    return [{ change, path, before, after, isSameValue }];
  });
}

function placeOf({ values, document, defaults }: Keys, path: string): KeyPlace {
  const found = values.get(path);
  if (found === undefined) {
    const value = valueAt(defaults, splitDotted(path));
    return value === undefined ? {} : { value, isDefault: true };
  }
  const line = document?.has(found.path) ? document.locate(found.path, 'key').line : undefined;
  return { value: found.value, ...(line !== undefined && { line }) };
}
