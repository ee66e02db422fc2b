/** Places of the weights that options of a fit ask for. */
import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Cluster } from '../../hardware/gpu.js';
import { isProcessorName, systemMemory } from '../../hardware/system-memory.js';
import { type FitOptions, PLACES_OPTIONS } from '../fit-options.js';
import { weightLayout } from '../serving/quantized.js';
import type { PlacesWish } from './places.js';

const isPlaced = (options: FitOptions): boolean =>
  PLACES_OPTIONS.some((name) => options[name] !== undefined);

/** Options of serving whose figures need the whole model on GPUs. */
const ON_GPUS_ONLY = [
  ...(['tensorParallel', 'requestsPerSecond', 'p95Seconds', 'pricePerHour', 'outputMix'] as const),
  ...(['tokenSeconds', 'prefillSeconds', 'minTokensPerSecond', 'eager'] as const),
  ...(['chunkedPrefill', 'batching', 'prefixCache', 'draft'] as const),
];

/** A given option whose figures need the whole model on GPUs. */
const optionOfGpus = (options: FitOptions) =>
  ON_GPUS_ONLY.find((name) => options[name] !== undefined && options[name] !== false);

/** Another program than llama.cpp, which alone serves weights in system memory. */
const otherRuntime = ({ runtime }: FitOptions) => (runtime === 'llama.cpp' ? undefined : runtime);

/** Whether the other options allow weights in system memory. */
export const isPlaceable = (options: FitOptions): boolean =>
  optionOfGpus(options) === undefined && otherRuntime(options) === undefined;

/** @throws UserError for a server, which is not estimated with weights in system memory. */
function refuseOnGpusOnly(options: FitOptions): void {
  const runtime = otherRuntime(options);
  if (runtime !== undefined) {
    throw usageError(
      `${setting('runtime', runtime)} does not apply to weights in system memory, which llama.cpp serves`,
      'leave it out',
    );
  }
  const name = optionOfGpus(options);
  if (name === undefined) return;
  const places = placesSetting(options) ?? setting('gpu', 'cpu');
  throw usageError(
    `${setting(name)} needs the whole model on GPUs, and ${places} allows weights in system memory`,
    'leave one of them out',
  );
}

/** The note where the GPUs hold the whole model, although the user named system memory. */
export function idleRam(options: FitOptions, hasPlaces: boolean): string | undefined {
  if (!isPlaced(options) || hasPlaces) return undefined;
  return 'system memory is not used: the GPUs hold the whole model';
}

/** @throws UserError for system memory, or a machine without a GPU, and a training. */
export function refusePlacesOfTraining(options: FitOptions, gpu: string | undefined): void {
  const processor = isProcessorName(gpu) ? setting('gpu', 'cpu') : undefined;
  const places = placesSetting(options) ?? processor;
  if (places === undefined) return;
  throw usageError(
    `${places} applies to serving`,
    `write ${setting('for', 'serving')}, or leave it out`,
  );
}

/** Places of the weights; undefined where no option asks for them. @throws UserError for experts that a model lacks. */
export function placesWish(
  model: LanguageModel,
  options: FitOptions,
  { gpu }: Cluster,
): PlacesWish | undefined {
  const { ramBytes = null, ramSpeed, cpu, gpuLayers, cpuExperts } = options;
  const isProcessor = isProcessorName(gpu.name);
  if (!isPlaced(options) && !isProcessor) return undefined;
  refuseOnGpusOnly(options);
  if (isProcessor && (gpuLayers ?? 0) + (cpuExperts ?? 0) > 0) {
    throw usageError(
      `${setting('gpuLayers')} and ${setting('cpuExperts')} require a GPU, found none`,
      `name one with ${setting('gpu')}`,
    );
  }
  if (cpuExperts !== undefined && weightLayout(model).experts.size === 0) {
    throw usageError(
      `${setting('cpuExperts')} requires a model with routed experts`,
      `write ${setting('gpuLayers', 'N')} for layers in system memory, or ${setting('ramBytes', 'SIZE')}`,
    );
  }
  const memory = systemMemory(ramBytes, ramSpeed, cpu);
  return { memory, gpuLayers: isProcessor ? 0 : gpuLayers, cpuExperts };
}

/** First given option of system memory, as texts write it. */
function placesSetting(options: FitOptions): string | undefined {
  const name = PLACES_OPTIONS.find((each) => options[each] !== undefined);
  return name && setting(name);
}
