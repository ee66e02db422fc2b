/** Memory of training on one device: weights, gradients, optimizer, buffers, activations. */

import { sumOf } from '../../base/text/words.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { countedTensors } from '../architecture/walk.js';
import type { Expression } from './expression.js';
import { add, ceildiv, inputs, mul, v } from './expression.js';
import type { Derivation, Figure } from './figure.js';
import { figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';
import type { AttentionKernel } from './kernel-activations.js';
import { bufferBytes, countParameters } from './parameters.js';
import type { ActivationBudget } from './saved-activations.js';
import { activationsOf } from './saved-activations.js';

/** Values per scale, and minimum tensor size, of the 8-bit optimizer of bitsandbytes. */
const EIGHT_BIT_BLOCK = 256;
const EIGHT_BIT_SMALLEST = 4096;

/** Bytes of optimizer state, excluding the fp32 master copy of mixed precision. */
export const OPTIMIZERS = {
  adamw: {
    label: 'AdamW',
    state: (trained) => mul(8, trainedParameters(trained)),
    source: 'two float32 moments (arXiv 1711.05101)',
  },
  'adamw-8bit': {
    label: 'AdamW, 8 bits',
    state: eightBitMoments,
    source:
      'two moments of 1 byte with a float32 scale for each block of 256 values; tensors below 4096 values in float32 ' +
      '(bitsandbytes, AdamW8bit), and embeddings (transformers, Trainer.create_optimizer)',
  },
  sgd: {
    label: 'SGD',
    state: (trained) => mul(0, trainedParameters(trained)),
    source: 'no state without momentum',
  },
  'sgd-momentum': {
    label: 'SGD with momentum',
    state: (trained) => mul(4, trainedParameters(trained)),
    source: 'one float32 velocity',
  },
} as const satisfies Record<string, OptimizerFormula>;

interface OptimizerFormula {
  readonly label: string;
  readonly state: (trained: readonly Trained[]) => Expression;
  readonly source: string;
}

/** State of large tensors, and of small tensors and embeddings. */
function eightBitMoments(trained: readonly Trained[]): Expression {
  const large = trained.filter(
    ({ elements, isEmbedding = false }) => elements >= EIGHT_BIT_SMALLEST && !isEmbedding,
  );
  const of = inputs({
    large: trainedTotal(large),
    small: trainedTotal(trained) - trainedTotal(large),
    blocks: trainedTotal(large, (elements) => Math.ceil(elements / EIGHT_BIT_BLOCK)),
  });
  return add(mul(2, of.large), mul(8, of.small), mul(8, of.blocks));
}

export type Optimizer = keyof typeof OPTIMIZERS;

export const OPTIMIZER_NAMES = Object.keys(OPTIMIZERS) as readonly Optimizer[];

export interface TrainingSetting {
  /** Sequences per step on the device. @integer */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** 16-bit weights with an fp32 master copy, or all in float32. */
  readonly precision: 'mixed' | 'float32';
  /** Optimizer. */
  readonly optimizer: Optimizer;
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
  const embeddings = embeddingsOf(model);
  const trained = countedTensors(model)
    .filter(({ tensor: { role } }) => role === 'parameter')
    .map(({ tensor, count }) => ({
      elements: tensor.elements,
      count,
      isEmbedding: embeddings.has(tensor),
    }));
  const { weights, gradients, optimizer } = trainedStateOf(trained, setting);
  const buffers = bufferBytes(countParameters(model).buffers);
  const bytesPerValue = trainingBytes(setting.precision);
  const activations = activationsOf(model, { ...setting, bytesPerValue, attention });
  const parts = { weights, gradients, optimizer, buffers, activations: activations.total };
  const total = sumFigure('training memory', 'bytes', parts, 'sum of the parts, on one device');
  return { weights, gradients, optimizer, buffers, activations, total };
}

/** Bytes per weight and per activation. */
export const trainingBytes = (precision: TrainingSetting['precision']): number =>
  precision === 'mixed' ? 2 : 4;

/** Equal tensors, or a device's parts of them. */
export interface Trained {
  /** Elements of each. */
  readonly elements: number;
  /** Number of tensors; default 1. */
  readonly count?: number;
  /** Whether rows are looked up: 8-bit optimizers keep its state in float32. */
  readonly isEmbedding?: boolean;
}

/** Tables with a row per token or position. If tied, the token table is also the head. */
export const embeddingsOf = ({ embedding, embeddingSteps }: LanguageModel): ReadonlySet<Param> =>
  new Set([
    embedding.weight,
    ...embeddingSteps.flatMap((step) => (step.kind === 'learnedPositions' ? [step.weight] : [])),
  ]);

export interface TrainedStateSetting extends Pick<TrainingSetting, 'precision' | 'optimizer'> {
  /** Bytes of a gradient; default: those of a weight. */
  readonly gradientBytes?: number | undefined;
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
  const parameters = trainedParameters(trained);
  const part = (name: keyof TrainedState, whole: Derivation<Figure>) =>
    figure(dividedBy(whole, setting.divided?.(name)));
  const bytes = trainingBytes(precision);
  return {
    weights: part('weights', {
      label: 'weights',
      unit: 'bytes',
      formula: mul(v({ bytes }), parameters),
      source: `${precision} precision`,
    }),
    gradients: part('gradients', {
      label: 'gradients',
      unit: 'bytes',
      formula: mul(v({ bytes: setting.gradientBytes ?? bytes }), parameters),
      source: gradientSource,
    }),
    optimizer: part('optimizer', optimizerState(trained, setting)),
  };
}

function optimizerState(
  trained: readonly Trained[],
  { precision, optimizer }: TrainedStateSetting,
): Derivation<Figure> {
  const { label, state, source } = OPTIMIZERS[optimizer];
  const parameters = trainedParameters(trained);
  const mixed = precision === 'mixed';
  return {
    label: `optimizer: ${label}`,
    unit: 'bytes',
    formula: mixed ? add(mul(4, parameters), state(trained)) : state(trained),
    inputs: { parameters },
    source: mixed ? `float32 master copy of the weights (arXiv 1710.03740); ${source}` : source,
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

const trainedParameters = (trained: readonly Trained[]) => v({ parameters: trainedTotal(trained) });

const trainedTotal = (
  tensors: readonly Trained[],
  of: (elements: number) => number = (elements) => elements,
): number => sumOf(tensors, ({ elements, count = 1 }) => count * of(elements));
