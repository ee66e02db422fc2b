/** What computes, as plain numbers: accelerators, the machines they stand in, and what joins them. */
import { v } from '../budget/expression.js';
import type { Quantity } from '../budget/quantity.js';
import { quantity } from '../budget/quantity.js';
import { UserError } from '../errors.js';

// Generations of chips, as far as a constant depends on one: what memory they have, and how well programs use them.

/** HBM stands on the chip's package, GDDR on a card, LPDDR is shared with a processor. */
export type MemoryKind = 'hbm' | 'gddr' | 'lpddr';

/**
 * NVIDIA's by compute capability, as compilers call them (CUDA programming guide, compute capabilities); others by the
 * names that their makers give them.
 */
const MEMORY_OF = {
  /** V100. */
  sm70: 'hbm',
  /** Turing: T4, GeForce RTX 20. */
  sm75: 'gddr',
  /** A100, A30. */
  sm80: 'hbm',
  /** The other Ampere chips: A10, A40, RTX A, GeForce RTX 30. */
  sm86: 'gddr',
  /** Jetson Orin. */
  sm87: 'lpddr',
  /** Ada: L4, L40, RTX Ada, GeForce RTX 40. */
  sm89: 'gddr',
  /** Hopper. */
  sm90: 'hbm',
  /** Blackwell: B200. */
  sm100: 'hbm',
  /** Blackwell Ultra: B300. */
  sm103: 'hbm',
  /** RTX PRO Blackwell, GeForce RTX 50. */
  sm120: 'gddr',
  /** GB10, of DGX Spark. */
  sm121: 'lpddr',
  cdna1: 'hbm',
  cdna2: 'hbm',
  cdna3: 'hbm',
  cdna4: 'hbm',
  rdna3: 'gddr',
  /** Ryzen AI Max. */
  'rdna3.5': 'lpddr',
  rdna4: 'gddr',
  'tpu-v4': 'hbm',
  'tpu-v5e': 'hbm',
  'tpu-v5p': 'hbm',
  'tpu-v6e': 'hbm',
  tpu7x: 'hbm',
  neuron2: 'hbm',
  gaudi2: 'hbm',
  gaudi3: 'hbm',
  /** Intel Arc A. */
  xe: 'gddr',
  /** Intel Arc B. */
  xe2: 'gddr',
  apple: 'lpddr',
} as const satisfies Record<string, MemoryKind>;

export type Architecture = keyof typeof MEMORY_OF;

export const ARCHITECTURES = Object.keys(MEMORY_OF) as Architecture[];

/** What memory its chips have. */
export const memoryKindOf = (architecture: Architecture): MemoryKind => MEMORY_OF[architecture];

/** Of NVIDIA's: whether it is Hopper or later. */
export const isFromHopperOn = (architecture: Architecture): boolean =>
  /^sm\d+$/.test(architecture) && Number(architecture.slice(2)) >= 90;

// Figures of a GPU, with where they are from.

/**
 * What is computed in where a type has no arithmetic of its own, the next best first: narrow weights are made
 * wider, 16 bits stand for 16 bits, and without tensor cores it is float32.
 */
const INSTEAD: Readonly<Record<PeakDtype, readonly PeakDtype[]>> = {
  f32: [],
  tf32: ['f32'],
  bf16: ['f16', 'tf32', 'f32'],
  f16: ['bf16', 'tf32', 'f32'],
  f8: ['bf16', 'f16', 'tf32', 'f32'],
  f4: ['bf16', 'f16', 'tf32', 'f32'],
  int8: ['bf16', 'f16', 'tf32', 'f32'],
  int4: ['int8', 'bf16', 'f16', 'tf32', 'f32'],
};

/**
 * The peak of dense products of a type, or of what stands in for it, which its source tells.
 * @throws UserError when none is known.
 */
