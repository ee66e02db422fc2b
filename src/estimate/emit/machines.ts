/** Machines of a cluster, as launchers start processes on them. */
import type { Cluster } from '../hardware/gpu.js';
import { withKnownHardware } from '../hardware/machines.js';

/** Equal machines. */
export interface Machines {
  /** Number of machines. @integer @minimum 1 */
  readonly count: number;
  /** GPUs of each. @integer @minimum 1 */
  readonly each: number;
}

/** GPUs of a usual machine. */
const USUAL = 8;

/** GPUs of a host where links connect several hosts (NVIDIA/Megatron-LM, skills/mcore-onboard-gb200-1node-tests). */
const OF_HOST: Readonly<Record<string, number>> = { 'gb200-nvl72': 4, 'gb300-nvl72': 4 };

/** The fewest machines that share the GPUs evenly. @param cluster Undefined where no hardware is known. */
export function machinesOf(gpus: number, cluster: Cluster | undefined): Machines {
  const most = cluster === undefined ? USUAL : sizeOf(cluster);
  let count = Math.ceil(gpus / most);
  while (gpus % count !== 0) count++;
  return { count, each: gpus / count };
}

/** GPUs of a machine: those of the named one, or all that the links of its GPU connect. */
function sizeOf({ gpu, machine }: Cluster): number {
  if (machine !== undefined && Object.hasOwn(OF_HOST, machine)) return OF_HOST[machine] ?? USUAL;
  const { machines } = withKnownHardware({ gpus: [], machines: [] });
  const named = machine === undefined ? undefined : machines.find(({ name }) => name === machine);
  const linked = gpu.links.map((link) => link.gpus).filter(Number.isFinite);
  return named?.gpus ?? Math.max(1, ...(linked.length === 0 ? [USUAL] : linked));
}
