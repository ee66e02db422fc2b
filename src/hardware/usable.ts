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

/** How much less a driver leaves programs than nvidia-smi counts: 0.54 GiB of an H100, 0.71 of a B200. */
const KEPT_BY_DRIVER = 0.75;

/** The same where only the total of nvidia-smi is known. */
export const countedBySmi = (mebibytes: number): Usable => ({
  bytes: Math.floor((mebibytes / 1024 - KEPT_BY_DRIVER) * GIB),
  source:
    `approximate: ${mebibytes.toLocaleString('en')} MiB by nvidia-smi (aiconfigurator, systems, 2026), less ` +
    `${KEPT_BY_DRIVER} GiB that the driver keeps; not measured`,
});

/** Of makers who state GiB and print GB. */
export const statedInGib = (gibibytes: number): Usable => ({
  bytes: gibibytes * GIB,
  source: `${gibibytes} GiB, as Google states it ("How to Scale Your Model", 2025, chapter 2; Google Cloud documentation)`,
});

/**
 * GiB of a Mac's memory that graphics can keep resident (Metal, recommendedMaxWorkingSetSize), as logs of llama.cpp print
 * it in MB of 10^6 bytes. Up to macOS 15: 11,453.25 of 16 GiB, 17,179.89 of 24, 22,906.50 of 32 (two thirds), 28,991.03 of
 * 36, 38,654.71 of 48, 51,539.61 of 64, 103,079.22 of 128 (three quarters; of 36 GiB exactly 27), 498,216.21 of 512 (all
 * but 48 GiB).
 */
function upToMacOs15(gibibytes: number): number {
  if (gibibytes < 36) return (gibibytes * 2) / 3;
  return gibibytes < 512 ? (gibibytes * 3) / 4 : gibibytes - 48;
}

/** On macOS 26, MB of 10^6 bytes; of other sizes no log was found. */
const ON_MACOS_26: Readonly<Record<number, number>> = {
  16: 12_713.12,
  24: 19_069.67,
  32: 26_800.6,
  36: 30_150.67,
  48: 40_200.9,
  64: 55_662.79,
  128: 115_448.73,
};

/** What every macOS leaves the graphics: that of versions up to 15, as macOS 26 leaves more. */
export const leftByMacOs = (gibibytes: number): Usable => {
  const newer = ON_MACOS_26[gibibytes];
  const onNewer =
    newer === undefined ? 'more, not known how much' : `${newer.toLocaleString('en')} MB`;
  return {
    bytes: Math.floor(upToMacOs15(gibibytes) * GIB),
    source:
      `up to macOS 15, of ${gibibytes} GiB; macOS 26 leaves graphics ${onNewer} (Metal, recommendedMaxWorkingSetSize, ` +
      'as llama.cpp logs it); sysctl iogpu.wired_limit_mb changes it',
  };
};
