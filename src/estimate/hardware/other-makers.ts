/** Accelerators of Google, Amazon, Intel, Huawei and Apple. */
import type { Gpu, PublishedGpu, UsableMemory } from './gpu.js';
import { ACCELERATORS, EVERFIR, linkBeforePcie, PCIE_4_X8, PCIE_5_X8, publisher } from './gpu.js';

// Google, Amazon, Intel and Huawei

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
const huawei = publisher('other', 'Huawei ');

const NEURON = 'AWS Neuron documentation';

/** Memory that the makers of the Neuron devices state in GiB. */
const neuronGib = (gibibytes: number): UsableMemory => ({
  bytes: gibibytes * 2 ** 30,
  source: `${gibibytes} GiB (${NEURON})`,
});

const BY_OTHERS: readonly Gpu[] = [
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
  // The bandwidth of NeuronLink-v2 is not in its documentation, so that several have no known link.
  amazon('trainium1', 'Trainium', 'neuron1', 32, 820, {
    peaks: { f32: 47.5, tf32: 190, half: 190, f8: 190, int8: 380 },
    usable: neuronGib(32),
    source: `${NEURON}, Trainium architecture (2023)`,
  }),
  amazon('trainium3', 'Trainium3', 'neuron3', 144, 4900, {
    peaks: { f32: 183, tf32: 671, half: 671, f8: 2517, f4: 2517 },
    usable: neuronGib(144),
    // 2.56 TB/s in both directions together.
    links: linkBeforePcie('neuron3', 'NeuronLink', 1280, 16),
    source: `${NEURON}, Trainium3 architecture (2025); that NeuronLink joins 16 is not verified`,
  }),
  amazon('inferentia2', 'Inferentia2', 'neuron1', 32, 820, {
    peaks: { f32: 47.5, tf32: 190, half: 190, f8: 190, int8: 380 },
    usable: neuronGib(32),
    source: `${NEURON}, Inferentia2 architecture (2023)`,
  }),
  // Huawei publishes no table of its modules.
  huawei('ascend-910b-64gb', 'Ascend 910B 64 GB', 'ascend910', 64, 1600, {
    peaks: { half: 376 },
    source:
      'bandwidth: that of the Atlas 300I A2 with 64 GB in everfir/gpu-database (2026); peak: half of a 910C, which has two of its dies; not verified',
  }),
  huawei('ascend-910c', 'Ascend 910C, with two dies', 'ascend910', 128, 3200, {
    peaks: { half: 752 },
    links: [{ name: 'Unified Bus', bandwidth: 196e9, gpus: 384 }],
    source:
      'bandwidth: TechPowerUp, news 335749 (2025); else an eighth of a node and a 384th of CloudMatrix 384 (Huawei Cloud, by chinaresearchcollective, 2026): 289 PFLOP/s, 48 TB, 196 GB/s each',
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
  intel('arc-b570', 'Arc B570', 'xe2', 10, 380, {
    peaks: { half: 101.5, int8: 203 },
    links: [PCIE_4_X8],
    source: EVERFIR,
  }),
  intel('arc-b50', 'Arc Pro B50', 'xe2', 16, 224, {
    peaks: { f32: 10.65, half: 85, int8: 170 },
    links: [PCIE_5_X8],
    source: EVERFIR,
  }),
  intel('arc-a750', 'Arc A750', 'xe', 8, 512, {
    peaks: { f32: 17.2, half: 114.5, int8: 229 },
    source: EVERFIR,
  }),
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

/**
 * Peaks of the matrix units in the graphics cores of the M5 family, in TFLOP/s of 16-bit products: four times those of
 * the M4 family (Apple, announcements of the M5, M5 Pro and M5 Max: "over 4x the peak GPU compute for AI").
 */
const APPLE_MATRIX_PEAKS: Readonly<Record<string, number>> = {
  m5: 17,
  'm5-pro': 36.8,
  'm5-max': 73.6,
};

const apple = publisher('other', 'Apple ');

/** Peaks of an Apple chip, in TFLOP/s, as far as they are published. */
function applePeaks(name: string, f32: number | null): NonNullable<PublishedGpu['peaks']> {
  const f16 = APPLE_MATRIX_PEAKS[name];
  return { ...(f32 === null ? {} : { f32 }), ...(f16 === undefined ? {} : { f16 }) };
}

export const OTHER_MAKERS: readonly Gpu[] = [
  ...BY_OTHERS,
  ...APPLE_CHIPS.flatMap(([name, title, memories, bandwidth, f32, source]) =>
    memories.map((memory) =>
      apple(`${name}-${memory}gb`, `${title}, ${memory} GB`, 'apple', memory, bandwidth, {
        peaks: applePeaks(name, f32),
        usable: leftByMacOs(memory),
        source,
      }),
    ),
  ),
];
