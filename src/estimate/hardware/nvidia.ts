/**
 * NVIDIA's GPUs for data centers. From the A100 on, datasheets print tensor core peaks with sparsity,
 * some together with dense ones and some alone. Peaks here are dense, half of those.
 */
import type { Gpu } from './gpu.js';
import {
  linkBeforePcie,
  publisher,
  reportedByDriver,
  TECHPOWERUP,
  totalOfSmi,
  USUAL_GPU,
  usableAs,
} from './gpu.js';

const nvidia = publisher('nvidia', 'NVIDIA ');

/** 300 GB/s in both directions together; a DGX-1 has eight V100, not all directly connected. */
const NVLINK_2 = linkBeforePcie('sm70', 'NVLink 2', 150, 8);
const NVLINK_3 = linkBeforePcie('sm80', 'NVLink 3', 300, 8);
/** A bridge connects two A100. */
const NVLINK_3_PAIR = linkBeforePcie('sm80', 'NVLink 3', 300, 2);
/** 112.5 GB/s in both directions together, by a bridge. */
export const NVLINK_3_BRIDGE = linkBeforePcie('sm86', 'NVLink 3', 56.25, 2);
const NVLINK_4 = linkBeforePcie('sm90', 'NVLink 4', 450, 8);
const NVLINK_4_PAIR = linkBeforePcie('sm90', 'NVLink 4', 300, 2);
const NVLINK_5 = linkBeforePcie('sm100', 'NVLink 5', 900, 8);

/** NVLink of whole racks of modules without PCIe. */
const GH200_NVL32 = [{ name: 'NVLink 4', bandwidth: 450e9, gpus: 32 }];
const GB200_NVL72 = [{ name: 'NVLink 5', bandwidth: 900e9, gpus: 72 }];

const V100 = {
  peaks: { f32: 15.7, f16: 125 },
  links: NVLINK_2,
  source: 'NVIDIA V100 datasheet (2020), SXM2',
};

const A100 = {
  peaks: { f32: 19.5, tf32: 156, half: 312, int8: 624, int4: 1248 },
  links: NVLINK_3,
  source: 'NVIDIA A100 datasheet (2022); int4: A100 architecture whitepaper (2020)',
};
const A100_40GB = {
  ...A100,
  usable: reportedByDriver(39.39),
  source: 'NVIDIA A100 datasheet (2020); int4: A100 architecture whitepaper (2020)',
};

/** H100 architecture whitepaper (2022), SXM5; also for H200 and GH200, whose datasheets round the values. */
const HOPPER_PEAKS = { f32: 66.9, tf32: 494.7, half: 989.4, f8: 1978.9, int8: 1978.9 };
const H100_PAPER = 'peaks: H100 architecture whitepaper (2022)';

/** Printed with sparsity only: 835, 1,671, 1,671, 3,341 and 3,341. */
const HOPPER_NVL_PEAKS = { f32: 60, tf32: 417.5, half: 835.5, f8: 1670.5, int8: 1670.5 };

/** NVLink of the chips for China: 400 GB/s in both directions together. */
const NVLINK_A800 = linkBeforePcie('sm80', 'NVLink 3', 200, 8);
const NVLINK_H800 = linkBeforePcie('sm90', 'NVLink 4', 200, 8);
const FOR_CHINA =
  'else as the A100, of which it is the version for China; NVLink: arXiv 2505.09343 (2025)';

const P100 = { source: `${TECHPOWERUP}; NVLink: stas00, ml-engineering, network (2025)` };

