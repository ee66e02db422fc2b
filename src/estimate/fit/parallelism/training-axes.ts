/** Degrees of parallelism that options of a training ask for. */

import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import type { FitOptions } from '../fit-options.js';
import type { TrainingFitSetting } from '../training/training-setting.js';

/** How a training is spread over its GPUs, beside copies of the model. */
export type TrainingAxes = Pick<
  TrainingFitSetting,
  | 'tensorParallel'
  | 'pipelineParallel'
  | 'contextParallel'
  | 'expertParallel'
  | 'expertTensorParallel'
  | 'sequenceParallel'
>;

/** Options of these degrees; a missing one is 1. */
export type AxesOptions = Pick<FitOptions, keyof TrainingAxes>;

/**
 * Degrees of a training; those of 1 are left out where results show only what was asked for.
 * @throws UserError for sequence parallelism without tensor parallelism.
 */
export function trainingAxesOf(options: AxesOptions, gpus: number): TrainingAxes {
  refuseLoneSequence(options);
  const { tensorParallel = 1, pipelineParallel = 1, contextParallel = 1 } = options;
  const { expertTensorParallel, expertParallel: asked } = options;
  const expertParallel =
    asked === 'all' ? gpus / (pipelineParallel * (expertTensorParallel ?? tensorParallel)) : asked;
  return {
    tensorParallel,
    pipelineParallel,
    ...(contextParallel > 1 && { contextParallel }),
    ...(expertParallel !== undefined && expertParallel > 1 && { expertParallel }),
    ...(expertTensorParallel !== undefined && { expertTensorParallel }),
    sequenceParallel: Boolean(options.sequenceParallel),
  };
}

/** Sequence parallelism needs GPUs that share the layers. */
function refuseLoneSequence({ sequenceParallel, tensorParallel = 1 }: AxesOptions): void {
  if (!sequenceParallel || tensorParallel !== 1) return;
  throw usageError(
    `${setting('sequenceParallel')} requires GPUs that share layers`,
    `write ${setting('tensorParallel', 2)} or more`,
  );
}

/** Copies of a model that work on different sequences; 1 where the degrees are more than the GPUs. */
export const trainingReplicas = ({
  gpus = 1,
  tensorParallel = 1,
  pipelineParallel = 1,
  contextParallel = 1,
}: Partial<Pick<TrainingAxes, 'tensorParallel' | 'pipelineParallel' | 'contextParallel'>> & {
  readonly gpus?: number | undefined;
}): number => Math.max(1, Math.floor(gpus / (tensorParallel * pipelineParallel * contextParallel)));
