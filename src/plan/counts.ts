/** How many parameters the models of one width have: told from a few small ones, where that can be told. */

import type { Folding } from './folding.js';
import type { Sizes } from './sizes.js';

/** Of `depth` blocks whose feed-forward network is `steps` steps wider than the least; undefined when not valid. */
export type Counts = (depth: number, steps: number) => number | undefined;

/** By describing each model. */
export const describedCounts =
  (models: Folding, sizesAt: (depth: number, steps: number) => Sizes): Counts =>
  (depth, steps) =>
    models.parameters(sizesAt(depth, steps));

/**
 * By what a further block, and a further step in each, add in models of one to three blocks. Undefined where a
 * fifth model shows that blocks do not all add the same; whoever relies on it still counts what it finds.
 */
export function foreseenCounts(described: Counts): Counts | undefined {
  const [one, wider, two, twoWider, third] = [
    described(1, 0),
    described(1, 1),
    described(2, 0),
    described(2, 1),
    described(3, 2),
  ];
  if (one === undefined || wider === undefined) return undefined;
  if (two === undefined || twoWider === undefined) return undefined;
  const perBlock = two - one;
  const around = one - perBlock;
  const perStep = wider - one;
  const foreseen = (depth: number, steps: number) => around + depth * (perBlock + steps * perStep);
  const isTold = foreseen(2, 1) === twoWider && foreseen(3, 2) === third;
  return isTold ? foreseen : undefined;
}

/** The most steps, up to `most`, with which there are at most `limit` parameters; undefined when there are none. */
export function mostStepsWithin(
  counts: Counts,
  depth: number,
  { most, limit }: { readonly most: number; readonly limit: number },
): number | undefined {
  const fits = (steps: number) => (counts(depth, steps) ?? Number.POSITIVE_INFINITY) <= limit;
  if (!fits(0)) return undefined;
  let [fitting, tooMany] = [0, most + 1];
  while (tooMany - fitting > 1) {
    const middle = Math.floor((fitting + tooMany) / 2);
    if (fits(middle)) fitting = middle;
    else tooMany = middle;
  }
  return fitting;
}
