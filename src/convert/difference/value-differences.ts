/** Distance between the values of tensors with the same name and shape. */

import type { ProgressDisplay } from '../../base/progress-display.js';
import { isSameShape } from '../../base/tensor/dtype.js';
import { groupBy, sumOf } from '../../base/values.js';
import type { TensorDistance } from '../../checkpoint/distance.js';
import { distanceBetween, mutualLimit, relativeError } from '../../checkpoint/distance.js';
import { templateOf } from '../../checkpoint/names.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import type { SideTensor } from './sides.js';

/**
 * `equal`: every value is the same. `rounding`: the types differ, and rounding to the coarser one explains the distance.
 * `different`: it does not.
 */
export type ValueVerdict = 'equal' | 'rounding' | 'different';

interface Distance {
  /** Compared elements. @count */
  readonly elements: number;
  /** Elements with the same value; a NaN equals a NaN, −0 does not equal 0. @count */
  readonly equal: number;
  /** Largest absolute difference. @real */
  readonly largest: number;
  /** ‖b − a‖ / ‖a‖ (Frobenius). @real */
  readonly relativeError: number;
}

export interface TensorValueDifference extends Distance {
  /** Name of the tensor. */
  readonly name: string;
  /** Element types, where they differ. */
  readonly types: {
    /** Type in the first. */
    readonly before: string;
    /** Type in the second. */
    readonly after: string;
  };
  /** Largest relative error that rounding to the types explains; 0 for tensors of one type. */
  readonly limit: number;
  readonly verdict: ValueVerdict;
}

/** Tensors of a layer, or of a component in all layers. */
export interface ValueGroup extends Distance {
  /** `model.layers.3`, or `model.layers.*.mlp.up_proj.weight`. */
  readonly name: string;
  /** Number of tensors. @count */
  readonly tensors: number;
  /** Tensors by verdict. @count */
  readonly equalTensors: number;
  /** Tensors further apart than rounding to their types explains. @count */
  readonly differentTensors: number;
}

export interface ValueDifferences {
  readonly total: ValueGroup;
  /** Differences by layer. */
  readonly layers: readonly ValueGroup[];
  /** Differences by component. */
  readonly components: readonly ValueGroup[];
  /** Tensors with different values. */
  readonly tensors: readonly TensorValueDifference[];
  /** Tensors of a type whose values cannot be read: not compared. */
  readonly skipped: readonly SkippedTensor[];
}

/** A tensor that was not compared. @closed */
export type SkippedTensor = Pick<TensorValueDifference, 'name' | 'types'>;

type Tensors = ReadonlyMap<string, SideTensor>;

/**
 * Reads both sides in pieces; the memory does not depend on their size.
 * @throws UserError when reading fails.
 */
export async function valueDifferences(
  a: Tensors,
  b: Tensors,
  display: ProgressDisplay,
): Promise<ValueDifferences> {
  const all = tensorPairs(a, b);
  const pairs = all.filter((pair) => !isUnreadable(pair));
  const shown = display.bytes(
    'comparing values',
    sumOf(pairs, ({ before }) => before.bytes),
  );
  const measured: Measured[] = [];
  try {
    for (const { name, before, after, types } of pairs) {
      const distance = await distanceBetween(before, after, shown.add);
      measured.push({ name, types, distance, limit: mutualLimit(before, after) });
    }
  } finally {
    shown.end();
  }
  return {
    total: valueGroup('total', measured),
    layers: valueGroups(measured, layerName),
    components: valueGroups(measured, componentName),
    tensors: measured.map(tensorDifference),
    skipped: all.filter(isUnreadable).map(({ name, types }) => ({ name, types })),
  };
}

interface Measured extends Pick<TensorValueDifference, 'name' | 'types' | 'limit'> {
  readonly distance: TensorDistance;
}

interface Pair extends Pick<TensorValueDifference, 'name' | 'types'> {
  readonly before: StoredTensor;
  readonly after: StoredTensor;
}

const isUnreadable = ({ before, after }: Pair): boolean =>
  [before, after].some(({ encoding }) => encoding?.isUnreadable);

/** Tensors of both sides with one shape. A pair of tensors with several common names is compared once. */
function tensorPairs(a: Tensors, b: Tensors): Pair[] {
  const met = new Set<string>();
  return [...b].flatMap(([name, after]): Pair[] => {
    const before = a.get(name);
    if (!before?.stored || !after.stored || !isSameShape(before.shape, after.shape)) return [];
    const pair = `${before.identity} ${after.identity}`;
    if (met.has(pair)) return [];
    met.add(pair);
    const types = { before: before.type ?? '', after: after.type ?? '' };
    return [{ name, types, before: before.stored, after: after.stored }];
  });
}

function tensorDifference({ name, types, limit, distance }: Measured): TensorValueDifference {
  const error = relativeError(distance);
  const { elements, equal, largest } = distance;
  return {
    name,
    types,
    elements,
    equal,
    largest,
    relativeError: error,
    limit,
    verdict: valueVerdict(distance, limit),
  };
}

function valueVerdict(distance: TensorDistance, limit: number): ValueVerdict {
  if (distance.equal === distance.elements) return 'equal';
  // Zeros of different signs have the distance 0.
  return relativeError(distance) <= limit ? 'rounding' : 'different';
}

function valueGroups(
  measured: readonly Measured[],
  nameOf: (name: string) => string,
): ValueGroup[] {
  const groups = groupBy(measured, ({ name }) => nameOf(name));
  return Array.from(groups, ([name, members]) => valueGroup(name, members));
}

function valueGroup(name: string, members: readonly Measured[]): ValueGroup {
  const distances = members.map(({ distance }) => distance);
  const verdicts = members.map(({ distance, limit }) => valueVerdict(distance, limit));
  const squared = sumOf(distances, (each) => each.squared);
  const squaredNorm = sumOf(distances, (each) => each.squaredNorm);
  return {
    name,
    tensors: members.length,
    equalTensors: verdicts.filter((each) => each === 'equal').length,
    differentTensors: verdicts.filter((each) => each === 'different').length,
    elements: sumOf(distances, ({ elements }) => elements),
    equal: sumOf(distances, ({ equal }) => equal),
    largest: distances.reduce((most, { largest }) => Math.max(most, largest), 0),
    relativeError: relativeError({ squared, squaredNorm }),
  };
}

/** `model.layers.3`; without a number, the module. */
function layerName(name: string): string {
  const { before, number } = templateOf(name);
  return number === undefined ? moduleName(name) : `${before}${number}`;
}

/** `model.layers.*.mlp.up_proj.weight` */
function componentName(name: string): string {
  const { before, number, after } = templateOf(name);
  // All experts of a mixture are one component.
  return number === undefined
    ? name
    : `${before}*${after.replace(/\.experts\.\d+\./, '.experts.*.')}`;
}

const moduleName = (name: string): string => {
  const dot = name.lastIndexOf('.');
  return dot < 0 ? name : name.slice(0, dot);
};
