/** Accelerators of AMD, Google and Intel. */
import type { Gpu } from './gpu.js';
import { PCIE_4, PCIE_5 } from './links.js';
import { toldByDriver } from './usable.js';

/** Of the scaling book: https://jax-ml.github.io/scaling-book/tpus, bandwidth of links in one direction. */
const SCALING_BOOK = '"How to Scale Your Model" (2025), chapter 2';

const MI300X_PEAKS = {
  f32: 163.4e12,
  tf32: 653.7e12,
  bf16: 1307.4e12,
  f16: 1307.4e12,
  f8: 2614.9e12,
  int8: 2614.9e12,
} as const;

/** A link to each of seven others, 128 GB/s in both directions. */
const MI300X_LINKS = [{ name: 'Infinity Fabric', bandwidth: 448e9, gpus: 8 }, PCIE_5] as const;

const CARDS: readonly Omit<Gpu, 'kind'>[] = [
  {
    name: 'mi210',
    title: 'AMD Instinct MI210',
    memoryBytes: 64e9,
    bandwidth: 1.6384e12,
    peakFlops: { f32: 45.3e12, bf16: 181e12, f16: 181e12, int8: 181e12 },
    // Infinity Fabric joins them as each machine has it wired: not told here.
    links: [PCIE_4],
    source: 'AMD Instinct MI210 datasheet (2022); f32 is that of matrices',
  },
  {
    // A card is two devices to programs, with memory, bandwidth and peak of their own: --gpus 2 is one card.
    name: 'mi250x',
    title: 'AMD Instinct MI250X, one of its two devices',
    memoryBytes: 128e9 / 2,
    usable: toldByDriver(63.98),
    bandwidth: 3.2768e12 / 2,
    peakFlops: { f32: 95.7e12 / 2, bf16: 383e12 / 2, f16: 383e12 / 2, int8: 383e12 / 2 },
    // 400 GB/s in both directions within a card; between cards as each machine has it wired: not told here.
    links: [{ name: 'Infinity Fabric in the card', bandwidth: 200e9, gpus: 2 }, PCIE_4],
    source:
      'half of the AMD Instinct MI250X datasheet (2021), f32 being that of matrices; link: AMD CDNA 2 whitepaper (2021)',
  },
  {
    name: 'mi300x',
    title: 'AMD Instinct MI300X',
    memoryBytes: 192e9,
    usable: toldByDriver(191.98),
    bandwidth: 5.3e12,
    peakFlops: MI300X_PEAKS,
    links: MI300X_LINKS,
    source: 'AMD Instinct MI300X datasheet (2023)',
  },
  {
    name: 'mi325x',
    title: 'AMD Instinct MI325X',
    memoryBytes: 256e9,
    bandwidth: 6e12,
    peakFlops: MI300X_PEAKS,
    links: MI300X_LINKS,
    source: 'AMD Instinct MI325X datasheet (2024)',
  },
  {
    name: 'rx-7900-xtx',
    title: 'AMD Radeon RX 7900 XTX',
    memoryBytes: 24e9,
    bandwidth: 960e9,
    peakFlops: { f32: 61.4e12, f16: 122.8e12 },
    links: [PCIE_4],
    source: 'AMD Radeon RX 7900 XTX specifications (2022)',
  },
  {
    name: 'tpu-v4',
    title: 'Google TPU v4',
    memoryBytes: 32e9,
    bandwidth: 1.2e12,
    peakFlops: { bf16: 275e12, int8: 275e12 },
    // A torus of three dimensions: six links of 4.5e10.
    links: [{ name: 'ICI, 3D torus', bandwidth: 270e9, gpus: 4096 }],
    source: `Google Cloud documentation of TPU v4 (2023); ${SCALING_BOOK}`,
  },
  {
    name: 'tpu-v5e',
    title: 'Google TPU v5e',
    memoryBytes: 16e9,
    // 819 GB/s in the documentation; chapter 2 of the book has 8.1e11, its chapter on inference 8.2e11.
    bandwidth: 8.2e11,
    peakFlops: { bf16: 197e12, int8: 394e12 },
    // Four links of 4.5e10.
    links: [{ name: 'ICI, 2D torus', bandwidth: 180e9, gpus: 256 }],
    source: '"How to Scale Your Model" (2025), chapters 2 and 7; Google Cloud documentation (2023)',
  },
  {
    name: 'tpu-v5p',
    title: 'Google TPU v5p',
    memoryBytes: 95e9,
    bandwidth: 2.765e12,
    peakFlops: { bf16: 459e12, int8: 918e12 },
    // Six links of 9e10.
    links: [{ name: 'ICI, 3D torus', bandwidth: 540e9, gpus: 8960 }],
    source: `Google Cloud documentation of TPU v5p (2023); ${SCALING_BOOK}`,
  },
  {
    name: 'gaudi3',
    title: 'Intel Gaudi 3',
    memoryBytes: 128e9,
    bandwidth: 3.7e12,
    peakFlops: { bf16: 1835e12, f8: 1835e12 },
    // 21 of its 24 ports of 200 Gbit/s lead to the seven others of a machine.
    links: [{ name: 'Ethernet, 21 × 200 Gbit/s', bandwidth: 525e9, gpus: 8 }, PCIE_5],
    source: 'Intel Gaudi 3 AI accelerator whitepaper (2024)',
  },
];

export const OTHER_MAKERS: readonly Gpu[] = CARDS.map((card) => ({ ...card, kind: 'other' }));
