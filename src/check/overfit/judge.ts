/** Findings of a training on one batch: problems, which fail the test, and warnings. */

import { setting } from '../../base/text/setting.js';
import { shortNumber } from '../../base/text/units.js';
import { counted, joined } from '../../base/text/words.js';
import { groupBy, isRecord } from '../../base/values.js';
import type { AdamWSettings, ModelTraining, NonFinite } from '../../engine/trainer.js';
import type { LanguageModel, MixtureOfExperts } from '../../model/architecture/layer.js';
import { tensorsOf, walk } from '../../model/architecture/walk.js';

// Settings of a training, from flags, the model file or defaults.

export type SettingSource = 'flag' | 'file' | 'default';

export interface SourcedSetting {
  /** Value of the setting. @real */
  readonly value: number;
  /** Origin of the value. */
  readonly source: SettingSource;
}

/** Defaults of torch.optim.AdamW, and the usual limit of the gradients' norm. */
const DEFAULTS = {
  learning_rate: 1e-3,
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-8,
  weight_decay: 0.01,
  max_grad_norm: 1,
} as const;

type SettingKey = keyof typeof DEFAULTS;

/** Settings by the keys of a model file's `training:` section. */
export interface OverfitSettings extends Readonly<Record<SettingKey, SourcedSetting>> {
  /** Learning rate. */
  readonly learning_rate: SourcedSetting;
  /** Decay of the mean of the gradients. */
  readonly beta1: SourcedSetting;
  /** Decay of the mean of the squared gradients. */
  readonly beta2: SourcedSetting;
  /** Addend of the denominator, against divisions by zero. */
  readonly eps: SourcedSetting;
  /** Decoupled weight decay per step, times the learning rate. */
  readonly weight_decay: SourcedSetting;
  /** Largest norm of the gradients; 0 turns clipping off. */
  readonly max_grad_norm: SourcedSetting;
}

/** @param document Document parsed by the family's schema. */
export function overfitSettings(
  document: unknown,
  learningRate: number | undefined,
): OverfitSettings {
  const section = isRecord(document) && isRecord(document.training) ? document.training : {};
  const settingOf = (key: SettingKey): SourcedSetting => {
    if (key === 'learning_rate' && learningRate !== undefined) {
      return { value: learningRate, source: 'flag' };
    }
    const value = section[key];
    return typeof value === 'number'
      ? { value, source: 'file' }
      : { value: DEFAULTS[key], source: 'default' };
  };
  return {
    learning_rate: settingOf('learning_rate'),
    beta1: settingOf('beta1'),
    beta2: settingOf('beta2'),
    eps: settingOf('eps'),
    weight_decay: settingOf('weight_decay'),
    max_grad_norm: settingOf('max_grad_norm'),
  };
}

export const optimizerOf = (settings: OverfitSettings): AdamWSettings => ({
  learningRate: settings.learning_rate.value,
  betas: [settings.beta1.value, settings.beta2.value],
  epsilon: settings.eps.value,
  weightDecay: settings.weight_decay.value,
});

/**
 * Limit of the gradients' norm; undefined turns clipping off, which the file writes as 0 like trainers of Hugging Face.
 */
export const clippingOf = ({ max_grad_norm }: OverfitSettings): number | undefined =>
  max_grad_norm.value === 0 ? undefined : max_grad_norm.value;

// Learning rate range test (Smith, arXiv 1506.01186), with a learning rate that grows by a constant factor.

/** First and last learning rate of a sweep. */
const RANGE = { from: 1e-5, to: 1 } as const;
/** Steps of a sweep: five per power of ten, and both ends. */
export const SWEEP_STEPS = 26;
const FEWEST_STEPS = 11;
/** A loss this many times the first ends a sweep. */
const DIVERGED = 2;
/** Share of the first loss by which the loss must exceed its lowest value to count as rising. */
const RISE = 0.05;

export interface LearningRatePoint {
  /** Learning rate. */
  readonly learningRate: number;
  /** Loss after an update with this learning rate, and those before it. @real */
  readonly loss: number;
}

