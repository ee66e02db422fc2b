/**
 * NVIDIA's GPUs for data centers. Their datasheets print peaks of tensor cores with sparsity from the A100 on,
 * some beside the dense ones and some alone: here stand the dense ones, half of it.
 */
import type { Gpu } from './gpu.js';
import { nvlink, PCIE_3, PCIE_4, PCIE_5 } from './links.js';
import { toldByDriver } from './usable.js';

const V100 = {
  bandwidth: 900e9,
  peakFlops: { f32: 15.7e12, f16: 125e12 },
  // 300 GB/s in both directions; eight of them in a DGX-1, not each joined with each.
  links: [nvlink(2, 150e9, 8), PCIE_3],
  source: 'NVIDIA V100 datasheet (2020), SXM2',
} as const;

const A100_PEAKS = {
  f32: 19.5e12,
  tf32: 156e12,
  bf16: 312e12,
  f16: 312e12,
  int8: 624e12,
  int4: 1248e12,
} as const;

const A100_SOURCE = 'NVIDIA A100 datasheet (2022); int4: A100 architecture whitepaper (2020)';

/** The H100 architecture whitepaper (2022), SXM5; also those of H200 and GH200, whose datasheets round them. */
const HOPPER_PEAKS = {
  f32: 66.9e12,
  tf32: 494.7e12,
  bf16: 989.4e12,
  f16: 989.4e12,
  f8: 1978.9e12,
  int8: 1978.9e12,
} as const;

