/** Ablations of the elastic adapter: the final loss without one of its parts, or with a different one. */

import { setImmediate as breathe } from 'node:timers/promises';
import { manualSeed } from '../../base/random/index.js';
import { median } from '../../base/values.js';
import type { EngineInfo, Values } from '../../engine/engine.js';
import type { AdamWSettings, TrainedActivation, Trainer } from '../../engine/trainer.js';
import { stepsTo } from './convergence.js';
import { adapterParameters, hiddenOf } from './projector.js';
import type { DataKind, ElasticDesign, VerifySize } from './verify-adapters.js';
import {
  DROPOUT,
  dataFor,
  freshAdapter,
  OPTIMIZER,
  RATIO,
  refuseTooLarge,
} from './verify-adapters.js';

export const ACTIVATION_NAMES = [
  'silu',
  'relu',
  'gelu',
] as const satisfies readonly TrainedActivation[];

/** An elastic adapter. */
export interface Variant extends ElasticDesign {
  /** `base`, or the change from it. */
  readonly name: string;
  /** Hidden width ÷ teacher width. */
  readonly ratio: number;
}

/** The published design. */
const BASE: Variant = {
  name: 'base',
  ratio: RATIO,
  norm: true,
  activation: 'silu',
  dropout: DROPOUT,
};

/** Values to try. */
export interface Changes {
  readonly ratios: readonly number[];
  readonly dropouts: readonly number[];
  readonly activations: readonly TrainedActivation[];
  readonly withoutNorm: boolean;
}

/** The changes with published results. */
export const PUBLISHED_CHANGES: Changes = {
  ratios: [0.5, 2],
  dropouts: [0],
  activations: ['relu', 'gelu'],
  withoutNorm: true,
};

const NO_NORM = 'no norm';

/** The base, and each other value by itself. */
export function variantsOf({ ratios, dropouts, activations, withoutNorm }: Changes): Variant[] {
  const other = <T>(values: readonly T[], base: T, change: (value: T) => Partial<Variant>) =>
    [...new Set(values)]
      .filter((value) => value !== base)
      .map((value): Variant => ({ ...BASE, ...change(value) }));
  return [
    BASE,
    ...(withoutNorm ? [{ ...BASE, name: NO_NORM, norm: false }] : []),
    ...other(activations, BASE.activation, (activation) => ({ activation, name: activation })),
    ...other(ratios, BASE.ratio, (ratio) => ({ ratio, name: `ratio ${ratio}` })),
    ...other(dropouts, BASE.dropout, (dropout) => ({ dropout, name: `dropout ${dropout}` })),
  ];
}

export interface AblationRequest {
  readonly data: DataKind;
  /** The hidden width follows from the ratio of a variant. */
  readonly size: VerifySize;
  /** X of the user; undefined: drawn as `data` says. */
  readonly keys?: Values | undefined;
  readonly steps: number;
  readonly seeds: readonly number[];
  readonly changes: Changes;
  /** Learning rate; the published one by default. */
  readonly learningRate?: number | undefined;
  /** Loss to count the steps to; by default the higher last loss of a variant and the base. */
  readonly targetLoss?: number | undefined;
  /** Called before each training. */
  readonly watch?: (text: string) => void;
}

/** Mean, lowest and highest over the seeds. */
export interface Spread {
  /** Mean. @real */
  readonly mean: number;
  /** Minimum. @real */
  readonly lowest: number;
  /** Maximum. @real */
  readonly highest: number;
}

export interface VariantResult extends Variant {
  /** Width between the linear layers. @integer */
  readonly hidden: number;
  /** Parameters of the adapter. @integer */
  readonly parameters: number;
  /** Final loss by seed, in the order of the seeds. @real */
  readonly losses: readonly number[];
  readonly loss: Spread;
  /** Final loss ÷ that of the base with the same seed. */
  readonly timesBase: Spread;
  /** Steps to the target loss by seed; null where it is not reached. @integer */
  readonly stepsToLoss: readonly (number | null)[];
  /** Steps of the base to the same loss. @integer */
  readonly baseStepsToLoss: readonly (number | null)[];
  /** Steps ÷ those of the base to the same loss; null where one does not reach it. */
  readonly timesSteps: Spread | null;
  /** Median time of a step, without the first one of each training. */
  readonly secondsPerStep: number;
}

export interface Ablations {
  /** Kind of the data. */
  readonly data: DataKind;
  /** Sizes of the data. */
  readonly size: VerifySize;
  readonly engine: EngineInfo;
  readonly optimizer: AdamWSettings;
  /** Training steps. @integer @minimum 1 */
  readonly steps: number;
  /** Seeds of the trainings. @count */
  readonly seeds: readonly number[];
  /** The base first. */
  readonly variants: readonly VariantResult[];
  /** How many times the loss of the base remains without the norm; null if that was not asked. */
  readonly withoutNorm: Spread | null;
  /** Duration. */
  readonly seconds: number;
}

