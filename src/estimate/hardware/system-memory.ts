/** The memory of a processor, apart from that of its GPUs. */

import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { quote } from '../../config/quote.js';
import type { Cluster } from './gpu.js';
import { CHANNEL_BYTES, processorNamed } from './processors.js';

/** System memory of a machine. */
export interface SystemMemory {
  /** Installed bytes; null if unknown. @integer @minimum 1 */
  readonly bytes: number | null;
  /** Peak bandwidth of all channels, bytes per second. @real */
  readonly bandwidth: number;
  /** Channels of the memory; null for a stated bandwidth. @integer @minimum 1 */
  readonly channels: number | null;
  /** Channels and type of the memory, or the stated bandwidth. */
  readonly label: string;
  /** Whether the bandwidth is an assumption. */
  readonly isAssumed: boolean;
}

/** Channels of a desktop processor. */
const USUAL_CHANNELS = 2;

/** The usual memory of a desktop since 2023: two channels of DDR5-5600. */
const USUAL = channelBandwidth(USUAL_CHANNELS, 'DDR5', 5600);

/** `4xddr4-3200`, `DDR5-6000`, `lpddr5x 8533` */
const TYPE = /^(?:(\d{1,2})\s*[x×*]\s*)?(lp)?ddr([345])x?[- ]?(\d{3,5})$/i;

/** `102GB/s` */
const RATE = /^(\d+(?:\.\d+)?)\s*gb(?:\/s|ps)?$/i;

/** Slowest and fastest transfers of a memory, in millions a second, and most channels of a machine. */
const TRANSFERS = { least: 400, most: 20_000, channels: 24 } as const;

function channelBandwidth(channels: number, type: string, megatransfers: number) {
  return {
    bandwidth: channels * CHANNEL_BYTES * megatransfers * 1e6,
    channels,
    label: `${channels} ${channels === 1 ? 'channel' : 'channels'} of ${type}-${megatransfers}`,
  };
}

/**
 * System memory as a user states it.
 * @param bytes Installed bytes.
 * @param speed `4xddr4-3200`, `ddr5-6000` (with the channels of the processor, or two), or `102GB/s`; undefined: the fastest that the processor supports.
 * @param cpu Name of the processor; undefined: that of a usual desktop.
 * @throws UserError for no memory, for another speed, and for a processor that no row knows.
 */
export function systemMemory(
  bytes: number | null,
  speed: string | undefined,
  cpu?: string | undefined,
): SystemMemory {
  if (bytes !== null && !(bytes >= 1)) {
    throw usageError(
      `expected system memory above 0, found ${bytes} B`,
      `write the memory of the machine, as in ${setting('ramBytes', '64GB')}, or leave it out`,
    );
  }
  const processor = cpu === undefined ? undefined : processorNamed(cpu);
  if (speed === undefined && processor) {
    const { bandwidth, channels, memory, title } = processor;
    const most =
      memory === null || channels === null
        ? `memory of the ${title}`
        : `${channels} channels of ${memory}, the most of ${title}`;
    return { bytes, bandwidth, channels, label: most, isAssumed: memory !== null };
  }
  if (speed === undefined) return { bytes, ...USUAL, isAssumed: true };
  const found = memorySpeed(speed.trim(), processor?.channels ?? undefined);
  if (found !== undefined) return { bytes, ...found, isAssumed: false };
  throw usageError(
    `expected the speed of a memory, found ${quote(speed)}`,
    'write its type, as in ddr5-5600 (two channels) or 4xddr4-3200, or its bandwidth, as in 90GB/s',
  );
}

/** @param own Channels of the processor; undefined: those of a desktop. */
function memorySpeed(
  speed: string,
  own: number | undefined,
): Pick<SystemMemory, 'bandwidth' | 'channels' | 'label'> | undefined {
  const [, rate] = RATE.exec(speed) ?? [];
  if (rate !== undefined && Number(rate) > 0) {
    return { bandwidth: Number(rate) * 1e9, channels: own ?? null, label: `${Number(rate)} GB/s` };
  }
  const [isType, count, low = '', generation, transfers] = TYPE.exec(speed) ?? [];
  if (isType === undefined) return undefined;
  const [channels, megatransfers] = [Number(count ?? own ?? USUAL_CHANNELS), Number(transfers)];
  const isKnown =
    channels >= 1 &&
    channels <= TRANSFERS.channels &&
    megatransfers >= TRANSFERS.least &&
    megatransfers <= TRANSFERS.most;
  return isKnown
    ? channelBandwidth(channels, `${low.toUpperCase()}DDR${generation}`, megatransfers)
    : undefined;
}

/** A machine without a GPU: everything is in system memory. */
export const PROCESSOR: Cluster = {
  gpu: {
    name: 'cpu',
    title: 'a processor',
    kind: 'processor',
    memoryBytes: 0,
    bandwidth: USUAL.bandwidth,
    peakFlops: {},
    links: [],
    source: 'no GPU',
  },
  gpus: 1,
  network: null,
};

/** Whether a name of hardware means none: `cpu`, `none`. */
export const isProcessorName = (name: string | undefined): boolean =>
  name !== undefined && /^(?:cpu|none)$/i.test(name.trim());

/** Sizes of system memory in shops, in GB. */
const SIZES = [16, 32, 48, 64, 96, 128, 192, 256] as const;

/** The smallest usual size of system memory with room for some bytes. */
export const usualSystemBytes = (needed: number): number =>
  1e9 * (SIZES.find((size) => size >= needed / 1e9) ?? Math.ceil(needed / 1e9));

/** Memory of the largest desktops: 4 modules of 48 GB. */
export const LARGEST_DESKTOP = 192e9;
