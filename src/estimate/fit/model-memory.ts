/**
 * Memory of a model as `profile`, `compare` and `plan` state it: the exact parts of what `fit` counts on one GPU. It needs
 * no table of GPUs, which `compare` would load for nothing.
 */

import type { Dtype } from '../../base/tensor/dtype.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { sumFigure } from '../../model/budget/figure.js';
import type { InferenceBudget } from '../../model/budget/profile-model.js';
import type { Quantization } from '../../model/quantization/quantization-config.js';
import { servedParameters } from './serving/quantized.js';
import type { WeightFormat } from './serving/weight-types.js';
import { parseWeightDtype, SERVED_IN, usualFormat, WEIGHT_DTYPES } from './serving/weight-types.js';

/** Type of the weights as a checkpoint holds them. */
export interface StoredWeightFormat extends Pick<WeightFormat, 'dtype'> {
  /** Values of a row per scale, if the config gives it. */
  readonly group?: number;
  /** Layout that the config describes. */
  readonly label?: string;
}

/** Facts from a file about its weights. */
export interface StoredModel {
  readonly quantization?: Quantization;
  readonly storedType?: string;
}

/** Undefined without a config that says it, or a GGUF file. */
export function storedWeightFormat({
  quantization,
  storedType,
}: StoredModel): StoredWeightFormat | undefined {
  const dtype = storedType === undefined ? undefined : parseWeightDtype(storedType);
  const served = quantization?.served;
  return served ? { ...served, label: quantization.label } : dtype && { dtype };
}

/** Format of the served weights: the type that was asked for, else that of the checkpoint, else bf16. */
export function servedFormat(
  dtype: Dtype | undefined,
  stored: StoredWeightFormat | undefined,
): WeightFormat | undefined {
  if (dtype !== undefined) {
    const served = SERVED_IN[dtype];
    return served && usualFormat(served);
  }
  return stored ? storedFormat(stored) : usualFormat('bf16');
}

/** Weights as a checkpoint stores them. */
function storedFormat({ dtype, group, label }: StoredWeightFormat): WeightFormat {
  const usual = usualFormat(dtype);
  return {
    ...usual,
    groupSize: group ?? usual.groupSize,
    ...(label !== undefined && { stored: label }),
  };
}

/** Whether weights have scales, so that bits times parameters are not all. */
export const isQuantized = ({ dtype }: WeightFormat): boolean =>
  WEIGHT_DTYPES[dtype].usual !== undefined || WEIGHT_DTYPES[dtype].blocks !== undefined;

/** Memory of inference with the weights as they are served, with scales. */
export function inferenceIn(
  model: LanguageModel,
  format: WeightFormat | undefined,
  plain: InferenceBudget,
): InferenceBudget {
  if (format === undefined || !isQuantized(format)) return plain;
  const weights = servedParameters(model, format);
  const { buffers, state } = plain;
  const parts = { weights, buffers, state: state.total };
  return {
    ...plain,
    weights,
    total: sumFigure('inference memory', 'bytes', parts, 'sum of the parts'),
  };
}