/**
 * Trains each variant with each seed. With the same seed, the base has the loss of the elastic adapter of `verify`.
 * @throws UserError when there is not enough memory.
 */
export async function ablate(trainer: Trainer, request: AblationRequest): Promise<Ablations> {
  const { data, size, steps, seeds, changes } = request;
  const start = performance.now();
  const variants = variantsOf(changes);
  for (const { ratio } of variants) refuseTooLarge(trainer, withRatio(size, ratio));
  const trainings = new Map<string, Training[]>();
  for (const variant of variants) {
    const found: Training[] = [];
    for (const seed of seeds) {
      request.watch?.(
        `${variant.name}, seed ${seed}: ${trainings.size * seeds.length + found.length + 1} of ${variants.length * seeds.length}`,
      );
      found.push(await trained(trainer, request, variant, seed));
    }
    trainings.set(variant.name, found);
  }
  const base = trainings.get(BASE.name) ?? [];
  const results = variants.map((variant): VariantResult => {
    const runs = trainings.get(variant.name) ?? [];
    const own = runs.map(lastLoss);
    const hidden = hiddenOf(size.teacherWidth, variant.ratio);
    return {
      ...variant,
      hidden,
      parameters: variantParameters(variant, { ...size, hidden }),
      losses: own,
      loss: spreadOf(own),
      timesBase: spreadOf(own.map((loss, at) => loss / lastLoss(base[at]))),
      ...stepsComparison(runs, base, request.targetLoss),
      secondsPerStep: median(runs.flatMap(({ seconds }) => seconds)),
    };
  });
  return {
    ...{ data, size, engine: trainer.info, optimizer: optimizerOf(request), steps, seeds },
    variants: results,
    withoutNorm: results.find(({ name }) => name === NO_NORM)?.timesBase ?? null,
    seconds: (performance.now() - start) / 1000,
  };
}

/** The width of the smallest hidden layer is at least one. */
const withRatio = (size: VerifySize, ratio: number): VerifySize => ({
  ...size,
  hidden: Math.max(1, hiddenOf(size.teacherWidth, ratio)),
});

/** Losses of a training, and the time of its steps without the first. */
interface Training {
  readonly losses: readonly number[];
  readonly seconds: readonly number[];
}

const lastLoss = (training: Training | undefined): number => training?.losses.at(-1) ?? Number.NaN;

const optimizerOf = ({
  learningRate = OPTIMIZER.learningRate,
}: AblationRequest): AdamWSettings => ({
  ...OPTIMIZER,
  learningRate,
});

/** Steps to a loss, compared with those of the base with the same seed. */
function stepsComparison(
  runs: readonly Training[],
  base: readonly Training[],
  given: number | undefined,
): Pick<VariantResult, 'stepsToLoss' | 'baseStepsToLoss' | 'timesSteps'> {
  const pairs = runs.map((run, at) => {
    const other = base[at] ?? run;
    const target = given ?? Math.max(lastLoss(run), lastLoss(other));
    return [stepsTo(run.losses, target), stepsTo(other.losses, target)] as const;
  });
  const ratios = pairs.map(([own, other]) => (own === null || other === null ? null : own / other));
  return {
    stepsToLoss: pairs.map(([own]) => own),
    baseStepsToLoss: pairs.map(([, other]) => other),
    timesSteps: ratios.every((ratio) => ratio !== null) ? spreadOf(ratios) : null,
  };
}

async function trained(
  trainer: Trainer,
  request: AblationRequest,
  variant: Variant,
  seed: number,
): Promise<Training> {
  const { data, size, keys, steps } = request;
  const random = manualSeed(seed);
  const own = withRatio(size, variant.ratio);
  const task = await dataFor(data, own, random, trainer, keys);
  // The comparison of both kinds draws the linear adapter first; this keeps the random values equal.
  freshAdapter('linear', own, random, variant);
  const training = await trainer.train(
    freshAdapter('elastic', own, random, variant),
    task,
    optimizerOf(request),
  );
  try {
    const [losses, seconds]: [number[], number[]] = [[], []];
    for (let step = 0; step < steps; step++) {
      const begun = performance.now();
      losses.push(await training.step());
      // The first step includes the setup, unless it is the only one.
      if (step > 0 || steps === 1) seconds.push((performance.now() - begun) / 1000);
      // Lets pending timers and signals run.
      await breathe();
    }
    return { losses, seconds };
  } finally {
    await training.release();
  }
}

function variantParameters({ norm }: Variant, { teacherWidth, studentWidth, hidden }: VerifySize) {
  const shape = { kind: 'elastic', teacherWidth, studentWidth, hidden } as const;
  return Number(adapterParameters(shape).value) - (norm ? 0 : 2 * teacherWidth);
}

const spreadOf = (values: readonly number[]): Spread => ({
  mean: values.reduce((sum, value) => sum + value, 0) / values.length,
  lowest: Math.min(...values),
  highest: Math.max(...values),
});
