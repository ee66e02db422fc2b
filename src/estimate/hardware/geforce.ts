/**
 * NVIDIA GeForce cards. Products of f16, bf16 and f8 run at half rate with sums in float32. Peaks here are that half,
 * because training and inference sum in float32.
 */
import type { Gpu } from './gpu.js';
import {
  ADA_PAPER,
  GA102_PAPER,
  linkBeforePcie,
  PCIE_4_X8,
  PCIE_5_X8,
  publisher,
  reportedByDriver,
  TECHPOWERUP,
} from './gpu.js';

const geforce = publisher('nvidia', 'NVIDIA GeForce ');
const nvidia = publisher('nvidia', 'NVIDIA ');

/** 112.5 GB/s in both directions together, by a bridge. */
const BRIDGE = linkBeforePcie('sm86', 'NVLink 3', 56.25, 2);

/** Tensor core peaks as multiples of the float32 peak, the same for all GeForce cards in each whitepaper. */
const turing = (f32: number) => ({ f32, f16: 4 * f32 });
export const ampere = (f32: number) => ({
  f32,
  tf32: f32,
  half: 2 * f32,
  int8: 8 * f32,
  int4: 16 * f32,
});
export const ada = (f32: number) => ({ ...ampere(f32), f8: 4 * f32 });
/** Peaks of Blackwell, which has products of f4 instead of int4. */
export const blackwell = (f32: number) => {
  const { int4: f4, ...peaks } = ada(f32);
  return { ...peaks, f4 };
};

const RATIOS_OF_AMPERE = `ratios of peaks: ${GA102_PAPER}`;
const RATIOS_OF_ADA = `ratios of peaks: ${ADA_PAPER}`;
const SURVEYED_AMPERE = `${TECHPOWERUP}; ${RATIOS_OF_AMPERE}`;
const BLACKWELL_PAPER = 'NVIDIA RTX Blackwell architecture whitepaper (2025)';
const SURVEYED_BLACKWELL = `everfir/gpu-database (2026); ${TECHPOWERUP}; ratios of peaks: those of the RTX 5090 in ${BLACKWELL_PAPER}`;
const RATIOS_OF_BLACKWELL = `${BLACKWELL_PAPER}; ratios of peaks: those of the RTX 5090 there`;

/** Ada card whose float32 peak follows from NVIDIA's published cores and boost clock in GHz. */
const boostedAda = (model: string, cores: number, boost: number, year: number) => ({
  peaks: ada((cores * 2 * boost) / 1e3),
  source: `NVIDIA GeForce ${model} specifications (${year}): ${cores} cores × 2 × ${boost} GHz; ${RATIOS_OF_ADA}`,
});

/** Name, model, GB, GB/s, peak of float32 in TFLOP/s. */
type Card = readonly [string, string, number, number, number];

/** Pascal cards. Products of f16 run at a 64th of float32; those of int8 at four times float32, as on the Tesla P40. */
const PASCAL: readonly Card[] = [
  ['gtx-1050-ti', 'GTX 1050 Ti', 4, 112.1, 2.14],
  ['gtx-1060-6gb', 'GTX 1060 6 GB', 6, 192.2, 4.38],
  ['gtx-1070', 'GTX 1070', 8, 256.3, 6.46],
  ['gtx-1070-ti', 'GTX 1070 Ti', 8, 256.3, 8.19],
  ['gtx-1080', 'GTX 1080', 8, 320.3, 8.87],
  ['gtx-1080-ti', 'GTX 1080 Ti', 11, 484.4, 11.34],
];

/** Turing cards without tensor cores, whose products of f16 run at twice float32. */
const TURING_WITHOUT_TENSOR_CORES: readonly Card[] = [
  ['gtx-1650', 'GTX 1650', 4, 128.1, 2.98],
  ['gtx-1650-super', 'GTX 1650 Super', 4, 192, 4.42],
  ['gtx-1660', 'GTX 1660', 6, 192.1, 5.03],
  ['gtx-1660-super', 'GTX 1660 Super', 6, 336, 5.03],
  ['gtx-1660-ti', 'GTX 1660 Ti', 6, 288, 5.44],
];

const TURING_PAPER = 'NVIDIA Turing architecture whitepaper (2018)';

