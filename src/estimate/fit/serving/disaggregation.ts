/** Disaggregated prefill: some GPUs only read prompts, the others decode, and caches move between them. */

import { usageError } from '../../../base/errors.js';
import { setting as settingText } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { div, mul, v } from '../../../model/budget/expression.js';
import { type Quantity, quantity } from '../../../model/budget/figure.js';
import type { Cluster } from '../../hardware/gpu.js';
import type { Efficiency } from '../efficiency.js';
import { linkFor } from '../parallelism/collectives.js';
import { greatestCommonDivisor } from '../parallelism/divisors.js';
import { gpusOfReplica, type ServingAxes } from './serving-axes.js';
import { type ServedModel, type ServingFitSetting, sequenceState } from './serving-work.js';

/** Settings that say how many GPUs do what. */
export type DividedSetting = Pick<ServingFitSetting, 'cluster' | 'prefillGpus' | keyof ServingAxes>;

/** GPUs that decode: all but those that only read prompts. */
export const decodingGpus = ({ cluster, prefillGpus = 0 }: DividedSetting): number =>
  cluster.gpus - prefillGpus;

/** GPUs that must be linked: those of a replica, or all where caches move between them. */
export const linkedGpus = (setting: DividedSetting): number =>
  setting.prefillGpus === undefined ? gpusOfReplica(setting) : setting.cluster.gpus;

/** @throws UserError when no GPU is left to decode. */
export function requireDecodingGpus({ cluster: { gpus }, prefillGpus }: DividedSetting): void {
  if (prefillGpus === undefined || prefillGpus < gpus) return;
  throw usageError(
    `${settingText('prefillGpus')}: expected fewer than the ${formatInteger(gpus)} of ${settingText('gpus')}, found ${formatInteger(prefillGpus)}: the others decode`,
    `write ${settingText('gpus', prefillGpus + 1)} or more`,
  );
}

/** Servers that are simulated together: the same on all GPUs of a kind, with as few of each as possible. */
export interface ServerUnit {
  /** Equal units on all GPUs. */
  readonly units: number;
  /** Servers of a unit that decode. */
  readonly decoding: number;
  /** Servers of a unit that only read prompts; 0 if those that decode read them. */
  readonly prefill: number;
}

export function serverUnit(setting: DividedSetting): ServerUnit {
  const each = gpusOfReplica(setting);
  const decoding = Math.floor(decodingGpus(setting) / each);
  const prefill = Math.floor((setting.prefillGpus ?? 0) / each);
  if (prefill === 0) return { units: decoding, decoding: 1, prefill: 0 };
  const units = greatestCommonDivisor(decoding, prefill);
  return { units, decoding: decoding / units, prefill: prefill / units };
}

/** GPUs of a unit. */
export const gpusOfUnit = (setting: DividedSetting): number => {
  const { decoding, prefill } = serverUnit(setting);
  return (decoding + prefill) * gpusOfReplica(setting);
};

/** Move of the cache of a prompt. */
export interface CacheTransfer {
  /** Name of the link. */
  readonly link: string;
  /** Bytes of the keys, values and states of a prompt on one GPU. */
  readonly bytes: Quantity;
  /** Seconds in which they move. */
  readonly seconds: Quantity;
}

/**
 * Time in which the cache of a prompt moves: each GPU sends what it has over its own link, after the prompt (DistServe, arXiv
 * 2401.09670, section 3.3; NIXL and Mooncake move the blocks of each rank to the rank that decodes). GPUs on several machines
 * use the network. Undefined without a known link.
 */
export function cacheTransfer(
  served: Pick<ServedModel, 'model' | 'form' | 'layout'>,
  { cluster, prompt, pipelineParallel = 1 }: ServingFitSetting,
  { linkUtilisation, source }: Pick<Efficiency, 'linkUtilisation' | 'source'>,
): CacheTransfer | undefined {
  const link = linkBetween(cluster);
  if (link === undefined) return undefined;
  const { cache, state } = sequenceState(served, prompt);
  const bytes = quantity({
    label: 'cache of a prompt on a GPU',
    unit: 'bytes',
    formula: div(
      v({ cache: Number(cache.value) + Number(state.value) }),
      v({ stages: pipelineParallel }),
    ),
    source: `keys, values and states of ${formatInteger(prompt)} tokens`,
  });
  return {
    link: link.name,
    bytes,
    seconds: quantity({
      label: 'move of a cache',
      unit: 'seconds',
      formula: div(
        v({ bytes: bytes.value }),
        mul(v({ bandwidth: link.bandwidth }), v({ utilisation: linkUtilisation })),
      ),
      source: `${link.name}, a link for each GPU; ${source}`,
    }),
  };
}

/** The link of one GPU to those of other servers. */
function linkBetween(cluster: Cluster) {
  const within = cluster.gpu.links[0]?.gpus ?? 1;
  return linkFor({ cluster }, cluster.gpus, within);
}
