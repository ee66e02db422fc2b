/** What programs can have of a memory, where it is known. */
import type { Usable } from './gpu.js';

const GIB = 2 ** 30;

/**
 * How much more than its label a memory can hold: labels count in GB of 10^9 bytes, chips hold powers of two. An H100 of
 * 80 GB has 80 GiB.
 */
export const MOST_OF_LABEL = GIB / 1e9;

/**
 * What a driver tells programs. Of cards with GDDR memory error correction takes a part where it is on, as on an L4,
 * and of all cards the driver does: some tenths of a GiB more than nvidia-smi counts (23,034 MiB of an L4). It differs a
 * little from driver to driver: these are rounded down.
 */
export const toldByDriver = (gibibytes: number): Usable => ({
  bytes: Math.floor(gibibytes * GIB),
  source:
    `approximate: ${gibibytes} GiB, what its driver reports to programs, as PyTorch states it, rounded down; ` +
    'not measured',
});

/** GB above which macOS leaves the graphics the larger share. */
const SMALL_MAC = 36;

/**
 * Of memory that graphics and processor share, what macOS lets the graphics keep resident (Metal,
 * recommendedMaxWorkingSetSize): llama.cpp prints 10,922.67 MiB of 16 GiB and 49,152 MiB of 64 GiB.
 */
export const leftByMacOs = (gibibytes: number): Usable => {
  const [share, text] = gibibytes > SMALL_MAC ? [3 / 4, 'three quarters'] : [2 / 3, 'two thirds'];
  return {
    bytes: Math.floor(share * gibibytes * GIB),
    source:
      `macOS leaves graphics ${text} of ${gibibytes} GiB by default (Metal, recommendedMaxWorkingSetSize, as commonly ` +
      'reported); sysctl iogpu.wired_limit_mb changes it',
  };
};