export interface LearningRateSweep {
  /** Losses at each learning rate. */
  readonly points: readonly LearningRatePoint[];
  /** Learning rate after which the loss was lowest. */
  readonly lowestAt: number;
  /** A tenth of that, the usual choice. */
  readonly suggested: number;
  /** The first learning rate beyond that after which the loss rises; null when it never does. */
  readonly risesFrom: number | null;
}

/**
 * Trains with a learning rate that grows in each step, until the loss diverges.
 * @param steps Number of steps that there is time for. @param pause Called before each step, with the number of all.
 * @returns Null without time, or when the first steps fail.
 */
export async function sweepLearningRates(
  training: ModelTraining,
  steps: number,
  pause: (step: number, count: number) => Promise<void>,
): Promise<LearningRateSweep | null> {
  if (steps < FEWEST_STEPS) return null;
  const count = Math.min(Math.floor(steps), SWEEP_STEPS);
  const factor = (RANGE.to / RANGE.from) ** (1 / (count - 1));
  const losses: number[] = [];
  for (let step = 0; step < count; step++) {
    await pause(step + 1, count);
    const { loss, nonFinite } = await training.step(RANGE.from * factor ** step);
    losses.push(loss);
    if (nonFinite || !(loss <= DIVERGED * (losses[0] ?? 0))) break;
  }
  const [first = Number.NaN, ...after] = losses;
  const points = after.map((loss, step) => ({ learningRate: RANGE.from * factor ** step, loss }));
  return points.length < 2 ? null : summary(first, points);
}

export function summary(first: number, points: readonly LearningRatePoint[]): LearningRateSweep {
  const lowest = points.reduce((best, each) => (each.loss < best.loss ? each : best));
  const rise = points
    .slice(points.indexOf(lowest) + 1)
    .find(({ loss }) => !(loss <= lowest.loss + RISE * first));
  return {
    points,
    lowestAt: lowest.learningRate,
    suggested: lowest.learningRate / 10,
    risesFrom: rise?.learningRate ?? null,
  };
}

export interface OverfitStep {
  /** Mean cross-entropy in nats before the update. @real */
  readonly loss: number;
  /** Norm of all gradients together, before clipping. @real */
  readonly gradientNorm: number;
  /** Whether the gradients were clipped. */
  readonly clipped: boolean;
}

/** A value that is not finite, and the step, from 1, in which it first occurred. */
export interface FirstNonFinite extends NonFinite {
  /** Step, from 1. @integer @minimum 1 */
  readonly step: number;
}

export interface OverfitProblem {
  /** Kind of the problem. */
  readonly kind: 'not finite' | 'not falling' | 'dead parameter';
  /** Description of the problem. */
  readonly message: string;
  /** How to fix it. */
  readonly suggestion: string;
}

export interface JudgedTraining {
  readonly steps: readonly OverfitStep[];
  readonly finalLoss: number;
  readonly deadParameters: readonly string[];
  readonly firstNonFinite: FirstNonFinite | null;
  readonly settings: OverfitSettings;
  readonly uniformLoss: number;
  readonly learningRates: LearningRateSweep | null;
  readonly isCheckpoint: boolean;
  readonly model: LanguageModel;
  /** Predicted tokens of the batch. */
  readonly tokens: number;
}

interface Judgement {
  readonly problems: readonly OverfitProblem[];
  readonly warnings: readonly string[];
}

export function judgeOverfit(training: JudgedTraining): Judgement {
  const dead = judgeDead(training);
  const loss = training.firstNonFinite
    ? [notFinite(training, training.firstNonFinite)]
    : isFalling(training)
      ? []
      : [notFalling(training)];
  return {
    problems: [...loss, ...dead.problems],
    warnings: [...(loss.length > 0 ? [] : lossWarnings(training)), ...dead.warnings],
  };
}

