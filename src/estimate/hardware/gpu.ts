/** Hardware as plain numbers: accelerators, machines and links. */

import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { sub, v } from '../../model/budget/expression.js';
import type { Quantity } from '../../model/budget/figure.js';
import { quantity } from '../../model/budget/figure.js';

/** GPU of estimates without a named one. */
export const USUAL_GPU = 'h100-80gb';

// Chip architectures, as far as constants depend on them: memory kind and typical utilisation.

/** Memory kind: HBM on the chip's package, GDDR on a card, LPDDR shared with a processor. */
export type MemoryKind = 'hbm' | 'gddr' | 'lpddr';

/**
 * Memory kind of each architecture. NVIDIA's have the names of compute capabilities in compilers (CUDA programming
 * guide, compute capabilities); others have the names of their makers.
 */
const MEMORY_OF = {
  /** The Jetson Nano of 2019. */
  sm53: 'lpddr',
  /** P100. */
  sm60: 'hbm',
  /** P40, GeForce GTX 10. */
  sm61: 'gddr',
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
  /** Jetson Thor. */
  sm110: 'lpddr',
  /** GB10, of DGX Spark. */
  sm121: 'lpddr',
  /** MI50, MI60 and Radeon VII. */
  gcn5: 'hbm',
  cdna1: 'hbm',
  cdna2: 'hbm',
  cdna3: 'hbm',
  cdna4: 'hbm',
  /** Radeon RX 6000. */
  rdna2: 'gddr',
  rdna3: 'gddr',
  /** Radeon 780M: graphics of a processor. */
  'rdna3-apu': 'lpddr',
  /** Ryzen AI 300 and Ryzen AI Max. */
  'rdna3.5': 'lpddr',
  rdna4: 'gddr',
  'tpu-v4': 'hbm',
  'tpu-v5e': 'hbm',
  'tpu-v5p': 'hbm',
  'tpu-v6e': 'hbm',
  tpu7x: 'hbm',
  /** Trainium and Inferentia2. */
  neuron1: 'hbm',
  /** Trainium2. */
  neuron2: 'hbm',
  /** Trainium3. */
  neuron3: 'hbm',
  /** Huawei Ascend 910. */
  ascend910: 'hbm',
  gaudi2: 'hbm',
  gaudi3: 'hbm',
  /** Intel Arc A. */
  xe: 'gddr',
  /** Intel Arc B. */
  xe2: 'gddr',
  apple: 'lpddr',
} as const satisfies Record<string, MemoryKind>;

export type GpuArchitecture = keyof typeof MEMORY_OF;

export const ARCHITECTURES = Object.keys(MEMORY_OF) as GpuArchitecture[];

export const memoryKindOf = (architecture: GpuArchitecture): MemoryKind => MEMORY_OF[architecture];

/** KiB of memory on the chip that one block of threads can use; unknown for other architectures. */
const ON_CHIP_KIB: Readonly<Partial<Record<GpuArchitecture, number>>> = {
  sm53: 48,
  sm60: 48,
  sm61: 48,
  sm70: 96,
  sm75: 64,
  sm80: 163,
  sm86: 99,
  sm87: 163,
  sm89: 99,
  sm90: 227,
  sm100: 227,
  sm103: 227,
  sm110: 227,
  sm120: 99,
  sm121: 99,
  cdna1: 64,
  cdna2: 64,
  cdna3: 64,
  cdna4: 160,
};

/** Shared memory of a block of threads: what a tile of a kernel has to fit into. Undefined where it is unknown. */
export function onChipMemoryOf({ architecture, title }: Gpu) {
  const kib = architecture && ON_CHIP_KIB[architecture];
  if (kib === undefined) return undefined;
  const published = architecture?.startsWith('cdna')
    ? 'LDS, ROCm GPU specifications'
    : 'shared memory of a thread block, CUDA programming guide, compute capabilities';
  return { bytes: kib * 1024, source: `${kib} KiB of ${title} (${published})` };
}

