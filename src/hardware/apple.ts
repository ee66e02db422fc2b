/**
 * Apple chips with unified memory, of which macOS lets graphics use a part. Bandwidths are Apple's rounded ones. The
 * buses have 102.4 GB/s for a printed 100, 153.6 for 150, 204.8 for 200, 409.6 for 400 and 819.2 for 800. Apple
 * publishes few peaks; the others are from Hugging Face's table.
 */
import type { Gpu } from './gpu.js';
import { leftByMacOs } from './gpu.js';

interface Chip {
  readonly name: string;
  readonly title: string;
  /** Memory sizes on sale, in GB. */
  readonly memories: readonly number[];
  readonly bandwidth: number;
  readonly f32?: number;
  readonly source: string;
}

const BASE_CHIPS = 'peak: arXiv 2502.05317 (2025), table 1';
const HUB = 'huggingface.js, packages/tasks, hardware (2025)';

const CHIPS: readonly Chip[] = [
  {
    name: 'm1',
    title: 'Apple M1, 8 cores of graphics',
    memories: [8, 16],
    bandwidth: 68.25e9,
    f32: 2.6e12,
    source: 'Apple, announcement of the M1 (2020); bandwidth: arXiv 2502.05317 (2025), table 1',
  },
  {
    name: 'm1-pro',
    title: 'Apple M1 Pro, 16 cores of graphics',
    memories: [16, 32],
    bandwidth: 200e9,
    f32: 5.2e12,
    source: 'Apple, announcement of the M1 Pro and M1 Max (2021)',
  },
  {
    name: 'm1-max',
    title: 'Apple M1 Max, 32 cores of graphics',
    memories: [32, 64],
    bandwidth: 400e9,
    f32: 10.4e12,
    source: 'Apple, announcement of the M1 Pro and M1 Max (2021)',
  },
  {
    name: 'm1-ultra',
    title: 'Apple M1 Ultra, 64 cores of graphics',
    memories: [64, 128],
    bandwidth: 800e9,
    f32: 21e12,
    source: 'Apple, announcement of the M1 Ultra (2022)',
  },
  {
    name: 'm2',
    title: 'Apple M2, 10 cores of graphics',
    memories: [8, 16, 24],
    bandwidth: 100e9,
    f32: 3.6e12,
    source: 'Apple, announcement of the M2 (2022)',
  },
  {
    name: 'm2-pro',
    title: 'Apple M2 Pro',
    memories: [16, 32],
    bandwidth: 200e9,
    f32: 6.8e12,
    source: `Apple, announcement of the M2 Pro and M2 Max (2023); peak: ${HUB}`,
  },
  {
    name: 'm2-max',
    title: 'Apple M2 Max',
    memories: [32, 64, 96],
    bandwidth: 400e9,
    f32: 13.49e12,
    source: `Apple, announcement of the M2 Pro and M2 Max (2023); peak: ${HUB}`,
  },
  {
    name: 'm2-ultra',
    title: 'Apple M2 Ultra',
    memories: [64, 128, 192],
    bandwidth: 800e9,
    f32: 27.2e12,
    source: `Apple, announcement of the M2 Ultra (2023); peak: ${HUB}`,
  },
  {
    name: 'm3',
    title: 'Apple M3, 10 cores of graphics',
    memories: [8, 16, 24],
    bandwidth: 100e9,
    f32: 3.53e12,
    source: `Apple, specifications of the MacBook Air (2024); ${BASE_CHIPS}; 4.1 TFLOP/s in ${HUB}`,
  },
  {
    name: 'm3-pro',
    title: 'Apple M3 Pro',
    memories: [18, 36],
    bandwidth: 150e9,
    f32: 7.4e12,
    source: `Apple, specifications of the MacBook Pro (2023); peak: ${HUB}`,
  },
  {
    name: 'm3-max',
    title: 'Apple M3 Max, 30 cores of graphics',
    memories: [36, 96],
    bandwidth: 300e9,
    source: 'Apple, specifications of the MacBook Pro (2023); not verified elsewhere',
  },
  {
    name: 'm3-max',
    title: 'Apple M3 Max, 40 cores of graphics',
    memories: [48, 64, 128],
    bandwidth: 400e9,
    f32: 14.2e12,
    source: `Apple, specifications of the MacBook Pro (2023); peak: ${HUB}`,
  },
  {
    name: 'm3-ultra',
    title: 'Apple M3 Ultra',
    memories: [96, 256, 512],
    bandwidth: 819e9,
    f32: 28.4e12,
    source: `Apple, specifications of the Mac Studio (2025); peak: ${HUB}`,
  },
  {
    name: 'm4',
    title: 'Apple M4, 10 cores of graphics',
    memories: [16, 24, 32],
    bandwidth: 120e9,
    f32: 4.26e12,
    source: `Apple, announcement of the M4 (2024); ${BASE_CHIPS}; 4.6 TFLOP/s in ${HUB}`,
  },
  {
    name: 'm4-pro',
    title: 'Apple M4 Pro',
    memories: [24, 48, 64],
    bandwidth: 273e9,
    f32: 9.2e12,
    source: `Apple, announcement of the M4 Pro and M4 Max (2024); peak: ${HUB}`,
  },
  {
    name: 'm4-max',
    title: 'Apple M4 Max, 32 cores of graphics',
    memories: [36],
    bandwidth: 410e9,
    source: 'Ars Technica, table of the M4 family (2024)',
  },
  {
    name: 'm4-max',
    title: 'Apple M4 Max, 40 cores of graphics',
    memories: [48, 64, 128],
    bandwidth: 546e9,
    f32: 18.4e12,
    source: `Apple, announcement of the M4 Pro and M4 Max (2024); peak: ${HUB}`,
  },
  {
    name: 'm5',
    title: 'Apple M5, 10 cores of graphics',
    memories: [16, 24, 32],
    bandwidth: 153e9,
    f32: 5.7e12,
    source: `Apple, announcement of the M5 (2025); peak: ${HUB}`,
  },
  {
    name: 'm5-pro',
    title: 'Apple M5 Pro',
    memories: [24, 48, 64],
    bandwidth: 307e9,
    f32: 11.4e12,
    source: `mikeshouts.com, apple-m5-pro-m5-max (2026); peak: ${HUB}`,
  },
  {
    name: 'm5-max',
    title: 'Apple M5 Max, 40 cores of graphics',
    memories: [48, 64, 128],
    bandwidth: 614e9,
    f32: 22.8e12,
    source: `mikeshouts.com, apple-m5-pro-m5-max (2026); peak: ${HUB}`,
  },
];

export const APPLE: readonly Gpu[] = CHIPS.flatMap(
  ({ name, title, memories, bandwidth, f32, source }) =>
    memories.map((memory) => ({
      name: `${name}-${memory}gb`,
      title: `${title}, ${memory} GB`,
      kind: 'other',
      architecture: 'apple',
      memoryBytes: memory * 1e9,
      usable: leftByMacOs(memory),
      bandwidth,
      peakFlops: f32 === undefined ? {} : { f32 },
      links: [],
      source,
    })),
);
