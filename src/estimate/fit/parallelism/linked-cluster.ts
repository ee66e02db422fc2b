/** Clusters whose communication can be computed: a setup without a known link has no speed, and is not proposed. */

import { sumOf } from '../../../base/values.js';
import type { Cluster } from '../../hardware/gpu.js';
import { MACHINES } from '../../hardware/machines.js';
import { withoutLink } from './collectives.js';
import { MOST_GPUS } from './divisors.js';

/**
 * Cluster with this number of GPUs: the same one, or machines of the same GPU with a known network. Undefined if no
 * link between so many is known, and for several kinds of GPUs, whose number does not say which of them are meant.
 */
export function linkedCluster(cluster: Cluster, gpus: number): Cluster | undefined {
  const { cards } = cluster;
  if (cards && sumOf(cards, (each) => each.gpus) !== gpus) return undefined;
  const wider = { ...cluster, gpus };
  if (withoutLink(wider, gpus) === null) return wider;
  const machine = MACHINES.find(
    ({ gpu, network }) => gpu.name === cluster.gpu.name && network !== null,
  );
  return machine && { gpu: cluster.gpu, gpus, network: machine.network, machine: machine.name };
}

/** Clusters with links, by doubling from the number of GPUs of `cluster`. */
function* widerClusters(cluster: Cluster, most = MOST_GPUS): Generator<Cluster> {
  for (let { gpus } = cluster; gpus <= most; gpus *= 2) {
    const wider = linkedCluster(cluster, gpus);
    if (wider === undefined) return;
    yield wider;
  }
}

/** Fewest GPUs on which `fits` holds, by doubling from those of `cluster`. */
export function fewestGpus(
  cluster: Cluster,
  fits: (cluster: Cluster) => boolean,
  most?: number,
): Cluster | undefined {
  for (const wider of widerClusters(cluster, most)) if (fits(wider)) return wider;
  return undefined;
}

/** Most GPUs, by doubling up to `most`, that can share each layer over known links. */
export function mostSharing(cluster: Cluster, most: number): number {
  let shared = 1;
  while (2 * shared <= most && withoutLink(cluster, 2 * shared) === null) shared *= 2;
  return shared;
}
