/** NVIDIA's workstation cards and small computers. */
import type { Gpu } from './gpu.js';
import { countedBySmi, nvlink, PCIE_4, PCIE_5, toldByDriver } from './gpu.js';

const GA102_PAPER = 'NVIDIA Ampere GA102 architecture whitepaper (2021)';
const ADA_PAPER = 'NVIDIA Ada architecture whitepaper (2023)';
const TECHPOWERUP = 'TechPowerUp, by reox007/RightNow-GPU-Database (2025)';
const EVERFIR = 'everfir/gpu-database (2026)';

/**
 * Tensor core peaks with sums in float32, as multiples of the float32 peak. The ratios are from the whitepapers of RTX
 * A6000 and RTX 6000 Ada; cards that differ only in cores and clock have the same.
 */
const ofAmpere = (f32: number) => ({
  f32,
  tf32: 2 * f32,
  bf16: 4 * f32,
  f16: 4 * f32,
  int8: 8 * f32,
});

const CARDS: readonly Omit<Gpu, 'kind'>[] = [
  {
    name: 'rtx-6000-ada',
    title: 'NVIDIA RTX 6000 Ada',
    architecture: 'sm89',
    memoryBytes: 48e9,
    bandwidth: 960e9,
    peakFlops: {
      f32: 91.1e12,
      tf32: 182.1e12,
      bf16: 364.2e12,
      f16: 364.2e12,
      f8: 728.5e12,
      int8: 728.5e12,
      int4: 1457e12,
    },
    links: [PCIE_4],
    source: `NVIDIA RTX 6000 Ada datasheet (2022); ${ADA_PAPER}`,
  },
  {
    name: 'rtx-a6000',
    title: 'NVIDIA RTX A6000',
    architecture: 'sm86',
    memoryBytes: 48e9,
    usable: toldByDriver(47.5),
    bandwidth: 768e9,
    peakFlops: {
      f32: 38.7e12,
      tf32: 77.4e12,
      bf16: 154.8e12,
      f16: 154.8e12,
      int8: 309.7e12,
      int4: 619.3e12,
    },
    links: [nvlink(3, 56.25e9, 2), PCIE_4],
    source: `NVIDIA RTX A6000 datasheet (2021); ${GA102_PAPER}`,
  },
  {
    name: 'rtx-a5000',
    title: 'NVIDIA RTX A5000',
    architecture: 'sm86',
    memoryBytes: 24e9,
    bandwidth: 768e9,
    peakFlops: ofAmpere(27.8e12),
    links: [nvlink(3, 56.25e9, 2), PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}; bridge: not verified`,
  },
  {
    name: 'rtx-a4000',
    title: 'NVIDIA RTX A4000',
    architecture: 'sm86',
    memoryBytes: 16e9,
    bandwidth: 448e9,
    peakFlops: ofAmpere(19.2e12),
    links: [PCIE_4],
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}`,
  },
  // No peak found, so there is no prefill estimate.
  {
    name: 'rtx-5000-ada',
    title: 'NVIDIA RTX 5000 Ada',
    architecture: 'sm89',
    memoryBytes: 32e9,
    bandwidth: 576e9,
    peakFlops: {},
    links: [PCIE_4],
    source: EVERFIR,
  },
  {
    name: 'rtx-4500-ada',
    title: 'NVIDIA RTX 4500 Ada',
    architecture: 'sm89',
    memoryBytes: 24e9,
    bandwidth: 432e9,
    peakFlops: {},
    links: [PCIE_4],
    source: EVERFIR,
  },
  {
    name: 'rtx-4000-ada',
    title: 'NVIDIA RTX 4000 Ada',
    architecture: 'sm89',
    memoryBytes: 20e9,
    bandwidth: 360e9,
    peakFlops: {},
    links: [PCIE_4],
    source: EVERFIR,
  },
  {
    name: 'rtx-pro-6000-blackwell',
    title: 'NVIDIA RTX PRO 6000 Blackwell',
    architecture: 'sm120',
    memoryBytes: 96e9,
    usable: countedBySmi(97_887),
    // 1,597 GB/s for the server edition.
    bandwidth: 1792e9,
    // bf16 is 250 for the workstation edition in everfir/gpu-database, 500 for the server edition there.
    peakFlops: { f32: 126e12, bf16: 503.8e12, f16: 503.8e12, f8: 1000e12 },
    links: [PCIE_5],
    source: `aiconfigurator, systems (2026); allenai/open-instruct, utils.py (2025); ${EVERFIR}`,
  },
  {
    name: 'rtx-pro-5000-blackwell-48gb',
    title: 'NVIDIA RTX PRO 5000 Blackwell 48 GB',
    architecture: 'sm120',
    memoryBytes: 48e9,
    bandwidth: 1344e9,
    peakFlops: {},
    links: [PCIE_5],
    source: EVERFIR,
  },
  {
    name: 'rtx-pro-5000-blackwell-72gb',
    title: 'NVIDIA RTX PRO 5000 Blackwell 72 GB',
    architecture: 'sm120',
    memoryBytes: 72e9,
    bandwidth: 1344e9,
    peakFlops: {},
    links: [PCIE_5],
    source: EVERFIR,
  },
  {
    name: 'rtx-pro-4500-blackwell',
    title: 'NVIDIA RTX PRO 4500 Blackwell',
    architecture: 'sm120',
    memoryBytes: 32e9,
    bandwidth: 896e9,
    peakFlops: {},
    links: [PCIE_5],
    source: EVERFIR,
  },
  {
    name: 'rtx-pro-4000-blackwell',
    title: 'NVIDIA RTX PRO 4000 Blackwell',
    architecture: 'sm120',
    memoryBytes: 24e9,
    bandwidth: 672e9,
    peakFlops: {},
    links: [PCIE_5],
    source: EVERFIR,
  },
  {
    name: 'gb10',
    title: 'NVIDIA GB10 (DGX Spark)',
    architecture: 'sm121',
    memoryBytes: 128e9,
    bandwidth: 273e9,
    // NVIDIA prints 1,000 TFLOP/s of f4 with sparsity; the dense peak is not verified.
    peakFlops: { f32: 29.7e12, bf16: 104e12, f16: 104e12 },
    links: [],
    source: `${TECHPOWERUP}; bf16: allenai/open-instruct, utils.py (2025), not verified elsewhere`,
  },
  {
    name: 'jetson-agx-orin-64gb',
    title: 'NVIDIA Jetson AGX Orin 64 GB',
    architecture: 'sm87',
    memoryBytes: 64e9,
    bandwidth: 204.8e9,
    // Without tensor cores, which the table does not list.
    peakFlops: { f32: 5.33e12, f16: 10.65e12 },
    links: [],
    source: TECHPOWERUP,
  },
];

export const NVIDIA_WORKSTATION: readonly Gpu[] = CARDS.map((card) => ({
  ...card,
  kind: 'nvidia',
}));
