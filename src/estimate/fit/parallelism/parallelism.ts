/** Parallelism of a training: replicas, pipeline stages, and GPUs that share each layer. */

import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import { firstOfKinds, tensorsOfKinds } from '../../../model/architecture/equal-blocks.js';
import type { LanguageModel, Layer, ProjectionLayer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import type { OwnedTensor } from '../../../model/architecture/walk.js';
import {
  countedTensors,
  inputWidth,
  memoized,
  memoizedBy,
} from '../../../model/architecture/walk.js';
import { add, div, inputs, v } from '../../../model/budget/expression.js';
import type { Figure } from '../../../model/budget/figure.js';
import { figure } from '../../../model/budget/figure.js';
import type { Operation } from '../../../model/budget/flops.js';
import { operationsIn } from '../../../model/budget/flops.js';
import type { Trained } from '../../../model/budget/optimizers.js';
import { requirePositions } from '../../../model/budget/profile-model.js';
import { ranksOf, spansOfRank } from '../../../model/budget/state.js';
import { roleOf } from '../../../model/budget/training-budget.js';
import { primitivesOf } from '../../../model/operations/lower.js';
import type { Collective, Cut, UnitRun } from '../../../model/operations/primitive.js';
import { allReduce } from '../../../model/operations/primitive.js';
import type { TrainingFitSetting } from '../training/training-setting.js';
import { greatestCommonDivisor, nearestDivisors } from './divisors.js';
import { expertParallelismOf, expertsIn, requireContextParallel } from './model-axes.js';

// Tensor parallelism: the possible numbers of GPUs, their share of each layer, and their communication.

// Cuts of tensors under tensor parallelism, in training and in serving. As in Megatron-LM (arXiv 1909.08053), products
// that read the residual stream are cut by outputs, products that write to it by inputs. Attention is cut by heads, the
// vocabulary by rows, the state space by channels. Each GPU has its part of every expert, or of some experts with expert
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

/** The cut of a tensor that GPUs share; undefined for one GPU, and for a tensor that is whole on each. */
export const cutAmong = (model: LanguageModel, tensor: Param, gpus: number): Cut | undefined =>
  gpus === 1 ? undefined : tensorCuts(model).get(tensor);

/** Rows, or values of a row, on the fullest GPU. */
export const rowsPerGpu = ({ runs }: Cut, gpus: number): number =>
  sumOf(runs, ({ count, size }) => size * Math.ceil(count / gpus));

const cutSize = ({ runs }: Cut): number => sumOf(runs, ({ count, size }) => size * count);

/** Elements of a tensor on the fullest GPU. */
export const elementsPerGpu = (elements: number, cut: Cut | undefined, gpus: number): number =>
  // A model without a head has one of no rows.
  cut === undefined || elements === 0
    ? elements
    : (elements / cutSize(cut)) * rowsPerGpu(cut, gpus);

/** Whether all GPUs need equal shares; if not, the last one is padded. */
const isDealtEqually = ({ unit }: UnitRun): boolean => unit !== 'rows of the vocabulary';

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
): readonly Operation[] =>
  operationsIn(layer).map((operation) => operationShare(operation, sharing, rank));

function operationShare(
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
    // Every GPU chooses the keys.
    case 'indexScores':
      return operation;
    case 'convolution':
      return { ...operation, channels: Math.ceil(operation.channels / gpus) };
    case 'scan':
      return { ...operation, inner: Math.ceil(operation.inner / gpus) };
  }
}

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
  throw usageError(
    `${setting('tensorParallel')}: ${formatInteger(gpus)} GPUs cannot share the ${formatInteger(bad.count)} ${bad.unit} of ${bad.of} equally`,
    `write ${nearestDivisors(common, gpus).join(' or ')}`,
  );
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

export interface Parallelism {
  readonly tensor: number;
  readonly pipeline: number;
  /** GPUs that each have a part of every sequence. */
  readonly context: number;
  /** GPUs that each have some of the experts. */
  readonly expert: number;
  /** GPUs that share each expert. */
  readonly expertTensor: number;
  /** Model replicas: gpus / (tensor · pipeline · context). */
  readonly replicas: number;
  /** GPUs with the same weights that divide the state: those of all replicas, or of one machine. */
  readonly shards: number;
  /** Copies of the state: replicas · context / shards. */
  readonly copies: number;
  /** Micro-batches per replica in an optimizer step. */
  readonly microBatches: number;
}

