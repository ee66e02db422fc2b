/** Tensors in which two sides differ by name, and layers: by their descriptions, or, without these, by numbers in tensor names. */

import type { Shape } from '../../base/tensor/dtype.js';
import { isSameShape } from '../../base/tensor/dtype.js';
import { groupBy, isRecord } from '../../base/values.js';
import { groupByPattern, templateOf } from '../../checkpoint/names.js';
import type { LanguageModel, Layer } from '../../model/architecture/layer.js';
import { walk } from '../../model/architecture/walk.js';
import type { Side, SideTensor } from './sides.js';

export type TensorChange = 'added' | 'removed' | 'reshaped' | 'retyped' | 'tied' | 'untied';

export interface TensorForm {
  /** Sizes of the dimensions. @count */
  readonly shape: Shape;
  /** Null for a config. */
  readonly type: string | null;
  /** Bytes of the values; null for a config. @count */
  readonly bytes: number | null;
  /** First other name of the same tensor, among the names of both sides; null without one. */
  readonly sharedWith: string | null;
}

/** Tensors that differ alike, with names that differ only in the layer. */
export interface TensorDifference {
  /** Properties that differ. */
  readonly changes: readonly TensorChange[];
  /** `model.layers.{0–31}.mlp.up_proj.weight` */
  readonly pattern: string;
  /** Names in the second side; of removed tensors, in the first. */
  readonly names: readonly string[];
  /** Values of one tensor; null for an added one. */
  readonly before: TensorForm | null;
  /** Form in the second; null where it lacks the tensor. */
  readonly after: TensorForm | null;
}

type Tensors = ReadonlyMap<string, SideTensor>;

/** A first part of the names that one side has and the other has not. */
export interface NamePrefix {
  /** Side whose names have the prefix. */
  readonly side: 'a' | 'b';
  /** The prefix. */
  readonly prefix: string;
}

/** Tensors of both sides under common names. */
export interface CommonNames {
  readonly a: Tensors;
  readonly b: Tensors;
  readonly prefix: NamePrefix | null;
}

/**
 * Tensors of both sides under common names. If more names agree without a prefix of one side, such as `model.`, the
 * prefix is left out.
 */
export function underCommonNames(a: Tensors, b: Tensors): CommonNames {
  const agreeing = (first: Tensors, second: Tensors) =>
    [...first.keys()].filter((name) => second.has(name)).length;
  let best: CommonNames = { a, b, prefix: null };
  let most = agreeing(a, b);
  for (const side of ['a', 'b'] as const) {
    const own = side === 'a' ? a : b;
    const prefix = commonestStart(own);
    const short = prefix === undefined ? undefined : without(own, prefix);
    if (short === undefined || prefix === undefined) continue;
    const candidate = { a, b, [side]: short, prefix: { side, prefix } };
    const count = agreeing(candidate.a, candidate.b);
    if (count <= most) continue;
    most = count;
    best = candidate;
  }
  return best;
}

function commonestStart(tensors: Tensors): string | undefined {
  const starts = [...tensors.keys()].flatMap((name) => /^[^.]+\./.exec(name)?.[0] ?? []);
  const groups = [...groupBy(starts, (start) => start).values()];
  return groups.sort((x, y) => y.length - x.length)[0]?.[0];
}

/** Tensors without a prefix of their names; undefined if two names would become equal. */
function without(tensors: Tensors, prefix: string): Tensors | undefined {
  const short = new Map(
    [...tensors].map(([name, tensor]) => [
      name.startsWith(prefix) ? name.slice(prefix.length) : name,
      tensor,
    ]),
  );
  return short.size === tensors.size ? short : undefined;
}

/**
 * Differences of tensors, grouped.
 * @returns Groups in the order of the second side; removed tensors follow the order of the first.
 */
export function tensorDifferences(a: Tensors, b: Tensors): TensorDifference[] {
  const [sharedA, sharedB] = [partnersIn(a, b), partnersIn(b, a)];
  const found = [...mergedNames(a, b)].flatMap((name) => {
    const [before, after] = [a.get(name), b.get(name)];
    const change = {
      name,
      own: (after ?? before)?.own ?? name,
      before: before ? tensorForm(before, sharedA.get(name)) : null,
      after: after ? tensorForm(after, sharedB.get(name)) : null,
    };
    const changes = tensorChanges(change.before, change.after);
    return changes.length === 0 ? [] : [{ ...change, changes }];
  });
  return groupByPattern(found, ({ name, changes, before, after }) => ({
    template: templateOf(name),
    key: JSON.stringify([changes, formKey(before), formKey(after)]),
  })).map(({ pattern, first: { changes, before, after }, members }) => ({
    changes,
    pattern,
    names: members.map(({ own }) => own),
    before,
    after,
  }));
}

const formKey = (form: TensorForm | null) =>
  form && [form.shape, form.type, form.sharedWith && templateOf(form.sharedWith).after];

