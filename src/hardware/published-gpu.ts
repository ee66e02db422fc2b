/** GPUs from published figures, in the units that makers print: GB, GB/s and TFLOP/s. */
import type { Gpu, GpuArchitecture, GpuKind, Link, PeakDtype, UsableMemory } from './gpu.js';

/** Dense peaks in TFLOP/s; `half` is the peak of both bf16 and f16. */
export type Peaks = Readonly<Partial<Record<PeakDtype | 'half', number>>>;

interface PublishedGpu {
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
    { peaks = {}, usable, links = PCIE_OF[architecture] ?? [], source }: PublishedGpu,
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
  sm70: [PCIE_3],
  sm75: [PCIE_3],
  sm80: [PCIE_4],
  sm86: [PCIE_4],
  sm89: [PCIE_4],
  sm90: [PCIE_5],
  sm100: [PCIE_5],
  sm103: [PCIE_5],
  sm120: [PCIE_5],
  cdna1: [PCIE_4],
  cdna2: [PCIE_4],
  cdna3: [PCIE_5],
  cdna4: [PCIE_5],
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

/** GiB reserved by the driver beyond the total of nvidia-smi: 0.54 on an H100, 0.71 on a B200, rounded up. */
const KEPT_BY_DRIVER = 0.75;

/** Usable memory from the total of nvidia-smi. */
export const totalOfSmi = (mebibytes: number): UsableMemory => ({
  bytes: Math.floor((mebibytes / 1024 - KEPT_BY_DRIVER) * GIB),
  source:
    `approximate: ${mebibytes.toLocaleString('en')} MiB by nvidia-smi (aiconfigurator, systems, 2026), less ` +
    `${KEPT_BY_DRIVER} GiB that the driver keeps; not measured`,
});

// Sources of several tables

export const ADA_PAPER = 'NVIDIA Ada architecture whitepaper (2023)';
export const GA102_PAPER = 'NVIDIA Ampere GA102 architecture whitepaper (2021)';
export const TECHPOWERUP = 'TechPowerUp, by reox007/RightNow-GPU-Database (2025)';
export const EVERFIR = 'everfir/gpu-database (2026)';