/** @throws UserError when the GPUs, blocks or layers cannot be divided as requested. */
export function parallelismOf(model: LanguageModel, asked: TrainingFitSetting): Parallelism {
  const { cluster, tensorParallel: tensor, pipelineParallel: pipeline } = asked;
  const context = asked.contextParallel ?? 1;
  requirePositions(asked.context, model.positions);
  const { length: blocks } = model.blocks;
  const holders = holdersOf(cluster.gpus, [
    ['tensorParallel', tensor],
    ['pipelineParallel', pipeline, blocks],
    ['contextParallel', context],
  ]);
  if (pipeline > blocks) {
    throw usageError(
      `${setting('pipelineParallel')}: expected at most ${blocks} stages, one for each block, found ${formatInteger(pipeline)}`,
      `write ${divisorsUpTo(cluster.gpus / tensor, pipeline, blocks)}`,
    );
  }
  requireTensorParallel(model, tensor);
  requireContextParallel(model, asked);
  requireDividedOffload(asked, holders);
  const replicas = holders / context;
  const experts = expertParallelismOf(model, asked, holders);
  const { globalBatchTokens, microBatch } = asked;
  const microBatches =
    globalBatchTokens === undefined
      ? pipeline
      : Math.max(1, Math.round(globalBatchTokens / (microBatch * asked.context * replicas)));
  const shards = asked.hybrid ? shardsOf(cluster, tensor, holders) : holders;
  const copies = holders / shards;
  return { tensor, pipeline, context, ...experts, replicas, shards, copies, microBatches };
}

/**
 * GPUs that hold the same weights, with all of their sequences or a part of each.
 * @throws UserError when the degrees do not divide the GPUs.
 */
function holdersOf(
  gpus: number,
  degrees: readonly (readonly [
    'tensorParallel' | 'pipelineParallel' | 'contextParallel',
    number,
    most?: number,
  ])[],
): number {
  let left = gpus;
  const enough = degrees.reduce((product, [, value]) => product * value, 1);
  for (const [name, value, most = left] of degrees) {
    if (left % value !== 0) {
      const more = enough > gpus ? `, or ask for more with ${setting('gpus', enough)}` : '';
      throw usageError(
        `${setting(name)}: ${formatInteger(value)} does not divide ${counted(left, 'GPU')}`,
        `write ${divisorsUpTo(left, value, most)}${more}`,
      );
    }
    // GPUs with parts of a sequence hold the same weights.
    if (name !== 'contextParallel') left /= value;
  }
  return left;
}

/** Divisors of `of` nearest to a value, at most `most`, as a suggestion has them. */
const divisorsUpTo = (of: number, value: number, most: number): string =>
  nearestDivisors(of, Math.min(value, most))
    .filter((each) => each <= most)
    .join(' or ');

/**
 * @param holders GPUs with the same weights, which would each keep all of a part in system memory.
 * @throws UserError when ZeRO does not divide that part among several.
 */
function requireDividedOffload({ offload, zero }: TrainingFitSetting, holders: number): void {
  if (offload === undefined || holders === 1) return;
  const least = offload.part === 'parameters' ? 3 : 1;
  if (zero >= least) return;
  throw usageError(
    `${setting('offload', offload.part)} on several GPUs with the same weights requires ZeRO-${least}${least === 3 ? '' : ' or more'}`,
    `write ${setting('zero', least === 1 ? '2' : '3')}`,
  );
}

/** Most GPUs with the same weights on a machine that divide all of them. */
function shardsOf(
  { gpu }: TrainingFitSetting['cluster'],
  tensor: number,
  replicas: number,
): number {
  const within = Math.max(1, ...gpu.links.map((link) => link.gpus).filter(Number.isFinite));
  const most = Math.min(replicas, Math.floor(within / tensor));
  for (let shards = most; shards > 1; shards--) if (replicas % shards === 0) return shards;
  return 1;
}

/** GPUs with the same weights, which can divide the state. */
export const dividersOf = ({ shards, copies }: Parallelism): number => shards * copies;

/** GPUs with the same experts that divide their state. */
export const expertShards = ({ shards, tensor, expert, expertTensor }: Parallelism): number =>
  Math.max(1, Math.floor((shards * tensor) / expertTensor / expert));

