/** Memory of training on one device: weights, gradients, optimizer, buffers, activations. */

import { tensorsOfKinds } from '../architecture/equal-blocks.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { memoized } from '../architecture/walk.js';
import { add, ceildiv, mul, v } from './expression.js';
import type { Derivation, Figure } from './figure.js';
import { figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';
import type { AttentionKernel } from './kernel-activations.js';
import type { Optimizer, Precision, Trained } from './optimizers.js';
import { OPTIMIZERS, PRECISIONS, trainedTotal } from './optimizers.js';
import { bufferBytes, countParameters } from './parameters.js';
import type { ActivationBudget } from './saved-activations.js';
import { activationsOf } from './saved-activations.js';

export interface TrainingSetting {
  /** Sequences per step on the device. @integer */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Types of weights, gradients, products and moments. */
  readonly precision: Precision;
  /** Optimizer. */
  readonly optimizer: Optimizer;
  /** Work repeated in the backward pass to save memory. */
  readonly recompute: Recompute;
}

export interface TrainingBudget {
  readonly weights: Figure;
  readonly gradients: Figure;
  readonly optimizer: Figure;
  readonly buffers: Figure;
  /** Activations that are saved for the backward pass. */
  readonly activations: ActivationBudget;
  readonly total: Figure;
}

/** Everything that training keeps; kernel workspaces and fragmentation are extra. */
export function trainingMemoryOf(
  model: LanguageModel,
  setting: TrainingSetting,
  attention: AttentionKernel = 'plain',
): TrainingBudget {
  const trained = trainedIn(model);
  const { weights, gradients, optimizer } = trainedStateOf(trained, setting);
  const buffers = bufferBytes(countParameters(model).buffers);
  const bytesPerValue = trainingBytes(setting.precision);
  const activations = activationsOf(model, { ...setting, bytesPerValue, attention });
  const parts = { weights, gradients, optimizer, buffers, activations: activations.total };
  const total = sumFigure('training memory', 'bytes', parts, 'sum of the parts, on one device');
  return { weights, gradients, optimizer, buffers, activations, total };
}

function trainedIn(model: LanguageModel): Trained[] {
  const tables = embeddingsOf(model);
  const trained: Trained[] = [];
  for (const { tensor, count } of tensorsOfKinds(model)) {
    if (tensor.role !== 'parameter') continue;
    const { elements, shape } = tensor;
    const isEmbedding = tables.has(tensor);
    const isHead = model.head.weight === tensor;
    const [columns, matrices] = [columnsOf(shape), matricesOf(shape)];
    trained.push({ elements, count, isEmbedding, isHead, columns, matrices });
  }
  return trained;
}

/** Bytes per weight and per activation. */
export const trainingBytes = (precision: Precision): number => PRECISIONS[precision].weightBytes;

/** Shape and role of a tensor, as the state of an optimizer depends on them. */
export function roleOf(
  model: LanguageModel,
  tensor: Param,
): Pick<Trained, 'isEmbedding' | 'isHead' | 'columns' | 'matrices'> {
  return {
    isEmbedding: embeddingsOf(model).has(tensor),
    isHead: model.head.weight === tensor,
    columns: columnsOf(tensor.shape),
    matrices: matricesOf(tensor.shape),
  };
}

const columnsOf = (shape: Param['shape']): number | undefined =>
  shape.length < 2 ? undefined : shape.at(-1);

/** Matrices in a tensor, by the dimensions before the last two. */
const matricesOf = (shape: Param['shape']): number =>
  shape.reduce((product, size, at) => (at < shape.length - 2 ? product * size : product), 1);

/** Tables with a row per token or position. If tied, the token table is also the head. */
const embeddingsOf = memoized(
  ({ embedding, embeddingSteps }: LanguageModel): ReadonlySet<Param> =>
    new Set([
      embedding.weight,
      ...embeddingSteps.flatMap((step) => (step.kind === 'learnedPositions' ? [step.weight] : [])),
    ]),
);

export interface TrainedStateSetting extends Pick<TrainingSetting, 'precision' | 'optimizer'> {
  /** Bytes of a gradient; default: those of a weight. */
  readonly gradientBytes?: number | undefined;
  /** Whether each tensor is updated as soon as its gradient is there, so that one gradient exists at a time. */
  readonly isUpdatedInBackward?: boolean | undefined;
  /** Source of the gradient's bytes. */
  readonly gradientSource?: string;
  /** Division of a part among devices; undefined if each device has all of it. */
  readonly divided?: (part: keyof TrainedState) => Partition | undefined;
}

/** Number of devices that each hold a part, and the reason. */
export interface Partition {
  readonly replicas: number;
  readonly source: string;
}

export type TrainedState = Pick<TrainingBudget, 'weights' | 'gradients' | 'optimizer'>;

/** Kept training state of tensors, without activations. */
export function trainedStateOf(
  trained: readonly Trained[],
  setting: TrainedStateSetting,
): TrainedState {
  const { precision, gradientSource = 'in the type of the weights (arXiv 1910.02054)' } = setting;
  const parameters = v({ parameters: trainedTotal(trained) });
  const part = (name: keyof TrainedState, whole: Derivation<Figure>) =>
    figure(dividedBy(whole, setting.divided?.(name)));
  const bytes = trainingBytes(precision);
  const gradientBytes = v({ bytes: setting.gradientBytes ?? bytes });
  const largest = Math.max(0, ...trained.map(({ elements }) => elements));
  const isOneByOne = setting.isUpdatedInBackward === true;
  return {
    weights: part('weights', {
      label: 'weights',
      unit: 'bytes',
      formula: mul(v({ bytes }), parameters),
      source: PRECISIONS[precision].source,
    }),
    gradients: part('gradients', {
      label: 'gradients',
      unit: 'bytes',
      formula: mul(gradientBytes, isOneByOne ? v({ largest_tensor: largest }) : parameters),
      source: isOneByOne
        ? 'of one tensor at a time: the optimizer updates it within the backward pass (torchtune, optimizer_in_bwd)'
        : gradientSource,
    }),
    optimizer: part('optimizer', optimizerState(trained, setting)),
  };
}

function optimizerState(
  trained: readonly Trained[],
  { precision, optimizer }: TrainedStateSetting,
): Derivation<Figure> {
  const { label, state, source } = OPTIMIZERS[optimizer];
  const { masterBytes, momentBytes } = PRECISIONS[precision];
  const parameters = v({ parameters: trainedTotal(trained) });
  const moments = state(trained, momentBytes);
  const hasMaster = masterBytes > 0;
  return {
    label: `optimizer: ${label}`,
    unit: 'bytes',
    formula: hasMaster ? add(mul(masterBytes, parameters), moments) : moments,
    inputs: { parameters },
    source: hasMaster ? `float32 master copy of the weights (arXiv 1710.03740); ${source}` : source,
  };
}

const dividedBy = (
  whole: Derivation<Figure>,
  division: Partition | undefined,
): Derivation<Figure> =>
  division === undefined
    ? whole
    : {
        ...whole,
        formula: ceildiv(whole.formula, v({ replicas: division.replicas })),
        source: `${whole.source}; ${division.source}`,
      };
