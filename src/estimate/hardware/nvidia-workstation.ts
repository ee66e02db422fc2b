/** NVIDIA's GPUs for workstations, and its small computers. Peaks as in nvidia.ts. */
import type { Gpu, GpuArchitecture, Peaks } from './gpu.js';
import {
  ADA_PAPER,
  EVERFIR,
  GA102_PAPER,
  linkBeforePcie,
  PCIE_4_X8,
  publisher,
  reportedByDriver,
  TECHPOWERUP,
  totalOfSmi,
} from './gpu.js';
import { NVLINK_3_BRIDGE } from './nvidia.js';

const nvidia = publisher('nvidia', 'NVIDIA ');

/**
 * Tensor core peaks with sums in float32, as multiples of the float32 peak. The ratios are from the whitepapers of RTX
 * A6000 and RTX 6000 Ada; cards that differ only in cores and clock have the same.
 */
const ampere = (f32: number) => ({ f32, tf32: 2 * f32, half: 4 * f32, int8: 8 * f32 });

/** Dense peaks of a module of Thor, as a share of those of the T5000. */
const thorPeaks = (share: number) => ({
  f32: 8.06 * share,
  half: 258.5 * share,
  f8: 517 * share,
  f4: 1035 * share,
});

const THOR = `${TECHPOWERUP}; tensor cores: the table of NVIDIA's modules as dusty-nv's community prints it (2025), dense: half of those with sparsity`;

/** Name, model, architecture, GB, GB/s, peaks, source. Of Orin the table lists no tensor cores. */
type JetsonRow = readonly [string, string, GpuArchitecture, number, number, Peaks, string];

const JETSONS: readonly JetsonRow[] = [
  ['thor-t5000-128gb', 'AGX Thor (T5000), 128 GB', 'sm110', 128, 273.2, thorPeaks(1), THOR],
  ['thor-t4000-64gb', 'Thor T4000, 64 GB', 'sm110', 64, 273.2, thorPeaks(600 / 1035), THOR],
  ['agx-orin-64gb', 'AGX Orin 64 GB', 'sm87', 64, 204.8, { f32: 5.33, f16: 10.65 }, TECHPOWERUP],
  ['agx-orin-32gb', 'AGX Orin 32 GB', 'sm87', 32, 204.8, { f32: 3.33, f16: 6.67 }, TECHPOWERUP],
  ['orin-nx-16gb', 'Orin NX 16 GB', 'sm87', 16, 102.4, { f32: 1.88, f16: 3.76 }, TECHPOWERUP],
  ['orin-nx-8gb', 'Orin NX 8 GB', 'sm87', 8, 102.4, { f32: 1.57, f16: 3.13 }, TECHPOWERUP],
  [
    'orin-nano-super-8gb',
    'Orin Nano Super 8 GB',
    'sm87',
    8,
    102.4,
    { f32: 2.09, f16: 4.18 },
    TECHPOWERUP,
  ],
  ['orin-nano-8gb', 'Orin Nano 8 GB', 'sm87', 8, 68.2, { f32: 1.28, f16: 2.56 }, TECHPOWERUP],
  ['orin-nano-4gb', 'Orin Nano 4 GB', 'sm87', 4, 34.1, { f32: 0.64, f16: 1.28 }, TECHPOWERUP],
  ['nano-4gb', 'Nano 4 GB, of 2019', 'sm53', 4, 25.6, { f32: 0.24, f16: 0.47 }, TECHPOWERUP],
];