/** Consecutive blocks; the first and last stages also have the layers before and after all blocks. */
export interface Stage {
  readonly stage: number;
  /** Index of the first block. */
  readonly from: number;
  /** Index after the last block. */
  readonly to: number;
  /** The part of each trained parameter on one GPU; equal ones together. */
  readonly trained: readonly Trained[];
  /** Those of `trained` that are routed experts, if GPUs divide the experts; their state has fewer copies. */
  readonly experts?: readonly Trained[];
  /** Number of trained parameters. */
  readonly tensors: number;
  /** Weights that are not trained, on one GPU; without it, all are trained. */
  readonly frozen?: readonly Trained[];
  readonly parameters: Figure;
  /** Values in buffers. */
  readonly buffers: number;
  /** Parameters of the largest block on one GPU. */
  readonly largestBlock: number;
}

/** Blocks in stages of nearly equal size. Each stage holds the shared layers that its blocks use. */
export const pipelineStages: (model: LanguageModel, spread: Spread) => readonly Stage[] =
  memoizedBy((spread) => `${sharingKey(spread)} ${spread.pipeline}`, spreadOver);

/** Cuts of the tensors: of all, and of experts. */
export type Sharing = Pick<Parallelism, 'tensor' | 'expert' | 'expertTensor'>;

type Spread = Sharing & Pick<Parallelism, 'pipeline'>;

const sharingKey = ({ tensor, expert, expertTensor }: Sharing): string =>
  `${tensor} ${expert} ${expertTensor}`;

/** Equal parameters with their cut for tensor parallelism. */
interface SharedParam {
  readonly elements: number;
  readonly count: number;
  readonly role: ReturnType<typeof roleOf>;
  /** The cut, on demand: one GPU needs none. */
  readonly cut: () => Cut | undefined;
  readonly isExpert: boolean;
}

function spreadOver(model: LanguageModel, spread: Spread): Stage[] {
  const { expert, pipeline } = spread;
  const areKinds = hasKinds(spread);
  const shares = sharesOf(model, areKinds);
  const { trainedOf, blockSizes } = perGpuOf(model, spread);
  return Array.from({ length: pipeline }, (_, stage) => {
    const border = (index: number) => Math.floor((model.blocks.length * index) / pipeline);
    const [from, to] = [border(stage), border(stage + 1)];
    const parameters: SharedParam[] = [];
    let buffers = 0;
    const all = areKinds ? tensorsOfKinds(model) : distinctTensors(layersBetween(model, from, to));
    for (const { tensor: held, count } of all) {
      const share = shares.get(held);
      if (share) parameters.push(share);
      else buffers += count * held.elements;
    }
    return {
      stage,
      from,
      to,
      trained: parameters.map(trainedOf),
      ...(expert > 1 && {
        experts: parameters.filter(({ isExpert }) => isExpert).map(trainedOf),
      }),
      tensors: sumOf(parameters, ({ count }) => count),
      parameters: parametersFigure(parameters, spread),
      buffers,
      largestBlock: Math.max(...(areKinds ? blockSizes : blockSizes.slice(from, to))),
    };
  });
}

/** Whether equal blocks are counted once. With pipeline or expert parallelism, each block is counted separately. */
const hasKinds = ({ pipeline, expert }: Pick<Spread, 'pipeline' | 'expert'>): boolean =>
  pipeline === 1 && expert === 1;

/** Parameters of a model, cached because a search spreads the same ones repeatedly. */
const sharesOf = memoizedBy(
  (areKinds: boolean) => areKinds,
  (model: LanguageModel, areKinds): ReadonlyMap<Param, SharedParam> => {
    const experts = expertsIn(model);
    const owned = areKinds ? tensorsOfKinds(model) : countedTensors(model);
    const parameters = owned.filter(({ tensor: { role } }) => role === 'parameter');
    return new Map(
      parameters.map(({ tensor, count }) => {
        const { elements } = tensor;
        const role = roleOf(model, tensor);
        const isExpert = experts.has(tensor);
        const cut = () => tensorCuts(model).get(tensor);
        return [tensor, { elements, count, role, cut, isExpert }];
      }),
    );
  },
);

/** Values that do not depend on the number of stages. */
interface PerGpu {
  /** The part of a parameter on one GPU. */
  readonly trainedOf: (share: SharedParam) => Trained;
  /** Parameters of each block on one GPU, or of each kind. */
  readonly blockSizes: readonly number[];
}

const perGpuOf = memoizedBy(
  (spread: Spread) => `${sharingKey(spread)} ${hasKinds(spread)}`,
  findPerGpu,
);

