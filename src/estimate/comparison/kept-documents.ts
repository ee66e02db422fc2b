/** The values of many documents in little memory: the models of a sweep have their paths and most of their texts in common. */

/** Value of a document, null if absent; lists are JSON text. */
export type DocumentValue = string | number | boolean | null;

/** Values of a document. */
export interface KeptDocument {
  /** Place in `values` by path. Documents with the same paths share it. */
  readonly places: ReadonlyMap<string, number>;
  readonly values: readonly DocumentValue[];
}

type DocumentLeaves = ReadonlyMap<string, DocumentValue>;

/** Function that keeps equal documents, lists of paths and texts once. */
export function documentKeeper(): (leaves: DocumentLeaves) => KeptDocument {
  const documents = new WeakMap<DocumentLeaves, KeptDocument>();
  const shapes = new Map<string, KeptDocument['places']>();
  const texts = new Map<string, string>();
  const textOnce = (text: string): string => {
    const known = texts.get(text);
    if (known === undefined) texts.set(text, text);
    return known ?? text;
  };
  const keep = (leaves: DocumentLeaves): KeptDocument => {
    const paths = [...leaves.keys()];
    const shape = JSON.stringify(paths);
    const places = shapes.get(shape) ?? new Map(paths.map((path, place) => [path, place]));
    shapes.set(shape, places);
    const values = Array.from(leaves.values(), (value) =>
      typeof value === 'string' ? textOnce(value) : value,
    );
    return { places, values };
  };
  return (leaves) => {
    const kept = documents.get(leaves) ?? keep(leaves);
    documents.set(leaves, kept);
    return kept;
  };
}

/** Value at a path of a document; null if absent. */
export function documentValue({ places, values }: KeptDocument, path: string): DocumentValue {
  const place = places.get(path);
  return place === undefined ? null : (values[place] ?? null);
}