/** Share of the first loss by which the last losses must be lower, unless each step lowers the loss. */
const LEAST_FALL = 0.01;
/** Share of the steps, at the end, whose mean loss counts. */
const LAST_PART = 0.2;

function isFalling({ steps, finalLoss }: JudgedTraining): boolean {
  const losses = [...steps.map(({ loss }) => loss), finalLoss];
  const [first = Number.NaN] = losses;
  const last = losses.slice(-Math.max(1, Math.round(losses.length * LAST_PART)));
  const mean = last.reduce((sum, each) => sum + each, 0) / last.length;
  const isMonotonic = losses.every((loss, at) => at === 0 || loss < (losses[at - 1] ?? loss));
  return mean < first * (1 - LEAST_FALL) || isMonotonic;
}

/** Text about a learning rate that is too high, if the sweep shows that; undefined otherwise. */
function tooHigh({ settings, learningRates }: JudgedTraining): string | undefined {
  const rate = settings.learning_rate.value;
  if (!learningRates) return undefined;
  const { risesFrom, lowestAt } = learningRates;
  if (risesFrom === null || rate < risesFrom) return undefined;
  return `learning rate ${shortNumber(rate)} is too high: the loss is lowest at ${shortNumber(lowestAt)} and rises from ${shortNumber(risesFrom)}`;
}

const lowerRate = ({ learningRates }: JudgedTraining) =>
  `write training.learning_rate: ${shortNumber(learningRates?.suggested ?? 1e-3)}`;

const WHERE = {
  output: (name) => (name === 'loss' ? 'in the loss' : `in the output of ${name}`),
  gradient: (name) => `in the gradient of ${name}`,
  parameter: (name) => `in ${name} after the update`,
} as const satisfies Record<FirstNonFinite['what'], (name: string) => string>;

function notFinite(training: JudgedTraining, found: FirstNonFinite): OverfitProblem {
  const { what, name, step } = found;
  const rateReason = tooHigh(training);
  const isWithoutEpsilon = what === 'parameter' && training.settings.eps.value === 0;
  const reason = isWithoutEpsilon
    ? 'eps is 0, and AdamW divides 0 by 0 where a gradient is 0'
    : step === 1 && what !== 'parameter'
      ? `the ${training.isCheckpoint ? "checkpoint's" : 'initial'} weights already give it`
      : rateReason;
  return {
    kind: 'not finite',
    message: `NaN or infinity at step ${step}, first ${WHERE[what](name)}${reason ? `: ${reason}` : ''}`,
    suggestion: isWithoutEpsilon
      ? 'write training.eps: 1e-8'
      : step === 1 && what !== 'parameter'
        ? `check the values of ${name}: epsilons, scales and weights`
        : lowerRate(training),
  };
}

function notFalling(training: JudgedTraining): OverfitProblem {
  const { steps, finalLoss, settings } = training;
  const first = steps[0]?.loss ?? Number.NaN;
  const rate = settings.learning_rate.value;
  const reason =
    tooHigh(training) ??
    (rate === 0 ? 'learning rate 0 changes nothing' : undefined) ??
    (training.learningRates && rate < training.learningRates.suggested / 100
      ? `learning rate ${shortNumber(rate)} is too low for ${counted(steps.length, 'step')}`
      : undefined);
  return {
    kind: 'not falling',
    message:
      `the loss does not fall: ${first.toPrecision(4)} at first, ${finalLoss.toPrecision(4)} after ${counted(steps.length, 'step')}` +
      (reason ? `; ${reason}` : ''),
    suggestion: reason
      ? lowerRate(training)
      : `look at the gradients with ${setting('details')}, and at the layers that changed last`,
  };
}

/** Multiple of ln V above which the loss of random weights is large: the model is sure of wrong tokens. */
const LARGE_START = 1.5;
/** Multiple of the first loss above which a loss is a peak. */
const PEAK = 1.5;

