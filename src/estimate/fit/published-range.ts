/**
 * Ranges in which nine of ten published runs lie, around an estimate. They say how far programs, drivers and cards
 * differ, unlike the physical limit, which no program passes. docs/fit-accuracy.md has the runs of each group.
 */

import { type Gpu, memoryKindOf } from '../hardware/gpu.js';

/** Speeds of published runs, divided by the estimates for the same settings. */
interface PublishedSpread {
  readonly title: string;
  readonly lower: number;
  readonly upper: number;
  /** Runs that were compared. */
  readonly runs: number;
}

/**
 * The ends hold at least nine of ten of the runs that also gave the constants (`npm run fit:accuracy`).
 */
export const PUBLISHED_SPREADS = {
  'decode-hbm': { title: 'decoding on cards with HBM', lower: 0.79, upper: 1.3, runs: 38 },
  'decode-gddr': { title: 'decoding on cards with GDDR', lower: 0.82, upper: 1.3, runs: 23 },
  'decode-lpddr': { title: 'decoding on shared memory', lower: 0.76, upper: 1.36, runs: 17 },
  'decode-places': {
    title: 'decoding with weights in system memory',
    lower: 0.7,
    upper: 1.4,
    runs: 16,
  },
  prefill: { title: 'prefill of one prompt', lower: 0.6, upper: 1.6, runs: 16 },
  training: { title: 'training of dense models in 16 bits', lower: 0.78, upper: 1.24, runs: 20 },
  'training-other': { title: 'training in FP8, or of mixtures', lower: 0.7, upper: 1.4, runs: 15 },
} as const satisfies Record<string, PublishedSpread>;

export type PublishedGroup = keyof typeof PUBLISHED_SPREADS;

/** Range around an estimated speed in which nine of ten published runs of its group lie. */
export interface PublishedRange {
  /** Lower end of the range. @real */
  readonly lower: number;
  /** Upper end of the range. @real */
  readonly upper: number;
  /** Group of the runs, as in docs/fit-accuracy.md. */
  readonly group: string;
  /** Runs of the group that the estimates were compared with. @integer @minimum 1 */
  readonly runs: number;
}

/** @param speed Estimated tokens per second. */
export function publishedSpeed(group: PublishedGroup, speed: number): PublishedRange {
  const { lower, upper, title, runs } = PUBLISHED_SPREADS[group];
  return { lower: lower * speed, upper: upper * speed, group: title, runs };
}

/** @param seconds Estimated seconds: the highest speed takes the shortest time. */
export function publishedSeconds(group: PublishedGroup, seconds: number): PublishedRange {
  const { lower, upper, title, runs } = PUBLISHED_SPREADS[group];
  return { lower: seconds / upper, upper: seconds / lower, group: title, runs };
}

/** Group of decoding on a GPU. */
export const decodeGroup = ({ architecture }: Pick<Gpu, 'architecture'>): PublishedGroup =>
  `decode-${architecture === undefined ? 'hbm' : memoryKindOf(architecture)}`;

/** Group of a training. */
export const trainingGroup = (isNarrow: boolean, hasExperts: boolean): PublishedGroup =>
  isNarrow || hasExperts ? 'training-other' : 'training';