/** Names of both sides in order: a name that the second side lacks follows its predecessor in the first. */
function mergedNames(a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>) {
  const lacking = new Map<string, string[]>();
  let last = '';
  for (const name of a.keys()) {
    if (b.has(name)) last = name;
    else {
      const list = lacking.get(last);
      if (list) list.push(name);
      else lacking.set(last, [name]);
    }
  }
  const names = [...(lacking.get('') ?? [])];
  for (const name of b.keys()) names.push(name, ...(lacking.get(name) ?? []));
  return new Set(names);
}

const tensorForm = (
  { shape, type, bytes }: SideTensor,
  sharedWith: string | undefined,
): TensorForm => ({
  shape,
  type,
  bytes,
  sharedWith: sharedWith ?? null,
});

/** Maps each further name of a tensor to its first one, among names that the other side has too. */
function partnersIn(own: Tensors, other: Tensors): ReadonlyMap<string, string> {
  const first = new Map<number, string>();
  const partners = new Map<string, string>();
  for (const [name, { identity }] of own) {
    if (!other.has(name)) continue;
    const partner = first.get(identity);
    if (partner === undefined) first.set(identity, name);
    else partners.set(name, partner);
  }
  return partners;
}

function tensorChanges(before: TensorForm | null, after: TensorForm | null): TensorChange[] {
  if (before === null) return ['added'];
  if (after === null) return ['removed'];
  const isTypeKnown = before.type !== null && after.type !== null;
  const isSharedAlike = (before.sharedWith === null) === (after.sharedWith === null);
  return [
    ...(isSameShape(before.shape, after.shape) ? [] : (['reshaped'] as const)),
    ...(isTypeKnown && before.type !== after.type ? (['retyped'] as const) : []),
    ...(isSharedAlike ? [] : ([after.sharedWith === null ? 'untied' : 'tied'] as const)),
  ];
}

export interface LayerDifference {
  /** Kind of the change. */
  readonly change: 'added' | 'removed' | 'changed';
  /** `layers.{8–15}`, `layers.{0–7}.self_attn` */
  readonly pattern: string;
  /** Paths of the layers. */
  readonly names: readonly string[];
  /** Kind of an added, removed or replaced layer; null where only tensors are known. */
  readonly kinds: {
    /** Kind of the layer in the first; null where it lacks it. */
    readonly before: string | null;
    /** Kind of the layer in the second; null where it lacks it. */
    readonly after: string | null;
  };
  /** Settings without tensors in which a layer differs: heads, windows, activations, epsilons. */
  readonly settings: readonly SettingDifference[];
}

export interface SettingDifference {
  /** Name of the setting. */
  readonly name: string;
  /** JSON; null where it is absent. */
  readonly before: string | null;
  /** Value in the second, as JSON. */
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
      ? [layersByName(a.described.model, nameOf('a')), layersByName(b.described.model, nameOf('b'))]
      : [numberedLayers(tensors.a), numberedLayers(tensors.b)];
  const found = [...mergedNames(before, after)].flatMap((key) =>
    layerDifference(before.get(key), after.get(key)),
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

function layerDifference(before: NamedLayer | undefined, after: NamedLayer | undefined): Found[] {
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

/** The outermost of nested layers that were added or removed. */
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

function layersByName(
  model: LanguageModel,
  nameOf: (name: string) => string,
): Map<string, NamedLayer> {
  const layers = new Map<string, NamedLayer>();
  for (const { layer } of walk(model)) {
    const { kind } = layer;
    const name = nameOf(layer.name);
    // Several layers can have one name: a residual, and the sequence in it. A shared layer occurs more than once.
    for (let turn = 0; ; turn++) {
      const key = turn === 0 ? name : `${name} ${turn}`;
      const known = layers.get(key);
      if (known === undefined) layers.set(key, { name, kind, settings: layerSettings(layer) });
      if (known === undefined || known.kind === kind) break;
    }
  }
  return layers;
}

/** Fields that hold no layers and no tensors, as JSON. */
function layerSettings(layer: Layer): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [key, value] of Object.entries(layer)) {
    if (key === 'kind' || key === 'name' || key === 'component') continue;
    if (value === undefined || value === null || isLayerPart(value)) continue;
    const text = JSON.stringify(value, (_key, inner) => {
      if (typeof inner === 'number' && !Number.isFinite(inner)) return String(inner);
      return isLayerPart(inner) ? undefined : inner;
    });
    if (text !== undefined && text !== '[]') settings.set(key, text);
  }
  return settings;
}

/** Whether a value is a layer, a tensor, or a list of these. */
function isLayerPart(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isLayerPart);
  if (!isRecord(value)) return false;
  return 'role' in value || ('kind' in value && 'name' in value);
}

/** Layers according to the numbers in the names of tensors. */
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
