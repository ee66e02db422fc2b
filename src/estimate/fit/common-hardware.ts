/** Common GPUs and machines, by growing memory. */

import type { Cluster, Gpu, GpuMachine } from '../hardware/gpu.js';
import { GPUS } from '../hardware/gpus.js';
import { MACHINES } from '../hardware/machines.js';

/** Names of the rows, by growing memory. */
const COMMON = [
  'rtx-3060-12gb',
  't4',
  'l4',
  'rtx-4090',
  'rtx-5090',
  'l40s',
  'a100-80gb',
  'h100-80gb',
  'm4-max-128gb',
  'h200',
  'mi300x',
  'dgx-h100',
] as const;

/** Hardware of a row: one GPU, or a machine with several. */
export interface TableHardware {
  /** Name for `--gpu`. */
  readonly name: string;
  readonly title: string;
  readonly gpu: Gpu;
  /** GPUs in one unit. */
  readonly gpus: number;
  /** One unit. */
  readonly cluster: Cluster;
}

export const COMMON_HARDWARE: readonly TableHardware[] = COMMON.flatMap((name): TableHardware[] => {
  const isNamed = (each: Gpu | GpuMachine) => each.name === name;
  const machine = MACHINES.find(isNamed);
  if (machine) {
    const { gpu, gpus, network } = machine;
    return [{ ...machine, cluster: { gpu, gpus, network, machine: name } }];
  }
  return GPUS.filter(isNamed).map((gpu) => ({
    ...{ name, title: gpu.title, gpu, gpus: 1 },
    cluster: { gpu, gpus: 1, network: null },
  }));
});
