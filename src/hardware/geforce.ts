/**
 * NVIDIA GeForce cards. Products of f16, bf16 and f8 run at half rate with sums in float32. Peaks here are that half,
 * because training and inference sum in float32.
 */
import type { Gpu } from './gpu.js';
import { nvlink, PCIE_3, PCIE_4, PCIE_4_X8, PCIE_5, PCIE_5_X8, toldByDriver } from './gpu.js';

const GA102_PAPER = 'NVIDIA Ampere GA102 architecture whitepaper (2021)';
const ADA_PAPER = 'NVIDIA Ada architecture whitepaper (2023)';
const TECHPOWERUP = 'TechPowerUp, by reox007/RightNow-GPU-Database (2025)';
const BLACKWELL_PAPER = 'NVIDIA RTX Blackwell architecture whitepaper (2025)';

/** Tensor core peaks as multiples of the float32 peak, the same for all GeForce cards in each whitepaper. */
const ampere = (f32: number) => ({
  f32,
  tf32: f32,
  bf16: 2 * f32,
  f16: 2 * f32,
  int8: 8 * f32,
  int4: 16 * f32,
});
const ada = (f32: number) => ({ ...ampere(f32), f8: 4 * f32 });
/** Peaks of Blackwell, which has products of f4 instead of int4. */
const blackwell = (f32: number) => {
  const { int4: _, ...peaks } = ada(f32);
  return { ...peaks, f4: 16 * f32 };
};

/** Float32 peak of a GeForce Ada card, from NVIDIA's published cores and boost clock in GHz. */
const boosted = (cores: number, clock: number) => cores * 2 * clock * 1e9;

interface AdaCard {
  readonly cores: number;
  /** Boost clock in GHz. */
  readonly boost: number;
  readonly gigabytes: number;
  /** Bandwidth, bytes per second. */
  readonly bandwidth: number;
  readonly year: number;
}

/** Ada card with its peak from cores and boost clock. */
const boostedAda = (
  name: string,
  model: string,
  { cores, boost, gigabytes, bandwidth, year }: AdaCard,
) => ({
  name,
  title: `NVIDIA GeForce ${model}`,
  architecture: 'sm89' as const,
  memoryBytes: gigabytes * 1e9,
  bandwidth,
  peakFlops: ada(boosted(cores, boost)),
  links: [PCIE_4],
  source: `NVIDIA GeForce ${model} specifications (${year}): ${cores} cores × 2 × ${boost} GHz; ratios of peaks: ${ADA_PAPER}`,
});

