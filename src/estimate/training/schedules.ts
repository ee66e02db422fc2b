/** Learning rate schedules, each as its original computes it. Steps are optimizer steps and count from 0. */
import type { TrainingKey } from '../../model/architecture/training-section.js';
import type { TrainingValues } from './training-settings.js';

/** Curve of the last phase of a schedule with a stable phase. */
export const DECAY_TYPES = ['linear', 'cosine', '1-sqrt'] as const;

export type DecayType = (typeof DECAY_TYPES)[number];

/** Parameters of a schedule besides its peak and its steps. */
export interface ScheduleShape {
  /** Steps of the warm-up. @integer */
  readonly warmup: number;
  /** Learning rate at the end of the decay. */
  readonly floor: number;
  /** Steps of the decay at the end; undefined: all steps after the warm-up. */
  readonly decay: number | undefined;
  readonly decayType: DecayType;
  /** Restarts of a cosine. */
  readonly cycles: number;
  /** Power of a polynomial decay. */
  readonly power: number;
}

export interface ScheduleSetting extends ScheduleShape {
  /** Highest learning rate. */
  readonly peak: number;
  /** Steps of the whole schedule. @integer */
  readonly steps: number;
}

/** Project whose code a schedule follows. */
export type Origin = 'minimind' | 'nanogpt' | 'huggingface' | 'torchtitan';

export interface Schedule {
  readonly title: string;
  readonly origin: Origin;
  /** Function that computes it in the original. */
  readonly source: string;
  /** Parameters that it reads. */
  readonly reads: readonly (keyof ScheduleShape)[];
  /** The learning rate at a step. */
  rateAt(setting: ScheduleSetting, step: number): number;
}

/** Half a cosine from 1 to 0, at a share of its length. */
const halfCosine = (share: number) => 0.5 * (1 + Math.cos(Math.PI * share));

const scheduleLength = (steps: number) => Math.max(1, steps);

/** Share of the steps after the warm-up that are done. */
const progressOf = ({ steps, warmup }: ScheduleSetting, step: number) =>
  (step - warmup) / scheduleLength(steps - warmup);

const ratioOf = ({ floor, peak }: ScheduleSetting) => floor / peak;

/** `factor` between 1 and 0, as a factor between 1 and the floor's share of the peak. */
const aboveFloor = (factor: number, ratio: number) => factor * (1 - ratio) + ratio;

/** Steps of the final decay: those asked for, or all after the warm-up, and never more. */
export const decayStepsOf = ({
  steps,
  warmup,
  decay,
}: Pick<ScheduleSetting, 'steps' | 'warmup' | 'decay'>): number =>
  Math.max(0, Math.min(decay ?? steps, steps - warmup));

/** Decay curves of transformers and of torchtitan, which calls 1 − √ "sqrt". */
const DECAYS = {
  linear: (share) => 1 - share,
  cosine: halfCosine,
  '1-sqrt': (share) => 1 - Math.sqrt(share),
} as const satisfies Record<DecayType, (share: number) => number>;

/** A schedule of transformers: a factor of the peak, after a linear warm-up from 0. */
const transformers = (
  source: string,
  title: string,
  reads: readonly (keyof ScheduleShape)[],
  factor: (setting: ScheduleSetting, step: number) => number,
): Schedule => ({
  title,
  origin: 'huggingface',
  source: `transformers optimization.py, ${source}`,
  reads,
  rateAt: (setting, step) =>
    setting.peak *
    (step < setting.warmup ? step / scheduleLength(setting.warmup) : factor(setting, step)),
});

