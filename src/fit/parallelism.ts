/** How a model is spread over GPUs: replicas, pipeline stages, and GPUs that share each layer. */
import type { LanguageModel, Layer } from '../architecture/layer.js';
import { type Figure, figure } from '../budget/figure.js';
import { remembered } from '../budget/remember.js';
import { requirePositions } from '../budget/setting.js';
import type { Trained } from '../budget/training.js';
import { UserError } from '../errors.js';
import {
  elementsPerGpu,
  headSplits,
  nearestDivisors,
  requireTensorParallel,
  type SharedTensor,
  sharedTensors,
} from './tensor-parallel.js';
import type { TrainingFitSetting } from './training-setting.js';

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

function spread(model: LanguageModel, tensor: number, pipeline: number): Stage[] {
  return Array.from({ length: pipeline }, (_, stage) => {
    const border = (index: number) => Math.floor((model.blocks.length * index) / pipeline);
    const [from, to] = [border(stage), border(stage + 1)];
    const blocks = model.blocks.slice(from, to);
    const tensors = tensorsBetween(model, from, to);
    const trained = tensors.filter(({ tensor: { role } }) => role === 'parameter');
    const isBuffer = ({ tensor: { role } }: SharedTensor) => role === 'buffer';
    return {
      stage,
      from,
      to,
      trained: trained.map((each) => ({ elements: elementsPerGpu(each, tensor) })),
      parameters: parametersFigure(trained, tensor),
      buffers: tensors
        .filter(isBuffer)
        .reduce((sum, { tensor: { elements } }) => sum + elements, 0),
      largestBlock: Math.max(...blocks.map((block) => parametersOf(block, tensor))),
    };
  });
}

/** Tied, the head's weight is the embedding's: within one stage it is held once, else by both. */
function tensorsBetween(model: LanguageModel, from: number, to: number): SharedTensor[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  const [isFirst, isLast] = [from === 0, to === blocks.length];
  if (isFirst && isLast) return sharedTensors([model]);
  const held: Layer[] = [
    ...(isFirst ? [embedding, ...embeddingSteps] : []),
    ...blocks.slice(from, to),
    ...(isLast ? [norm, ...logitSteps] : []),
  ];
  const tensors = sharedIn(held);
  if (!isLast) return tensors;
  return [...tensors, ...headSplits(head).filter(({ tensor }) => !isHeld(tensors, tensor))];
}

const isHeld = (tensors: readonly SharedTensor[], wanted: SharedTensor['tensor']) =>
  tensors.some(({ tensor }) => tensor === wanted);

/** Those of a layer: asked again for every way to cut a model in stages. */
const sharedOf = remembered((layer: Layer) => sharedTensors([layer]));

/** Every tensor of some layers once, by identity. */
function sharedIn(layers: readonly Layer[]): SharedTensor[] {
  const shares = new Map<SharedTensor['tensor'], SharedTensor>();
  for (const share of layers.flatMap(sharedOf)) {
    if (!shares.has(share.tensor)) shares.set(share.tensor, share);
  }
  return [...shares.values()];
}

const parametersOf = (layer: Layer, tensor: number): number =>
  sharedOf(layer)
    .filter(({ tensor: { role } }) => role === 'parameter')
    .reduce((sum, each) => sum + elementsPerGpu(each, tensor), 0);

function parametersFigure(trained: readonly SharedTensor[], gpus: number): Figure {
  const sum = (wanted: SharedTensor['split'], of: (share: SharedTensor) => number) =>
    trained.filter(({ split }) => split === wanted).reduce((total, each) => total + of(each), 0);
  const elements = ({ tensor }: SharedTensor) => tensor.elements;
  if (gpus === 1) {
    return figure({
      label: 'parameters of a GPU',
      unit: 'parameters',
      formula: 'parameters',
      inputs: { parameters: trained.reduce((total, each) => total + elements(each), 0) },
      source: 'each tensor of the stage once',
    });
  }
  return figure({
    label: 'parameters of a GPU',
    unit: 'parameters',
    formula: 'whole + shared / tensor + vocabulary_rows',
    inputs: {
      whole: sum('whole', elements),
      shared: sum('even', elements),
      tensor: gpus,
      vocabulary_rows: sum('vocabulary', (each) => elementsPerGpu(each, gpus)),
    },
    source:
      'products by columns and rows, heads, channels and the vocabulary (padded) are shared; norms, routers, ' +
      'tables and low-rank parts are not (arXiv 1909.08053)',
  });
}
