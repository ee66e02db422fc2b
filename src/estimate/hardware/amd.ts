/** Cards, modules and integrated graphics of AMD. */
import type { Gpu, UsableMemory } from './gpu.js';
import {
  ACCELERATORS,
  EVERFIR,
  linkBeforePcie,
  PCIE_4_X8,
  publisher,
  reportedByDriver,
  TECHPOWERUP,
} from './gpu.js';

const amd = publisher('other', 'AMD ');

const MI300X = {
  peaks: { f32: 163.4, tf32: 653.7, half: 1307.4, f8: 2614.9, int8: 2614.9 },
  /** Links to each of seven others, 128 GB/s each for both directions together. */
  links: linkBeforePcie('cdna3', 'Infinity Fabric', 448, 8),
};

/** Links to each of seven others, 76.5 GB/s each. */
const MI350_LINKS = linkBeforePcie('cdna4', 'Infinity Fabric', 535.5, 8);

/** 400 GB/s in both directions together within a card; links between cards depend on the machine and are left out. */
const WITHIN_MI250 = linkBeforePcie('cdna2', 'Infinity Fabric in the card', 200, 2);

const STRIX_HALO = {
  peaks: { f32: 14.85, f16: 29.7 },
  source:
    'TechPowerUp, by reox007/RightNow-GPU-Database (2025), without its matrix cores; bandwidth: 256 bits of LPDDR5X-8000, ' +
    'AMD specifications (2025), not verified',
};

/** Share of the memory that graphics of Ryzen AI Max can use: 108.62 of 127.78 GiB. */
const SHARE_OF_STRIX_HALO = 0.85;

/**
 * Memory of Ryzen AI Max for graphics. Windows lets llama.cpp use 108.62 to 111.89 of 127.78 GiB, for three sizes of the
 * dedicated memory; Linux half of it (62.47 GiB to PyTorch), until `ttm.pages_limit` is raised (to 96 GiB and more).
 */
const leftByStrixHalo = (gibibytes: number): UsableMemory => ({
  bytes: Math.floor(gibibytes * SHARE_OF_STRIX_HALO * 2 ** 30),
  source:
    `approximate: ${SHARE_OF_STRIX_HALO * 100}% of ${gibibytes} GiB, as on Windows with 128 GiB (unslothai/unsloth, pull ` +
    'request 10418); Linux leaves graphics half (pull request 7960), until the kernel parameter ttm.pages_limit is raised',
});

const ryzenAiMax = (gigabytes: number): Gpu =>
  amd(
    `ryzen-ai-max-395-${gigabytes}gb`,
    `Ryzen AI Max+ 395, ${gigabytes} GB`,
    'rdna3.5',
    gigabytes,
    256,
    { ...STRIX_HALO, usable: leftByStrixHalo(gigabytes) },
  );

/** Graphics of a processor, without memory of its own. Linux gives graphics half of the memory, as on Ryzen AI Max. */
const integrated = (
  model: string,
  architecture: 'rdna3-apu' | 'rdna3.5',
  gigabytesPerSecond: number,
  peaks: { readonly f32: number; readonly f16: number },
  memory: string,
): Gpu[] =>
  [16, 32, 64, 96].map((gigabytes) =>
    amd(
      `radeon-${model.toLowerCase()}-${gigabytes}gb`,
      `Radeon ${model}, ${gigabytes} GB shared with the processor`,
      architecture,
      gigabytes,
      gigabytesPerSecond,
      {
        peaks,
        usable: {
          bytes: gigabytes * 2 ** 29,
          source: `half of ${gigabytes} GiB, as Linux gives graphics by default (as on Ryzen AI Max); the kernel parameter ttm.pages_limit raises it`,
        },
        source: `${TECHPOWERUP}; bandwidth: ${memory}`,
      },
    ),
  );

/** Name, model, GB, GB/s, peaks of float32 and float16 in TFLOP/s, lanes of PCIe. */
type Rdna2Row = readonly [string, string, number, number, number, number, (8 | 16)?];