const TURING: readonly Card[] = [
  ['rtx-2060-6gb', 'RTX 2060 6 GB', 6, 336, 6.45],
  ['rtx-2060-12gb', 'RTX 2060 12 GB', 12, 336, 7.18],
  ['rtx-2060-super', 'RTX 2060 Super', 8, 448, 7.18],
  ['rtx-2070', 'RTX 2070', 8, 448, 7.46],
  ['rtx-2070-super', 'RTX 2070 Super', 8, 448, 9.06],
  ['rtx-2080', 'RTX 2080', 8, 448, 10.07],
  ['rtx-2080-super', 'RTX 2080 Super', 8, 495.9, 11.15],
  ['rtx-2080-ti', 'RTX 2080 Ti', 11, 616, 13.45],
];

export const GEFORCE: readonly Gpu[] = [
  ...PASCAL.map(([name, model, gigabytes, bandwidth, f32]) =>
    geforce(name, model, 'sm61', gigabytes, bandwidth, {
      peaks: { f32, int8: 4 * f32 },
      source: `${TECHPOWERUP}; int8: the ratio of the Tesla P40, of the same architecture`,
    }),
  ),
  ...TURING_WITHOUT_TENSOR_CORES.map(([name, model, gigabytes, bandwidth, f32]) =>
    geforce(name, model, 'sm75', gigabytes, bandwidth, {
      peaks: { f32, f16: 2 * f32 },
      source: TECHPOWERUP,
    }),
  ),
  ...TURING.map(([name, model, gigabytes, bandwidth, f32]) =>
    geforce(name, model, 'sm75', gigabytes, bandwidth, {
      peaks: turing(f32),
      source: `${TECHPOWERUP}; f16: as on the RTX 2080 Ti, four times float32 with sums in float32`,
    }),
  ),
  nvidia('titan-rtx', 'TITAN RTX', 'sm75', 24, 672, {
    // Its tensor cores sum in float32 at full rate, as those of the T4 do.
    peaks: { f32: 16.31, f16: 130.5 },
    source: `${TECHPOWERUP}; f16: 576 tensor cores × 128 × 1.77 GHz, ${TURING_PAPER}`,
  }),
  geforce('rtx-3050-8gb', 'RTX 3050 8 GB', 'sm86', 8, 224, {
    peaks: ampere(9.1),
    links: [PCIE_4_X8],
    source: SURVEYED_AMPERE,
  }),
  geforce('rtx-3050-6gb', 'RTX 3050 6 GB', 'sm86', 6, 168, {
    peaks: ampere(6.77),
    links: [PCIE_4_X8],
    source: SURVEYED_AMPERE,
  }),
  geforce('rtx-3060-12gb', 'RTX 3060 12 GB', 'sm86', 12, 360, {
    // 3,584 cores × 2 × 1.777 GHz.
    peaks: ampere(12.7),
    source: `NVIDIA GeForce RTX 3060 specifications (2021); ${RATIOS_OF_AMPERE}`,
  }),
  geforce('rtx-3060-ti', 'RTX 3060 Ti', 'sm86', 8, 448, {
    peaks: ampere(16.2),
    source: SURVEYED_AMPERE,
  }),
  geforce('rtx-3070', 'RTX 3070', 'sm86', 8, 448, { peaks: ampere(20.3), source: GA102_PAPER }),
  geforce('rtx-3070-ti', 'RTX 3070 Ti', 'sm86', 8, 608, {
    peaks: ampere(21.75),
    source: SURVEYED_AMPERE,
  }),
  geforce('rtx-3080-10gb', 'RTX 3080 10 GB', 'sm86', 10, 760, {
    peaks: { f32: 29.8, tf32: 29.8, half: 59.5, int8: 238, int4: 476 },
    usable: reportedByDriver(9.77),
    source: GA102_PAPER,
  }),
  geforce('rtx-3080-12gb', 'RTX 3080 12 GB', 'sm86', 12, 912, {
    peaks: ampere(30.6),
    source: `${SURVEYED_AMPERE}; bandwidth: that of the RTX 3080 Ti, whose bus it has`,
  }),
  geforce('rtx-3080-ti', 'RTX 3080 Ti', 'sm86', 12, 912, {
    peaks: ampere(34.1),
    source: SURVEYED_AMPERE,
  }),
  geforce('rtx-3090', 'RTX 3090', 'sm86', 24, 936, {
    peaks: { f32: 35.6, tf32: 35.6, half: 71, int8: 284, int4: 568 },
    usable: reportedByDriver(23.69),
    links: BRIDGE,
    source: GA102_PAPER,
  }),
  geforce('rtx-3090-ti', 'RTX 3090 Ti', 'sm86', 24, 1008, {
    peaks: ampere(40),
    links: BRIDGE,
    source: `${SURVEYED_AMPERE}; Lightning, throughput.py (2024); bridge: that of the RTX 3090`,
  }),
  geforce('rtx-4060', 'RTX 4060', 'sm89', 8, 272, {
    // 3,072 cores × 2 × 2.46 GHz.
    peaks: ada(15.1),
    links: [PCIE_4_X8],
    source: `NVIDIA GeForce RTX 4060 specifications (2023); ${RATIOS_OF_ADA}`,
  }),
  geforce('rtx-4060-ti-8gb', 'RTX 4060 Ti 8 GB', 'sm89', 8, 288, {
    ...boostedAda('RTX 4060 Ti 8 GB', 4352, 2.535, 2023),
    links: [PCIE_4_X8],
  }),
  geforce('rtx-4060-ti-16gb', 'RTX 4060 Ti 16 GB', 'sm89', 16, 288, {
    ...boostedAda('RTX 4060 Ti 16 GB', 4352, 2.535, 2023),
    links: [PCIE_4_X8],
  }),
  geforce('rtx-4070', 'RTX 4070', 'sm89', 12, 504, {
    // 5,888 cores × 2 × 2.475 GHz.
    peaks: ada(29.1),
    source: `NVIDIA GeForce RTX 4070 specifications (2023); ${RATIOS_OF_ADA}`,
  }),
  geforce(
    'rtx-4070-super',
    'RTX 4070 Super',
    'sm89',
    12,
    504,
    boostedAda('RTX 4070 Super', 7168, 2.475, 2024),
  ),
  geforce(
    'rtx-4070-ti',
    'RTX 4070 Ti',
    'sm89',
    12,
    504,
    boostedAda('RTX 4070 Ti', 7680, 2.61, 2023),
  ),
  geforce(
    'rtx-4070-ti-super',
    'RTX 4070 Ti Super',
    'sm89',
    16,
    672,
    boostedAda('RTX 4070 Ti Super', 8448, 2.61, 2024),
  ),
  geforce('rtx-4080', 'RTX 4080', 'sm89', 16, 716.8, {
    peaks: { f32: 48.7, tf32: 48.7, half: 97.5, f8: 194.9, int8: 389.9, int4: 779.8 },
    usable: reportedByDriver(15.7),
    source: ADA_PAPER,
  }),
  geforce(
    'rtx-4080-super',
    'RTX 4080 Super',
    'sm89',
    16,
    736,
    boostedAda('RTX 4080 Super', 10_240, 2.55, 2024),
  ),
  geforce('rtx-4090', 'RTX 4090', 'sm89', 24, 1008, {
    peaks: { f32: 82.6, tf32: 82.6, half: 165.2, f8: 330.3, int8: 660.6, int4: 1321.2 },
    usable: reportedByDriver(23.6),
    source: ADA_PAPER,
  }),
  geforce('rtx-5050', 'RTX 5050', 'sm120', 8, 320, {
    peaks: blackwell(13.2),
    links: [PCIE_5_X8],
    source: SURVEYED_BLACKWELL,
  }),
  geforce('rtx-5060', 'RTX 5060', 'sm120', 8, 448, {
    peaks: blackwell(19.2),
    links: [PCIE_5_X8],
    source: SURVEYED_BLACKWELL,
  }),
  geforce('rtx-5060-ti-8gb', 'RTX 5060 Ti 8 GB', 'sm120', 8, 448, {
    peaks: blackwell(23.7),
    links: [PCIE_5_X8],
    source: SURVEYED_BLACKWELL,
  }),
  geforce('rtx-5060-ti-16gb', 'RTX 5060 Ti 16 GB', 'sm120', 16, 448, {
    peaks: blackwell(23.7),
    links: [PCIE_5_X8],
    source: SURVEYED_BLACKWELL,
  }),
  geforce('rtx-5070', 'RTX 5070', 'sm120', 12, 672, {
    peaks: blackwell(30.9),
    source: RATIOS_OF_BLACKWELL,
  }),
  geforce('rtx-5070-ti', 'RTX 5070 Ti', 'sm120', 16, 896, {
    peaks: blackwell(43.9),
    source: RATIOS_OF_BLACKWELL,
  }),
  geforce('rtx-5080', 'RTX 5080', 'sm120', 16, 960, {
    peaks: blackwell(56.3),
    source: RATIOS_OF_BLACKWELL,
  }),
  geforce('rtx-5090', 'RTX 5090', 'sm120', 32, 1792, {
    peaks: { f32: 104.8, tf32: 104.8, half: 209.5, f8: 419, f4: 1676, int8: 838 },
    usable: reportedByDriver(31.3),
    source: BLACKWELL_PAPER,
  }),
];