export const NVIDIA_DATA_CENTER: readonly Gpu[] = [
  // Products of f16 run at a 64th of float32, so that programs compute in float32.
  nvidia('p40', 'Tesla P40', 'sm61', 24, 347.1, {
    peaks: { f32: 11.76, int8: 47 },
    usable: reportedByDriver(22.38),
    source: `${TECHPOWERUP}; int8: NVIDIA Tesla P40 datasheet (2016)`,
  }),
  nvidia('p100-pcie-12gb', 'Tesla P100 PCIe 12 GB', 'sm60', 12, 549.1, {
    peaks: { f32: 9.53, f16: 19.05 },
    source: TECHPOWERUP,
  }),
  nvidia('p100-16gb', 'Tesla P100 PCIe 16 GB', 'sm60', 16, 732.2, {
    peaks: { f32: 9.53, f16: 19.05 },
    source: TECHPOWERUP,
  }),
  nvidia('p100-sxm2-16gb', 'Tesla P100 SXM2 16 GB', 'sm60', 16, 732.2, {
    peaks: { f32: 10.61, f16: 21.22 },
    links: linkBeforePcie('sm60', 'NVLink 1', 80, 8),
    ...P100,
  }),
  nvidia('v100-16gb', 'V100 SXM2 16 GB', 'sm70', 16, 900, {
    ...V100,
    usable: reportedByDriver(15.77),
  }),
  nvidia('v100-32gb', 'V100 SXM2 32 GB', 'sm70', 32, 900, {
    ...V100,
    usable: reportedByDriver(31.7),
  }),
  // 320 GB/s by the memory clock (TechPowerUp); the datasheet prints both 300 and 320+.
  nvidia('t4', 'T4', 'sm75', 16, 300, {
    peaks: { f32: 8.1, f16: 65, int8: 130, int4: 260 },
    usable: reportedByDriver(14.7),
    source: 'NVIDIA T4 datasheet (2019)',
  }),
  nvidia('a10', 'A10', 'sm86', 24, 600, {
    peaks: { f32: 31.2, tf32: 62.5, half: 125, int8: 250, int4: 500 },
    usable: reportedByDriver(22),
    source: 'NVIDIA A10 datasheet (2022)',
  }),
  nvidia('a10g', 'A10G (Amazon EC2 G5)', 'sm86', 24, 600, {
    // 31.5 TFLOP/s of float32 by cores and clock (TechPowerUp).
    peaks: { f32: 35, tf32: 35, half: 70, int8: 140, int4: 280 },
    usable: reportedByDriver(22),
    source: 'NVIDIA A10G datasheet, at Amazon Web Services (2021)',
  }),
  nvidia('a30', 'A30', 'sm80', 24, 933, {
    peaks: { f32: 10.3, tf32: 82, half: 165, int8: 330, int4: 661 },
    // 200 GB/s in both directions together, by a bridge.
    links: linkBeforePcie('sm80', 'NVLink 3', 100, 2),
    source: 'NVIDIA A30 datasheet (2022)',
  }),
  nvidia('a40', 'A40', 'sm86', 48, 696, {
    peaks: { f32: 37.4, tf32: 74.8, half: 149.7, int8: 299.3, int4: 598.7 },
    usable: reportedByDriver(44.3),
    links: NVLINK_3_BRIDGE,
    source: 'NVIDIA A40 datasheet (2022)',
  }),
  nvidia('l4', 'L4', 'sm89', 24, 300, {
    // Printed with sparsity only: 120, 242, 242, 485 and 485.
    peaks: { f32: 30.3, tf32: 60, half: 121, f8: 242.5, int8: 242.5, int4: 484 },
    usable: reportedByDriver(21.9),
    source: 'NVIDIA L4 datasheet (2023); int4: Lightning, fabric, throughput.py (2024)',
  }),
  nvidia('l40', 'L40', 'sm89', 48, 864, {
    peaks: { f32: 90.5, tf32: 90.5, half: 181.05, f8: 362, int8: 362, int4: 724 },
    usable: reportedByDriver(44.3),
    source: 'NVIDIA L40 datasheet (2023)',
  }),
  nvidia('l40s', 'L40S', 'sm89', 48, 864, {
    peaks: { f32: 91.6, tf32: 183, half: 362.05, f8: 733, int8: 733, int4: 733 },
    usable: reportedByDriver(44.3),
    source: 'NVIDIA L40S datasheet (2023)',
  }),
  nvidia('l20', 'L20', 'sm89', 48, 864, {
    peaks: { half: 119.5, f8: 239 },
    usable: usableAs('the L40S, which has the same memory', 44.3),
    source: 'everfir/gpu-database (2026): NVIDIA has no datasheet in public',
  }),
  nvidia('a100-40gb', 'A100 SXM4 40 GB', 'sm80', 40, 1555, A100_40GB),
  nvidia('a100-80gb', 'A100 SXM4 80 GB', 'sm80', 80, 2039, {
    ...A100,
    usable: reportedByDriver(79.1),
  }),
  nvidia('a100-pcie-40gb', 'A100 PCIe 40 GB', 'sm80', 40, 1555, {
    ...A100_40GB,
    links: NVLINK_3_PAIR,
  }),
  nvidia('a100-pcie-80gb', 'A100 PCIe 80 GB', 'sm80', 80, 1935, {
    ...A100,
    usable: reportedByDriver(79.1),
    links: NVLINK_3_PAIR,
  }),
  nvidia('a800-80gb', 'A800 SXM4 80 GB', 'sm80', 80, 2039, {
    ...A100,
    usable: usableAs('the A100, which has the same memory', 79.1),
    links: NVLINK_A800,
    source: `${TECHPOWERUP}; ${FOR_CHINA}`,
  }),
  nvidia('a800-pcie-80gb', 'A800 PCIe 80 GB', 'sm80', 80, 1935, {
    ...A100,
    usable: usableAs('the A100, which has the same memory', 79.1),
    links: linkBeforePcie('sm80', 'NVLink 3', 200, 2),
    source: `${TECHPOWERUP}; ${FOR_CHINA}`,
  }),
  nvidia('h100-80gb', 'H100 SXM5 80 GB', 'sm90', 80, 3350, {
    peaks: HOPPER_PEAKS,
    usable: reportedByDriver(79.1),
    links: NVLINK_4,
    source: `NVIDIA H100 datasheet (2023); ${H100_PAPER}`,
  }),
  nvidia('h100-pcie-80gb', 'H100 PCIe 80 GB', 'sm90', 80, 2000, {
    peaks: { f32: 51.2, tf32: 378, half: 756, f8: 1513, int8: 1513 },
    usable: reportedByDriver(79.1),
    links: NVLINK_4_PAIR,
    source: `NVIDIA H100 datasheet (2023); ${H100_PAPER}`,
  }),
  nvidia('h800-80gb', 'H800 SXM5 80 GB', 'sm90', 80, 3350, {
    peaks: HOPPER_PEAKS,
    usable: usableAs('the H100, which has the same memory', 79.1),
    links: NVLINK_H800,
    source: `${TECHPOWERUP}; ${FOR_CHINA.replace('A100', 'H100')}`,
  }),
  nvidia('h800-pcie-80gb', 'H800 PCIe 80 GB', 'sm90', 80, 2000, {
    peaks: { f32: 51.2, tf32: 378, half: 756, f8: 1513, int8: 1513 },
    usable: usableAs('the H100, which has the same memory', 79.1),
    links: linkBeforePcie('sm90', 'NVLink 4', 200, 2),
    source: `${TECHPOWERUP}; ${FOR_CHINA.replace('A100', 'H100')}`,
  }),
  nvidia('h100-nvl-94gb', 'H100 NVL 94 GB', 'sm90', 94, 3900, {
    peaks: HOPPER_NVL_PEAKS,
    usable: reportedByDriver(93),
    links: NVLINK_4_PAIR,
    source: 'NVIDIA H100 datasheet (2024)',
  }),
  nvidia('h200', 'H200 SXM5 141 GB', 'sm90', 141, 4800, {
    peaks: HOPPER_PEAKS,
    usable: reportedByDriver(139.8),
    links: NVLINK_4,
    source: `NVIDIA H200 datasheet (2024); ${H100_PAPER}`,
  }),
  nvidia('h200-nvl', 'H200 NVL 141 GB', 'sm90', 141, 4800, {
    peaks: HOPPER_NVL_PEAKS,
    usable: usableAs('the H200 SXM5, which has the same memory', 139.8),
    // A bridge connects two or four.
    links: linkBeforePcie('sm90', 'NVLink 4', 450, 4),
    source:
      'NVIDIA H200 datasheet (2024), as everfir/gpu-database and Lightning, throughput.py have it; bridge: not verified',
  }),
  nvidia('h20', 'H20 SXM5 96 GB', 'sm90', 96, 4000, {
    peaks: { f32: 44, tf32: 74, half: 148, f8: 296, int8: 296 },
    links: NVLINK_4,
    source: 'NVIDIA H20, as reported by SemiAnalysis (2023): NVIDIA has no datasheet in public',
  }),
  nvidia('gh200-96gb', 'GH200, 96 GB of HBM3', 'sm90', 96, 4000, {
    peaks: HOPPER_PEAKS,
    links: GH200_NVL32,
    source: `NVIDIA GH200 Grace Hopper datasheet (2023), joined as in GH200 NVL32; ${H100_PAPER}`,
  }),
  // 141 GB at 4.8 TB/s elsewhere (stas00, ml-engineering, accelerators).
  nvidia('gh200-144gb', 'GH200, 144 GB of HBM3e', 'sm90', 144, 4900, {
    peaks: HOPPER_PEAKS,
    usable: usableAs('the H200, which has the same chips', 139.8),
    links: GH200_NVL32,
    source: `NVIDIA GH200 Grace Hopper datasheet (2024), joined as in GH200 NVL32; ${H100_PAPER}`,
  }),
  // 7,680 bits at 3,996 MHz, both edges (queried from the driver, pytorch/ao, pull request 4002); sold as 8 TB/s.
  nvidia('b200', 'B200 SXM 180 GB', 'sm100', 180, 7672, {
    // An eighth of HGX B200, printed with sparsity: 18, 36, 36, 72 and 72 PFLOP/s; float32, without: 600 TFLOP/s.
    peaks: { f32: 75, tf32: 1125, half: 2250, f8: 4500, f4: 9000, int8: 4500 },
    usable: reportedByDriver(178.3),
    links: NVLINK_5,
    source:
      'NVIDIA HGX B200 and DGX B200 datasheets (2025); bandwidth: pytorch/ao, pull request 4002 (2026)',
  }),
  nvidia('gb200', 'GB200, one of its two GPUs', 'sm100', 186, 8000, {
    // A 72nd of GB200 NVL72, with sparsity: 180, 360, 360, 720 and 720 PFLOP/s; float32, without: 5,760 TFLOP/s.
    peaks: { f32: 80, tf32: 1250, half: 2500, f8: 5000, f4: 10_000, int8: 5000 },
    usable: totalOfSmi(189_471),
    links: GB200_NVL72,
    source: 'NVIDIA GB200 NVL72 datasheet (2024)',
  }),
  // Advertised bandwidth; 62 TB/s of HGX B300 are 7.75 per GPU.
  nvidia('b300', 'B300 SXM 288 GB', 'sm103', 288, 8000, {
    // An eighth of HGX B300, printed with sparsity: 18, 36, 36 and 72 PFLOP/s. f4: 14 in other tables. Integer
    // throughput is low: int8 is from aiconfigurator.
    peaks: { tf32: 1125, half: 2250, f8: 4500, f4: 13_500, int8: 153.5 },
    usable: totalOfSmi(275_040),
    links: NVLINK_5,
    source: 'NVIDIA HGX B300 specifications (2025)',
  }),
  nvidia('gb300', 'GB300, one of its two GPUs', 'sm103', 288, 8000, {
    peaks: { half: 2500, f8: 5000, f4: 15_000, int8: 165 },
    usable: totalOfSmi(284_208),
    links: GB200_NVL72,
    source: 'aiconfigurator, systems (2026); stas00, ml-engineering, accelerators (2025)',
  }),
];

/** The GPU of answers that name none, without the tables of the others. */
export const usualGpu: Gpu = NVIDIA_DATA_CENTER.find(({ name }) => name === USUAL_GPU) as Gpu;
