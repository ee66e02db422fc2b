/** Whether each sweep has all its cases: in `npm run test:sweeps`. */
export const isWhole = process.env.MINIMIND_SWEEPS === 'all';

/**
 * Cases of a sweep: all in `npm run test:sweeps`, elsewhere the first of each kind and each `step`th after it.
 * @param kindOf Default: all are of one kind.
 */
export function sampled<Case>(
  cases: readonly Case[],
  step: number,
  kindOf: (each: Case) => unknown = () => undefined,
): readonly Case[] {
  const seen = new Map<unknown, number>();
  return cases.filter((each) => {
    const kind = kindOf(each);
    const before = seen.get(kind) ?? 0;
    seen.set(kind, before + 1);
    return isWhole || before % step === 0;
  });
}
