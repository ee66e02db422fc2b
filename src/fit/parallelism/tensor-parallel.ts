/** Tensor parallelism: the possible numbers of GPUs, their share of each layer, and their communication. */
import type { Layer, ProjectionLayer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { inputWidth, memoized } from '../../architecture/walk.js';
import type { Operation } from '../../budget/flops.js';
import { operationsIn } from '../../budget/flops.js';
import { ranksOf, spansOfRank } from '../../budget/state.js';
import { UserError } from '../../errors.js';
import { primitivesOf } from '../../operations/lower.js';
import type { Collective, Cut, UnitRun } from '../../operations/primitive.js';
import { allReduce } from '../../operations/primitive.js';
import { formatInteger } from '../../text/units.js';
import { sumOf } from '../../text/words.js';

// Cuts of tensors under tensor parallelism, in training and in serving. As in Megatron-LM (arXiv 1909.08053), products
// that read the residual stream are cut by outputs, products that write to it by inputs. Attention is cut by heads, the
// vocabulary by rows, the state space by channels. Each GPU has its part of every expert: there is no expert
// parallelism. A product outside such a pair, such as the fusion of the hybrid model, is cut by outputs, followed by an
// all-gather.
//
// A bias is cut with its outputs. The bias of a product cut by inputs is whole, and added once to the sum. A norm over
// all heads is cut with them and exchanges one number per token. Other tensors are whole on every GPU: norms, routers,
// learned positions, SRTE, latent projections, the coefficients of AltUp, what a block adds of per-layer inputs, and the
// low-rank gate, which is small and would need its own reduction.
//
// A unit (a head, a channel, a row of the vocabulary) is never divided, and the fullest GPU counts. With fewer
// key-value heads than GPUs, each GPU has one head and heads are repeated, as in vLLM. Training requires divisible
// numbers (see `requireTensorParallel`) except for the vocabulary, which is padded. Serving accepts any.

/** Tensors of a layer that are cut; all others are whole on every GPU. One expert of each mixture has those of all. */
export const tensorCuts: (layer: Layer) => ReadonlyMap<Param, Cut> = memoized(
  (layer) => new Map(primitivesOf(layer).flatMap(({ cuts }) => cuts)),
);

/** Rows, or values of a row, on the fullest GPU. */
export const shareOf = ({ runs }: Cut, gpus: number): number =>
  sumOf(runs, ({ count, size }) => size * Math.ceil(count / gpus));

const sizeOf = ({ runs }: Cut): number => sumOf(runs, ({ count, size }) => size * count);

/** Elements of a tensor on the fullest GPU. */
export const elementsPerGpu = (elements: number, cut: Cut | undefined, gpus: number): number =>
  cut === undefined ? elements : (elements / sizeOf(cut)) * shareOf(cut, gpus);

/** Whether all GPUs need equal shares; if not, the last one is padded. */
export const isDealtEqually = ({ unit }: UnitRun): boolean => unit !== 'rows of the vocabulary';

// Work of each GPU that shares layers: its part of cut tensors, and all of whole tensors.

/** Cuts of layers over GPUs. */
export interface TensorParallelCuts {
  readonly cuts: ReadonlyMap<Param, Cut>;
  readonly gpus: number;
  /** Whether GPUs split the tokens for layers that are whole (sequence parallelism, arXiv 2205.05198). */
  readonly byTokens: boolean;
}

/** Ranks to check to find the GPU with the most work. */
export const ranksThatDiffer = (layers: readonly Layer[], gpus: number): readonly number[] =>
  ranksOf(
    layers.flatMap((layer) =>
      operationsIn(layer).flatMap((each) => (each.kind === 'scores' ? [each.spans] : [])),
    ),
    gpus,
  );

export const operationsOfRank = (
  layer: Layer,
  sharing: TensorParallelCuts,
  rank: number,
): readonly Operation[] => operationsIn(layer).map((operation) => partOf(operation, sharing, rank));

function partOf(
  operation: Operation,
  { cuts, gpus, byTokens }: TensorParallelCuts,
  rank: number,
): Operation {
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

/** Largest number of GPUs to suggest. */
export const MOST_GPUS = 65_536;

/** Counts that the number of GPUs must divide. */
const divisibleIn = memoized((model: Layer) =>
  [...tensorCuts(model).values()].flatMap(({ runs, of }) =>
    runs.filter(isDealtEqually).map(({ unit, count }) => ({ unit, of, count })),
  ),
);

/** @throws UserError when the GPUs cannot share every layer; suggests the nearest numbers that can. */
export function requireTensorParallel(model: Layer, gpus: number): void {
  if (gpus === 1) return;
  const counts = divisibleIn(model);
  const bad = counts.find(({ count }) => count % gpus !== 0);
  if (bad === undefined) return;
  const common = counts.reduce((gcd, { count }) => greatestCommonDivisor(gcd, count), 0);
  throw new UserError(
    'usage',
    `--tensor-parallel: ${formatInteger(gpus)} GPUs cannot share the ${formatInteger(bad.count)} ${bad.unit} of ${bad.of} equally`,
    { suggestion: `write ${nearestDivisors(common, gpus).join(' or ')}` },
  );
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Divisors of `of` nearest to `to`, from below and from above. */
export function nearestDivisors(of: number, to: number): number[] {
  const divides = (value: number) => of % value === 0;
  let below = Math.min(of, to);
  while (below > 1 && !divides(below)) below--;
  const above = of > to ? firstFrom(to, of, divides) : undefined;
  return above === undefined || above === below ? [below] : [below, above];
}

function firstFrom(from: number, to: number, isFound: (value: number) => boolean) {
  // Larger divisors are never suggested.
  const last = Math.min(to, MOST_GPUS);
  for (let value = from; value <= last; value++) if (isFound(value)) return value;
  return undefined;
}

/** Communication between GPUs that share layers, in one pass. */
export interface CollectiveTraffic {
  /**
   * Values per token, times (gpus − 1) / gpus. An all-reduce counts twice: a reduce-scatter and an all-gather (arXiv
   * 2205.05198).
   */
  readonly values: number;
  /** Number of all-reduces and all-gathers, with the same waiting time assumed. */
  readonly times: number;
}

export interface LayerCollectives {
  readonly forward: CollectiveTraffic;
  readonly backward: CollectiveTraffic;
}

const NOTHING: CollectiveTraffic = { values: 0, times: 0 };

const exchanged = ({ kind, width }: Collective): CollectiveTraffic => ({
  values: kind === 'allReduce' ? 2 * width : width,
  times: 1,
});

const total = (collectives: readonly (Collective | undefined)[]): CollectiveTraffic =>
  collectives
    .flatMap((each) => (each ? [exchanged(each)] : []))
    .reduce(
      (sum, { values, times }) => ({ values: sum.values + values, times: sum.times + times }),
      NOTHING,
    );

export function collectivesOf(layers: readonly Layer[]): LayerCollectives {
  const primitives = layers.flatMap((each) => primitivesOf(each));
  return {
    forward: total(primitives.map(({ forward }) => forward)),
    backward: total(primitives.map(({ backward }) => backward)),
  };
}

/** The loss is computed on the cut vocabulary, so only the gradient of the head's input is reduced. */
export const headCollectives = (head: ProjectionLayer): LayerCollectives => ({
  forward: NOTHING,
  backward: total([allReduce(inputWidth(head))]),
});
