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
import type {
  Attention,
  LatentAttention,
  Layer,
  Mamba,
  Projection,
  Projections,
  RmsNorm,
} from '../../architecture/layer.js';
import { remembered } from '../../architecture/memoize.js';
import type { Param } from '../../architecture/param.js';
import {
  expertLayers,
  inputWidth,
  isProduct,
  outputWidth,
  productsOf,
  tensorsOf,
} from '../../architecture/walk.js';
import { operationsIn } from '../../budget/flops.js';
import { ranksOf, spansOfRank } from '../../budget/head-spans.js';
import type { Operation } from '../../budget/operations.js';

type Unit =
  | 'heads'
  | 'key-value heads'
  | 'channels'
  | 'inner values'
  | 'outputs'
  | 'rows of the vocabulary';

/** Neighbours in a tensor that are dealt out to the GPUs, each of them whole. */
export interface Run {
  readonly unit: Unit;
  readonly count: number;
  /** Rows of each, or values of a row. */
  readonly size: number;
}

/** A row is what one output multiplies its inputs with, however the tensor is stored. */
export interface Cut {
  readonly along: 'rows' | 'length';
  /** Side by side, and each dealt out for itself: queries, keys and values of one product. */
  readonly runs: readonly Run[];
  /** The layer whose units these are. */
  readonly of: string;
}

/** The tensors below and with a layer that are cut; the others are whole on every GPU. */
export const tensorCuts: (layer: Layer) => ReadonlyMap<Param, Cut> = remembered(
  (layer) => new Map(cutsIn(layer)),
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

type Cuts = readonly (readonly [Param, Cut])[];

const runOf = (unit: Unit, count: number, size = 1): Run => ({ unit, count, size });

const byRows = (tensors: readonly Param[], of: string, ...runs: readonly Run[]): Cuts =>
  tensors.map((tensor) => [tensor, { along: 'rows', runs, of }]);

const byOutputs = (product: Layer, of: string, ...runs: readonly Run[]): Cuts =>
  byRows(tensorsOf(product), of, ...runs);

const byInputs = ({ weight }: Projection, of: string, run: Run): Cuts => [
  [weight, { along: 'length', runs: [run], of }],
];

/** A run for each of several values of one input. */
const inputsByOutputs = (inputs: Projections, of: string, runs: readonly Run[]): Cuts =>
  'kind' in inputs
    ? byOutputs(inputs.projection, of, ...runs)
    : productsOf(inputs).flatMap((product, index) =>
        byOutputs(product, of, ...runs.slice(index, index + 1)),
      );

function cutsIn(layer: Layer): Cuts {
  const all = (layers: readonly Layer[]) => layers.flatMap(cutsIn);
  const { name } = layer;
  switch (layer.kind) {
    case 'languageModel': {
      const { embedding, embeddingSteps, shared, blocks, norm, head, logitSteps } = layer;
      return [
        ...all([embedding, ...embeddingSteps, ...shared, ...blocks, norm]),
        ...byOutputs(head, head.name, runOf('rows of the vocabulary', outputWidth(head))),
        ...all(logitSteps),
      ];
    }
    case 'embedding': {
      const [rows = 1] = layer.weight.shape;
      return byRows([layer.weight], name, runOf('rows of the vocabulary', rows));
    }
    case 'hybridBlock': {
      const { mamba, attention, alignment, fusion, mlp } = layer;
      return all([mamba, attention, ...(alignment ? [alignment] : []), fusion, mlp]);
    }
    case 'mamba':
      return mambaCuts(layer);
    case 'attention':
      return attentionCuts(layer);
    case 'latentAttention':
      return latentAttentionCuts(layer);
    case 'gatedMlp': {
      const inner = runOf('inner values', inputWidth(layer.down));
      return [
        ...inputsByOutputs(layer.inputs, name, [inner, inner]),
        ...byInputs(layer.down, name, inner),
      ];
    }
    case 'mixtureOfExperts': {
      const { experts, shared } = layer;
      return all([...expertLayers(experts), ...shared]);
    }
    case 'packedExperts': {
      const inner = runOf('inner values', layer.down.shape[2] ?? 1);
      return [
        ...byRows([layer.gateUp], name, inner, inner),
        [layer.down, { along: 'length', runs: [inner], of: name }],
      ];
    }
    case 'sequence':
      return layer.layers.flatMap((child, index) => childCuts(layer.layers, child, index, name));
    case 'residual':
      return all(layer.branches);
    case 'alignment':
      return all([layer.net, layer.residual]);
    case 'fusedProjection':
      return cutsIn(layer.projection);
    case 'linear':
    case 'transposedLinear':
      return byOutputs(layer, name, runOf('outputs', outputWidth(layer)));
    case 'causalConv':
      return byOutputs(layer, name, runOf('channels', layer.bias.elements));
    case 'gate':
    case 'layerNorm':
    case 'rmsNorm':
    case 'learnedPositions':
    case 'router':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'alibi':
      return [];
  }
}

/** The products before and after an activation are a pair. */
function childCuts(layers: readonly Layer[], child: Layer, index: number, of: string): Cuts {
  if (!isProduct(child)) return cutsIn(child);
  if (layers[index - 1]?.kind === 'activation') {
    return byInputs(child, of, runOf('inner values', inputWidth(child)));
  }
  return layers[index + 1]?.kind === 'activation'
    ? byOutputs(child, of, runOf('inner values', outputWidth(child)))
    : cutsIn(child);
}

function mambaCuts(layer: Mamba): Cuts {
  const { name, stateLog, skip, inProj, conv, xProj, dtProj, outProj, innerSize } = layer;
  const channels = runOf('channels', innerSize);
  return [
    ...byRows([stateLog, skip], name, channels),
    ...byOutputs(inProj, name, channels, channels),
    ...[conv, dtProj].flatMap((each) => byOutputs(each, name, channels)),
    ...[xProj, outProj].flatMap((each) => byInputs(each, name, channels)),
  ];
}

function attentionCuts(layer: Attention): Cuts {
  const { name, inputs, out, heads, keyValueHeads, headDim, queryNorm, keyNorm } = layer;
  const queries = runOf('heads', heads, headDim);
  const keys = runOf('key-value heads', keyValueHeads, headDim);
  // A norm of each head for itself is the same for all.
  const normCuts = (norm: RmsNorm | undefined, run: Run) =>
    norm && norm.weight.elements > headDim ? byRows([norm.weight], name, run) : [];
  return [
    ...inputsByOutputs(inputs, name, [queries, keys, keys]),
    ...byInputs(out, name, queries),
    ...normCuts(queryNorm, queries),
    ...normCuts(keyNorm, keys),
  ];
}

function latentAttentionCuts(layer: LatentAttention): Cuts {
  const { name, query, keyValueUp, out, rotary, heads, nopeDim, valueDim } = layer;
  const headsOf = (size: number) => runOf('heads', heads, size);
  // What comes before the last product of the query is a latent that all heads read.
  const last = query.kind === 'sequence' ? query.layers.slice(-1) : [query];
  return [
    ...last.flatMap((each) => byOutputs(each, name, headsOf(nopeDim + rotary.headDim))),
    ...byOutputs(keyValueUp, name, headsOf(nopeDim + valueDim)),
    ...byInputs(out, name, headsOf(valueDim)),
  ];
}

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