/** Radeon RX 6000: without matrix units, float16 runs at twice the rate of float32. */
const RDNA2: readonly Rdna2Row[] = [
  ['rx-6600', 'RX 6600', 8, 224, 8.93, 17.86, 8],
  ['rx-6600-xt', 'RX 6600 XT', 8, 256, 10.6, 21.21, 8],
  ['rx-6650-xt', 'RX 6650 XT', 8, 280.3, 10.79, 21.59, 8],
  ['rx-6700', 'RX 6700', 10, 320, 11.29, 22.58],
  ['rx-6700-xt', 'RX 6700 XT', 12, 384, 13.21, 26.43],
  ['rx-6750-xt', 'RX 6750 XT', 12, 432, 13.31, 26.62],
  ['rx-6800', 'RX 6800', 16, 512, 16.17, 32.33],
  ['rx-6800-xt', 'RX 6800 XT', 16, 512, 20.74, 41.47],
  ['rx-6900-xt', 'RX 6900 XT', 16, 512, 23.04, 46.08],
  ['rx-6950-xt', 'RX 6950 XT', 16, 576, 23.65, 47.31],
];

const MI50 = {
  peaks: { f32: 13.41, f16: 26.82 },
  source: `${TECHPOWERUP}; bandwidth: 4,096 bits at 2 Gbit/s; 32 GB as amdgpu prints it (product_name)`,
};

