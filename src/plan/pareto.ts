/** The models of which none is beaten in everything by another. */
import { type Axis, advantage, type Measures } from './criteria.js';

/** Whether a model is at least as good as another in everything. */
export const isAtLeastAsGood = (a: Measures, b: Measures, axes: readonly Axis[]): boolean =>
  axes.every((axis) => advantage(a, b, axis) >= 0);

/**
 * Those than which no other is at least as good in everything, in their order; of two that are alike, the first.
 */
export const paretoSet = <T extends { readonly measures: Measures }>(
  models: readonly T[],
  axes: readonly Axis[],
): T[] =>
  models.filter(({ measures }, index) =>
    models.every(
      (other, otherIndex) =>
        otherIndex === index ||
        !isAtLeastAsGood(other.measures, measures, axes) ||
        (isAtLeastAsGood(measures, other.measures, axes) && index < otherIndex),
    ),
  );

/** Best first; of those that are alike by the criterion, the one with less memory, then with the larger body. */
export const inOrder = <T extends { readonly measures: Measures }>(
  models: readonly T[],
  criterion: Axis,
): T[] =>
  models.toSorted(
    (a, b) =>
      advantage(b.measures, a.measures, criterion) ||
      advantage(b.measures, a.measures, { measure: 'memory', best: 'least' }) ||
      advantage(b.measures, a.measures, { measure: 'body', best: 'most' }),
  );
