/** Heads that do not all see equally far, dealt out to GPUs: which of them each has. */
import type { HeadSpan } from '../architecture/layer.js';
import type { Scores } from '../operations/primitive.js';

/** Of keys and values in place of queries. */
export const keySpansOf = ({ spans, heads, keyValueHeads }: Scores): readonly HeadSpan[] =>
  spans.map((span) => ({ ...span, heads: (span.heads * keyValueHeads) / heads }));

/**
 * The heads that one of several GPUs has, in the order of the spans. Heads stay whole, and no GPU has more of them than
 * the first; where there are fewer than GPUs each has one, so that some stand on several.
 */
export function spansOfRank(spans: readonly HeadSpan[], gpus: number, rank: number): HeadSpan[] {
  const all = spans.reduce((sum, { heads }) => sum + heads, 0);
  const most = Math.ceil(all / gpus);
  let start = all < gpus ? -Math.floor((rank * all) / gpus) : -rank * most;
  return spans.flatMap(({ heads, window }) => {
    const [from, to] = [Math.max(0, start), Math.min(most, start + heads)];
    start += heads;
    return to > from ? [{ heads: to - from, window }] : [];
  });
}

/** The GPUs that have to be looked at to find the fullest: the first, unless heads of a layer see unlike far. */
export const ranksOf = (
  layers: readonly (readonly HeadSpan[])[],
  gpus: number,
): readonly number[] => {
  const isUneven = layers.some((spans) => spans.length > 1);
  return Array.from({ length: isUneven ? gpus : 1 }, (_, rank) => rank);
};
