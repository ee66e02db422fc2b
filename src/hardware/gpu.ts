/** What computes, as plain numbers: accelerators, the machines they stand in, and what joins them. */
import type { Architecture } from './architecture.js';

/**
 * What products are computed in. Sums of f16, bf16, f8 and f4 products are kept in float32; see `Gpu.peakFlops`. f4 is of
 * NVFP4 and MXFP4, with a scale for each 16 or 32 values.
 */
export const PEAK_DTYPES = ['f32', 'tf32', 'bf16', 'f16', 'f8', 'f4', 'int8', 'int4'] as const;

export type PeakDtype = (typeof PEAK_DTYPES)[number];

/** What joins GPUs. */
export interface Link {
  /** `NVLink 4`, `PCIe 5 x16`. */
  readonly name: string;
  /** Bytes per second in one direction, for each GPU: makers print both directions together. */
  readonly bandwidth: number;
  /** How many GPUs it joins; infinite for the network between machines. */
  readonly gpus: number;
}

/**
 * Whose libraries compute, which say what is in memory besides a model: NVIDIA's, of which that is known; those of a
 * processor, which has no driver; or others.
 */
export const GPU_KINDS = ['nvidia', 'processor', 'other'] as const;

export type GpuKind = (typeof GPU_KINDS)[number];

/** What programs can have of a memory. */
export interface Usable {
  readonly bytes: number;
  /** Who says so. */
  readonly source: string;
}

export interface Gpu {
  /** As it is asked for: `h100-80gb`. */
  readonly name: string;
  readonly title: string;
  readonly kind: GpuKind;
  /** What constants of programs depend on; without it they are those of most GPUs. */
  readonly architecture?: Architecture;
  /** As it is sold, GB being 10^9. */
  readonly memoryBytes: number;
  /**
   * What programs can have, where it is known; without it they are taken to have what is sold. It can be more than that,
   * as chips have powers of two (nvidia-smi tells 81,559 MiB of an H100 of 80 GB, 85.5e9 bytes), and less, where error
   * correction or the system takes a part.
   */
  readonly usable?: Usable;
  /** Bytes per second of its memory, as its maker states it. */
  readonly bandwidth: number;
  /**
   * Operations per second, two of them for a multiplication with its addition, in dense matrices: makers often
   * print what matrices with every second value zero would have, which is twice as much. With sums in float32
   * where hardware is slower with them. Without an entry nothing is published.
   */
  readonly peakFlops: Readonly<Partial<Record<PeakDtype, number>>>;
  /** Fastest first. */
  readonly links: readonly Link[];
  /** Where the numbers stand, with the year. */
  readonly source: string;
}

/** Several GPUs in one box. */
export interface Machine {
  readonly name: string;
  readonly title: string;
  readonly gpu: Gpu;
  readonly gpus: number;
  /** To other machines, for each GPU; null without one, or where nobody says. */
  readonly network: Link | null;
  readonly source: string;
}

/** GPUs and machines that have a name: those of a user's file, or those with the table. */
export interface Hardware {
  readonly gpus: readonly Gpu[];
  readonly machines: readonly Machine[];
}

/** So many of one kind. */
export interface Cluster {
  readonly gpu: Gpu;
  readonly gpus: number;
  /** What joins more of them than the GPU's own links do; null when that is not known. */
  readonly network: Link | null;
}
