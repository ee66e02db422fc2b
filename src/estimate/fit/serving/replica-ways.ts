/** Ways to hold a replica on a number of GPUs: the axes that a search of serving tries. */

import { UserError } from '../../../base/errors.js';
import { present } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { generationOf } from '../../../model/budget/generation.js';
import { doubled } from '../parallelism/divisors.js';
import { dividedExperts } from '../parallelism/model-axes.js';
import { copiesOfCache, requireAxes, type ServingAxes } from './serving-axes.js';
import type { ServingFitSetting } from './serving-work.js';
import { hasAxes } from './throughput/runtimes.js';
import { runtimeOf } from './throughput/server.js';

/**
 * Axes with which a number of GPUs hold a replica, mildest first: all share each layer; and for a model with experts, a
 * program with these axes and GPUs that would hold copies of the same keys, groups with sequences of their own that share
 * the experts, whole where there are enough (vLLM, data_parallel_deployment.md; SGLang, --enable-dp-attention).
 */
export function replicaWays(
  model: LanguageModel,
  setting: ServingFitSetting,
  gpus: number,
): readonly ServingAxes[] {
  // A pass of an encoder is on one GPU (`encoderPass`).
  if (generationOf(model) === 'none') return gpus === 1 ? [{ tensorParallel: 1 }] : [];
  const isPower = Number.isInteger(Math.log2(gpus));
  return [...(isPower ? [{ tensorParallel: gpus }] : []), ...groupedWays(model, setting, gpus)];
}

function groupedWays(
  model: LanguageModel,
  setting: ServingFitSetting,
  gpus: number,
): readonly ServingAxes[] {
  const experts = dividedExperts(model);
  if (experts === 0 || !hasAxes(runtimeOf(setting).name, GROUPED)) return [];
  const copies = copiesOfCache(model, gpus);
  return doubled(1, gpus)
    .filter((tensor) => gpus % tensor === 0 && gpus > tensor && gpus / tensor <= copies)
    .map((tensor) => ({
      tensorParallel: tensor,
      dataParallelAttention: gpus / tensor,
      ...(gpus <= experts && { expertParallel: gpus }),
    }))
    .reverse();
}

/** Axes of groups with sequences of their own. */
const GROUPED = ['dataParallelAttention', 'expertParallel'] as const;

/** Axes that a user fixed, with another number of GPUs that share a layer; none where the model refuses them. */
export function keptAxes(
  model: LanguageModel,
  { dataParallelAttention: groups = 1, expertParallel = 1, ...asked }: ServingFitSetting,
  tensorParallel: number,
): readonly ServingAxes[] {
  const { pipelineParallel = 1, contextParallel = 1 } = asked;
  const axes = {
    tensorParallel,
    ...(groups > 1 && { dataParallelAttention: groups }),
    ...(expertParallel > 1 && { expertParallel: tensorParallel * groups }),
    ...(pipelineParallel > 1 && { pipelineParallel }),
    ...(contextParallel > 1 && { contextParallel }),
  };
  return present([isAccepted(model, axes) && axes]);
}

function isAccepted(model: LanguageModel, axes: ServingAxes): boolean {
  try {
    requireAxes(model, axes);
    return true;
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}

/** A setting with these axes alone. */
export function withAxes(setting: ServingFitSetting, axes: ServingAxes): ServingFitSetting {
  const {
    dataParallelAttention: _,
    expertParallel: __,
    pipelineParallel: ___,
    contextParallel: ____,
    ...others
  } = setting;
  return { ...others, ...axes };
}