export const SCHEDULES = {
  minimind: {
    title: 'cosine to 10% without warm-up',
    origin: 'minimind',
    source: 'minimind trainer/trainer_utils.py, get_lr',
    reads: [],
    // Its loop counts from 1.
    rateAt: ({ peak, steps }, step) =>
      peak * (0.1 + 0.45 * (1 + Math.cos((Math.PI * (step + 1)) / steps))),
  },
  nanogpt: {
    title: 'warm-up, then cosine to a floor',
    origin: 'nanogpt',
    source: 'nanoGPT train.py, get_lr',
    reads: ['warmup', 'floor'],
    rateAt: ({ peak, steps, warmup, floor }, step) => {
      if (step < warmup) return (peak * (step + 1)) / (warmup + 1);
      if (step > steps) return floor;
      // At step === steps === warmup the original divides by zero.
      const share = steps === warmup ? 1 : (step - warmup) / (steps - warmup);
      return floor + halfCosine(share) * (peak - floor);
    },
  },
  constant: {
    title: 'constant',
    origin: 'huggingface',
    source: 'transformers optimization.py, get_constant_schedule',
    reads: [],
    rateAt: ({ peak }) => peak,
  },
  constant_with_warmup: transformers(
    'get_constant_schedule_with_warmup',
    'warm-up, then constant',
    ['warmup'],
    () => 1,
  ),
  linear: transformers(
    'get_linear_schedule_with_warmup',
    'warm-up, then linear to 0',
    ['warmup'],
    ({ steps, warmup }, step) => Math.max(0, (steps - step) / scheduleLength(steps - warmup)),
  ),
  cosine: transformers(
    'get_cosine_schedule_with_warmup',
    'warm-up, then half a cosine to 0',
    ['warmup'],
    (setting, step) => Math.max(0, halfCosine(progressOf(setting, step))),
  ),
  cosine_with_min_lr: transformers(
    'get_cosine_with_min_lr_schedule_with_warmup',
    'warm-up, then half a cosine to a floor',
    ['warmup', 'floor'],
    (setting, step) =>
      Math.max(0, aboveFloor(halfCosine(progressOf(setting, step)), ratioOf(setting))),
  ),
  cosine_warmup_with_min_lr: {
    title: 'warm-up from the first step, then half a cosine to a floor',
    origin: 'huggingface',
    source: 'transformers optimization.py, get_cosine_with_min_lr_schedule_with_warmup_lr_rate',
    reads: ['warmup', 'floor'],
    rateAt: (setting, step) => {
      const { peak, steps, warmup } = setting;
      if (step < warmup) return (peak * (step + 1)) / scheduleLength(warmup);
      const share = (step - warmup + 1) / scheduleLength(steps - warmup);
      return peak * Math.max(0, aboveFloor(halfCosine(share), ratioOf(setting)));
    },
  },
  cosine_with_restarts: transformers(
    'get_cosine_with_hard_restarts_schedule_with_warmup',
    'warm-up, then cosines to 0 that start again',
    ['warmup', 'cycles'],
    (setting, step) => {
      const share = progressOf(setting, step);
      return share >= 1 ? 0 : Math.max(0, halfCosine((setting.cycles * share) % 1));
    },
  ),
  polynomial: transformers(
    'get_polynomial_decay_schedule_with_warmup',
    'warm-up, then a power of the steps that are left, to a floor',
    ['warmup', 'floor', 'power'],
    (setting, step) => {
      const { peak, steps, warmup, floor, power } = setting;
      const left = step > steps ? 0 : 1 - (step - warmup) / scheduleLength(steps - warmup);
      return ((peak - floor) * left ** power + floor) / peak;
    },
  ),
  inverse_sqrt: transformers(
    'get_inverse_sqrt_schedule',
    'warm-up, then 1/√step',
    ['warmup'],
    ({ warmup }, step) => {
      // The original takes 10,000 as the scale where there is no warm-up.
      const scale = warmup || 10_000;
      return 1 / Math.sqrt((step + scale - warmup) / scale);
    },
  ),
  wsd: {
    title: 'warm-up, stable, decay',
    origin: 'huggingface',
    source: 'transformers optimization.py, get_wsd_schedule',
    reads: ['warmup', 'floor', 'decay', 'decayType'],
    rateAt: (setting, step) => {
      const { peak, steps, warmup, decayType } = setting;
      const ratio = ratioOf(setting);
      const decay = decayStepsOf(setting);
      if (step < warmup) return peak * aboveFloor(step / scheduleLength(warmup), ratio);
      if (step < steps - decay) return peak;
      if (step >= steps) return peak * ratio;
      const share = (step - (steps - decay)) / scheduleLength(decay);
      return peak * Math.max(0, aboveFloor(DECAYS[decayType](share), ratio));
    },
  },
  torchtitan: {
    title: 'warm-up, stable, decay of torchtitan',
    origin: 'torchtitan',
    source: 'torchtitan components/optimizer/lr_scheduler.py',
    reads: ['warmup', 'floor', 'decay', 'decayType'],
    rateAt: (setting, step) => {
      const { peak, steps, decayType } = setting;
      const warmup = Math.min(setting.warmup, steps);
      const decay = decayStepsOf({ ...setting, warmup });
      // A virtual last step, so that the last real one is above the floor.
      const stable = steps + 1 - warmup - decay;
      if (step < warmup) return (peak * (step + 1)) / warmup;
      if (step < warmup + stable) return peak;
      const share = (step + 1 - warmup - stable) / scheduleLength(decay);
      return peak * aboveFloor(DECAYS[decayType](Math.min(1, share)), ratioOf(setting));
    },
  },
} as const satisfies Record<string, Schedule>;

export type ScheduleName = keyof typeof SCHEDULES;

/** Title of a schedule as it runs: without a warm-up of no steps. */
export const scheduleTitle = (
  name: ScheduleName,
  { warmup }: Pick<ScheduleSetting, 'warmup'>,
): string =>
  warmup > 0
    ? SCHEDULES[name].title
    : SCHEDULES[name].title.replace(/^warm-up(?: from the first step)?,(?: then)? /, '');