/** NVIDIA's workstation cards and small computers. Without a peak, there is no prefill estimate. */
export const NVIDIA_WORKSTATION: readonly Gpu[] = [
  nvidia('rtx-6000-ada', 'RTX 6000 Ada', 'sm89', 48, 960, {
    peaks: { f32: 91.1, tf32: 182.1, half: 364.2, f8: 728.5, int8: 728.5, int4: 1457 },
    source: `NVIDIA RTX 6000 Ada datasheet (2022); ${ADA_PAPER}`,
  }),
  nvidia('rtx-a6000', 'RTX A6000', 'sm86', 48, 768, {
    peaks: { f32: 38.7, tf32: 77.4, half: 154.8, int8: 309.7, int4: 619.3 },
    usable: reportedByDriver(47.5),
    links: NVLINK_3_BRIDGE,
    source: `NVIDIA RTX A6000 datasheet (2021); ${GA102_PAPER}`,
  }),
  nvidia('rtx-a5000', 'RTX A5000', 'sm86', 24, 768, {
    peaks: ampere(27.8),
    links: NVLINK_3_BRIDGE,
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}; bridge: not verified`,
  }),
  nvidia('rtx-a4000', 'RTX A4000', 'sm86', 16, 448, {
    peaks: ampere(19.2),
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}`,
  }),
  nvidia('rtx-a4500', 'RTX A4500', 'sm86', 20, 640, {
    peaks: ampere(23.65),
    links: NVLINK_3_BRIDGE,
    source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}; bridge: not verified`,
  }),
  ...[6, 12].map((gigabytes) =>
    nvidia(`rtx-a2000-${gigabytes}gb`, `RTX A2000 ${gigabytes} GB`, 'sm86', gigabytes, 288, {
      peaks: ampere(7.99),
      source: `${TECHPOWERUP}; ratios of peaks: ${GA102_PAPER}`,
    }),
  ),
  nvidia('rtx-2000-ada', 'RTX 2000 Ada', 'sm89', 16, 256, {
    peaks: { f32: 12 },
    links: [PCIE_4_X8],
    source: TECHPOWERUP,
  }),
  ...(['6000', '8000'] as const).map((model) =>
    nvidia(`quadro-rtx-${model}`, `Quadro RTX ${model}`, 'sm75', model === '6000' ? 24 : 48, 672, {
      // Their tensor cores sum in float32 at full rate, as those of the T4 do.
      peaks: { f32: 16.31, f16: 130.5 },
      links: linkBeforePcie('sm75', 'NVLink 2', 50, 2),
      source: `${TECHPOWERUP}; f16: 576 tensor cores × 128 × 1.77 GHz; bridge: NVIDIA Turing architecture whitepaper (2018)`,
    }),
  ),
  nvidia('rtx-5000-ada', 'RTX 5000 Ada', 'sm89', 32, 576, { source: EVERFIR }),
  nvidia('rtx-4500-ada', 'RTX 4500 Ada', 'sm89', 24, 432, { source: EVERFIR }),
  nvidia('rtx-4000-ada', 'RTX 4000 Ada', 'sm89', 20, 360, { source: EVERFIR }),
  // 1,597 GB/s for the server edition.
  nvidia('rtx-pro-6000-blackwell', 'RTX PRO 6000 Blackwell', 'sm120', 96, 1792, {
    // bf16 is 250 for the workstation edition in everfir/gpu-database, 500 for the server edition there. NVIDIA prints
    // 4,000 TFLOP/s of f4 with sparsity, twice the dense peak.
    peaks: { f32: 126, half: 503.8, f8: 1000, f4: 2000 },
    usable: totalOfSmi(97_887),
    source: `aiconfigurator, systems (2026); allenai/open-instruct, utils.py (2025); ${EVERFIR}`,
  }),
  nvidia('rtx-pro-5000-blackwell-48gb', 'RTX PRO 5000 Blackwell 48 GB', 'sm120', 48, 1344, {
    source: EVERFIR,
  }),
  nvidia('rtx-pro-5000-blackwell-72gb', 'RTX PRO 5000 Blackwell 72 GB', 'sm120', 72, 1344, {
    source: EVERFIR,
  }),
  nvidia('rtx-pro-4500-blackwell', 'RTX PRO 4500 Blackwell', 'sm120', 32, 896, { source: EVERFIR }),
  nvidia('rtx-pro-4000-blackwell', 'RTX PRO 4000 Blackwell', 'sm120', 24, 672, { source: EVERFIR }),
  nvidia('gb10', 'GB10 (DGX Spark)', 'sm121', 128, 273, {
    // NVIDIA prints 1,000 TFLOP/s of f4 with sparsity; the dense peak is not verified.
    peaks: { f32: 29.7, half: 104 },
    source: `${TECHPOWERUP}; bf16: allenai/open-instruct, utils.py (2025), not verified elsewhere`,
  }),
  ...JETSONS.map(([name, model, architecture, gigabytes, bandwidth, peaks, source]) =>
    nvidia(`jetson-${name}`, `Jetson ${model}`, architecture, gigabytes, bandwidth, {
      peaks,
      source,
    }),
  ),
];