/** Whether an NVIDIA architecture is Hopper or later. */
export const isFromHopperOn = (architecture: GpuArchitecture): boolean =>
  /^sm\d+$/.test(architecture) && Number(architecture.slice(2)) >= 90;

/**
 * Substitutes for a type without its own arithmetic, best first: narrow weights are widened, one 16-bit type replaces
 * the other, and the last resort is float32.
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
 * Peak of dense products of a type or of its substitute; the source names the substitute.
 * @throws UserError when none is known.
 */
export function peakFor(gpu: Gpu, dtype: PeakDtype): Quantity {
  const peak = peakIfKnown(gpu, dtype);
  if (peak) return peak;
  throw usageError(
    noPeakText(gpu, dtype),
    `write one in a file for ${setting('hardware')}: "extends: ${gpu.name}", and under peak "${dtype}: …TFLOP/s"`,
  );
}

/** Error text for an unknown peak. */
export const noPeakText = ({ name }: Gpu, dtype: PeakDtype): string =>
  `no peak of ${name} is published for ${dtype}`;

/** Whether products are in 8 bits or fewer. */
export const isNarrow = (dtype: PeakDtype): boolean =>
  dtype === 'f8' || dtype === 'f4' || dtype === 'int8' || dtype === 'int4';

/** Relative error of a published peak: an RX 7900 XTX has 122.8 TFLOP/s in f16 and 123 in int8, the same rate. */
const ROUNDING = 0.01;

/** Type in which products of `dtype` are computed; undefined if no peak is known. */
export function computedDtype(gpu: Gpu, dtype: PeakDtype): PeakDtype | undefined {
  const own = gpu.peakFlops[dtype];
  const next = INSTEAD[dtype].find((each) => gpu.peakFlops[each] !== undefined);
  const wider = (next && gpu.peakFlops[next]) ?? 0;
  if (own === undefined) return next;
  // A B300 computes int8 slower than bf16, an MI250X at the same rate, so programs widen the inputs.
  const isFaster = own > wider * (1 + ROUNDING);
  return isFaster || (own >= wider && !isNarrow(dtype)) ? dtype : next;
}

/** Peak as in `peakFor`; null if none is known. */
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

export const bandwidthOf = ({ name, bandwidth, source }: Gpu): Quantity =>
  quantity({
    label: `memory bandwidth of ${name}`,
    unit: 'bytes/s',
    formula: v({ bandwidth }),
    source,
  });

/** Usable memory of a GPU, or the advertised memory if unknown, less what was reserved for other programs. */
export const capacityOf = (gpu: Gpu): Quantity => {
  const { name, memoryBytes: memory, usable, source, reservedBytes } = gpu;
  const known = usable
    ? ([v({ usable: usable.bytes }), usable.source] as const)
    : ([v({ memory }), source] as const);
  const [whole, from] =
    reservedBytes !== undefined && isShared(gpu)
      ? ([v({ memory: sharedBytes(gpu) }), `${source}; shared with the processor`] as const)
      : known;
  const isReserved = reservedBytes !== undefined && reservedBytes > 0;
  return quantity({
    label: `memory of ${name}`,
    unit: 'bytes',
    formula: isReserved ? sub(whole, v({ reserved: reservedBytes })) : whole,
    source: isReserved ? `${from}; less the reserved memory` : from,
  });
};

/** Memory of a GPU, for a reader. */
export interface GpuMemory {
  /** As it is sold, in GB of 10^9 bytes; of most cards it counts GiB. @real */
  readonly advertisedBytes: number;
  /** Memory that the model can use. @real */
  readonly usableBytes: number;
  /** Memory reserved for other programs; null without. @real */
  readonly reservedBytes: number | null;
  /** `shared` with the processor, a card that can have a `screen`, or another `card`; null if only a size is known. */
  readonly kind: 'shared' | 'screen' | 'card' | null;
}