function lossWarnings(training: JudgedTraining): string[] {
  const { steps, uniformLoss, isCheckpoint } = training;
  const losses = steps.map(({ loss }) => loss);
  const [first = Number.NaN] = losses;
  const highest = losses.reduce((most, each) => Math.max(most, each), first);
  const rate = tooHigh(training);
  return [
    ...(!isCheckpoint && first > LARGE_START * uniformLoss
      ? [
          `the loss starts at ${first.toPrecision(4)}, far above the ${uniformLoss.toPrecision(4)} of a uniform guess: the initial logits are large`,
        ]
      : []),
    ...(rate ? [rate] : []),
    ...(!rate && highest > PEAK * first
      ? [
          `the loss rose to ${highest.toPrecision(4)} at step ${losses.indexOf(highest) + 1} before it fell: a lower learning rate or warm-up avoids that`,
        ]
      : []),
  ];
}

/** Expected tokens of an expert from which it must have been chosen. */
const EXPECTED_TOKENS = 12;

/**
 * Problems and warnings about tensors without a gradient: those of experts that no token chose, of routers that cannot
 * learn, and others.
 */
function judgeDead({ deadParameters, model, tokens, steps }: JudgedTraining): Judgement {
  const problems: OverfitProblem[] = [];
  const warnings: string[] = [];
  const left = new Set(deadParameters);
  const experts: { name: string; isExpected: boolean }[] = [];
  for (const { layer } of walk(model)) {
    if (layer.kind !== 'mixtureOfExperts') continue;
    const { router } = layer;
    const [count = 1] = router.weight.shape;
    const isExpected = (tokens * router.expertsPerToken) / count >= EXPECTED_TOKENS;
    for (const [expert, names] of expertTensors(layer).entries()) {
      if (names.length === 0 || !names.every((name) => left.has(name))) continue;
      for (const name of names) left.delete(name);
      experts.push({ name: `${layer.name} expert ${expert}`, isExpected });
    }
    if (router.expertsPerToken === 1 && router.renormalised) {
      for (const each of [router.weight, router.bias]) left.delete(each?.name ?? '');
      warnings.push(
        `${router.weight.name} learns only from an auxiliary loss: one expert per token, with weights divided by their sum, always has weight 1`,
      );
    }
  }
  const byKind = groupBy(experts, ({ isExpected }) => isExpected);
  const missed = (byKind.get(true) ?? []).map(({ name }) => name);
  if (missed.length > 0) {
    problems.push({
      kind: 'dead parameter',
      message: `${someNames(missed)} ${missed.length === 1 ? 'is' : 'are'} dead: no token of ${tokens} chose ${missed.length === 1 ? 'it' : 'them'} in ${counted(steps.length, 'step')}`,
      suggestion: "check the router's weights, correction and groups",
    });
  }
  const unseen = byKind.get(false)?.length ?? 0;
  if (unseen > 0) {
    warnings.push(
      `${counted(unseen, 'expert')} not chosen by any of ${tokens} tokens: too few to judge; more with ${setting('batch')} or ${setting('context')}`,
    );
  }
  if (left.size > 0) {
    const names = [...left];
    problems.push({
      kind: 'dead parameter',
      message: `${someNames(names)} got no gradient in ${counted(steps.length, 'step')}: ${names.length === 1 ? 'it never learns' : 'they never learn'}`,
      suggestion: 'check the sizes, windows and scales of the layer',
    });
  }
  return { problems, warnings: [...new Set(warnings)] };
}

/** Names of the tensors of each expert; of packed ones, as `name[expert]`. */
function expertTensors({ experts, router }: MixtureOfExperts): string[][] {
  if (!('kind' in experts)) return experts.map((each) => tensorsOf(each).map(({ name }) => name));
  const [count = 0] = router.weight.shape;
  return Array.from({ length: count }, (_, expert) =>
    [experts.gateUp, experts.down].map(({ name }) => `${name}[${expert}]`),
  );
}

const NAMED = 3;

const someNames = (names: readonly string[]): string =>
  names.length > NAMED
    ? `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more`
    : joined(names);
