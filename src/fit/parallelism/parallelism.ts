/** How a model is spread over GPUs: replicas, pipeline stages, and GPUs that share each layer. */
import type { LanguageModel, Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { remembered, tensorsOf } from '../../architecture/walk.js';
import { add, div, inputs, v } from '../../budget/expression.js';
import { type Figure, figure } from '../../budget/figure.js';
import { requirePositions } from '../../budget/profile.js';
import { embeddingsOf, type Trained } from '../../budget/training.js';
import { UserError } from '../../errors.js';
import type { Cut } from '../../operations/primitive.js';
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
  /** Replicas of the model: gpus / (tensor · pipeline). */
  readonly replicas: number;
  /** Micro-batches of a replica in a step of the optimizer. */
  readonly microBatches: number;
}

/** @throws UserError when the GPUs, the blocks or the layers cannot be divided so. */
export function parallelismOf(model: LanguageModel, setting: TrainingFitSetting): Parallelism {
  const { cluster, tensorParallel: tensor, pipelineParallel: pipeline } = setting;
  requirePositions(setting.context, model.positions);
  const { gpus } = cluster;
  if (gpus % (tensor * pipeline) !== 0) {
    const [flag, value] =
      gpus % tensor === 0 ? ['--pipeline-parallel', pipeline] : ['--tensor-parallel', tensor];
    const left = flag === '--pipeline-parallel' ? gpus / tensor : gpus;
    throw new UserError('usage', `${flag}: ${value} does not divide ${left} GPUs`, {
      suggestion: `write ${nearestDivisors(left, value as number).join(' or ')}`,
    });
  }
  if (pipeline > model.blocks.length) {
    throw new UserError(
      'usage',
      `--pipeline-parallel: ${pipeline} stages are more than the ${model.blocks.length} blocks`,
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

/** Some consecutive blocks, with what stands before the first and after the last block of the model. */
export interface Stage {
  readonly stage: number;
  /** Its first block. */
  readonly from: number;
  /** The one after its last. */
  readonly to: number;
  /** Its parameters, as far as a GPU has them. */
  readonly trained: readonly Trained[];
  readonly parameters: Figure;
  /** Values of its buffers. */
  readonly buffers: number;
  /** Parameters of its largest block, as far as a GPU has them. */
  readonly largestBlock: number;
}

/**
 * Blocks in stages, as equally as they can be. A layer that blocks share is held by each stage that has one of
 * them.
 */
export function stagesOf(
  model: LanguageModel,
  { tensor, pipeline }: Parallelism,
): readonly Stage[] {
  const known = spreadings(model);
  const key = `${tensor} ${pipeline}`;
  const stages = known.get(key) ?? spread(model, tensor, pipeline);
  known.set(key, stages);
  return stages;
}

/** Stages of a model, by how many there are and how many GPUs share each. */
const spreadings = remembered<LanguageModel, Map<string, readonly Stage[]>>(() => new Map());

/** A parameter, and how GPUs that share its layer cut it. */
interface SharedParam {
  readonly elements: number;
  readonly isEmbedding: boolean;
  readonly cut: Cut | undefined;
}

function spread(model: LanguageModel, tensor: number, pipeline: number): Stage[] {
  const shares = sharesOf(model);
  const { trainedOf, blockSizes } = perGpuOf(model, tensor);
  return Array.from({ length: pipeline }, (_, stage) => {
    const border = (index: number) => Math.floor((model.blocks.length * index) / pipeline);
    const [from, to] = [border(stage), border(stage + 1)];
    const parameters: SharedParam[] = [];
    let buffers = 0;
    for (const held of tensorsIn(layersBetween(model, from, to))) {
      const share = shares.get(held);
      if (share) parameters.push(share);
      else buffers += held.elements;
    }
    return {
      stage,
      from,
      to,
      trained: parameters.map(trainedOf),
      parameters: parametersFigure(parameters, tensor),
      buffers,
      largestBlock: Math.max(...blockSizes.slice(from, to)),
    };
  });
}

/** The parameters of a model: a search spreads the same ones again and again. */
const sharesOf = remembered((model: LanguageModel): ReadonlyMap<Param, SharedParam> => {
  const cuts = tensorCuts(model);
  const embeddings = embeddingsOf(model);
  const parameters = heldBy(model).filter(({ role }) => role === 'parameter');
  return new Map(
    parameters.map((param) => {
      const { elements } = param;
      return [param, { elements, isEmbedding: embeddings.has(param), cut: cuts.get(param) }];
    }),
  );
});

/** What does not depend on the number of stages. */
interface PerGpu {
  /** As far as one of the GPUs has it. */
  readonly trainedOf: (share: SharedParam) => Trained;
  /** Parameters of each block, as far as a GPU has them. */
  readonly blockSizes: readonly number[];
}

function perGpuOf(model: LanguageModel, gpus: number): PerGpu {
  const known = perGpuByModel(model);
  const found = known.get(gpus) ?? findPerGpu(model, gpus);
  known.set(gpus, found);
  return found;
}

/** By how many GPUs share each layer. */
const perGpuByModel = remembered<LanguageModel, Map<number, PerGpu>>(() => new Map());

function findPerGpu(model: LanguageModel, gpus: number): PerGpu {
  const shares = sharesOf(model);
  const trainedOf = remembered(
    (share: SharedParam): Trained => ({
      elements: ofGpu(share, gpus),
      isEmbedding: share.isEmbedding,
    }),
  );
  const sizeOf = (block: Layer) =>
    sumOf(heldBy(block), (param) => {
      const share = shares.get(param);
      return share ? trainedOf(share).elements : 0;
    });
  return { trainedOf, blockSizes: model.blocks.map(sizeOf) };
}

const ofGpu = ({ elements, cut }: SharedParam, gpus: number): number =>
  elementsPerGpu(elements, cut, gpus);

const sumOf = <T>(all: readonly T[], of: (each: T) => number): number =>
  all.reduce((sum, each) => sum + of(each), 0);

function layersBetween(model: LanguageModel, from: number, to: number): readonly Layer[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  return [
    ...(from === 0 ? [embedding, ...embeddingSteps] : []),
    ...blocks.slice(from, to),
    ...(to === blocks.length ? [norm, head, ...logitSteps] : []),
  ];
}

/** Each once: tied, the head's weight is the embedding's, and two stages that hold one of them have it both. */
const tensorsIn = (layers: readonly Layer[]): ReadonlySet<Param> => {
  const tensors = new Set<Param>();
  for (const layer of layers) for (const tensor of heldBy(layer)) tensors.add(tensor);
  return tensors;
};

const heldBy = remembered(tensorsOf);

function parametersFigure(trained: readonly SharedParam[], gpus: number): Figure {
  const elements = ({ elements }: SharedParam) => elements;
  if (gpus === 1) {
    return figure({
      label: 'parameters of a GPU',
      unit: 'parameters',
      formula: v({ parameters: sumOf(trained, elements) }),
      source: 'each tensor of the stage once',
    });
  }
  const cut = trained.filter((each) => each.cut !== undefined);
  const isShared = ({ cut }: SharedParam) => cut?.runs.every(isDealtEqually);
  const { whole, shared, vocabulary_rows } = inputs({
    whole: sumOf(
      trained.filter((each) => each.cut === undefined),
      elements,
    ),
    shared: sumOf(cut.filter(isShared), elements),
    vocabulary_rows: sumOf(
      cut.filter((each) => !isShared(each)),
      (each) => ofGpu(each, gpus),
    ),
  });
  return figure({
    label: 'parameters of a GPU',
    unit: 'parameters',
    formula: add(whole, div(shared, v({ tensor: gpus })), vocabulary_rows),
    source:
      'products by columns and rows, heads, channels and the vocabulary (padded) are shared; norms, routers, ' +
      'tables and low-rank parts are not (arXiv 1909.08053)',
  });
}
