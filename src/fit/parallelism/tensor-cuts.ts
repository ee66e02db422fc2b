/**
 * How GPUs that share each layer cut its tensors, in training and in serving alike.
 *
 * As in Megatron-LM (arXiv 1909.08053): what reads the residual stream is cut by its outputs and what writes to it by
 * its inputs, attention by heads, the vocabulary by rows; the state space by channels. Each GPU has its part of every
 * expert: experts are not spread out. A product that neither opens nor closes such a pair, as the fusion of the hybrid
 * model, is cut by its outputs, and these are gathered.
 *
 * A bias is cut with the outputs that it is added to; that of a product cut by inputs is added once, to their sum, and
 * whole. A norm over all heads together is cut with them: what its GPUs tell each other for it is one number a token.
 * All else is whole on every GPU: norms, routers, learned positions, SRTE, what makes latents, and the low-rank gate,
 * which is small and would need a reduction of its own.
 *
 * What is dealt out (a head, a channel, a row of the vocabulary) is never divided, and the fullest GPU counts. Where
 * there are fewer key-value heads than GPUs each has one, so that some stand on several, as in vLLM. Training refuses
 * numbers that do not divide (see `requireTensorParallel`), but of the vocabulary, which is padded; serving takes any.
 */
import type { Layer } from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import type { Param } from '../../architecture/param.js';
import { type Operation, operationsIn } from '../../budget/flops.js';
import { ranksOf, spansOfRank } from '../../budget/state.js';
import { primitivesOf } from '../../operations/lower.js';
import type { Cut, Primitive, Run } from '../../operations/primitive.js';

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
