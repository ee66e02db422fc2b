/** Ratios of a publication, and the methods and figures that have them. */
import type { AttentionMethods, FoundRatio, RatioMatch } from './attention-result.js';
import { COMPARED } from './attention-result.js';

const CLOSE = 0.02;

/** Rows and figures with the ratios of a publication. */
export function matchRatios(
  { contexts }: Pick<AttentionMethods, 'contexts'>,
  published: readonly number[],
): RatioMatch[] {
  const all = contexts.flatMap(({ context, rows }) =>
    rows.flatMap(({ method, name, ratios }): FoundRatio[] =>
      COMPARED.map((each) => ({ context, method, name, figure: each, ratio: ratios[each] })),
    ),
  );
  return published.map((value) => {
    const distance = ({ ratio }: FoundRatio) => Math.abs(Math.log(ratio / value));
    const matches = all.filter((each) => Math.abs(each.ratio / value - 1) <= CLOSE);
    const nearest = all.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    return { published: value, matches, ...(matches.length === 0 && { nearest }) };
  });
}
