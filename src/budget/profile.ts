/** What a model weighs and costs: all budgets of one description together. */
import type { LanguageModel } from '../architecture/layer.js';
import { DTYPE_NAMES, DTYPES, type Dtype } from '../tensor/dtype.js';
import { type Figure, figure, sumFigure } from './figure.js';
import {
  type ForwardBudget,
  forwardFlopsOf,
  type TrainingFlopsBudget,
  trainingFlopsOf,
} from './flops.js';
import { bufferBytes, type ParameterFigures, parameterFigures } from './parameters.js';
import { type StateBudget, type StateSetting, stateOf } from './state.js';
import { type TrainingBudget, type TrainingSetting, trainingMemoryOf } from './training.js';

export interface ProfileSetting {
  readonly inference: StateSetting & {
    /** Count only the pairs of query and key that the mask lets through. */
    readonly causal: boolean;
  };
  readonly training: TrainingSetting;
}

export interface InferenceBudget {
  readonly weights: Figure;
  readonly buffers: Figure;
  readonly state: StateBudget;
  /** Weights, buffers and state; activations of the step in hand come on top. */
  readonly total: Figure;
}

export interface ModelProfile {
  readonly parameters: ParameterFigures;
  /** Of all parameters in every element type. */
  readonly bytes: readonly { readonly dtype: Dtype; readonly bytes: Figure }[];
  readonly inference: InferenceBudget;
  readonly training: TrainingBudget;
  /** A forward pass at the setting of inference. */
  readonly forwardFlops: ForwardBudget;
  /** A training step at the setting of training. */
  readonly trainingFlops: TrainingFlopsBudget;
}

/** All budgets of a model. Nothing in it is as large as the model: only descriptions are counted. */
export function profileModel(model: LanguageModel, setting: ProfileSetting): ModelProfile {
  const { inference, training } = setting;
  const parameters = parameterFigures(model);
  return {
    parameters,
    bytes: DTYPE_NAMES.map((dtype) => ({ dtype, bytes: weightBytes(parameters.total, dtype) })),
    inference: inferenceMemoryOf(model, parameters, inference),
    training: trainingMemoryOf(model, training),
    forwardFlops: forwardFlopsOf(model, inference),
    trainingFlops: trainingFlopsOf(model, { ...training, causal: inference.causal }),
  };
}

const weightBytes = ({ value }: Pick<Figure, 'value'>, dtype: Dtype) =>
  figure({
    label: `weights in ${dtype}`,
    unit: 'bytes',
    formula: 'ceildiv(parameters * bits, 8)',
    inputs: { parameters: value, bits: DTYPES[dtype].bits },
    source: 'packed without gaps',
  });

/** The memory of inference alone. @param parameters Those of the model. */
export function inferenceMemoryOf(
  model: LanguageModel,
  parameters: {
    readonly [Name in 'total' | 'buffers']: Pick<ParameterFigures[Name], 'value'>;
  },
  setting: StateSetting,
): InferenceBudget {
  const weights = weightBytes(parameters.total, setting.dtype);
  const state = stateOf(model, setting);
  const buffers = bufferBytes(parameters.buffers.value);
  const parts = { weights, buffers, state: state.total };
  const total = sumFigure('inference memory', 'bytes', parts, 'sum of the parts');
  return { weights, buffers, state, total };
}

/** The bytes of that total, from counts that add up over layers. @param counts `state` is in bytes. */
export const inferenceBytes = (counts: {
  readonly parameters: number;
  readonly buffers: number;
  readonly state: number;
  readonly dtype: Dtype;
}): number =>
  Number(weightBytes({ value: counts.parameters }, counts.dtype).value) +
  Number(bufferBytes(counts.buffers).value) +
  counts.state;