export function peakFor(gpu: Gpu, dtype: PeakDtype): Quantity {
  const peak = peakIfKnown(gpu, dtype);
  if (peak) return peak;
  throw new UserError('usage', noPeakText(gpu, dtype), {
    suggestion: `state one in a file for --hardware: "extends: ${gpu.name}", and under peak "${dtype}: …TFLOP/s"`,
  });
}

/** That there is none. */
export const noPeakText = ({ name }: Gpu, dtype: PeakDtype): string =>
  `no peak of ${name} is published for ${dtype}`;

/** Whether products are of 8 bits or fewer. */
export const isNarrow = (dtype: PeakDtype): boolean =>
  dtype === 'f8' || dtype === 'f4' || dtype === 'int8' || dtype === 'int4';

/** Relative error of a published peak: an RX 7900 XTX has 122.8 TFLOP/s in f16 and 123 in int8, the same rate. */
const ROUNDING = 0.01;

/** The type that products of `dtype` are computed in; undefined when no peak is known. */
export function computedDtype(gpu: Gpu, dtype: PeakDtype): PeakDtype | undefined {
  const own = gpu.peakFlops[dtype];
  const next = INSTEAD[dtype].find((each) => gpu.peakFlops[each] !== undefined);
  const wider = (next && gpu.peakFlops[next]) ?? 0;
  if (own === undefined) return next;
  // A B300 computes int8 slower than bf16, an MI250X as fast: programs widen what they are given.
  const isFaster = own > wider * (1 + ROUNDING);
  return isFaster || (own >= wider && !isNarrow(dtype)) ? dtype : next;
}

/** The same; null when none is known. */
export function peakIfKnown(gpu: Gpu, dtype: PeakDtype): Quantity | null {
  const own = gpu.peakFlops[dtype];
  const used = computedDtype(gpu, dtype);
  const peak = used && gpu.peakFlops[used];
  if (used === undefined || peak === undefined) return null;
  const why =
    own === undefined
      ? `no ${dtype} is published`
      : `${dtype} is ${own < peak ? 'slower' : 'as fast'}`;
  return quantity({
    label: `peak of ${gpu.name}, ${used}`,
    unit: 'FLOP/s',
    formula: v({ peak }),
    source: used === dtype ? gpu.source : `${gpu.source}; ${why}: ${used}`,
  });
}

/** Of its memory. */
export const bandwidthOf = ({ name, bandwidth, source }: Gpu): Quantity =>
  quantity({
    label: `memory bandwidth of ${name}`,
    unit: 'bytes/s',
    formula: v({ bandwidth }),
    source,
  });

/** Of its memory: what programs can have, and where nobody knows that, what it is sold with. */
export const capacityOf = ({ name, memoryBytes: memory, usable, source }: Gpu): Quantity =>
  quantity({
    label: `memory of ${name}`,
    unit: 'bytes',
    formula: usable ? v({ usable: usable.bytes }) : v({ memory }),
    source: usable?.source ?? source,
  });

// Links that many GPUs have. Per direction: half of what is printed for both.

/** PCI-SIG, 16 lanes: 8, 16 and 32 GT/s; printed as 32, 64 and 128 GB/s in both directions. */
export const PCIE_3: Link = { name: 'PCIe 3 x16', bandwidth: 16e9, gpus: 8 };
export const PCIE_4: Link = { name: 'PCIe 4 x16', bandwidth: 32e9, gpus: 8 };
export const PCIE_5: Link = { name: 'PCIe 5 x16', bandwidth: 64e9, gpus: 8 };

/** 8 lanes of it, as small cards have. */
export const PCIE_4_X8: Link = { name: 'PCIe 4 x8', bandwidth: 16e9, gpus: 8 };
export const PCIE_5_X8: Link = { name: 'PCIe 5 x8', bandwidth: 32e9, gpus: 8 };

export const nvlink = (generation: number, bandwidth: number, gpus: number): Link => ({
  name: `NVLink ${generation}`,
  bandwidth,
  gpus,
});

