/** Options of a fit that have no effect on the given hardware. */
import type { Problem } from '../../base/errors.js';
import { setting as settingText } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { counted, joined } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Cluster } from '../hardware/gpu.js';
import type { FitOptions } from './fit-options.js';
import { parallelismOf } from './parallelism/parallelism.js';
import { idleGpusOf } from './serving/placed-serving.js';
import { axesOfReplica, gpusOfReplica } from './serving/serving-axes.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import type { TrainingFitSetting } from './training/training-setting.js';

/**
 * Warnings about options of training without an effect on these GPUs. They are not errors, because scripts write the same
 * options for any number of GPUs.
 * @param file The model.
 */
export function idleTrainingOptions(
  model: LanguageModel,
  { microBatch, context, ...others }: TrainingFitSetting,
  { globalBatchTokens: asked }: FitOptions,
  file: string,
): Problem[] {
  const { replicas } = parallelismOf(model, { ...others, microBatch, context });
  const least = microBatch * context * replicas;
  return present([
    asked !== undefined &&
      asked < least && {
        severity: 'warning',
        file,
        message: `${settingText('globalBatchTokens')}: a step has at least ${formatInteger(least)} tokens (${formatInteger(microBatch)} × ${formatInteger(context)} × ${counted(replicas, 'replica')}), found ${formatInteger(asked)}`,
        suggestion: `write ${settingText('globalBatchTokens', least)}, or use fewer GPUs, sequences or tokens`,
      },
  ]);
}

/** Note on ZeRO with a single replica: nothing can be divided, and every figure still holds. */
export function idleZero(zero: FitOptions['zero'], replicas: number): string | undefined {
  if (zero === undefined || zero === '0' || replicas > 1) return undefined;
  return `${settingText('zero', zero)} is not used: the training has 1 replica; it divides memory from ${settingText('gpus', 2)} on`;
}

/** Axes that a training of adapters does not have: each GPU has whole layers. */
const AXES_OF_ALL_WEIGHTS = [
  ...(['tensorParallel', 'pipelineParallel', 'sequenceParallel'] as const),
  ...(['expertParallel', 'expertTensorParallel'] as const),
];

/** Note on ways to spread layers that a training of adapters does not use. */
export function idleAxes(options: FitOptions): string | undefined {
  const idle = AXES_OF_ALL_WEIGHTS.filter((name) => {
    const value = options[name];
    return value !== undefined && value !== false && value !== 1;
  });
  if (idle.length === 0) return undefined;
  const names = joined(idle.map((name) => settingText(name)));
  return `${names} ${idle.length === 1 ? 'is' : 'are'} not used: each GPU trains adapters on whole layers, whose state the GPUs divide`;
}

/** Note on a training on GPUs of several kinds: data parallelism and ZeRO divide it into equal parts. */
export function mixedTraining({ gpu, gpus, cards }: Cluster): string | undefined {
  if (cards === undefined) return undefined;
  return `the GPUs differ: a training divides its work equally, so that all ${gpus} count as ${gpu.title}`;
}

/** Warning about unused GPUs, when the GPUs of a replica do not divide all of them. @param file The model. */
export function idleGpus(setting: ServingFitSetting, file: string): Problem[] {
  const { gpus } = setting.cluster;
  const each = gpusOfReplica(setting);
  const idle = idleGpusOf(setting);
  if (idle === 0) return [];
  const names = axesOfReplica(setting)
    .map((name) => settingText(name))
    .join(' × ');
  return [
    {
      severity: 'warning',
      file,
      message: `${idle} of ${gpus} GPUs ${idle === 1 ? 'serves' : 'serve'} nothing: ${each} ${each === setting.tensorParallel ? 'share each layer of a replica' : 'hold a replica'}`,
      suggestion:
        setting.prefillGpus === undefined
          ? `write ${settingText('gpus', gpus - idle)}, or a ${names} that divides ${gpus}`
          : `write multiples of ${each} for ${settingText('gpus')} and ${settingText('prefillGpus')}`,
    },
  ];
}
