/** What programs can have of a memory, where that is less than what it is sold with. */
import type { Usable } from './gpu.js';

const GIB = 2 ** 30;

/**
 * Of cards with GDDR memory, what error correction and the driver take. What CUDA tells programs is some tenths of a
 * GiB less than what nvidia-smi prints, which counts what the driver reserves (23,034 MiB of an L4), and differs a
 * little from driver to driver: these are rounded down.
 */
export const toldByDriver = (gibibytes: number): Usable => ({
  bytes: Math.floor(gibibytes * GIB),
  source:
    `approximate: ${gibibytes} GiB, what CUDA reports to programs on this card with error correction on, rounded down; ` +
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