export function memoryOf(gpu: Gpu): GpuMemory {
  const { memoryBytes, usable, reservedBytes, architecture } = gpu;
  const isKnown = (usable ?? reservedBytes) !== undefined && architecture !== undefined;
  const kind = isKnown
    ? ({ lpddr: 'shared', gddr: 'screen', hbm: 'card' } as const)[MEMORY_OF[architecture]]
    : null;
  return {
    advertisedBytes: memoryBytes,
    usableBytes: capacityOf(gpu).value,
    reservedBytes: reservedBytes ?? null,
    kind,
  };
}

/** Whether the memory is that of the processor, of which the operating system gives graphics a part. */
const isShared = ({ architecture }: Pick<Gpu, 'architecture'>): boolean =>
  architecture !== undefined && MEMORY_OF[architecture] === 'lpddr';

/** All of the memory that a processor and its graphics share: its chips hold powers of two. */
const sharedBytes = ({ memoryBytes }: Gpu): number => (memoryBytes / 1e9) * GIB;

/**
 * GPU of which other programs take a part of the memory. Of a shared memory all else is left, instead of the part that
 * the operating system gives graphics by default.
 * @throws UserError when nothing is left.
 */
export function withReserved(gpu: Gpu, reservedBytes: number | undefined): Gpu {
  if (reservedBytes === undefined) return gpu;
  const reserved = { ...gpu, reservedBytes };
  if (capacityOf(reserved).value > 0) return reserved;
  throw usageError(
    `${setting('reserveBytes')}: expected less than the memory of ${gpu.name}, found all of it`,
    `write less, as in ${setting('reserveBytes', '2GB')}`,
  );
}

/** GPU of which a program may use a share of the memory. */
export function withMemoryShare(gpu: Gpu, memoryShare: number): Gpu {
  const { value, source } = capacityOf(gpu);
  const { reservedBytes: _, ...whole } = gpu;
  const bytes = memoryShare * value;
  return { ...whole, usable: { bytes, source: `${source}; of it, the chosen share` } };
}

/** Whether GPUs of this kind can share a model: they need links. */
export const areLinked = ({ links }: Gpu): boolean => links.length > 0;

/**
 * Largest ratio of a memory to its label. Labels are in GB of 10^9 bytes, and chips hold powers of two: an H100 of 80
 * GB has 80 GiB.
 */
export const MOST_OF_LABEL = 2 ** 30 / 1e9;

/**
 * Types of products. Sums of f16, bf16, f8 and f4 products are in float32; see `Gpu.peakFlops`. f4 is NVFP4 or MXFP4,
 * with a scale per 16 or 32 values.
 */
export const PEAK_DTYPES = ['f32', 'tf32', 'bf16', 'f16', 'f8', 'f4', 'int8', 'int4'] as const;

export type PeakDtype = (typeof PEAK_DTYPES)[number];

/** Dense operations per second by the type of the factors; absent where no peak is published. */
export interface PeakFlops extends Readonly<Partial<Record<PeakDtype, number>>> {
  /** Peak in float32. @real */
  readonly f32?: number;
  /** Peak in TensorFloat-32: float32 rounded to 10 bits of mantissa. @real */
  readonly tf32?: number;
  /** Peak in bfloat16. @real */
  readonly bf16?: number;
  /** Peak in float16. @real */
  readonly f16?: number;
  /** Peak in 8-bit floats. @real */
  readonly f8?: number;
  /** Peak in 4-bit floats with a scale per 16 or 32 values, NVFP4 or MXFP4. @real */
  readonly f4?: number;
  /** Peak in 8-bit integers. @real */
  readonly int8?: number;
  /** Peak in 4-bit integers. @real */
  readonly int4?: number;
}

/** Link between GPUs. */
export interface Link {
  /** `NVLink 4`, `PCIe 5 x16`. */
  readonly name: string;
  /** Bytes per second in one direction, per GPU; makers print both directions together. @real */
  readonly bandwidth: number;
  /** GPUs that it connects; infinite for the network between machines. @unbounded */
  readonly gpus: number;
}

