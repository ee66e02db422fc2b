/** What each of several GPUs that share layers computes: its part of what is cut, and all of what is whole. */
import type { Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { operationsIn } from '../../budget/flops.js';
import { ranksOf, spansOfRank } from '../../budget/head-spans.js';
import type { Operation } from '../../budget/operations.js';
import { type Cut, elementsPerGpu } from './tensor-cuts.js';

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
    case 'projection': {
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