function findPerGpu(model: LanguageModel, sharing: Spread): PerGpu {
  const areKinds = hasKinds(sharing);
  const shares = sharesOf(model, areKinds);
  const trained = new Map<SharedParam, Trained>();
  for (const share of shares.values()) trained.set(share, trainedOn(share, sharing));
  const trainedOf = (share: SharedParam) => trained.get(share) as Trained;
  const sizeOf = (block: Layer) =>
    countedTensors(block).reduce((sum, { tensor, count }) => {
      const share = shares.get(tensor);
      const parts = share?.isExpert ? sharing.expert : 1;
      return share ? sum + (count * ofGpu(share, sharing)) / parts : sum;
    }, 0);
  return { trainedOf, blockSizes: (areKinds ? firstOfKinds(model) : model.blocks).map(sizeOf) };
}

/** The part of a parameter on a GPU: with expert parallelism fewer experts, or a part of their stack. */
function trainedOn(share: SharedParam, sharing: Sharing): Trained {
  const { count, role, isExpert } = share;
  const elements = ofGpu(share, sharing);
  const parts = isExpert ? sharing.expert : 1;
  if (parts === 1) return { elements, count, ...role };
  if (count % parts === 0) return { elements, count: count / parts, ...role };
  const { matrices } = role;
  return {
    ...{ elements: elements / parts, count, ...role },
    ...(matrices !== undefined && { matrices: matrices / parts }),
  };
}

function ofGpu({ elements, cut, isExpert }: SharedParam, sharing: Sharing): number {
  const gpus = isExpert ? sharing.expertTensor : sharing.tensor;
  return gpus === 1 ? elements : elementsPerGpu(elements, cut(), gpus);
}

const countedSum = (all: readonly SharedParam[], of: (each: SharedParam) => number): number =>
  sumOf(all, (each) => each.count * of(each));

function layersBetween(model: LanguageModel, from: number, to: number): readonly Layer[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  return [
    ...(from === 0 ? [embedding, ...embeddingSteps] : []),
    ...blocks.slice(from, to),
    ...(to === blocks.length ? [norm, head, ...logitSteps] : []),
  ];
}

/** Distinct tensors. A tied head shares the embedding's tensor, so the first and last stages each hold it. */
export function distinctTensors(layers: readonly Layer[]): readonly OwnedTensor[] {
  const distinct = new Map<Param, OwnedTensor>();
  for (const layer of layers) {
    for (const each of countedTensors(layer)) distinct.set(each.tensor, each);
  }
  return [...distinct.values()];
}

function parametersFigure(all: readonly SharedParam[], sharing: Sharing): Figure {
  const elements = ({ elements }: SharedParam) => elements;
  const { tensor: gpus, expert } = sharing;
  const isApart = expert > 1;
  const experts = all.filter(({ isExpert }) => isApart && isExpert);
  const trained = isApart ? all.filter(({ isExpert }) => !isExpert) : all;
  if (gpus === 1 && !isApart) {
    return figure({
      label: 'parameters of a GPU',
      unit: 'parameters',
      formula: v({ parameters: countedSum(trained, elements) }),
      source: 'each tensor of the stage once',
    });
  }
  const cut = trained.filter((each) => each.cut() !== undefined);
  const isShared = ({ cut }: SharedParam) => cut()?.runs.every(isDealtEqually);
  const { whole, shared, vocabulary_rows, of_experts } = inputs({
    whole: countedSum(
      trained.filter((each) => each.cut() === undefined),
      elements,
    ),
    shared: countedSum(cut.filter(isShared), elements),
    vocabulary_rows: countedSum(
      cut.filter((each) => !isShared(each)),
      (each) => ofGpu(each, sharing),
    ),
    of_experts: countedSum(experts, (each) => ofGpu(each, sharing)),
  });
  const divided = gpus === 1 ? shared : div(shared, v({ tensor: gpus }));
  return figure({
    label: 'parameters of a GPU',
    unit: 'parameters',
    formula: add(
      whole,
      divided,
      vocabulary_rows,
      ...(isApart ? [div(of_experts, v({ expert }))] : []),
    ),
    source:
      'products by columns and rows, heads, channels and the padded vocabulary are divided; norms, routers, ' +
      'tables and low-rank parts are not (arXiv 1909.08053)' +
      (isApart ? '; each GPU has some of the routed experts' : ''),
  });
}
