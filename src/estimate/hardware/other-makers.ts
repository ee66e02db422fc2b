/** Accelerators of AMD, Google, Amazon, Intel and Apple. */
import type { Gpu, UsableMemory } from './gpu.js';
import {
  EVERFIR,
  linkBeforePcie,
  PCIE_4_X8,
  PCIE_5_X8,
  publisher,
  reportedByDriver,
} from './gpu.js';

const ACCELERATORS = 'stas00, ml-engineering, accelerators (2025)';

// AMD

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

const AMD: readonly Gpu[] = [
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
  amd('rx-9070-xt', 'Radeon RX 9070 XT', 'rdna4', 16, 640, {
    peaks: { f32: 48.7, f16: 195, f8: 389, int8: 389 },
    source: EVERFIR,
  }),
  amd('radeon-ai-pro-r9700', 'Radeon AI PRO R9700', 'rdna4', 32, 640, {
    peaks: { f32: 47.8, f16: 191, int8: 383 },
    source: EVERFIR,
  }),
  ...[64, 96, 128].map(ryzenAiMax),
];

// Google, Amazon and Intel

/** The scaling book: https://jax-ml.github.io/scaling-book/tpus, bandwidth of links in one direction. */
const SCALING_BOOK = '"How to Scale Your Model" (2025), chapter 2';

/** Usable memory of makers that state GiB and print GB. */
const statedInGib = (gibibytes: number): UsableMemory => ({
  bytes: gibibytes * 2 ** 30,
  source: `${gibibytes} GiB, as Google states it ("How to Scale Your Model", 2025, chapter 2; Google Cloud documentation)`,
});

const torus2d = (gigabytesPerSecond: number) =>
  linkBeforePcie('tpu-v5e', 'ICI, 2D torus', gigabytesPerSecond, 256);
const torus3d = (gigabytesPerSecond: number, gpus: number) =>
  linkBeforePcie('tpu-v4', 'ICI, 3D torus', gigabytesPerSecond, gpus);

const google = publisher('other', 'Google ');
const amazon = publisher('other', 'Amazon ');
const intel = publisher('other', 'Intel ');

const GOOGLE_AMAZON_INTEL: readonly Gpu[] = [
  google('tpu-v4', 'TPU v4', 'tpu-v4', 32, 1200, {
    peaks: { bf16: 275, int8: 275 },
    usable: statedInGib(32),
    // Six links of 4.5e10.
    links: torus3d(270, 4096),
    source: `Google Cloud documentation of TPU v4 (2023); ${SCALING_BOOK}`,
  }),
  // 819 GB/s in the documentation; the book has 8.1e11 in its tables, and 8.2e11 gives the 4.98 ms of its example.
  google('tpu-v5e', 'TPU v5e', 'tpu-v5e', 16, 820, {
    peaks: { bf16: 197, int8: 394 },
    usable: statedInGib(16),
    // Four links of 4.5e10.
    links: torus2d(180),
    source: '"How to Scale Your Model" (2025), chapters 2 and 7; Google Cloud documentation (2023)',
  }),
  google('tpu-v5p', 'TPU v5p', 'tpu-v5p', 95, 2765, {
    peaks: { bf16: 459, int8: 918 },
    usable: statedInGib(95),
    // Six links of 9e10.
    links: torus3d(540, 8960),
    source: `Google Cloud documentation of TPU v5p (2023); ${SCALING_BOOK}`,
  }),
  // 1.6e12 in the book.
  google('tpu-v6e', 'TPU v6e', 'tpu-v6e', 32, 1640, {
    peaks: { bf16: 918, int8: 1836 },
    usable: statedInGib(32),
    links: torus2d(360),
    source: `${SCALING_BOOK}; Google Cloud documentation of TPU v6e (2024)`,
  }),
  google('tpu7x', 'TPU7x (Ironwood)', 'tpu7x', 192, 7380, {
    peaks: { bf16: 2307, f8: 4614 },
    usable: statedInGib(192),
    links: torus3d(600, 9216),
    source: `Google Cloud documentation of TPU7x (2025); ${ACCELERATORS}`,
  }),
  amazon('trainium2', 'Trainium2', 'neuron2', 96, 2900, {
    peaks: { f32: 181, bf16: 667, f8: 1299 },
    links: linkBeforePcie('neuron2', 'NeuronLink', 640, 16),
    source: `${ACCELERATORS}; that NeuronLink joins 16 is not verified`,
  }),
  intel('gaudi2', 'Gaudi 2', 'gaudi2', 96, 2460, {
    peaks: { bf16: 432, f8: 865 },
    links: linkBeforePcie('gaudi2', 'Ethernet, 21 × 100 Gbit/s', 262.5, 8),
    source: `${ACCELERATORS}; 21 of its 24 ports lead to the seven others, as with Gaudi 3`,
  }),
  intel('gaudi3', 'Gaudi 3', 'gaudi3', 128, 3700, {
    // 1,835 in Intel's whitepaper (2024); shipped engines run at 1,600 MHz.
    peaks: { bf16: 1677, f8: 1677 },
    // 21 of its 24 ports of 200 Gbit/s connect to the seven others of a machine.
    links: linkBeforePcie('gaudi3', 'Ethernet, 21 × 200 Gbit/s', 525, 8),
    source: `Intel Gaudi 3 AI accelerator whitepaper (2024); peaks: ${ACCELERATORS}`,
  }),
  intel('arc-b580', 'Arc B580', 'xe2', 12, 456, {
    peaks: { f32: 13.67, half: 116.5, int8: 233 },
    links: [PCIE_4_X8],
    source: EVERFIR,
  }),
  intel('arc-b60', 'Arc Pro B60', 'xe2', 24, 456, {
    peaks: { f32: 12.28, half: 98.3, int8: 197 },
    links: [PCIE_5_X8],
    source: `aiconfigurator, systems (2026); ${EVERFIR}`,
  }),
  intel('arc-b70', 'Arc Pro B70', 'xe2', 32, 608, { peaks: { half: 183.5 }, source: EVERFIR }),
  intel('arc-a770-16gb', 'Arc A770 16 GB', 'xe', 16, 560, {
    peaks: { half: 131 },
    source: EVERFIR,
  }),
];

