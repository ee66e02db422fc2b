/** The models of which none is beaten in everything by another. */
import { AXES, advantage, type Criterion, type Measures } from './criteria.js';

/** Whether a model is at least as good as another in all of `AXES`. */
export const isAtLeastAsGood = (a: Measures, b: Measures): boolean =>
  AXES.every((axis) => advantage(a, b, axis) >= 0);

/**
 * Those than which no other is at least as good in everything, in their order; of two that are alike, the first.
 */
export const paretoSet = <T extends { readonly measures: Measures }>(models: readonly T[]): T[] =>
  models.filter(({ measures }, index) =>
    models.every(
      (other, otherIndex) =>
        otherIndex === index ||
        !isAtLeastAsGood(other.measures, measures) ||
        (isAtLeastAsGood(measures, other.measures) && index < otherIndex),
    ),
  );

/** Best first; of those that are alike by the criterion, the one with less memory, then with the larger body. */
export const inOrder = <T extends { readonly measures: Measures }>(
  models: readonly T[],
  criterion: Pick<Criterion, 'measure' | 'best'>,
): T[] =>
  models.toSorted(
    (a, b) =>
      advantage(b.measures, a.measures, criterion) ||
      advantage(b.measures, a.measures, { measure: 'memory', best: 'least' }) ||
      advantage(b.measures, a.measures, { measure: 'body', best: 'most' }),
  );
