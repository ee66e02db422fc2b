/** The learning rate of a training: schedule, peak, floor and warm-up, from settings and defaults. */
import type { TrainingKey } from '../architecture/training-section.js';
import {
  type DecayType,
  parseSchedule,
  rateAt,
  SCHEDULES,
  type Schedule,
  type ScheduleName,
  type ScheduleSetting,
  type ScheduleShape,
  withFloor,
} from './schedules.js';
import type { TrainingValues } from './training-settings.js';

/** Learning rates that were published with the width of the model, as table 2.1 of GPT-3 (arXiv 2005.14165) has them. */
export const PUBLISHED_RATES = [
  { width: 768, rate: 6e-4 },
  { width: 1024, rate: 3e-4 },
  { width: 1536, rate: 2.5e-4 },
  { width: 2048, rate: 2e-4 },
  { width: 2560, rate: 1.6e-4 },
  { width: 4096, rate: 1.2e-4 },
  { width: 5140, rate: 1e-4 },
  { width: 12_288, rate: 0.6e-4 },
] as const;

/** The published rate of the nearest width, by its ratio. */
export function publishedRate(width: number): (typeof PUBLISHED_RATES)[number] {
  const distance = (other: number) => Math.abs(Math.log(other / width));
  return PUBLISHED_RATES.reduce((best, each) =>
    distance(each.width) < distance(best.width) ? each : best,
  );
}

/**
 * How far above GPT-3's rate in proportion to the width: twice the 3.75 × of SmolLM-135M, 3e-3 at width 576
 * (huggingface/smollm, config_smollm1_135M.yaml).
 */
const HEADROOM = 8;

/**
 * Highest learning rate that a width bears: 8 × GPT-3's 6e-4 at width 768, and less in proportion to the width, as the
 * best rate of Adam for matrices does (µP, arXiv 2203.03466).
 */
export const highestRate = (width: number): number => (HEADROOM * 6e-4 * 768) / width;

/** Share of the steps that the warm-up has where nothing of the learning rate is given. */
const USUAL_WARMUP = 0.01;

/** Share of the steps that the decay of `wsd` has: 10% of the tokens suffice (MiniCPM, arXiv 2404.06395). */
const USUAL_DECAY = 0.1;

export interface LearningRate {
  readonly schedule: ScheduleName;
  readonly setting: ScheduleSetting;
  /** Whether the peak is the published one of the nearest width. */
  readonly isUsualPeak: boolean;
  readonly isUsualSchedule: boolean;
  readonly isUsualWarmup: boolean;
  /** Settings of a learning rate that the schedule does not read. */
  readonly unread: readonly TrainingKey[];
}

/** @param steps Optimizer steps of the run. */
export function learningRateOf(values: TrainingValues, steps: number, width: number): LearningRate {
  const peak = values.learning_rate ?? publishedRate(width).rate;
  const written = values.lr_scheduler;
  const named = written === undefined ? undefined : parseSchedule(written);
  const asked = values.min_lr ?? (values.min_lr_ratio ?? 0) * peak;
  const schedule = withFloor(named ?? 'cosine', asked);
  const { reads }: Schedule = SCHEDULES[schedule];
  const length = values.schedule_steps ?? steps;
  const given =
    values.warmup_steps ??
    (values.warmup_ratio === undefined ? undefined : Math.ceil(values.warmup_ratio * steps));
  const isUsualWarmup = given === undefined && values.learning_rate === undefined;
  const warmup = reads.includes('warmup')
    ? (given ?? (isUsualWarmup ? Math.min(Math.ceil(USUAL_WARMUP * length), steps - 1) : 0))
    : 0;
  const hasFloor = values.min_lr !== undefined || values.min_lr_ratio !== undefined;
  return {
    schedule,
    setting: {
      peak,
      steps: length,
      warmup,
      floor: hasFloor ? asked : usualFloor(schedule, peak),
      decay: decayOf(values, schedule, length),
      decayType: decayTypeOf(values) ?? 'linear',
      cycles: values.num_cycles ?? 1,
      power: values.power ?? 1,
    },
    isUsualPeak: values.learning_rate === undefined,
    isUsualSchedule: named === undefined,
    isUsualWarmup,
    unread: unreadOf(values, reads),
  };
}

/** Floors of the originals without a setting: nanoGPT's 6e-5 of 6e-4, and `lr_end` of transformers. */
function usualFloor(schedule: ScheduleName, peak: number): number {
  if (schedule === 'nanogpt') return peak / 10;
  return schedule === 'polynomial' ? Math.min(1e-7, peak) : 0;
}

function decayOf(
  { decay_steps, decay_ratio }: TrainingValues,
  schedule: ScheduleName,
  steps: number,
): number | undefined {
  if (decay_steps !== undefined) return decay_steps;
  if (decay_ratio !== undefined) return Math.round(decay_ratio * steps);
  return schedule === 'wsd' ? Math.round(USUAL_DECAY * steps) : undefined;
}

/** Curves under the names of transformers and torchtitan; undefined for another name. */
const DECAY_NAMES: Readonly<Record<string, DecayType>> = {
  linear: 'linear',
  cosine: 'cosine',
  '1-sqrt': '1-sqrt',
  sqrt: '1-sqrt',
  '1_sqrt': '1-sqrt',
};

export const parseDecayType = (text: string): DecayType | undefined => {
  const name = text.trim().toLowerCase();
  return Object.hasOwn(DECAY_NAMES, name) ? DECAY_NAMES[name] : undefined;
};

/** Name of `get_wsd_schedule` in transformers, whose decay is a cosine unless set. */
const OF_TRANSFORMERS = 'warmup_stable_decay';

function decayTypeOf({ decay_type, lr_scheduler }: TrainingValues): DecayType | undefined {
  if (decay_type !== undefined) return parseDecayType(decay_type);
  return lr_scheduler === OF_TRANSFORMERS ? 'cosine' : undefined;
}

/** Keys of each parameter of a schedule. */
const KEYS_OF = {
  warmup: ['warmup_steps', 'warmup_ratio'],
  floor: ['min_lr', 'min_lr_ratio'],
  decay: ['decay_steps', 'decay_ratio'],
  decayType: ['decay_type'],
  cycles: ['num_cycles'],
  power: ['power'],
} as const satisfies Record<keyof ScheduleShape, readonly TrainingKey[]>;

/** A setting of 0 asks for what a schedule without it does. */
const unreadOf = (values: TrainingValues, reads: readonly string[]): TrainingKey[] =>
  Object.entries(KEYS_OF).flatMap(([parameter, keys]) =>
    reads.includes(parameter)
      ? []
      : keys.filter((key) => values[key] !== undefined && values[key] !== 0),
  );

/** The learning rate at a step of a training. */
export const learningRateAt = ({ schedule, setting }: LearningRate, step: number): number =>
  rateAt(schedule, setting, step);
