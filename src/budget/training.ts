/** Memory of training on one device: weights, gradients, optimizer, buffers, activations. */
import type { LanguageModel } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { tensorsOf } from '../architecture/walk.js';
import { type ActivationBudget, activationsOf } from './activations.js';
import { type Figure, figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';
import { bufferBytes } from './parameters.js';

/** Small tensors, and the scales of large ones, as the 8-bit optimizer of bitsandbytes keeps them. */
const EIGHT_BIT_BLOCK = 256;
const EIGHT_BIT_SMALLEST = 4096;

/**
 * Bytes that an optimizer keeps for each parameter besides the fp32 master copy of mixed precision:
 * formulas over `parameters` and, for 8 bits, over those of large tensors, and of small ones and embeddings.
 */
export const OPTIMIZERS = {
  adamw: {
    label: 'AdamW',
    state: '8 * parameters',
    source: 'two float32 moments (arXiv 1711.05101)',
  },
  'adamw-8bit': {
    label: 'AdamW, 8 bits',
    state: '2 * large + 8 * small + 8 * blocks',
    source:
      'two moments of 1 byte with a float32 scale for each block of 256 values; tensors below 4096 values in float32 ' +
      '(bitsandbytes, AdamW8bit), and embeddings (transformers, Trainer.create_optimizer)',
  },
  sgd: { label: 'SGD', state: '0 * parameters', source: 'no state without momentum' },
  'sgd-momentum': {
    label: 'SGD with momentum',
    state: '4 * parameters',
    source: 'one float32 velocity',
  },
} as const satisfies Record<string, { label: string; state: string; source: string }>;

export type Optimizer = keyof typeof OPTIMIZERS;

export const OPTIMIZER_NAMES = Object.keys(OPTIMIZERS) as readonly Optimizer[];

export interface TrainingSetting {
  /** Sequences on the device at a time. */
  readonly batch: number;
  readonly context: number;
  /** 16-bit weights with an fp32 master copy, or all in float32. */
  readonly precision: 'mixed' | 'float32';
  readonly optimizer: Optimizer;
  readonly recompute: Recompute;
}

export interface TrainingBudget {
  readonly weights: Figure;
  readonly gradients: Figure;
  readonly optimizer: Figure;
  readonly buffers: Figure;
  readonly activations: ActivationBudget;
  readonly total: Figure;
}

/** Everything that training keeps; workspaces of kernels and fragmentation come on top. */
export function trainingMemoryOf(model: LanguageModel, setting: TrainingSetting): TrainingBudget {
  const tensors = tensorsOf(model);
  const embeddings = embeddingsOf(model);
  const trained = tensors
    .filter(({ role }) => role === 'parameter')
    .map((tensor) => ({ elements: tensor.elements, isEmbedding: embeddings.has(tensor) }));
  const { weights, gradients, optimizer } = trainedStateOf(trained, setting);
  const buffers = bufferBytes(sum(tensors) - sum(trained));
  const bytesPerValue = bytesIn(setting.precision);
  const activations = activationsOf(model, { ...setting, bytesPerValue });
  const parts = { weights, gradients, optimizer, buffers, activations: activations.total };
  const total = sumFigure('training memory', 'bytes', parts, 'sum of the parts, on one device');
  return { weights, gradients, optimizer, buffers, activations, total };
}

/** Bytes of a weight, and of an activation. */
export const bytesIn = (precision: TrainingSetting['precision']): number =>
  precision === 'mixed' ? 2 : 4;

/** A tensor, or a device's part of one. */
export interface Trained {
  readonly elements: number;
  /** Whether rows of it are looked up: optimizers in 8 bits leave its state in float32. */
  readonly isEmbedding?: boolean;
}

/** Tables of which tokens and positions have a row. Tied, that of tokens is the head too. */
export const embeddingsOf = ({ embedding, embeddingSteps }: LanguageModel): ReadonlySet<Param> =>
  new Set([
    embedding.weight,
    ...embeddingSteps.flatMap((step) => (step.kind === 'learnedPositions' ? [step.weight] : [])),
  ]);

export interface TrainedStateSetting extends Pick<TrainingSetting, 'precision' | 'optimizer'> {
  /** Of a gradient; those of a weight unless said otherwise. */
  readonly gradientBytes?: number | undefined;
  /** Why so many. */
  readonly gradientSource?: string;
}

export type TrainedState = Pick<TrainingBudget, 'weights' | 'gradients' | 'optimizer'>;

/** What training keeps of tensors, whatever it computes. */
export function trainedStateOf(
  trained: readonly Trained[],
  setting: TrainedStateSetting,
): TrainedState {
  const { precision, gradientSource = 'in the type of the weights (arXiv 1910.02054)' } = setting;
  const parameters = sum(trained);
  const ofParameters = (label: string, bytes: number, source: string) =>
    figure({
      label,
      unit: 'bytes',
      formula: 'bytes * parameters',
      inputs: { bytes, parameters },
      source,
    });
  const bytes = bytesIn(precision);
  return {
    weights: ofParameters('weights', bytes, `${precision} precision`),
    gradients: ofParameters('gradients', setting.gradientBytes ?? bytes, gradientSource),
    optimizer: optimizerFigure(trained, setting),
  };
}

function optimizerFigure(
  trained: readonly Trained[],
  { precision, optimizer }: TrainedStateSetting,
): Figure {
  const { label, state, source } = OPTIMIZERS[optimizer];
  const isLarge = ({ elements, isEmbedding = false }: Trained) =>
    elements >= EIGHT_BIT_SMALLEST && !isEmbedding;
  const large = trained.filter(isLarge);
  const inputs =
    optimizer === 'adamw-8bit'
      ? {
          large: sum(large),
          small: sum(trained) - sum(large),
          blocks: large.reduce((n, { elements }) => n + Math.ceil(elements / EIGHT_BIT_BLOCK), 0),
        }
      : {};
  const mixed = precision === 'mixed';
  return figure({
    label: `optimizer: ${label}`,
    unit: 'bytes',
    formula: mixed ? `4 * parameters + ${state}` : state,
    inputs: { parameters: sum(trained), ...inputs },
    source: mixed ? `float32 master copy of the weights (arXiv 1710.03740); ${source}` : source,
  });
}

const sum = (tensors: readonly Trained[]) =>
  tensors.reduce((total, { elements }) => total + elements, 0);
