/**
 * Apple's chips, whose memory is shared by processor and graphics: macOS leaves the graphics a part of it. Bandwidths
 * are Apple's; peaks it tells of few chips, and where nobody does there is none.
 */
import type { Gpu } from './gpu.js';
import { leftByMacOs } from './usable.js';

interface Chip {
  readonly name: string;
  readonly title: string;
  /** GB of memory it is sold with. */
  readonly memories: readonly number[];
  readonly bandwidth: number;
  readonly f32?: number;
  readonly source: string;
}

const BASE_CHIPS = 'peak: arXiv 2502.05317 (2025), table 1';

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
    source: 'Apple, announcement of the M2 Pro and M2 Max (2023)',
  },
  {
    name: 'm2-max',
    title: 'Apple M2 Max',
    memories: [32, 64, 96],
    bandwidth: 400e9,
    source: 'Apple, announcement of the M2 Pro and M2 Max (2023)',
  },
  {
    name: 'm2-ultra',
    title: 'Apple M2 Ultra',
    memories: [64, 128, 192],
    bandwidth: 800e9,
    source: 'Apple, announcement of the M2 Ultra (2023)',
  },
  {
    name: 'm3',
    title: 'Apple M3, 10 cores of graphics',
    memories: [8, 16, 24],
    bandwidth: 100e9,
    f32: 3.53e12,
    source: `Apple, specifications of the MacBook Air (2024); ${BASE_CHIPS}`,
  },
  {
    name: 'm3-pro',
    title: 'Apple M3 Pro',
    memories: [18, 36],
    bandwidth: 150e9,
    source: 'Apple, specifications of the MacBook Pro (2023)',
  },
  {
    name: 'm3-max',
    title: 'Apple M3 Max, 40 cores of graphics',
    memories: [48, 64, 128],
    bandwidth: 400e9,
    source: 'Apple, specifications of the MacBook Pro (2023)',
  },
  {
    name: 'm3-ultra',
    title: 'Apple M3 Ultra',
    memories: [96, 256, 512],
    bandwidth: 819e9,
    source: 'Apple, specifications of the Mac Studio (2025)',
  },
  {
    name: 'm4',
    title: 'Apple M4, 10 cores of graphics',
    memories: [16, 24, 32],
    bandwidth: 120e9,
    f32: 4.26e12,
    source: `Apple, announcement of the M4 (2024); ${BASE_CHIPS}`,
  },
  {
    name: 'm4-pro',
    title: 'Apple M4 Pro',
    memories: [24, 48, 64],
    bandwidth: 273e9,
    source: 'Apple, announcement of the M4 Pro and M4 Max (2024)',
  },
  {
    name: 'm4-max',
    title: 'Apple M4 Max, 40 cores of graphics',
    memories: [48, 64, 128],
    bandwidth: 546e9,
    source: 'Apple, announcement of the M4 Pro and M4 Max (2024)',
  },
  {
    name: 'm5',
    title: 'Apple M5, 10 cores of graphics',
    memories: [16, 24, 32],
    bandwidth: 153e9,
    source: 'Apple, announcement of the M5 (2025)',
  },
];

export const APPLE: readonly Gpu[] = CHIPS.flatMap(
  ({ name, title, memories, bandwidth, f32, source }) =>
    memories.map((memory) => ({
      name: `${name}-${memory}gb`,
      title: `${title}, ${memory} GB`,
      kind: 'other',
      memoryBytes: memory * 1e9,
      usable: leftByMacOs(memory),
      bandwidth,
      peakFlops: f32 === undefined ? {} : { f32 },
      links: [],
      source,
    })),
);
