/** Places of the weights that options of a fit ask for. */
import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { gpusInOrder, MOST_CARDS } from '../../hardware/cluster-named.js';
import type { Cluster } from '../../hardware/gpu.js';
import { isProcessorName, systemMemory } from '../../hardware/system-memory.js';
import { type FitOptions, PLACES_OPTIONS } from '../fit-options.js';
import { weightLayout } from '../serving/quantized.js';
import type { PlacesWish } from './places.js';

const isPlaced = (options: FitOptions): boolean =>
  PLACES_OPTIONS.some((name) => options[name] !== undefined);

/** Options of serving whose figures need the whole model on GPUs. */
const ON_GPUS_ONLY = [
  ...(['tensorParallel', 'pipelineParallel', 'dataParallelAttention', 'expertParallel'] as const),
  ...(['contextParallel', 'requestsPerSecond', 'p95Seconds', 'pricePerHour', 'outputMix'] as const),
  ...(['tokenSeconds', 'prefillSeconds', 'minTokensPerSecond', 'eager'] as const),
  ...(['chunkedPrefill', 'batching', 'prefixCache', 'draft', 'prefillGpus'] as const),
];

/** A given option whose figures need the whole model on GPUs. */
const optionOfGpus = (options: FitOptions) =>
  ON_GPUS_ONLY.find((name) => options[name] !== undefined && options[name] !== false);

/** Another program than llama.cpp, which alone serves weights in system memory. */
const otherRuntime = ({ runtime }: FitOptions) => (runtime === 'llama.cpp' ? undefined : runtime);

/** Whether the other options allow weights in system memory. */
export const isPlaceable = (options: FitOptions): boolean =>
  optionOfGpus(options) === undefined && otherRuntime(options) === undefined;

/** @throws UserError for a server, which is not estimated with weights in several places. */
function refuseOnGpusOnly(options: FitOptions, isMixed: boolean): void {
  const runtime = otherRuntime(options);
  const where = isMixed ? 'GPUs of several kinds' : 'weights in system memory';
  if (runtime !== undefined) {
    throw usageError(
      `${setting('runtime', runtime)} does not apply to ${where}, which llama.cpp serves`,
      'leave it out',
    );
  }
  const name = optionOfGpus(options);
  if (name === undefined) return;
  const places = placesSetting(options) ?? setting('gpu', 'cpu');
  throw usageError(
    isMixed
      ? `${setting(name)} needs GPUs of one kind, found several`
      : `${setting(name)} needs the whole model on GPUs, and ${places} allows weights in system memory`,
    'leave one of them out',
  );
}

/** @throws UserError for more GPUs than llama.cpp uses, and for proportions of another number of GPUs. */
function refuseCards({ tensorSplit }: FitOptions, cluster: Cluster): void {
  if (cluster.gpus > MOST_CARDS) {
    throw usageError(
      `expected at most ${MOST_CARDS} GPUs with weights in system memory, found ${cluster.gpus}`,
      `write ${setting('gpus', MOST_CARDS)} or fewer`,
    );
  }
  if (tensorSplit === undefined || tensorSplit.length === gpusInOrder(cluster).length) return;
  throw usageError(
    `${setting('tensorSplit')}: expected ${cluster.gpus} numbers, one for each GPU, found ${tensorSplit.length}`,
    `write as many, as in ${setting('tensorSplit', '3,1')} for two GPUs`,
  );
}

/** Options that let weights into system memory. */
const LETS_SPILL = [
  ...(['ramBytes', 'ramSpeed', 'cpu', 'gpuLayers', 'cpuExperts', 'offload'] as const),
] as const;

/** Whether weights may be in system memory: on GPUs of several kinds only where an option names it. */
const maySpill = (options: FitOptions): boolean =>
  LETS_SPILL.some((name) => options[name] !== undefined);

/** The note where the GPUs hold the whole model, although the user named system memory. */
export function idleRam(options: FitOptions, hasPlaces: boolean): string | undefined {
  if (!isPlaced(options) || hasPlaces || options.isDetected) return undefined;
  return 'system memory is not used: the GPUs hold the whole model';
}

/** @throws UserError for system memory, or a machine without a GPU, and a training. */
export function refusePlacesOfTraining(options: FitOptions, gpu: string | undefined): void {
  const processor = isProcessorName(gpu) ? setting('gpu', 'cpu') : undefined;
  const places = placesSetting(options) ?? processor;
  if (places === undefined) return;
  const isMemory = ['ramBytes', 'ramSpeed', 'cpu'].some(
    (name) => options[name as 'cpu'] !== undefined,
  );
  if (options.for === 'training' && isMemory && processor === undefined) {
    throw usageError(
      `${places} applies to a training with a part of its state there`,
      `add ${setting('offload', 'optimizer')} or ${setting('offload', 'parameters')}, or leave it out`,
    );
  }
  throw usageError(
    `${places} applies to serving`,
    `write ${setting('for', 'serving')}, or leave it out`,
  );
}

/** Places of the weights; undefined where no option asks for them. @throws UserError for experts that a model lacks. */
export function placesWish(
  model: LanguageModel,
  options: FitOptions,
  cluster: Cluster,
): PlacesWish | undefined {
  const { ramBytes = null, ramSpeed, cpu, gpuLayers, tensorSplit, offload } = options;
  const all = Number.POSITIVE_INFINITY;
  const cpuExperts = options.cpuExperts ?? (offload === 'experts' ? all : undefined);
  const isProcessor = isProcessorName(cluster.gpu.name);
  const isMixed = cluster.cards !== undefined;
  if (!isPlaced(options) && !isProcessor && !isMixed) return undefined;
  refuseOnGpusOnly(options, isMixed);
  refuseCards(options, cluster);
  if (isProcessor && (gpuLayers ?? 0) + (cpuExperts ?? 0) > 0) {
    throw usageError(
      `${setting('gpuLayers')} and ${setting('cpuExperts')} require a GPU, found none`,
      `name one with ${setting('gpu')}`,
    );
  }
  if (cpuExperts !== undefined && weightLayout(model).experts.size === 0) {
    throw usageError(
      `${offload === 'experts' ? setting('offload', offload) : setting('cpuExperts')} requires a model with routed experts`,
      `write ${setting('gpuLayers', 'N')} for layers in system memory, or ${setting('ramBytes', 'SIZE')}`,
    );
  }
  const memory = systemMemory(ramBytes, ramSpeed, cpu);
  return {
    memory,
    gpuLayers: isProcessor ? 0 : gpuLayers,
    cpuExperts,
    tensorSplit,
    ...(offload === 'cache' && { isCacheInSystem: true }),
    ...(offload === 'layers' && { isOfLayers: true }),
    maySpill: isProcessor || maySpill(options),
  };
}

/** First given option of system memory, as texts write it. */
function placesSetting(options: FitOptions): string | undefined {
  const name = PLACES_OPTIONS.find((each) => options[each] !== undefined);
  return name && setting(name);
}
