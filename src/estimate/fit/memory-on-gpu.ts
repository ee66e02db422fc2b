/** Memory of a model on one GPU, as `fit` estimates it. */

import { stateDtypeOf } from '../../base/tensor/dtype.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Bounds } from '../../model/budget/figure.js';
import type { ResolvedSetting } from '../../model/budget/profile-model.js';
import type { Gpu } from '../hardware/gpu.js';
import { usualGpu } from '../hardware/nvidia.js';
import { weightLayout } from './serving/quantized.js';
import { servingMemoryOf } from './serving/serving-memory.js';
import type { WeightFormat } from './serving/weight-types.js';
import { fitTrainingMemory } from './training/training-memory.js';

/** Memory with the workspace of a GPU. */
export interface MemoryOnGpu {
  /** Title of the GPU. */
  readonly gpu: string;
  /** Memory of serving, as `fit` estimates it. */
  readonly serving: Bounds;
  /** Memory of a training, as `fit` estimates it. */
  readonly training: Bounds;
}

/** Memory of serving and of a training on one GPU, workspace included. */
export function memoryOnGpu(
  model: LanguageModel,
  { inference, training }: ResolvedSetting,
  weights: WeightFormat,
  gpu: Gpu = usualGpu,
): MemoryOnGpu {
  const { batch, context, cacheDtype } = inference;
  const form = { weights, cacheDtype, stateDtype: stateDtypeOf(cacheDtype), tensorParallel: 1 };
  const served = { model, form, layout: weightLayout(model) };
  const { batch: microBatch, ...sizes } = training;
  const { total } = fitTrainingMemory(model, {
    ...{ ...sizes, microBatch, cluster: { gpu, gpus: 1, network: null } },
    ...{ attention: 'fused', loss: 'full', zero: 0, convention: 'zero' },
    ...{ tensorParallel: 1, pipelineParallel: 1, sequenceParallel: false },
  });
  return {
    gpu: gpu.title,
    serving: servingMemoryOf(served, gpu)(batch, context).total,
    training: total,
  };
}
