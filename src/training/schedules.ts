/** Learning rate schedules, each as its original computes it. Steps are optimizer steps and count from 0. */

/** Curve of the last phase of a schedule with a stable phase. */
export const DECAY_TYPES = ['linear', 'cosine', '1-sqrt'] as const;

export type DecayType = (typeof DECAY_TYPES)[number];

/** Parameters of a schedule besides its peak and its steps. */
export interface ScheduleShape {
  /** Steps of the warm-up. */
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
  /** Steps of the whole schedule. */
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

const lengthOf = (steps: number) => Math.max(1, steps);

/** Share of the steps after the warm-up that are done. */
const progressOf = ({ steps, warmup }: ScheduleSetting, step: number) =>
  (step - warmup) / lengthOf(steps - warmup);

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
    (step < setting.warmup ? step / lengthOf(setting.warmup) : factor(setting, step)),
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
    ({ steps, warmup }, step) => Math.max(0, (steps - step) / lengthOf(steps - warmup)),
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
      if (step < warmup) return (peak * (step + 1)) / lengthOf(warmup);
      const share = (step - warmup + 1) / lengthOf(steps - warmup);
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
      const left = step > steps ? 0 : 1 - (step - warmup) / lengthOf(steps - warmup);
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
      if (step < warmup) return peak * aboveFloor(step / lengthOf(warmup), ratio);
      if (step < steps - decay) return peak;
      if (step >= steps) return peak * ratio;
      const share = (step - (steps - decay)) / lengthOf(decay);
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
      const share = (step + 1 - warmup - stable) / lengthOf(decay);
      return peak * aboveFloor(DECAYS[decayType](Math.min(1, share)), ratioOf(setting));
    },
  },
} as const satisfies Record<string, Schedule>;

export type ScheduleName = keyof typeof SCHEDULES;

/** Title of a schedule as it runs: without a warm-up of no steps. */
export const titleOf = (name: ScheduleName, { warmup }: Pick<ScheduleSetting, 'warmup'>): string =>
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
export function withFloor(name: ScheduleName, floor: number): ScheduleName {
  if (floor === 0) return name;
  if (name === 'cosine') return 'cosine_with_min_lr';
  return name === 'linear' ? 'polynomial' : name;
}

/** The learning rate at a step of a schedule. */
export const rateAt = (name: ScheduleName, setting: ScheduleSetting, step: number): number =>
  SCHEDULES[name].rateAt(setting, step);