const CARDS: readonly Omit<Gpu, 'kind'>[] = [
  {
    name: 'rtx-2080-ti',
    title: 'NVIDIA GeForce RTX 2080 Ti',
    architecture: 'sm75',
    memoryBytes: 11e9,
    bandwidth: 616e9,
    // Unverified: sums in f16 or in float32.
    peakFlops: { f32: 13.45e12, f16: 53.8e12 },
    links: [PCIE_3],
    source: TECHPOWERUP,
  },
  {
    name: 'rtx-3060-12gb',
    title: 'NVIDIA GeForce RTX 3060 12 GB',
    architecture: 'sm86',
    memoryBytes: 12e9,
    bandwidth: 360e9,
    // 3,584 cores × 2 × 1.777 GHz.
    peakFlops: ampere(12.7e12),
    links: [PCIE_4],
    source: `NVIDIA GeForce RTX 3060 specifications (2021); ratios of peaks: ${GA102_PAPER}`,
  },
  {
    name: 'rtx-3060-ti',
    title: 'NVIDIA GeForce RTX 3060 Ti',
    architecture: 'sm86',
    memoryBytes: 8e9,
    bandwidth: 448e9,
    peakFlops: ampere(16.2e12),
    links: [PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}`,
  },
  {
    name: 'rtx-3070',
    title: 'NVIDIA GeForce RTX 3070',
    architecture: 'sm86',
    memoryBytes: 8e9,
    bandwidth: 448e9,
    peakFlops: ampere(20.3e12),
    links: [PCIE_4],
    source: GA102_PAPER,
  },
  {
    name: 'rtx-3070-ti',
    title: 'NVIDIA GeForce RTX 3070 Ti',
    architecture: 'sm86',
    memoryBytes: 8e9,
    bandwidth: 608e9,
    peakFlops: ampere(21.75e12),
    links: [PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}`,
  },
  {
    name: 'rtx-3080-10gb',
    title: 'NVIDIA GeForce RTX 3080 10 GB',
    architecture: 'sm86',
    memoryBytes: 10e9,
    usable: toldByDriver(9.77),
    bandwidth: 760e9,
    peakFlops: {
      f32: 29.8e12,
      tf32: 29.8e12,
      bf16: 59.5e12,
      f16: 59.5e12,
      int8: 238e12,
      int4: 476e12,
    },
    links: [PCIE_4],
    source: GA102_PAPER,
  },
  {
    name: 'rtx-3080-12gb',
    title: 'NVIDIA GeForce RTX 3080 12 GB',
    architecture: 'sm86',
    memoryBytes: 12e9,
    bandwidth: 912e9,
    peakFlops: ampere(30.6e12),
    links: [PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}; bandwidth: that of the RTX 3080 Ti, whose bus it has`,
  },
  {
    name: 'rtx-3080-ti',
    title: 'NVIDIA GeForce RTX 3080 Ti',
    architecture: 'sm86',
    memoryBytes: 12e9,
    bandwidth: 912e9,
    peakFlops: ampere(34.1e12),
    links: [PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}`,
  },
  {
    name: 'rtx-3090',
    title: 'NVIDIA GeForce RTX 3090',
    architecture: 'sm86',
    memoryBytes: 24e9,
    usable: toldByDriver(23.69),
    bandwidth: 936e9,
    peakFlops: {
      f32: 35.6e12,
      tf32: 35.6e12,
      bf16: 71e12,
      f16: 71e12,
      int8: 284e12,
      int4: 568e12,
    },
    // 112.5 GB/s in both directions together, by a bridge.
    links: [nvlink(3, 56.25e9, 2), PCIE_4],
    source: GA102_PAPER,
  },
  {
    name: 'rtx-3090-ti',
    title: 'NVIDIA GeForce RTX 3090 Ti',
    architecture: 'sm86',
    memoryBytes: 24e9,
    bandwidth: 1008e9,
    peakFlops: ampere(40e12),
    links: [nvlink(3, 56.25e9, 2), PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}; Lightning, throughput.py (2024); bridge: that of the RTX 3090`,
  },
  {
    name: 'rtx-4060',
    title: 'NVIDIA GeForce RTX 4060',
    architecture: 'sm89',
    memoryBytes: 8e9,
    bandwidth: 272e9,
    // 3,072 cores × 2 × 2.46 GHz.
    peakFlops: ada(15.1e12),
    links: [PCIE_4_X8],
    source: `NVIDIA GeForce RTX 4060 specifications (2023); ratios of peaks: ${ADA_PAPER}`,
  },
  {
    ...boostedAda('rtx-4060-ti-8gb', 'RTX 4060 Ti 8 GB', {
      cores: 4352,
      boost: 2.535,
      gigabytes: 8,
      bandwidth: 288e9,
      year: 2023,
    }),
    links: [PCIE_4_X8],
  },
  {
    ...boostedAda('rtx-4060-ti-16gb', 'RTX 4060 Ti 16 GB', {
      cores: 4352,
      boost: 2.535,
      gigabytes: 16,
      bandwidth: 288e9,
      year: 2023,
    }),
    links: [PCIE_4_X8],
  },
  {
    name: 'rtx-4070',
    title: 'NVIDIA GeForce RTX 4070',
    architecture: 'sm89',
    memoryBytes: 12e9,
    bandwidth: 504e9,
    // 5,888 cores × 2 × 2.475 GHz.
    peakFlops: ada(29.1e12),
    links: [PCIE_4],
    source: `NVIDIA GeForce RTX 4070 specifications (2023); ratios of peaks: ${ADA_PAPER}`,
  },
  boostedAda('rtx-4070-super', 'RTX 4070 Super', {
    cores: 7168,
    boost: 2.475,
    gigabytes: 12,
    bandwidth: 504e9,
    year: 2024,
  }),
  boostedAda('rtx-4070-ti', 'RTX 4070 Ti', {
    cores: 7680,
    boost: 2.61,
    gigabytes: 12,
    bandwidth: 504e9,
    year: 2023,
  }),
  boostedAda('rtx-4070-ti-super', 'RTX 4070 Ti Super', {
    cores: 8448,
    boost: 2.61,
    gigabytes: 16,
    bandwidth: 672e9,
    year: 2024,
  }),
  {
    name: 'rtx-4080',
    title: 'NVIDIA GeForce RTX 4080',
    architecture: 'sm89',
    memoryBytes: 16e9,
    usable: toldByDriver(15.7),
    bandwidth: 716.8e9,
    peakFlops: {
      f32: 48.7e12,
      tf32: 48.7e12,
      bf16: 97.5e12,
      f16: 97.5e12,
      f8: 194.9e12,
      int8: 389.9e12,
      int4: 779.8e12,
    },
    links: [PCIE_4],
    source: ADA_PAPER,
  },
  boostedAda('rtx-4080-super', 'RTX 4080 Super', {
    cores: 10_240,
    boost: 2.55,
    gigabytes: 16,
    bandwidth: 736e9,
    year: 2024,
  }),
  {
    name: 'rtx-4090',
    title: 'NVIDIA GeForce RTX 4090',
    architecture: 'sm89',
    memoryBytes: 24e9,
    usable: toldByDriver(23.6),
    bandwidth: 1008e9,
    peakFlops: {
      f32: 82.6e12,
      tf32: 82.6e12,
      bf16: 165.2e12,
      f16: 165.2e12,
      f8: 330.3e12,
      int8: 660.6e12,
      int4: 1321.2e12,
    },
    links: [PCIE_4],
    source: ADA_PAPER,
  },
  {
    name: 'rtx-5050',
    title: 'NVIDIA GeForce RTX 5050',
    architecture: 'sm120',
    memoryBytes: 8e9,
    bandwidth: 320e9,
    peakFlops: blackwell(13.2e12),
    links: [PCIE_5_X8],
    source: `everfir/gpu-database (2026); ${TECHPOWERUP}; ratios of peaks: those of the RTX 5090 in ${BLACKWELL_PAPER}`,
  },
  {
    name: 'rtx-5060',
    title: 'NVIDIA GeForce RTX 5060',
    architecture: 'sm120',
    memoryBytes: 8e9,
    bandwidth: 448e9,
    peakFlops: blackwell(19.2e12),
    links: [PCIE_5_X8],
    source: `everfir/gpu-database (2026); ${TECHPOWERUP}; ratios of peaks: those of the RTX 5090 in ${BLACKWELL_PAPER}`,
  },
  {
    name: 'rtx-5060-ti-16gb',
    title: 'NVIDIA GeForce RTX 5060 Ti 16 GB',
    architecture: 'sm120',
    memoryBytes: 16e9,
    bandwidth: 448e9,
    peakFlops: blackwell(23.7e12),
    links: [PCIE_5_X8],
    source: `everfir/gpu-database (2026); ${TECHPOWERUP}; ratios of peaks: those of the RTX 5090 in ${BLACKWELL_PAPER}`,
  },
  {
    name: 'rtx-5070',
    title: 'NVIDIA GeForce RTX 5070',
    architecture: 'sm120',
    memoryBytes: 12e9,
    bandwidth: 672e9,
    peakFlops: blackwell(30.9e12),
    links: [PCIE_5],
    source: `${BLACKWELL_PAPER}; ratios of peaks: those of the RTX 5090 there`,
  },
  {
    name: 'rtx-5070-ti',
    title: 'NVIDIA GeForce RTX 5070 Ti',
    architecture: 'sm120',
    memoryBytes: 16e9,
    bandwidth: 896e9,
    peakFlops: blackwell(43.9e12),
    links: [PCIE_5],
    source: `${BLACKWELL_PAPER}; ratios of peaks: those of the RTX 5090 there`,
  },
  {
    name: 'rtx-5080',
    title: 'NVIDIA GeForce RTX 5080',
    architecture: 'sm120',
    memoryBytes: 16e9,
    bandwidth: 960e9,
    peakFlops: blackwell(56.3e12),
    links: [PCIE_5],
    source: `${BLACKWELL_PAPER}; ratios of peaks: those of the RTX 5090 there`,
  },
  {
    name: 'rtx-5090',
    title: 'NVIDIA GeForce RTX 5090',
    architecture: 'sm120',
    memoryBytes: 32e9,
    usable: toldByDriver(31.3),
    bandwidth: 1792e9,
    peakFlops: {
      f32: 104.8e12,
      tf32: 104.8e12,
      bf16: 209.5e12,
      f16: 209.5e12,
      f8: 419e12,
      f4: 1676e12,
      int8: 838e12,
    },
    links: [PCIE_5],
    source: BLACKWELL_PAPER,
  },
];

export const GEFORCE: readonly Gpu[] = CARDS.map((card) => ({ ...card, kind: 'nvidia' }));