const CARDS: readonly Omit<Gpu, 'kind'>[] = [
  { name: 'v100-16gb', title: 'NVIDIA V100 SXM2 16 GB', memoryBytes: 16e9, ...V100 },
  { name: 'v100-32gb', title: 'NVIDIA V100 SXM2 32 GB', memoryBytes: 32e9, ...V100 },
  {
    name: 't4',
    title: 'NVIDIA T4',
    memoryBytes: 16e9,
    usable: toldByDriver(14.7),
    bandwidth: 300e9,
    peakFlops: { f32: 8.1e12, f16: 65e12, int8: 130e12, int4: 260e12 },
    links: [PCIE_3],
    source: 'NVIDIA T4 datasheet (2019)',
  },
  {
    name: 'a10',
    title: 'NVIDIA A10',
    memoryBytes: 24e9,
    usable: toldByDriver(22),
    bandwidth: 600e9,
    peakFlops: {
      f32: 31.2e12,
      tf32: 62.5e12,
      bf16: 125e12,
      f16: 125e12,
      int8: 250e12,
      int4: 500e12,
    },
    links: [PCIE_4],
    source: 'NVIDIA A10 datasheet (2022)',
  },
  {
    name: 'a10g',
    title: 'NVIDIA A10G (Amazon EC2 G5)',
    memoryBytes: 24e9,
    usable: toldByDriver(22),
    bandwidth: 600e9,
    peakFlops: { f32: 35e12, tf32: 35e12, bf16: 70e12, f16: 70e12, int8: 140e12, int4: 280e12 },
    links: [PCIE_4],
    source: 'NVIDIA A10G datasheet, at Amazon Web Services (2021)',
  },
  {
    name: 'a30',
    title: 'NVIDIA A30',
    memoryBytes: 24e9,
    bandwidth: 933e9,
    peakFlops: {
      f32: 10.3e12,
      tf32: 82e12,
      bf16: 165e12,
      f16: 165e12,
      int8: 330e12,
      int4: 661e12,
    },
    // 200 GB/s in both directions, by a bridge.
    links: [nvlink(3, 100e9, 2), PCIE_4],
    source: 'NVIDIA A30 datasheet (2022)',
  },
  {
    name: 'a40',
    title: 'NVIDIA A40',
    memoryBytes: 48e9,
    usable: toldByDriver(44.3),
    bandwidth: 696e9,
    peakFlops: {
      f32: 37.4e12,
      tf32: 74.8e12,
      bf16: 149.7e12,
      f16: 149.7e12,
      int8: 299.3e12,
      int4: 598.7e12,
    },
    // 112.5 GB/s in both directions, by a bridge.
    links: [nvlink(3, 56.25e9, 2), PCIE_4],
    source: 'NVIDIA A40 datasheet (2022)',
  },
  {
    name: 'l4',
    title: 'NVIDIA L4',
    memoryBytes: 24e9,
    usable: toldByDriver(21.9),
    bandwidth: 300e9,
    // Printed with sparsity alone: 120, 242, 242, 485 and 485.
    peakFlops: {
      f32: 30.3e12,
      tf32: 60e12,
      bf16: 121e12,
      f16: 121e12,
      f8: 242.5e12,
      int8: 242.5e12,
    },
    links: [PCIE_4],
    source: 'NVIDIA L4 datasheet (2023)',
  },
  {
    name: 'l40',
    title: 'NVIDIA L40',
    memoryBytes: 48e9,
    usable: toldByDriver(44.3),
    bandwidth: 864e9,
    peakFlops: {
      f32: 90.5e12,
      tf32: 90.5e12,
      bf16: 181.05e12,
      f16: 181.05e12,
      f8: 362e12,
      int8: 362e12,
      int4: 724e12,
    },
    links: [PCIE_4],
    source: 'NVIDIA L40 datasheet (2023)',
  },
  {
    name: 'l40s',
    title: 'NVIDIA L40S',
    memoryBytes: 48e9,
    usable: toldByDriver(44.3),
    bandwidth: 864e9,
    peakFlops: {
      f32: 91.6e12,
      tf32: 183e12,
      bf16: 362.05e12,
      f16: 362.05e12,
      f8: 733e12,
      int8: 733e12,
      int4: 733e12,
    },
    links: [PCIE_4],
    source: 'NVIDIA L40S datasheet (2023)',
  },
  {
    name: 'a100-40gb',
    title: 'NVIDIA A100 SXM4 40 GB',
    memoryBytes: 40e9,
    bandwidth: 1555e9,
    peakFlops: A100_PEAKS,
    links: [nvlink(3, 300e9, 8), PCIE_4],
    source: 'NVIDIA A100 datasheet (2020); int4: A100 architecture whitepaper (2020)',
  },
  {
    name: 'a100-80gb',
    title: 'NVIDIA A100 SXM4 80 GB',
    memoryBytes: 80e9,
    bandwidth: 2039e9,
    peakFlops: A100_PEAKS,
    links: [nvlink(3, 300e9, 8), PCIE_4],
    source: A100_SOURCE,
  },
  {
    name: 'a100-pcie-40gb',
    title: 'NVIDIA A100 PCIe 40 GB',
    memoryBytes: 40e9,
    bandwidth: 1555e9,
    peakFlops: A100_PEAKS,
    // A bridge joins two.
    links: [nvlink(3, 300e9, 2), PCIE_4],
    source: 'NVIDIA A100 datasheet (2020); int4: A100 architecture whitepaper (2020)',
  },
  {
    name: 'a100-pcie-80gb',
    title: 'NVIDIA A100 PCIe 80 GB',
    memoryBytes: 80e9,
    bandwidth: 1935e9,
    peakFlops: A100_PEAKS,
    links: [nvlink(3, 300e9, 2), PCIE_4],
    source: A100_SOURCE,
  },
  {
    name: 'h100-80gb',
    title: 'NVIDIA H100 SXM5 80 GB',
    memoryBytes: 80e9,
    bandwidth: 3.35e12,
    peakFlops: HOPPER_PEAKS,
    links: [nvlink(4, 450e9, 8), PCIE_5],
    source: 'NVIDIA H100 datasheet (2023); peaks: H100 architecture whitepaper (2022)',
  },
  {
    name: 'h100-pcie-80gb',
    title: 'NVIDIA H100 PCIe 80 GB',
    memoryBytes: 80e9,
    bandwidth: 2e12,
    peakFlops: {
      f32: 51.2e12,
      tf32: 378e12,
      bf16: 756e12,
      f16: 756e12,
      f8: 1513e12,
      int8: 1513e12,
    },
    links: [nvlink(4, 300e9, 2), PCIE_5],
    source: 'NVIDIA H100 datasheet (2023); peaks: H100 architecture whitepaper (2022)',
  },
  {
    name: 'h100-nvl-94gb',
    title: 'NVIDIA H100 NVL 94 GB',
    memoryBytes: 94e9,
    bandwidth: 3.9e12,
    // Printed with sparsity alone: 835, 1,671, 1,671, 3,341 and 3,341.
    peakFlops: {
      f32: 60e12,
      tf32: 417.5e12,
      bf16: 835.5e12,
      f16: 835.5e12,
      f8: 1670.5e12,
      int8: 1670.5e12,
    },
    links: [nvlink(4, 300e9, 2), PCIE_5],
    source: 'NVIDIA H100 datasheet (2024)',
  },
  {
    name: 'h200',
    title: 'NVIDIA H200 SXM5 141 GB',
    memoryBytes: 141e9,
    bandwidth: 4.8e12,
    peakFlops: HOPPER_PEAKS,
    links: [nvlink(4, 450e9, 8), PCIE_5],
    source: 'NVIDIA H200 datasheet (2024); peaks: H100 architecture whitepaper (2022)',
  },
  {
    name: 'h20',
    title: 'NVIDIA H20 SXM5 96 GB',
    memoryBytes: 96e9,
    bandwidth: 4e12,
    peakFlops: {
      f32: 44e12,
      tf32: 74e12,
      bf16: 148e12,
      f16: 148e12,
      f8: 296e12,
      int8: 296e12,
    },
    links: [nvlink(4, 450e9, 8), PCIE_5],
    source: 'NVIDIA H20, as reported by SemiAnalysis (2023): NVIDIA has no datasheet in public',
  },
  {
    name: 'gh200-96gb',
    title: 'NVIDIA GH200, 96 GB of HBM3',
    memoryBytes: 96e9,
    bandwidth: 4e12,
    peakFlops: HOPPER_PEAKS,
    links: [nvlink(4, 450e9, 32)],
    source:
      'NVIDIA GH200 Grace Hopper datasheet (2023), joined as in GH200 NVL32; peaks: H100 architecture whitepaper (2022)',
  },
  {
    name: 'gh200-144gb',
    title: 'NVIDIA GH200, 144 GB of HBM3e',
    memoryBytes: 144e9,
    bandwidth: 4.9e12,
    peakFlops: HOPPER_PEAKS,
    links: [nvlink(4, 450e9, 32)],
    source:
      'NVIDIA GH200 Grace Hopper datasheet (2024), joined as in GH200 NVL32; peaks: H100 architecture whitepaper (2022)',
  },
  {
    name: 'b200',
    title: 'NVIDIA B200 SXM 180 GB',
    memoryBytes: 180e9,
    bandwidth: 8e12,
    // An eighth of HGX B200, printed with sparsity: 18, 36, 36, 72 and 72 PFLOP/s; float32, without: 600 TFLOP/s.
    peakFlops: {
      f32: 75e12,
      tf32: 1.125e15,
      bf16: 2.25e15,
      f16: 2.25e15,
      f8: 4.5e15,
      int8: 4.5e15,
    },
    links: [nvlink(5, 900e9, 8), PCIE_5],
    source: 'NVIDIA HGX B200 and DGX B200 datasheets (2025)',
  },
  {
    name: 'gb200',
    title: 'NVIDIA GB200, one of its two GPUs',
    memoryBytes: 186e9,
    bandwidth: 8e12,
    // A 72nd of GB200 NVL72, printed with sparsity: 180, 360, 360, 720 and 720 PFLOP/s; float32, without: 5,760 TFLOP/s.
    peakFlops: {
      f32: 80e12,
      tf32: 1.25e15,
      bf16: 2.5e15,
      f16: 2.5e15,
      f8: 5e15,
      int8: 5e15,
    },
    links: [nvlink(5, 900e9, 72)],
    source: 'NVIDIA GB200 NVL72 datasheet (2024)',
  },
  {
    name: 'b300',
    title: 'NVIDIA B300 SXM 288 GB',
    memoryBytes: 288e9,
    bandwidth: 8e12,
    // An eighth of HGX B300, printed with sparsity: 18, 36, 36 and 72 PFLOP/s. Of integers it has few.
    peakFlops: { tf32: 1.125e15, bf16: 2.25e15, f16: 2.25e15, f8: 4.5e15 },
    links: [nvlink(5, 900e9, 8), PCIE_5],
    source: 'NVIDIA HGX B300 specifications (2025)',
  },
];

export const NVIDIA_DATA_CENTER: readonly Gpu[] = CARDS.map((card) => ({
  ...card,
  kind: 'nvidia',
}));
