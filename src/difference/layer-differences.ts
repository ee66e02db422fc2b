/** Layers in which two models differ: by their descriptions, or, without these, by the numbers in names of tensors. */
import type { LanguageModel, Layer } from '../architecture/layer.js';
import { walk } from '../architecture/walk.js';
import { groupByPattern, templateOf } from '../checkpoint/names.js';
import { isRecord } from '../text/words.js';
import type { Side, SideTensor } from './sides.js';
import { type CommonNames, mergedNames } from './tensor-differences.js';

export interface LayerDifference {
  readonly change: 'added' | 'removed' | 'changed';
  /** `layers.{8–15}`, `layers.{0–7}.self_attn` */
  readonly pattern: string;
  readonly names: readonly string[];
  /** Kind of an added, removed or replaced layer; null where only tensors are known. */
  readonly kinds: { readonly before: string | null; readonly after: string | null };
  /** Settings without tensors in which a layer differs: heads, windows, activations, epsilons. */
  readonly settings: readonly SettingDifference[];
}

export interface SettingDifference {
  readonly name: string;
  /** JSON; null where it is absent. */
  readonly before: string | null;
  readonly after: string | null;
}

interface NamedLayer {
  readonly name: string;
  readonly kind: string | null;
  readonly settings: ReadonlyMap<string, string>;
}

export function layerDifferences(
  a: Side,
  b: Side,
  { prefix, ...tensors }: CommonNames,
): LayerDifference[] {
  const nameOf = (side: 'a' | 'b') => (name: string) =>
    prefix?.side === side && name.startsWith(prefix.prefix)
      ? name.slice(prefix.prefix.length)
      : name;
  const [before, after] =
    a.described && b.described
      ? [layersOf(a.described.model, nameOf('a')), layersOf(b.described.model, nameOf('b'))]
      : [numberedLayers(tensors.a), numberedLayers(tensors.b)];
  const found = [...mergedNames(before, after)].flatMap((key) =>
    differenceOf(before.get(key), after.get(key)),
  );
  const outermost = withoutInner(found);
  return groupByPattern(outermost, ({ name, change, kinds, settings }) => ({
    template: templateOf(name),
    key: JSON.stringify([change, kinds, settings]),
  })).map(({ pattern, first: { name, ...first }, members }) => ({
    ...first,
    pattern,
    names: members.map((each) => each.name),
  }));
}

type Found = Omit<LayerDifference, 'pattern' | 'names'> & { readonly name: string };

function differenceOf(before: NamedLayer | undefined, after: NamedLayer | undefined): Found[] {
  const name = (after ?? before)?.name ?? '';
  const kinds = { before: before?.kind ?? null, after: after?.kind ?? null };
  if (!before) return [{ change: 'added', name, kinds, settings: [] }];
  if (!after) return [{ change: 'removed', name, kinds, settings: [] }];
  // Settings of different kinds have nothing in common.
  const settings = before.kind === after.kind ? settingDifferences(before, after) : [];
  if (before.kind === after.kind && settings.length === 0) return [];
  return [{ change: 'changed', name, kinds, settings }];
}

function settingDifferences(before: NamedLayer, after: NamedLayer): SettingDifference[] {
  const names = new Set([...before.settings.keys(), ...after.settings.keys()]);
  return [...names].flatMap((name) => {
    const [one, other] = [before.settings.get(name) ?? null, after.settings.get(name) ?? null];
    return one === other ? [] : [{ name, before: one, after: other }];
  });
}

/** Only the outermost of nested layers that are added or removed. */
function withoutInner(found: readonly Found[]): Found[] {
  const whole = new Set(
    found
      .filter(({ change }) => change !== 'changed')
      .map(({ change, name }) => `${change} ${name}`),
  );
  return found.filter(({ change, name }) => {
    for (let dot = name.lastIndexOf('.'); dot > 0; dot = name.lastIndexOf('.', dot - 1)) {
      if (whole.has(`${change} ${name.slice(0, dot)}`)) return false;
    }
    return true;
  });
}

// Layers of a description.

function layersOf(model: LanguageModel, nameOf: (name: string) => string): Map<string, NamedLayer> {
  const layers = new Map<string, NamedLayer>();
  for (const { layer } of walk(model)) {
    const { kind } = layer;
    const name = nameOf(layer.name);
    // Several layers have one name: a residual, and the sequence in it. A shared layer is met more than once.
    for (let turn = 0; ; turn++) {
      const key = turn === 0 ? name : `${name} ${turn}`;
      const known = layers.get(key);
      if (known === undefined) layers.set(key, { name, kind, settings: settingsOf(layer) });
      if (known === undefined || known.kind === kind) break;
    }
  }
  return layers;
}

/** Fields that hold no layers and no tensors, as JSON. */
function settingsOf(layer: Layer): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [key, value] of Object.entries(layer)) {
    if (key === 'kind' || key === 'name' || key === 'component') continue;
    if (value === undefined || value === null || isPart(value)) continue;
    const text = JSON.stringify(value, (_key, inner) => {
      if (typeof inner === 'number' && !Number.isFinite(inner)) return String(inner);
      return isPart(inner) ? undefined : inner;
    });
    if (text !== undefined && text !== '[]') settings.set(key, text);
  }
  return settings;
}

/** Whether a value is a layer, a tensor, or a list of these. */
function isPart(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isPart);
  if (!isRecord(value)) return false;
  return 'role' in value || ('kind' in value && 'name' in value);
}

// Layers by the names of tensors.

type Tensors = ReadonlyMap<string, SideTensor>;

function numberedLayers(tensors: Tensors): Map<string, NamedLayer> {
  const layers = new Map<string, NamedLayer>();
  for (const name of tensors.keys()) {
    const { before, number } = templateOf(name);
    if (number === undefined) continue;
    const layer = `${before}${number}`;
    layers.set(layer, { name: layer, kind: null, settings: new Map() });
  }
  return layers;
}
