/** Explanations of a published number: their type, which of them the number covers, and their order. */

import { formatInteger } from '../../../base/text/units.js';
import type { PublishedCount } from '../../../config/parse-published.js';

/** A counting error that turns the true count into another. */
export interface CountingError {
  /** Stable identifier of the error. */
  readonly id: string;
  /** Description for people. */
  readonly text: string;
  /** Implausibility; common errors have 1. */
  readonly weight: number;
}

/** @template Value bigint for counts and bytes, number for ratios. */
export interface Explanation<Value extends bigint | number> {
  /** Empty when the number is correct. */
  readonly reasons: readonly CountingError[];
  /** Value with these errors. @fraction */
  readonly value: Value;
}

/** @template Value See `Explanation`. */
export interface PublishedReport<Value extends bigint | number = bigint | number> {
  /** Unit of the number. A share is 0.969 for 96.9%; a change has a sign. */
  readonly unit: 'parameters' | 'change' | 'flops' | 'bytes' | 'ratio' | 'share';
  /** The published number. @fraction */
  readonly value: Value;
  /** Largest difference that its rounding explains. @fraction */
  readonly tolerance: Value;
  /** Upper end of a published range, whose lower end is `value`. @fraction */
  readonly upTo?: Value;
  /** value − the true number of parameters; null for other units, which many figures of a model have. */
  readonly difference: bigint | null;
  /** Most likely first; empty when no combination gives the number. */
  readonly explanations: readonly Explanation<Value>[];
  /** Figures closest to a number that none gives. */
  readonly nearest?: readonly Explanation<Value>[];
  /** Number of combinations tried. @integer */
  readonly tried: number;
}

export const MOST_EXPLANATIONS = 5;

/** Figures shown for a number without explanation. */
const MOST_NEAREST = 3;

type Judged<Value extends bigint | number> = Omit<PublishedReport<Value>, 'unit' | 'difference'>;

/**
 * The figures that a published number covers. If there are none: those of `otherwise`, those that it covers as a number
 * that was truncated instead of rounded, or the nearest.
 */
export function judged(
  all: readonly Explanation<bigint>[],
  published: Pick<PublishedCount, 'value' | 'tolerance' | 'above'>,
  otherwise: () => readonly Explanation<bigint>[] = () => [],
): Judged<bigint> {
  const { value, tolerance, above = tolerance } = published;
  const ways = [() => all.filter(isNear(published)), otherwise, () => cutOff(all, published)];
  const found = ways.reduce<readonly Explanation<bigint>[]>(
    (before, way) => (before.length > 0 ? before : way()),
    [],
  );
  const explanations = ranked(found, value).slice(0, MOST_EXPLANATIONS);
  return {
    value,
    tolerance,
    ...(above > 2n * tolerance && { upTo: value + above - tolerance }),
    explanations,
    ...(found.length === 0 && { nearest: nearestOf(all, Number(value)) }),
    tried: all.length,
  };
}

/** Numbers that lose digits without rounding: 0.268 becomes 0.26, and 5,082 becomes 5,100. */
function cutOff(
  all: readonly Explanation<bigint>[],
  { value, tolerance }: Pick<PublishedCount, 'value' | 'tolerance'>,
): Explanation<bigint>[] {
  const zeros = /00+$/.exec(String(value))?.[0].length ?? 0;
  const within = tolerance > 0n ? tolerance : 10n ** BigInt(zeros) / 2n;
  if (within === 0n) return [];
  return all.filter(isNear({ value, tolerance: within, above: 2n * within - 1n })).map((each) => {
    const text = `cut off or rounded: it is ${formatInteger(each.value)}`;
    return { ...each, reasons: [...each.reasons, { id: 'cut-off', text, weight: 0.3 }] };
  });
}

/** The closest figures by their ratio, each value once. */
export function nearestOf<Value extends bigint | number>(
  all: readonly Explanation<Value>[],
  published: number,
): Explanation<Value>[] {
  const away = ({ value }: Explanation<Value>) => Math.abs(Math.log(Number(value) / published));
  const plain = all.filter(({ reasons, value }) => reasons.length <= 1 && Number(value) > 0);
  const byValue = new Map(plain.toReversed().map((each) => [each.value, each]));
  return [...byValue.values()].sort((a, b) => away(a) - away(b)).slice(0, MOST_NEAREST);
}

/** Whether the digits of a published number cover a value. */
const isNear =
  ({
    value,
    tolerance,
    above = tolerance,
  }: Pick<PublishedCount, 'value' | 'tolerance' | 'above'>) =>
  (found: { readonly value: bigint }): boolean =>
    value - tolerance <= found.value && found.value <= value + above;

/** Most likely first; drops explanations that contain all errors of another. */
export function ranked<Value extends bigint | number>(
  found: readonly Explanation<Value>[],
  published: Value,
): Explanation<Value>[] {
  const ids = ({ reasons }: Explanation<Value>) => reasons.map(({ id }) => id);
  const weight = ({ reasons }: Explanation<Value>) =>
    reasons.reduce((total, reason) => total + reason.weight, 0);
  const isPartOf = (a: Explanation<Value>, b: Explanation<Value>) =>
    a !== b && a.reasons.length < b.reasons.length && ids(a).every((id) => ids(b).includes(id));
  const away = ({ value }: Explanation<Value>) => Math.abs(Number(value) - Number(published));
  return found
    .filter((each) => !found.some((other) => isPartOf(other, each)))
    .sort((a, b) => weight(a) - weight(b) || away(a) - away(b));
}
