/** The flags of `minimind fit` about system memory, and the places that they ask for. */
import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import type { PlacesWish } from '../../estimate/fit/places/places.js';
import { weightLayout } from '../../estimate/fit/serving/quantized.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import { isProcessorName, systemMemory } from '../../estimate/hardware/system-memory.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { ParsedFlags } from './flags.js';
import { bytesLimit, layerCount } from './value-flags.js';

const PLACES = { helpGroup: 'SYSTEM MEMORY' };

/** Flags of weights in system memory. */
export const placesFlags = {
  ram: bytesLimit({
    ...PLACES,
    description:
      'system memory for what the GPUs do not hold, as in 64GB; layers and experts are placed where serving is fastest',
  }),
  'ram-speed': Flags.string({
    ...PLACES,
    helpValue: 'TYPE',
    description:
      'type or bandwidth of the system memory, as in ddr5-5600 (two channels), 4xddr4-3200 or 90GB/s [default: ddr5-5600]',
  }),
  'gpu-layers': layerCount({
    ...PLACES,
    description: 'layers on the GPUs, counted from the output, the others in system memory',
  }),
  'cpu-experts': layerCount({
    ...PLACES,
    description: 'first layers whose routed experts are in system memory',
  }),
};

/** Flags of a line, of which some exclude system memory. */
type PlacesLine = Partial<ParsedFlags<typeof placesFlags>> & {
  readonly gpu?: string | undefined;
} & Readonly<Record<string, unknown>>;

/** Flags of system memory. */
export const PLACED = Object.keys(placesFlags) as (keyof typeof placesFlags)[];

const isPlaced = (flags: PlacesLine): boolean => PLACED.some((name) => flags[name] !== undefined);

/** Flags of serving whose figures need the whole model on GPUs. */
const ON_GPUS_ONLY = [
  ...['tensor-parallel', 'qps', 'p95', 'price', 'output-mix', 'token-time', 'prefill-time'],
  ...['min-speed', 'eager', 'chunked-prefill', 'batching', 'prefix-cache', 'draft'],
] as const;

/** A written flag whose figures need the whole model on GPUs. */
const flagOfGpus = (flags: PlacesLine): string | undefined =>
  ON_GPUS_ONLY.find((name) => flags[name] !== undefined && flags[name] !== false);

/** Another program than llama.cpp, which alone serves weights in system memory. */
const otherRuntime = ({ runtime }: PlacesLine): unknown =>
  runtime === 'llama.cpp' ? undefined : runtime;

/** Whether the other flags of a line allow weights in system memory. */
export const isPlaceable = (flags: PlacesLine): boolean =>
  flagOfGpus(flags) === undefined && otherRuntime(flags) === undefined;

/** @throws UserError for a server, which is not estimated with weights in system memory. */
function refuseOnGpusOnly(flags: PlacesLine): void {
  const runtime = otherRuntime(flags);
  if (runtime !== undefined) {
    throw usageError(
      `--runtime ${runtime} does not apply to weights in system memory, which llama.cpp serves`,
      'leave it out',
    );
  }
  const flag = flagOfGpus(flags);
  if (flag === undefined) return;
  const placed = PLACED.find((name) => flags[name] !== undefined) ?? 'gpu cpu';
  throw usageError(
    `--${flag} needs the whole model on GPUs, and --${placed} allows weights in system memory`,
    'leave one of them out',
  );
}

/** The note where the GPUs hold the whole model, although the user named system memory. */
export function idleRam(flags: PlacesLine, hasPlaces: boolean): string | undefined {
  if (!isPlaced(flags) || hasPlaces) return undefined;
  return 'system memory is not used: the GPUs hold the whole model';
}

/** @throws UserError for system memory, or a machine without a GPU, and a training. */
export function refusePlacesOfTraining(flags: PlacesLine): void {
  const isProcessor = isProcessorName(flags.gpu);
  const flag = PLACED.find((name) => flags[name] !== undefined) ?? (isProcessor ? 'gpu cpu' : '');
  if (flag === '') return;
  throw usageError(`--${flag} applies to serving`, 'write --for serving, or leave it out');
}

/** Places of the weights; undefined where no flag asks for them. @throws UserError for experts that a model lacks. */
export function placesWish(
  model: LanguageModel,
  flags: PlacesLine,
  { gpu }: Cluster,
): PlacesWish | undefined {
  const { ram, 'ram-speed': speed, 'gpu-layers': gpuLayers, 'cpu-experts': cpuExperts } = flags;
  const isProcessor = isProcessorName(gpu.name);
  if (!isPlaced(flags) && !isProcessor) return undefined;
  refuseOnGpusOnly(flags);
  if (isProcessor && (gpuLayers ?? 0) + (cpuExperts ?? 0) > 0) {
    throw usageError(
      '--gpu-layers and --cpu-experts require a GPU, found none',
      'name one with --gpu',
    );
  }
  if (cpuExperts !== undefined && weightLayout(model).experts.size === 0) {
    throw usageError(
      '--cpu-experts requires a model with routed experts',
      'write --gpu-layers N for layers in system memory, or --ram SIZE',
    );
  }
  const memory = systemMemory(ram === undefined ? null : Number(ram), speed);
  return { memory, gpuLayers: isProcessor ? 0 : gpuLayers, cpuExperts };
}
