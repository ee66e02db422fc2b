/** Among how many GPUs a model can be shared in training, and what these then tell each other. */
import type { Layer, Projection } from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import { inputWidth } from '../../architecture/walk.js';
import { UserError } from '../../errors.js';
import { primitivesOf } from '../../operations/lower.js';
import { allReduce, type Collective } from '../../operations/primitive.js';
import { isDealtEqually, tensorCuts } from './tensor-cuts.js';

/** The most GPUs that anybody is told to get. */
export const MOST_GPUS = 65_536;

/** What must be a multiple of the GPUs that share a layer. */
const divisibleIn = remembered((model: Layer) =>
  [...tensorCuts(model).values()].flatMap(({ runs, of }) =>
    runs.filter(isDealtEqually).map(({ unit, count }) => ({ unit, of, count })),
  ),
);

/** @throws UserError when so many GPUs cannot share every layer, with the nearest numbers that can. */
export function requireTensorParallel(model: Layer, gpus: number): void {
  if (gpus === 1) return;
  const counts = divisibleIn(model);
  const bad = counts.find(({ count }) => count % gpus !== 0);
  if (bad === undefined) return;
  const common = counts.reduce((gcd, { count }) => greatestCommonDivisor(gcd, count), 0);
  throw new UserError(
    'usage',
    `--tensor-parallel: ${gpus} GPUs cannot share the ${bad.count} ${bad.unit} of ${bad.of} equally`,
    { suggestion: `write ${nearestDivisors(common, gpus).join(' or ')}` },
  );
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The divisors of `of` nearest to a number, from below and from above. */
export function nearestDivisors(of: number, to: number): number[] {
  const divides = (value: number) => of % value === 0;
  const below = Array.from({ length: to }, (_, index) => to - index).find(divides) ?? 1;
  const above = of > to ? firstFrom(to, of, divides) : undefined;
  return above === undefined || above === below ? [below] : [below, above];
}

function firstFrom(from: number, to: number, isFound: (value: number) => boolean) {
  // No larger divisor is of use.
  const last = Math.min(to, MOST_GPUS);
  for (let value = from; value <= last; value++) if (isFound(value)) return value;
  return undefined;
}

/** What GPUs that share layers tell each other in one pass. */
export interface Exchanged {
  /**
   * Of each token, times (gpus − 1) / gpus: an all-reduce counts twice, as it is a reduce-scatter and an all-gather
   * (arXiv 2205.05198).
   */
  readonly values: number;
  /** How often: all-reduces, and all-gathers, which are taken to wait as long. */
  readonly times: number;
}

export interface Exchange {
  readonly forward: Exchanged;
  readonly backward: Exchanged;
}

const NOTHING: Exchanged = { values: 0, times: 0 };

const exchanged = ({ kind, width }: Collective): Exchanged => ({
  values: kind === 'allReduce' ? 2 * width : width,
  times: 1,
});

const total = (collectives: readonly (Collective | undefined)[]): Exchanged =>
  collectives
    .flatMap((each) => (each ? [exchanged(each)] : []))
    .reduce(
      (sum, { values, times }) => ({ values: sum.values + values, times: sum.times + times }),
      NOTHING,
    );

export function exchangeOf(layers: readonly Layer[]): Exchange {
  const primitives = layers.flatMap((each) => primitivesOf(each));
  return {
    forward: total(primitives.map(({ forward }) => forward)),
    backward: total(primitives.map(({ backward }) => backward)),
  };
}

/** The loss is taken where the vocabulary is shared: only the gradient of the head's input is summed. */
export const headExchange = (head: Projection): Exchange => ({
  forward: NOTHING,
  backward: total([allReduce(inputWidth(head))]),
});
