/** Among how many GPUs a model can be shared in training, and what these then tell each other. */
import type { Layer, Projection } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { inputWidth, remembered } from '../../architecture/walk.js';
import type { Operation } from '../../budget/flops.js';
import { operationsIn } from '../../budget/flops.js';
import { ranksOf, spansOfRank } from '../../budget/state.js';
import { UserError } from '../../errors.js';
import { primitivesOf } from '../../operations/lower.js';
import type { Collective, Cut, Primitive, Run } from '../../operations/primitive.js';
import { allReduce } from '../../operations/primitive.js';

// How GPUs that share each layer cut its tensors, in training and in serving alike.
//
// As in Megatron-LM (arXiv 1909.08053): what reads the residual stream is cut by its outputs and what writes to it by
// its inputs, attention by heads, the vocabulary by rows; the state space by channels. Each GPU has its part of every
// expert: experts are not spread out. A product that neither opens nor closes such a pair, as the fusion of the hybrid
// model, is cut by its outputs, and these are gathered.
//
// A bias is cut with the outputs that it is added to; that of a product cut by inputs is added once, to their sum, and
// whole. A norm over all heads together is cut with them: what its GPUs tell each other for it is one number a token.
// All else is whole on every GPU: norms, routers, learned positions, SRTE, what makes latents, and the low-rank gate,
// which is small and would need a reduction of its own.
//
// What is dealt out (a head, a channel, a row of the vocabulary) is never divided, and the fullest GPU counts. Where
// there are fewer key-value heads than GPUs each has one, so that some stand on several, as in vLLM. Training refuses
// numbers that do not divide (see `requireTensorParallel`), but of the vocabulary, which is padded; serving takes any.

const cutsOf = ({ cuts, alike = [] }: Primitive): Primitive['cuts'] => [
  ...cuts,
  ...alike.flatMap((layer) => primitivesOf(layer).flatMap(cutsOf)),
];

/** The tensors below and with a layer that are cut; the others are whole on every GPU. */
export const tensorCuts: (layer: Layer) => ReadonlyMap<Param, Cut> = remembered(
  (layer) => new Map(primitivesOf(layer).flatMap(cutsOf)),
);

/** What the fullest of the GPUs has of so many rows, or values of a row. */
export const shareOf = ({ runs }: Cut, gpus: number): number =>
  runs.reduce((sum, { count, size }) => sum + size * Math.ceil(count / gpus), 0);

const sizeOf = ({ runs }: Cut): number =>
  runs.reduce((sum, { count, size }) => sum + size * count, 0);

/** The elements that the fullest of the GPUs has of a tensor. */
export const elementsPerGpu = (elements: number, cut: Cut | undefined, gpus: number): number =>
  cut === undefined ? elements : (elements / sizeOf(cut)) * shareOf(cut, gpus);

/** Whether no GPU may have more than another: else the last is padded. */
export const isDealtEqually = ({ unit }: Run): boolean => unit !== 'rows of the vocabulary';

// What each of several GPUs that share layers computes: its part of what is cut, and all of what is whole.

/** How GPUs share layers. */
export interface Sharing {
  readonly cuts: ReadonlyMap<Param, Cut>;
  readonly gpus: number;
  /** Whether each computes what is whole for its part of the tokens alone (sequence parallelism, arXiv 2205.05198). */
  readonly byTokens: boolean;
}

/** The GPUs that have to be looked at to find the one that computes most. */
export const ranksThatDiffer = (layers: readonly Layer[], gpus: number): readonly number[] =>
  ranksOf(
    layers.flatMap((layer) =>
      operationsIn(layer).flatMap((each) => (each.kind === 'scores' ? [each.spans] : [])),
    ),
    gpus,
  );

export const operationsOfRank = (
  layer: Layer,
  sharing: Sharing,
  rank: number,
): readonly Operation[] => operationsIn(layer).map((operation) => partOf(operation, sharing, rank));

function partOf(operation: Operation, { cuts, gpus, byTokens }: Sharing, rank: number): Operation {
  switch (operation.kind) {
    case 'matmul':
    case 'router': {
      const { weights, tensor } = operation;
      const cut = cuts.get(tensor);
      const isDealt = cut === undefined && byTokens;
      return {
        ...operation,
        weights: isDealt ? Math.ceil(weights / gpus) : elementsPerGpu(weights, cut, gpus),
      };
    }
    case 'scores':
      return { ...operation, spans: spansOfRank(operation.spans, gpus, rank) };
    case 'convolution':
      return { ...operation, channels: Math.ceil(operation.channels / gpus) };
    case 'scan':
      return { ...operation, inner: Math.ceil(operation.inner / gpus) };
  }
}

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