/**
 * GiB of a Mac's memory that graphics can keep resident (Metal, recommendedMaxWorkingSetSize), from logs of llama.cpp
 * in MB of 10^6 bytes. Up to macOS 15: 11,453.25 of 16 GiB, 17,179.89 of 24, 22,906.50 of 32 (two thirds), 28,991.03 of
 * 36, 38,654.71 of 48, 51,539.61 of 64, 103,079.22 of 128 (three quarters; of 36 GiB exactly 27), 498,216.21 of 512
 * (all but 48 GiB).
 */
function upToMacOs15(gibibytes: number): number {
  if (gibibytes < 36) return (gibibytes * 2) / 3;
  return gibibytes < 512 ? (gibibytes * 3) / 4 : gibibytes - 48;
}

/** MB of 10^6 bytes on macOS 26; for other sizes no log was found. */
const ON_MACOS_26: Readonly<Record<number, number>> = {
  16: 12_713.12,
  24: 19_069.67,
  32: 26_800.6,
  36: 30_150.67,
  48: 40_200.9,
  64: 55_662.79,
  128: 115_448.73,
};

/** Memory for graphics on macOS 26, or for sizes without a log on macOS 15, which leaves graphics less. */
function leftByMacOs(gibibytes: number): UsableMemory {
  const newer = ON_MACOS_26[gibibytes];
  const older = Math.floor(upToMacOs15(gibibytes) * 2 ** 30);
  const how =
    newer === undefined
      ? `up to macOS 15, of ${gibibytes} GiB; macOS 26 leaves graphics more, not known how much`
      : `on macOS 26, of ${gibibytes} GiB; up to macOS 15, graphics have ${Math.floor(older / 1e6).toLocaleString('en')} MB`;
  return {
    bytes: newer === undefined ? older : Math.floor(newer * 1e6),
    source: `${how} (Metal, recommendedMaxWorkingSetSize, as llama.cpp logs it); sysctl iogpu.wired_limit_mb changes it`,
  };
}

const ARXIV = 'arXiv 2502.05317 (2025), table 1';
const HUB = 'huggingface.js, packages/tasks, hardware (2025)';