/** A network of machines, in bits per second for each GPU, as networks are sold. */
export const network = (name: string, bitsPerSecond: number): Link => ({
  name,
  bandwidth: bitsPerSecond / 8,
  gpus: Number.POSITIVE_INFINITY,
});

// What programs can have of a memory, where it is known.

const GIB = 2 ** 30;

/**
 * How much more than its label a memory can hold: labels count in GB of 10^9 bytes, chips hold powers of two. An H100 of
 * 80 GB has 80 GiB.
 */
export const MOST_OF_LABEL = GIB / 1e9;

/**
 * What a driver tells programs. Of cards with GDDR memory error correction takes a part where it is on, as on an L4,
 * and of all cards the driver does: some tenths of a GiB more than nvidia-smi counts (23,034 MiB of an L4). It differs a
 * little from driver to driver: these are rounded down.
 */
export const toldByDriver = (gibibytes: number): Usable => ({
  bytes: Math.floor(gibibytes * GIB),
  source:
    `approximate: ${gibibytes} GiB, what its driver reports to programs, as PyTorch states it, rounded down; ` +
    'not measured',
});

/** How much less a driver leaves programs than nvidia-smi counts: 0.54 GiB of an H100, 0.71 of a B200. */
const KEPT_BY_DRIVER = 0.75;

/** The same where only the total of nvidia-smi is known. */
export const countedBySmi = (mebibytes: number): Usable => ({
  bytes: Math.floor((mebibytes / 1024 - KEPT_BY_DRIVER) * GIB),
  source:
    `approximate: ${mebibytes.toLocaleString('en')} MiB by nvidia-smi (aiconfigurator, systems, 2026), less ` +
    `${KEPT_BY_DRIVER} GiB that the driver keeps; not measured`,
});

/** Of makers who state GiB and print GB. */
export const statedInGib = (gibibytes: number): Usable => ({
  bytes: gibibytes * GIB,
  source: `${gibibytes} GiB, as Google states it ("How to Scale Your Model", 2025, chapter 2; Google Cloud documentation)`,
});

/**
 * GiB of a Mac's memory that graphics can keep resident (Metal, recommendedMaxWorkingSetSize), as logs of llama.cpp print
 * it in MB of 10^6 bytes. Up to macOS 15: 11,453.25 of 16 GiB, 17,179.89 of 24, 22,906.50 of 32 (two thirds), 28,991.03 of
 * 36, 38,654.71 of 48, 51,539.61 of 64, 103,079.22 of 128 (three quarters; of 36 GiB exactly 27), 498,216.21 of 512 (all
 * but 48 GiB).
 */
function upToMacOs15(gibibytes: number): number {
  if (gibibytes < 36) return (gibibytes * 2) / 3;
  return gibibytes < 512 ? (gibibytes * 3) / 4 : gibibytes - 48;
}

/** On macOS 26, MB of 10^6 bytes; of other sizes no log was found. */
const ON_MACOS_26: Readonly<Record<number, number>> = {
  16: 12_713.12,
  24: 19_069.67,
  32: 26_800.6,
  36: 30_150.67,
  48: 40_200.9,
  64: 55_662.79,
  128: 115_448.73,
};

/** What every macOS leaves the graphics: that of versions up to 15, as macOS 26 leaves more. */
export const leftByMacOs = (gibibytes: number): Usable => {
  const newer = ON_MACOS_26[gibibytes];
  const onNewer =
    newer === undefined ? 'more, not known how much' : `${newer.toLocaleString('en')} MB`;
  return {
    bytes: Math.floor(upToMacOs15(gibibytes) * GIB),
    source:
      `up to macOS 15, of ${gibibytes} GiB; macOS 26 leaves graphics ${onNewer} (Metal, recommendedMaxWorkingSetSize, ` +
      'as llama.cpp logs it); sysctl iogpu.wired_limit_mb changes it',
  };
};

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
