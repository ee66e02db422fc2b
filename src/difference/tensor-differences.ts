/** Tensors in which two sides differ, by name. */
import { groupByPattern, templateOf } from '../checkpoint/names.js';
import { isSameShape, type Shape } from '../tensor/dtype.js';
import { groupBy } from '../text/words.js';
import type { SideTensor } from './sides.js';

export type TensorChange = 'added' | 'removed' | 'reshaped' | 'retyped' | 'tied' | 'untied';

export interface TensorForm {
  readonly shape: Shape;
  /** Null for a config. */
  readonly type: string | null;
  readonly bytes: number | null;
  /** First other name of the same tensor, among the names of both sides; null without one. */
  readonly sharedWith: string | null;
}

/** Tensors that differ alike, with names that differ only in the layer. */
export interface TensorDifference {
  readonly changes: readonly TensorChange[];
  /** `model.layers.{0–31}.mlp.up_proj.weight` */
  readonly pattern: string;
  /** Names in the second side; of removed tensors, in the first. */
  readonly names: readonly string[];
  /** Of one tensor; null for an added one. */
  readonly before: TensorForm | null;
  readonly after: TensorForm | null;
}

type Tensors = ReadonlyMap<string, SideTensor>;

/** A first part of the names that one side has and the other has not. */
export interface NamePrefix {
  readonly side: 'a' | 'b';
  readonly prefix: string;
}

/** Tensors of both sides under common names. */
export interface CommonNames {
  readonly a: Tensors;
  readonly b: Tensors;
  readonly prefix: NamePrefix | null;
}

/**
 * Tensors of both sides under common names: where more names agree without the first part of one side's (`model.`), it
 * is left out.
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

/** Undefined where two names would become equal. */
function without(tensors: Tensors, prefix: string): Tensors | undefined {
  const short = new Map(
    [...tensors].map(([name, tensor]) => [
      name.startsWith(prefix) ? name.slice(prefix.length) : name,
      tensor,
    ]),
  );
  return short.size === tensors.size ? short : undefined;
}

/** @returns Groups in the order of the second side, removed tensors at the places of the first. */
export function tensorDifferences(a: Tensors, b: Tensors): TensorDifference[] {
  const [sharedA, sharedB] = [partnersIn(a, b), partnersIn(b, a)];
  const found = [...mergedNames(a, b)].flatMap((name) => {
    const [before, after] = [a.get(name), b.get(name)];
    const change = {
      name,
      own: (after ?? before)?.own ?? name,
      before: before ? formOf(before, sharedA.get(name)) : null,
      after: after ? formOf(after, sharedB.get(name)) : null,
    };
    const changes = changesOf(change.before, change.after);
    return changes.length === 0 ? [] : [{ ...change, changes }];
  });
  return groupByPattern(found, ({ name, changes, before, after }) => ({
    template: templateOf(name),
    key: JSON.stringify([changes, keyOf(before), keyOf(after)]),
  })).map(({ pattern, first: { changes, before, after }, members }) => ({
    changes,
    pattern,
    names: members.map(({ own }) => own),
    before,
    after,
  }));
}

const keyOf = (form: TensorForm | null) =>
  form && [form.shape, form.type, form.sharedWith && templateOf(form.sharedWith).after];

/** Names of both in order: those of the first that the second lacks stay behind the name before them. */
export function mergedNames(a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>) {
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

const formOf = (
  { shape, type, bytes }: SideTensor,
  sharedWith: string | undefined,
): TensorForm => ({
  shape,
  type,
  bytes,
  sharedWith: sharedWith ?? null,
});

/** For each name that is not the first of its tensor, the first one; among names that the other side has too. */
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

function changesOf(before: TensorForm | null, after: TensorForm | null): TensorChange[] {
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