/** Apple's announcements and specifications of its chips. */
const APPLE = {
  m1: `Apple, announcement of the M1 (2020); bandwidth: ${ARXIV}`,
  m1ProMax: 'Apple, announcement of the M1 Pro and M1 Max (2021)',
  m1Ultra: 'Apple, announcement of the M1 Ultra (2022)',
  m2: 'Apple, announcement of the M2 (2022)',
  m2ProMax: `Apple, announcement of the M2 Pro and M2 Max (2023); peak: ${HUB}`,
  m2Ultra: `Apple, announcement of the M2 Ultra (2023); peak: ${HUB}`,
  m3: `Apple, specifications of the MacBook Air (2024); peak: ${ARXIV}; 4.1 TFLOP/s in ${HUB}`,
  m3ProMax: `Apple, specifications of the MacBook Pro (2023); peak: ${HUB}`,
  m3Max30: 'Apple, specifications of the MacBook Pro (2023); not verified elsewhere',
  m3Ultra: `Apple, specifications of the Mac Studio (2025); peak: ${HUB}`,
  m4: `Apple, announcement of the M4 (2024); peak: ${ARXIV}; 4.6 TFLOP/s in ${HUB}`,
  m4ProMax: `Apple, announcement of the M4 Pro and M4 Max (2024); peak: ${HUB}`,
  m4Max32: 'Ars Technica, table of the M4 family (2024)',
  m5: `Apple, announcement of the M5 (2025); peak: ${HUB}`,
  m5ProMax: `mikeshouts.com, apple-m5-pro-m5-max (2026); peak: ${HUB}`,
};

/** Name, title, memory sizes on sale in GB, bandwidth in GB/s, peak of float32 in TFLOP/s if known, source. */
type AppleChip = readonly [string, string, readonly number[], number, number | null, string];

/**
 * Apple chips with unified memory, of which macOS lets graphics use a part. Bandwidths are Apple's rounded ones. The
 * buses have 102.4 GB/s for a printed 100, 153.6 for 150, 204.8 for 200, 409.6 for 400 and 819.2 for 800. Apple
 * publishes few peaks; the others are from Hugging Face's table.
 */
const APPLE_CHIPS: readonly AppleChip[] = [
  ['m1', 'M1, 8 cores of graphics', [8, 16], 68.25, 2.6, APPLE.m1],
  ['m1-pro', 'M1 Pro, 16 cores of graphics', [16, 32], 200, 5.2, APPLE.m1ProMax],
  ['m1-max', 'M1 Max, 32 cores of graphics', [32, 64], 400, 10.4, APPLE.m1ProMax],
  ['m1-ultra', 'M1 Ultra, 64 cores of graphics', [64, 128], 800, 21, APPLE.m1Ultra],
  ['m2', 'M2, 10 cores of graphics', [8, 16, 24], 100, 3.6, APPLE.m2],
  ['m2-pro', 'M2 Pro', [16, 32], 200, 6.8, APPLE.m2ProMax],
  ['m2-max', 'M2 Max', [32, 64, 96], 400, 13.49, APPLE.m2ProMax],
  ['m2-ultra', 'M2 Ultra', [64, 128, 192], 800, 27.2, APPLE.m2Ultra],
  ['m3', 'M3, 10 cores of graphics', [8, 16, 24], 100, 3.53, APPLE.m3],
  ['m3-pro', 'M3 Pro', [18, 36], 150, 7.4, APPLE.m3ProMax],
  ['m3-max', 'M3 Max, 30 cores of graphics', [36, 96], 300, null, APPLE.m3Max30],
  ['m3-max', 'M3 Max, 40 cores of graphics', [48, 64, 128], 400, 14.2, APPLE.m3ProMax],
  ['m3-ultra', 'M3 Ultra', [96, 256, 512], 819, 28.4, APPLE.m3Ultra],
  ['m4', 'M4, 10 cores of graphics', [16, 24, 32], 120, 4.26, APPLE.m4],
  ['m4-pro', 'M4 Pro', [24, 48, 64], 273, 9.2, APPLE.m4ProMax],
  ['m4-max', 'M4 Max, 32 cores of graphics', [36], 410, null, APPLE.m4Max32],
  ['m4-max', 'M4 Max, 40 cores of graphics', [48, 64, 128], 546, 18.4, APPLE.m4ProMax],
  ['m5', 'M5, 10 cores of graphics', [16, 24, 32], 153, 5.7, APPLE.m5],
  ['m5-pro', 'M5 Pro', [24, 48, 64], 307, 11.4, APPLE.m5ProMax],
  ['m5-max', 'M5 Max, 40 cores of graphics', [48, 64, 128], 614, 22.8, APPLE.m5ProMax],
];

const apple = publisher('other', 'Apple ');

export const OTHER_MAKERS: readonly Gpu[] = [
  ...AMD,
  ...GOOGLE_AMAZON_INTEL,
  ...APPLE_CHIPS.flatMap(([name, title, memories, bandwidth, f32, source]) =>
    memories.map((memory) =>
      apple(`${name}-${memory}gb`, `${title}, ${memory} GB`, 'apple', memory, bandwidth, {
        peaks: f32 === null ? {} : { f32 },
        usable: leftByMacOs(memory),
        source,
      }),
    ),
  ),
];
