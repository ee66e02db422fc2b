/** Speed of system memory: the share of its bandwidth that programs reach, and of copies to a GPU. */
import type { Bounds } from '../../../model/budget/figure.js';
import type { SystemMemory } from '../../hardware/system-memory.js';

/** Most channels of a desktop's memory. */
const DESKTOP_CHANNELS = 2;

/** Largest bandwidth of a desktop with two channels: DDR5-6400. */
const DESKTOP_BANDWIDTH = 102e9;

/** Whether the memory has more channels than that of a desktop: few cores then do not read at its full speed. */
export const isOfWorkstation = ({ channels, bandwidth }: SystemMemory): boolean =>
  channels === null ? bandwidth >= DESKTOP_BANDWIDTH : channels > DESKTOP_CHANNELS;

/** Share of the bandwidth of system memory that products of a processor reach. */
interface SystemShare {
  readonly share: number;
  readonly source: string;
}

/** Processors with up to two channels of memory, as in a desktop. */
const DESKTOP: SystemShare = {
  share: 0.74,
  source:
    '74% of two channels, 61 to 85% in 5 runs (llama.cpp, issues 4716, 7244 and 19480, and pull request 12922)',
};

/** Processors with more channels. */
const WORKSTATION: SystemShare = {
  share: 0.5,
  source:
    '50% of more channels, 42 to 59% in 10 runs (llmfit, pull requests 755, 774, 775 and 778; llama.cpp, pull request 23346)',
};

/** Share of that which routed experts reach, by the same runs. */
export const EXPERTS = 0.9;

/** Shares at the ends: nothing but the reading, and half of the slowest run. */
const ENDS = { lower: 1, upper: 0.25 } as const;

export const shareAt = (bound: keyof Bounds, memory: SystemMemory): number =>
  bound === 'expected' ? systemShare(memory).share : ENDS[bound];

export const systemShare = (memory: SystemMemory): SystemShare =>
  isOfWorkstation(memory) ? WORKSTATION : DESKTOP;

/**
 * Bytes per second from system memory to a GPU: 16 lanes of PCIe 5, of PCIe 4 at 80 %, and 8 lanes of PCIe 3 (PCI-SIG:
 * 8, 16 and 32 GT/s, 128 of 130 bits).
 */
export const COPYING = { lower: 63e9, expected: 25e9, upper: 7.9e9 } as const satisfies Record<
  keyof Bounds,
  number
>;