export const AMD: readonly Gpu[] = [
  ...[16, 32].map((gigabytes) =>
    amd(
      `mi50-${gigabytes}gb`,
      `Radeon Instinct MI50 ${gigabytes} GB`,
      'gcn5',
      gigabytes,
      1024,
      MI50,
    ),
  ),
  amd('mi60', 'Radeon Instinct MI60', 'gcn5', 32, 1024, {
    peaks: { f32: 14.75, f16: 29.49 },
    source: TECHPOWERUP,
  }),
  amd('radeon-vii', 'Radeon VII', 'gcn5', 16, 1024, {
    peaks: { f32: 13.44, f16: 26.88 },
    source: TECHPOWERUP,
  }),
  amd('mi100', 'Instinct MI100', 'cdna1', 32, 1228.8, {
    peaks: { f16: 184.6 },
    source:
      'cli99/llm-analysis, gpu_configs (2024); bandwidth: AMD Instinct MI100 datasheet (2020), not verified',
  }),
  amd('mi250', 'Instinct MI250, one of its two devices', 'cdna2', 128 / 2, 3276.8 / 2, {
    peaks: { f16: 362.1 / 2, bf16: 362.1 / 2 },
    links: WITHIN_MI250,
    source: `half of the card in cli99/llm-analysis, gpu_configs (2024); bandwidth and link: those of the MI250X`,
  }),
  amd('mi210', 'Instinct MI210', 'cdna2', 64, 1638.4, {
    // Infinity Fabric between cards depends on the machine and is left out.
    peaks: { f32: 45.3, half: 181, int8: 181 },
    source: 'AMD Instinct MI210 datasheet (2022); f32 is that of matrices',
  }),
  // A card is two devices to programs, each with its own memory, bandwidth and peak: --gpus 2 is one card.
  amd('mi250x', 'Instinct MI250X, one of its two devices', 'cdna2', 128 / 2, 3276.8 / 2, {
    peaks: { f32: 95.7 / 2, half: 383 / 2, int8: 383 / 2 },
    usable: reportedByDriver(63.98),
    links: WITHIN_MI250,
    source:
      'half of the AMD Instinct MI250X datasheet (2021), f32 being that of matrices; link: AMD CDNA 2 whitepaper (2021)',
  }),
  amd('mi300x', 'Instinct MI300X', 'cdna3', 192, 5300, {
    ...MI300X,
    usable: reportedByDriver(191.98),
    source: 'AMD Instinct MI300X datasheet (2023)',
  }),
  amd('mi325x', 'Instinct MI325X', 'cdna3', 256, 6000, {
    ...MI300X,
    source: 'AMD Instinct MI325X datasheet (2024)',
  }),
  amd('mi300a', 'Instinct MI300A', 'cdna3', 128, 5300, { peaks: { half: 980.6 }, source: EVERFIR }),
  amd('mi350x', 'Instinct MI350X', 'cdna4', 288, 8000, {
    peaks: { f32: 144.2, half: 2300, f8: 4600 },
    links: MI350_LINKS,
    source: EVERFIR,
  }),
  amd('mi355x', 'Instinct MI355X', 'cdna4', 288, 8000, {
    peaks: { f32: 157.3, half: 2500, f8: 5000, f4: 10_100, int8: 5000 },
    links: MI350_LINKS,
    source: `${EVERFIR}; ${ACCELERATORS}`,
  }),
  amd('rx-7900-xtx', 'Radeon RX 7900 XTX', 'rdna3', 24, 960, {
    peaks: { f32: 61.4, f16: 122.8, int8: 123, int4: 246 },
    source: `AMD Radeon RX 7900 XTX specifications (2022); integers: ${EVERFIR}`,
  }),
  amd('rx-7900-xt', 'Radeon RX 7900 XT', 'rdna3', 20, 800, {
    peaks: { f16: 103 },
    source: EVERFIR,
  }),
  amd('rx-7900-gre', 'Radeon RX 7900 GRE', 'rdna3', 16, 576, {
    peaks: { f16: 92 },
    source: EVERFIR,
  }),
  amd('rx-7800-xt', 'Radeon RX 7800 XT', 'rdna3', 16, 624, {
    peaks: { f16: 74.6 },
    source: EVERFIR,
  }),
  amd('rx-7700-xt', 'Radeon RX 7700 XT', 'rdna3', 12, 432, {
    peaks: { f32: 35.2, f16: 70.3, int8: 70.3, int4: 141 },
    source: EVERFIR,
  }),
  amd('rx-7600-xt', 'Radeon RX 7600 XT', 'rdna3', 16, 288, {
    peaks: { f32: 22.57, f16: 45.14 },
    links: [PCIE_4_X8],
    source: TECHPOWERUP,
  }),
  amd('rx-7600', 'Radeon RX 7600', 'rdna3', 8, 288, {
    peaks: { f32: 21.75, f16: 43.5 },
    links: [PCIE_4_X8],
    source: TECHPOWERUP,
  }),
  amd('radeon-pro-w7900', 'Radeon PRO W7900', 'rdna3', 48, 864, {
    peaks: { f32: 61.3, f16: 122.6 },
    source: TECHPOWERUP,
  }),
  amd('radeon-pro-w7800-32gb', 'Radeon PRO W7800 32 GB', 'rdna3', 32, 576, {
    peaks: { f32: 45.25, f16: 90.5 },
    source: TECHPOWERUP,
  }),
  amd('radeon-pro-w7800-48gb', 'Radeon PRO W7800 48 GB', 'rdna3', 48, 864, {
    peaks: { f32: 45.25, f16: 90.5 },
    source: TECHPOWERUP,
  }),
  amd('radeon-pro-w7700', 'Radeon PRO W7700', 'rdna3', 16, 576, {
    peaks: { f32: 31.95, f16: 63.9 },
    source: TECHPOWERUP,
  }),
  amd('radeon-pro-w6800', 'Radeon PRO W6800', 'rdna2', 32, 512, {
    peaks: { f32: 17.83, f16: 35.67 },
    source: TECHPOWERUP,
  }),
  ...RDNA2.map(([name, model, gigabytes, bandwidth, f32, f16, lanes = 16]) =>
    amd(name, `Radeon ${model}`, 'rdna2', gigabytes, bandwidth, {
      peaks: { f32, f16 },
      ...(lanes === 8 && { links: [PCIE_4_X8] }),
      source: TECHPOWERUP,
    }),
  ),
  amd('rx-9070-xt', 'Radeon RX 9070 XT', 'rdna4', 16, 640, {
    peaks: { f32: 48.7, f16: 195, f8: 389, int8: 389 },
    source: EVERFIR,
  }),
  amd('rx-9070', 'Radeon RX 9070', 'rdna4', 16, 640, {
    peaks: { f32: 36.1, f16: 145, f8: 289, int8: 289 },
    source: EVERFIR,
  }),
  amd('rx-9070-gre', 'Radeon RX 9070 GRE', 'rdna4', 12, 432, {
    peaks: { f32: 34.3, f16: 137, f8: 274, int8: 274 },
    source: EVERFIR,
  }),
  ...[8, 16].map((gigabytes) =>
    amd(`rx-9060-xt-${gigabytes}gb`, `Radeon RX 9060 XT ${gigabytes} GB`, 'rdna4', gigabytes, 320, {
      peaks: { f32: 25.6, f16: 103, f8: 205, int8: 205 },
      source: EVERFIR,
    }),
  ),
  amd('radeon-ai-pro-r9700', 'Radeon AI PRO R9700', 'rdna4', 32, 640, {
    peaks: { f32: 47.8, f16: 191, int8: 383 },
    source: EVERFIR,
  }),
  ...[64, 96, 128].map(ryzenAiMax),
  ...integrated(
    '780M',
    'rdna3-apu',
    89.6,
    { f32: 8.91, f16: 17.82 },
    'two channels of DDR5-5600; LPDDR5X-7500 has 120 GB/s',
  ),
  ...integrated(
    '890M',
    'rdna3.5',
    120,
    { f32: 5.94, f16: 11.88 },
    '128 bits of LPDDR5X-7500; DDR5-5600 has 89.6 GB/s',
  ),
];
