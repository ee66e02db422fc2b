/**
 * A measured machine as a GPU. The checks of its file stand apart: they load a library that takes a quarter of what a page
 * loads for `fit`.
 */
import type { Gpu, GpuKind } from './gpu.js';
import type { MachineProfile, MachineSpeed } from './machine-profile.js';

/**
 * Machine as a GPU. Bandwidth and peak are the best measured ones, which lower bounds use.
 * @param availableBytes Available memory of this machine now.
 */
export function gpuOfProfile(
  { engine: { title, device, isOnCpu, compute, memoryBytes }, speed, measured }: MachineProfile,
  availableBytes: number,
): Gpu {
  return {
    name: 'this-machine',
    title: `this machine, ${device}`,
    kind: isOnCpu ? 'processor' : cardKind(title),
    memoryBytes: isOnCpu ? availableBytes : (memoryBytes ?? availableBytes),
    bandwidth: isOnCpu
      ? Math.max(speed.weightBandwidth.most, speed.memoryBandwidth?.most ?? 0)
      : speed.weightBandwidth.most,
    peakFlops: { [compute]: bestProduct(speed) },
    links: [],
    source: `measured on ${measured.slice(0, 10)} with ${title}: the best of all measurements`,
  };
}

/** GPU kind from an engine's title, which names provider and card. */
const cardKind = (title: string): GpuKind =>
  /\b(cuda|nvidia)\b/i.test(title) ? 'nvidia' : 'other';

/** Highest rate of all products, in FLOP/s. */
export const bestProduct = ({ products }: MachineSpeed): number =>
  Math.max(...products.map(({ flops }) => flops.most));
