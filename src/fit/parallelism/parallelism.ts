/** Parallelism of a training: replicas, pipeline stages, and GPUs that share each layer. */
import type { LanguageModel, Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { countedTensors, memoized, memoizedBy, type OwnedTensor } from '../../architecture/walk.js';
import { add, div, inputs, v } from '../../budget/expression.js';
import { type Figure, figure } from '../../budget/figure.js';
import { requirePositions } from '../../budget/profile-model.js';
import { embeddingsOf, type Trained } from '../../budget/training-budget.js';
import { UserError } from '../../errors.js';
import type { Cut } from '../../operations/primitive.js';
import { formatInteger } from '../../text/units.js';
import { counted, sumOf } from '../../text/words.js';
import type { TrainingFitSetting } from '../training/training-setting.js';
import {
  elementsPerGpu,
  isDealtEqually,
  nearestDivisors,
  requireTensorParallel,
  tensorCuts,
} from './tensor-parallel.js';

export interface Parallelism {
  readonly tensor: number;
  readonly pipeline: number;
  /** Model replicas: gpus / (tensor · pipeline). */
  readonly replicas: number;
  /** Micro-batches per replica in an optimizer step. */
  readonly microBatches: number;
}

/** @throws UserError when the GPUs, blocks or layers cannot be divided as requested. */
export function parallelismOf(model: LanguageModel, setting: TrainingFitSetting): Parallelism {
  const { cluster, tensorParallel: tensor, pipelineParallel: pipeline } = setting;
  requirePositions(setting.context, model.positions);
  const { gpus } = cluster;
  if (gpus % (tensor * pipeline) !== 0) {
    const [flag, value] =
      gpus % tensor === 0 ? ['--pipeline-parallel', pipeline] : ['--tensor-parallel', tensor];
    const left = flag === '--pipeline-parallel' ? gpus / tensor : gpus;
    throw new UserError(
      'usage',
      `${flag}: ${formatInteger(value as number)} does not divide ${counted(left, 'GPU')}`,
      {
        suggestion: `write ${nearestDivisors(left, value as number).join(' or ')}`,
      },
    );
  }
  if (pipeline > model.blocks.length) {
    throw new UserError(
      'usage',
      `--pipeline-parallel: ${formatInteger(pipeline)} stages are more than the ${model.blocks.length} blocks`,
      { suggestion: `write at most ${model.blocks.length}` },
    );
  }
  requireTensorParallel(model, tensor);
  const replicas = gpus / (tensor * pipeline);
  const { globalBatchTokens, microBatch, context } = setting;
  const microBatches =
    globalBatchTokens === undefined
      ? pipeline
      : Math.max(1, Math.round(globalBatchTokens / (microBatch * context * replicas)));
  return { tensor, pipeline, replicas, microBatches };
}

/** Consecutive blocks; the first and last stages also have the layers before and after all blocks. */
export interface Stage {
  readonly stage: number;
  /** Index of the first block. */
  readonly from: number;
  /** Index after the last block. */
  readonly to: number;
  /** The part of each trained parameter on one GPU; equal ones together. */
  readonly trained: readonly Trained[];
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
  memoizedBy(({ tensor, pipeline }) => `${tensor} ${pipeline}`, spreadOver);

type Spread = Pick<Parallelism, 'tensor' | 'pipeline'>;

/** Equal parameters with their cut for tensor parallelism. */
interface SharedParam {
  readonly elements: number;
  readonly count: number;
  readonly isEmbedding: boolean;
  readonly cut: Cut | undefined;
}

function spreadOver(model: LanguageModel, { tensor, pipeline }: Spread): Stage[] {
  const shares = sharesOf(model);
  const { trainedOf, blockSizes } = perGpuOf(model, tensor);
  return Array.from({ length: pipeline }, (_, stage) => {
    const border = (index: number) => Math.floor((model.blocks.length * index) / pipeline);
    const [from, to] = [border(stage), border(stage + 1)];
    const parameters: SharedParam[] = [];
    let buffers = 0;
    for (const { tensor: held, count } of distinctTensors(layersBetween(model, from, to))) {
      const share = shares.get(held);
      if (share) parameters.push(share);
      else buffers += count * held.elements;
    }
    return {
      stage,
      from,
      to,
      trained: parameters.map(trainedOf),
      tensors: sumOf(parameters, ({ count }) => count),
      parameters: parametersFigure(parameters, tensor),
      buffers,
      largestBlock: Math.max(...blockSizes.slice(from, to)),
    };
  });
}

/** Parameters of a model, cached because a search spreads the same ones repeatedly. */
const sharesOf = memoized((model: LanguageModel): ReadonlyMap<Param, SharedParam> => {
  const cuts = tensorCuts(model);
  const embeddings = embeddingsOf(model);
  const parameters = countedTensors(model).filter(({ tensor: { role } }) => role === 'parameter');
  return new Map(
    parameters.map(({ tensor, count }) => {
      const isEmbedding = embeddings.has(tensor);
      return [tensor, { elements: tensor.elements, count, isEmbedding, cut: cuts.get(tensor) }];
    }),
  );
});

/** Values that do not depend on the number of stages. */
interface PerGpu {
  /** The part of a parameter on one GPU. */
  readonly trainedOf: (share: SharedParam) => Trained;
  /** Parameters of each block on one GPU. */
  readonly blockSizes: readonly number[];
}

const perGpuOf = memoizedBy((gpus: number) => gpus, findPerGpu);

function findPerGpu(model: LanguageModel, gpus: number): PerGpu {
  const shares = sharesOf(model);
  const trained = new Map<SharedParam, Trained>();
  for (const share of shares.values()) {
    const { count, isEmbedding } = share;
    trained.set(share, { elements: ofGpu(share, gpus), count, isEmbedding });
  }
  const trainedOf = (share: SharedParam) => trained.get(share) as Trained;
  const sizeOf = (block: Layer) =>
    countedTensors(block).reduce((sum, { tensor, count }) => {
      const share = shares.get(tensor);
      return share ? sum + count * trainedOf(share).elements : sum;
    }, 0);
  return { trainedOf, blockSizes: model.blocks.map(sizeOf) };
}

const ofGpu = ({ elements, cut }: SharedParam, gpus: number): number =>
  elementsPerGpu(elements, cut, gpus);

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

function parametersFigure(trained: readonly SharedParam[], gpus: number): Figure {
  const elements = ({ elements }: SharedParam) => elements;
  if (gpus === 1) {
    return figure({
      label: 'parameters of a GPU',
      unit: 'parameters',
      formula: v({ parameters: countedSum(trained, elements) }),
      source: 'each tensor of the stage once',
    });
  }
  const cut = trained.filter((each) => each.cut !== undefined);
  const isShared = ({ cut }: SharedParam) => cut?.runs.every(isDealtEqually);
  const { whole, shared, vocabulary_rows } = inputs({
    whole: countedSum(
      trained.filter((each) => each.cut === undefined),
      elements,
    ),
    shared: countedSum(cut.filter(isShared), elements),
    vocabulary_rows: countedSum(
      cut.filter((each) => !isShared(each)),
      (each) => ofGpu(each, gpus),
    ),
  });
  return figure({
    label: 'parameters of a GPU',
    unit: 'parameters',
    formula: add(whole, div(shared, v({ tensor: gpus })), vocabulary_rows),
    source:
      'products by columns and rows, heads, channels and the padded vocabulary are divided; norms, routers, ' +
      'tables and low-rank parts are not (arXiv 1909.08053)',
  });
}