/**
 * GPU kinds by the libraries in use, which determine the fixed memory: NVIDIA, with published figures; a processor,
 * which has no driver; or others.
 */
export const GPU_KINDS = ['nvidia', 'processor', 'other'] as const;

export type GpuKind = (typeof GPU_KINDS)[number];

/** Memory that programs can use. */
export interface UsableMemory {
  /** Memory that programs can use. @real */
  readonly bytes: number;
  /** Source of the number. */
  readonly source: string;
}

/** Factors for the shares of the peaks that programs reach on published runs, from a benchmark on this machine. */
export interface Calibration {
  /** Factor of the share of the memory bandwidth. @real */
  readonly reading: number;
  /** Factor of the share of the compute peak. @real */
  readonly computing: number;
  /** File, program and runs of the benchmark. */
  readonly source: string;
}

export interface Gpu {
  /** Name on the command line: `h100-80gb`. */
  readonly name: string;
  /** Name for people. */
  readonly title: string;
  /** Vendor, whose libraries also use memory. */
  readonly kind: GpuKind;
  /** Architecture for constants of programs; without it, those of most GPUs apply. */
  readonly architecture?: GpuArchitecture;
  /** Advertised memory in bytes, with GB as 10^9. @real */
  readonly memoryBytes: number;
  /**
   * Usable memory, if known; otherwise the advertised memory is assumed. It can be more, because chips have powers of
   * two (nvidia-smi shows 81,559 MiB on an H100 of 80 GB, 85.5e9 bytes). It can be less, because of error correction or
   * the system.
   */
  readonly usable?: UsableMemory;
  /** Memory reserved for other programs, such as a screen, in bytes; absent without `--reserve`. @real */
  readonly reservedBytes?: number;
  /** Memory bandwidth as published, bytes per second. @real */
  readonly bandwidth: number;
  /**
   * Dense operations per second, two per multiply-add. Makers often print the peak with sparsity, which is twice as
   * much. Sums are in float32 if hardware is slower with them. A missing entry means no published peak.
   */
  readonly peakFlops: PeakFlops;
  /** Shares of a benchmark on this machine; absent without `--calibrate`. */
  readonly calibration?: Calibration;
  /** Links, fastest first. */
  readonly links: readonly Link[];
  /** Source of the numbers, with the year. */
  readonly source: string;
}

/** Machine with several GPUs. */
export interface GpuMachine {
  /** Name for `--gpu`. */
  readonly name: string;
  /** Name for people. */
  readonly title: string;
  /** GPU of the machine. */
  readonly gpu: Gpu;
  /** Number of its GPUs. @integer @minimum 1 */
  readonly gpus: number;
  /** Link to other machines, per GPU; null if absent or unknown. */
  readonly network: Link | null;
  /** Source of the numbers. */
  readonly source: string;
}

/** GPUs and machines by name: those of a user's file, or those with the table. */
export interface Hardware {
  /** GPUs, those of --hardware first. */
  readonly gpus: readonly Gpu[];
  /** Machines with several GPUs. */
  readonly machines: readonly GpuMachine[];
}

/**
 * GPUs and machines with a name.
 * @answer minimind fit --list-gpus --json
 */
export interface HardwareList extends Hardware {
  readonly schema: 'minimind/gpus@1';
}

/** Some GPUs of one kind in a machine with others. */
export interface Cards {
  /** The GPU. */
  readonly gpu: Gpu;
  /** Number of them. @integer @minimum 1 */
  readonly gpus: number;
}

/** Number of GPUs, of one kind or of several. */
export interface Cluster {
  /** The GPU; of several kinds the one with the least memory. */
  readonly gpu: Gpu;
  /** The kinds of GPUs in their order; absent for one kind. */
  readonly cards?: readonly Cards[];
  /** Number of GPUs. @integer @minimum 1 */
  readonly gpus: number;
  /** Link for more GPUs than the GPU's own links connect; null if unknown. */
  readonly network: Link | null;
  /** Name of the machine for `--gpu`; absent for GPUs that are not of a machine. */
  readonly machine?: string;
}

