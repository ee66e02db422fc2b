/** Names of published files that a class changes when it loads them. */
import { asText } from '../../../base/values.js';
import type { StoredName, StoredNames } from '../../../checkpoint/names.js';
import type { NameOnLoad } from '../../../model/architecture/family.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';

const loadedName = (name: string, changes: readonly NameOnLoad[]): string =>
  changes.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), name);

/** Tensors of a file by the names that the class gives them; the first of two that become equal counts. */
export function namesOnLoad(stored: StoredNames, changes: readonly NameOnLoad[]): StoredNames {
  const found = new Map<string, StoredName>();
  for (const [name, tensor] of stored) {
    const loaded = loadedName(name, changes);
    if (!found.has(loaded)) found.set(loaded, tensor);
  }
  return found;
}

/** Plain objects and arrays are copied, once each; other values stay. */
function copied(
  value: unknown,
  rename: (name: string) => string,
  met: Map<object, object>,
): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const before = met.get(value);
  if (before) return before;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    met.set(value, list);
    for (const each of value) list.push(copied(each, rename, met));
    return list;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const own: Record<string, unknown> = {};
  met.set(value, own);
  // Of what has a name, only tensors have a shape.
  const isTensor = 'shape' in value && 'name' in value;
  for (const [key, each] of Object.entries(value)) {
    const isName = isTensor && (key === 'name' || key === 'aliases');
    own[key] = isName
      ? Array.isArray(each)
        ? each.map((name) => rename(asText(name)))
        : rename(asText(each))
      : copied(each, rename, met);
  }
  return own;
}

/** A model whose tensors have the names of a file, where the file has another name for them. */
export function modelAsStored(
  model: LanguageModel,
  stored: StoredNames,
  changes: readonly NameOnLoad[],
): LanguageModel {
  const names = new Map<string, string>();
  for (const name of stored.keys()) {
    const loaded = loadedName(name, changes);
    if (loaded !== name && !stored.has(loaded) && !names.has(loaded)) names.set(loaded, name);
  }
  if (names.size === 0) return model;
  const met = new Map<object, object>();
  const renamed = copied(model, (name) => names.get(name) ?? name, met) as LanguageModel;
  const { storedBits } = model;
  if (storedBits === undefined) return renamed;
  const ofRenamed = () =>
    new Map(
      [...storedBits()].map(([tensor, bits]) => [(met.get(tensor) ?? tensor) as Param, bits]),
    );
  return { ...renamed, storedBits: ofRenamed };
}