export const SCHEDULE_NAMES = Object.keys(SCHEDULES) as ScheduleName[];

/** Other names of schedules in configs and command lines. */
const SYNONYMS: Readonly<Record<string, ScheduleName>> = {
  warmup_stable_decay: 'wsd',
  trapezoidal: 'wsd',
  trapezoid: 'wsd',
  cosine_decay: 'cosine',
  cosine_with_warmup: 'cosine',
  cosine_annealing: 'cosine',
  cosine_annealing_lr: 'cosine',
  cosineannealinglr: 'cosine',
  cosineannealing: 'cosine',
  cosine_schedule_with_warmup: 'cosine',
  get_cosine_schedule_with_warmup: 'cosine',
  get_linear_schedule_with_warmup: 'linear',
  linear_with_warmup: 'linear',
  linear_decay: 'linear',
  poly: 'polynomial',
  cosine_with_hard_restarts: 'cosine_with_restarts',
  cosine_min_lr: 'cosine_with_min_lr',
  inverse_square_root: 'inverse_sqrt',
  titan: 'torchtitan',
  none: 'constant',
};

/** The schedule of a name in any usual spelling; undefined for another name. */
export function parseSchedule(text: string): ScheduleName | undefined {
  const name = text
    .trim()
    .toLowerCase()
    .replaceAll(/[-\s]+/g, '_');
  if (Object.hasOwn(SCHEDULES, name)) return name as ScheduleName;
  return Object.hasOwn(SYNONYMS, name) ? SYNONYMS[name] : undefined;
}

/** Names that `parseSchedule` understands. */
export const SCHEDULE_SPELLINGS: readonly string[] = [...SCHEDULE_NAMES, ...Object.keys(SYNONYMS)];

/**
 * The schedule that a name means with a floor: Hugging Face's `cosine` and `linear` end at 0, and its
 * `cosine_with_min_lr` and `polynomial` of power 1 are the same curves to a floor.
 */
function withFloor(name: ScheduleName, floor: number): ScheduleName {
  if (floor === 0) return name;
  if (name === 'cosine') return 'cosine_with_min_lr';
  return name === 'linear' ? 'polynomial' : name;
}

// The learning rate of a training: schedule, peak, floor and warm-up, from settings and defaults.

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

/** Highest learning rate of small models: a third above SmolLM's 3e-3. Narrow ones bear more in proportion. */
const CEILING = { rate: 4e-3, width: 512 } as const;

/**
 * Highest learning rate that a width bears: 8 × GPT-3's 6e-4 at width 768, and less in proportion to the width, as the
 * best rate of Adam for matrices does (µP, arXiv 2203.03466); at most a third above the highest published one.
 */
export const highestRate = (width: number): number =>
  Math.min((HEADROOM * 6e-4 * 768) / width, CEILING.rate * Math.max(1, CEILING.width / width));

/** Share of the steps that the warm-up has where nothing of the learning rate is given. */
const USUAL_WARMUP = 0.01;

/** Share of the steps that the decay of `wsd` has: 10% of the tokens suffice (MiniCPM, arXiv 2404.06395). */
const USUAL_DECAY = 0.1;

export interface LearningRate {
  /** Name of the schedule. */
  readonly schedule: ScheduleName;
  readonly setting: ScheduleSetting;
  /** Whether the peak is the published one of the nearest width. */
  readonly isUsualPeak: boolean;
  /** Whether no setting names the schedule. */
  readonly isUsualSchedule: boolean;
  /** Whether no setting states the warm-up. */
  readonly isUsualWarmup: boolean;
  /** Settings of a learning rate that the schedule does not read. */
  readonly unread: readonly TrainingKey[];
}

/** @param steps Optimizer steps of the run. */
export function learningRateOf(
  values: TrainingValues,
  steps: number,
  width: number,
  isRateInFile = values.learning_rate !== undefined,
): LearningRate {
  const peak = values.learning_rate ?? publishedRate(width).rate;
  const written = values.lr_scheduler;
  const named = written === undefined ? undefined : parseSchedule(written);
  const asked = values.min_lr ?? (values.min_lr_ratio ?? 0) * peak;
  const schedule = withFloor(named ?? 'cosine', asked);
  const { reads }: Schedule = SCHEDULES[schedule];
  const length = values.schedule_steps ?? steps;
  // In transformers, 0 steps leave the warm-up to the ratio.
  const given =
    (values.warmup_ratio === undefined ? values.warmup_steps : values.warmup_steps || undefined) ??
    (values.warmup_ratio === undefined ? undefined : Math.ceil(values.warmup_ratio * steps));
  const isUsualWarmup = given === undefined && !isRateInFile;
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
  SCHEDULES[schedule].rateAt(setting, step);