// GPUs from published figures, in the units that makers print: GB, GB/s and TFLOP/s

/** Dense peaks in TFLOP/s; `half` is the peak of both bf16 and f16. */
export type Peaks = Readonly<Partial<Record<PeakDtype | 'half', number>>>;

export interface PublishedGpu {
  readonly peaks?: Peaks;
  readonly usable?: UsableMemory;
  /** Links, fastest first; without them, the PCIe of the architecture. */
  readonly links?: readonly Link[];
  readonly source: string;
}

/**
 * Function that makes GPUs of one kind.
 * @param maker Start of every title.
 */
export const publisher =
  (kind: GpuKind, maker: string) =>
  (
    name: string,
    model: string,
    architecture: GpuArchitecture,
    gigabytes: number,
    gigabytesPerSecond: number,
    {
      peaks = {},
      usable = usualUsable(architecture, gigabytes),
      links = PCIE_OF[architecture] ?? [],
      source,
    }: PublishedGpu,
  ): Gpu => ({
    name,
    title: `${maker}${model}`,
    architecture,
    memoryBytes: gigabytes * 1e9,
    ...(usable && { usable }),
    bandwidth: Math.round(gigabytesPerSecond * 1e9),
    peakFlops: peakFlopsOf(peaks),
    links,
    source,
    kind,
  });

const peakFlopsOf = (peaks: Peaks): Gpu['peakFlops'] =>
  Object.fromEntries(
    Object.entries(peaks).flatMap(([key, teraflops]) => {
      const dtypes = key === 'half' ? ['bf16', 'f16'] : [key];
      return dtypes.map((dtype) => [dtype, Math.round(teraflops * 1e12)]);
    }),
  );

// Common links. Bandwidths are per direction: half of the printed sum of both.

/** PCI-SIG, 16 lanes: 8, 16 and 32 GT/s; printed as 32, 64 and 128 GB/s for both directions together. */
const PCIE_3: Link = { name: 'PCIe 3 x16', bandwidth: 16e9, gpus: 8 };
const PCIE_4: Link = { name: 'PCIe 4 x16', bandwidth: 32e9, gpus: 8 };
const PCIE_5: Link = { name: 'PCIe 5 x16', bandwidth: 64e9, gpus: 8 };

/** PCIe with 8 lanes, as on small cards. */
export const PCIE_4_X8: Link = { name: 'PCIe 4 x8', bandwidth: 16e9, gpus: 8 };
export const PCIE_5_X8: Link = { name: 'PCIe 5 x8', bandwidth: 32e9, gpus: 8 };

/** PCIe of the cards of each architecture; the others are parts of a computer. */
const PCIE_OF: Readonly<Partial<Record<GpuArchitecture, readonly Link[]>>> = {
  sm60: [PCIE_3],
  sm61: [PCIE_3],
  sm70: [PCIE_3],
  sm75: [PCIE_3],
  sm80: [PCIE_4],
  sm86: [PCIE_4],
  sm89: [PCIE_4],
  sm90: [PCIE_5],
  sm100: [PCIE_5],
  sm103: [PCIE_5],
  sm120: [PCIE_5],
  gcn5: [PCIE_4],
  cdna1: [PCIE_4],
  cdna2: [PCIE_4],
  cdna3: [PCIE_5],
  cdna4: [PCIE_5],
  rdna2: [PCIE_4],
  rdna3: [PCIE_4],
  rdna4: [PCIE_5],
  gaudi2: [PCIE_4],
  gaudi3: [PCIE_5],
  xe: [PCIE_4],
  xe2: [PCIE_5],
};

/** A faster link of some cards, in GB/s, before their PCIe. */
export const linkBeforePcie = (
  architecture: GpuArchitecture,
  name: string,
  gigabytesPerSecond: number,
  gpus: number,
): readonly Link[] => [
  { name, bandwidth: gigabytesPerSecond * 1e9, gpus },
  ...(PCIE_OF[architecture] ?? []),
];

// Usable memory

const GIB = 2 ** 30;

/**
 * Usable memory as a driver reports it. On cards with GDDR, error correction takes a part if it is on, as on an L4. On
 * all cards the driver reserves some tenths of a GiB more than nvidia-smi shows (23,034 MiB on an L4). Values vary
 * slightly between drivers and are rounded down.
 */
export const reportedByDriver = (gibibytes: number): UsableMemory => ({
  bytes: Math.floor(gibibytes * GIB),
  source:
    `approximate: ${gibibytes} GiB, reported by the driver (PyTorch), rounded down; ` +
    'not measured',
});

/** Usable memory of a card with the memory of another. */
export const usableAs = (other: string, gibibytes: number): UsableMemory => ({
  bytes: Math.floor(gibibytes * GIB),
  source: `approximate: ${gibibytes} GiB, that of ${other}; not measured`,
});

/** GiB reserved by the driver beyond the total of nvidia-smi: 0.54 on an H100, 0.71 on a B200, rounded up. */
const KEPT_BY_DRIVER = 0.75;

/** Usable memory from the total of nvidia-smi. */
export const totalOfSmi = (mebibytes: number): UsableMemory => ({
  bytes: Math.floor((mebibytes / 1024 - KEPT_BY_DRIVER) * GIB),
  source:
    `approximate: ${mebibytes.toLocaleString('en')} MiB by nvidia-smi (aiconfigurator, systems, 2026), less ` +
    `${KEPT_BY_DRIVER} GiB that the driver keeps; not measured`,
});

/**
 * Share of the chips that programs can use. Drivers report 7.78 of 8 GiB on an RTX 3070, 11.76 of 12 on an RTX 3060,
 * 23.6 of 24 on an RTX 4090, 31.3 of 32 on an RTX 5090.
 */
const SHARE_OF_CHIPS = 0.97;

/** Architectures whose labels in GB count GiB: chips hold powers of two. Of GDDR, error correction can take a part. */
const LABELLED_IN_GIB: ReadonlySet<GpuArchitecture> = new Set([
  ...(['sm60', 'sm61', 'sm70', 'sm75', 'sm80', 'sm86', 'sm89', 'sm90', 'sm120'] as const),
  ...(['gcn5', 'cdna1', 'cdna2', 'cdna3', 'cdna4'] as const),
  ...(['rdna2', 'rdna3', 'rdna4', 'xe', 'xe2'] as const),
]);

/** Usable memory of a card without a published figure; undefined where its label does not count GiB. */
function usualUsable(architecture: GpuArchitecture, gigabytes: number): UsableMemory | undefined {
  if (!LABELLED_IN_GIB.has(architecture)) return undefined;
  // Drivers of AMD report 63.98 of 64 GiB on an MI250X, 191.98 of 192 on an MI300X.
  const isWhole = /^(?:gcn|cdna|rdna)/.test(architecture);
  const share = isWhole ? 0.995 : SHARE_OF_CHIPS;
  return {
    bytes: Math.floor(gigabytes * share * GIB),
    source: `approximate: ${share * 100}% of ${gigabytes} GiB, as drivers report for similar cards; not measured`,
  };
}

// Sources of several tables

export const ADA_PAPER = 'NVIDIA Ada architecture whitepaper (2023)';
export const GA102_PAPER = 'NVIDIA Ampere GA102 architecture whitepaper (2021)';
export const TECHPOWERUP = 'TechPowerUp, by reox007/RightNow-GPU-Database (2025)';
export const EVERFIR = 'everfir/gpu-database (2026)';
export const ACCELERATORS = 'stas00, ml-engineering, accelerators (2025)';
