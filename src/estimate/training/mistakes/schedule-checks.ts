/** Checks of the length of a run, its schedule and its learning rate. */
import { formatInteger, shortCount, shortNumber } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import type { RunSize } from '../run-size.js';
import { stepsFor } from '../run-size.js';
import {
  highestRate,
  learningRateAt,
  parseDecayType,
  parseSchedule,
  publishedRate,
  SCHEDULE_NAMES,
  SCHEDULES,
} from '../schedules.js';
import type { PlanCheck, PlanFacts } from './plan-check.js';

/** Several times what small models are trained with: 3e-3 for SmolLM-135M (huggingface/smollm). */
const ABSURD_RATE = 0.02;
const LOWEST_RATE = 1e-7;

/** Whether a length is another one times the accumulation, up to its rounding. */
const isMultiple = (longer: number, shorter: number, accumulation: number) =>
  accumulation > 1 && Math.abs(longer - shorter * accumulation) <= accumulation;

/** Optimizer steps that the tokens or epochs of the settings need; undefined without either. */
function stepsOfTokens({ settings: { values }, size }: PlanFacts): number | undefined {
  const { total_tokens, num_epochs } = values;
  const { dataTokens, tokensPerStep, filled } = size;
  const tokens =
    total_tokens ??
    (num_epochs === undefined || dataTokens === undefined ? undefined : num_epochs * dataTokens);
  return tokens === undefined ? undefined : stepsFor(tokens, tokensPerStep * filled);
}

/** Whether `max_steps` counts micro-steps, by the tokens that are given as well. */
function countsMicroSteps(facts: PlanFacts): boolean {
  const steps = stepsOfTokens(facts);
  const { max_steps } = facts.settings.values;
  if (steps === undefined || max_steps === undefined) return false;
  return isMultiple(max_steps, steps, facts.size.accumulation);
}

/** Warm-up to write: 1% of the steps, and none in a run of one step. */
const usualWarmup = ({ steps }: RunSize): number =>
  steps === 1 ? 0 : Math.max(1, Math.round(0.01 * steps));

/** In the order of the answer. */
export const SCHEDULE_CHECKS = {
  'schedule-unknown': {
    title: 'unknown schedule',
    severity: 'error',
    key: 'lr_scheduler',
    find: ({ settings: { values } }) =>
      values.lr_scheduler === undefined || parseSchedule(values.lr_scheduler) !== undefined
        ? undefined
        : {
            reason: `${JSON.stringify(values.lr_scheduler)} is not a schedule that minimind knows`,
            fix: `lr_scheduler: one of ${SCHEDULE_NAMES.join(', ')}`,
          },
  },
  'schedule-in-micro-steps': {
    title: 'schedule counted in micro-steps',
    severity: 'error',
    key: 'schedule_steps',
    find: (facts) => {
      const { size, settings, rate } = facts;
      const { accumulation } = size;
      const { schedule_steps: written } = settings.values;
      if (countsMicroSteps(facts)) {
        const right = stepsOfTokens(facts) ?? size.steps;
        return {
          key: 'max_steps',
          reason:
            `${formatInteger(size.steps)} is the number of micro-steps: with ${formatInteger(accumulation)} for each optimizer step, ` +
            `the tokens last for ${formatInteger(right)} steps, and the learning rate never decays`,
          fix: `max_steps: ${right}`,
        };
      }
      if (written === undefined || !isMultiple(written, size.steps, accumulation)) return undefined;
      const last = learningRateAt(rate, size.steps - 1);
      return {
        reason:
          `${formatInteger(written)} micro-steps are ${formatInteger(size.steps)} optimizer steps: the run ends after 1/${accumulation} ` +
          `of the schedule, at a learning rate of ${shortNumber(last)}`,
        fix: `schedule_steps: ${size.steps}`,
      };
    },
  },
  'length-given-twice': {
    title: 'steps and tokens contradict each other',
    severity: 'warning',
    key: 'max_steps',
    find: (facts) => {
      const { size, settings } = facts;
      const { max_steps } = settings.values;
      const steps = stepsOfTokens(facts);
      if (max_steps === undefined || steps === undefined || countsMicroSteps(facts))
        return undefined;
      if (Math.abs(steps - max_steps) <= Math.max(1, 0.02 * steps)) return undefined;
      return {
        reason:
          `${formatInteger(max_steps)} steps of ${formatInteger(size.tokensPerStep)} tokens are ${shortCount(size.tokens)} tokens, ` +
          `and the tokens that are given need ${formatInteger(steps)} steps`,
        fix: `max_steps: ${steps}, or leave one of them out`,
      };
    },
  },
  'schedule-shorter-than-run': {
    title: 'schedule ends before the run',
    severity: 'warning',
    key: 'schedule_steps',
    find: ({ settings: { values }, size, rate }) => {
      const { schedule_steps: written } = values;
      if (written === undefined || written >= 0.9 * size.steps) return undefined;
      const last = learningRateAt(rate, size.steps - 1);
      return {
        reason: `the last ${formatInteger(size.steps - written)} of ${formatInteger(size.steps)} steps have a learning rate of ${shortNumber(last)}`,
        fix: `schedule_steps: ${size.steps}`,
      };
    },
  },
  'warmup-beyond-the-end': {
    title: 'warm-up longer than the run',
    severity: 'error',
    key: 'warmup_steps',
    others: ['warmup_ratio'],
    find: ({ size, rate: { setting } }) =>
      setting.warmup === 0 || setting.warmup < size.steps
        ? undefined
        : {
            reason: `${counted(setting.warmup, 'step')} of warm-up in a run of ${formatInteger(size.steps)}: the learning rate never reaches its peak, or only at the end`,
            fix: `warmup_steps: ${usualWarmup(size)}`,
          },
  },
  'long-warmup': {
    title: 'warm-up takes most of the run',
    severity: 'warning',
    key: 'warmup_steps',
    others: ['warmup_ratio'],
    find: ({ size, rate: { setting } }) =>
      setting.warmup >= size.steps || setting.warmup <= size.steps / 2
        ? undefined
        : {
            reason: `${formatInteger(setting.warmup)} of ${formatInteger(size.steps)} steps are warm-up; published trainings take about 1%`,
            fix: `warmup_steps: ${usualWarmup(size)}`,
          },
  },
  'no-warmup': {
    title: 'no warm-up',
    severity: 'warning',
    key: 'warmup_steps',
    find: ({ settings: { values }, size, rate: { schedule, setting } }) =>
      // MiniMind trains without a warm-up, by its own schedule.
      values.learning_rate === undefined || setting.warmup > 0 || schedule === 'minimind'
        ? undefined
        : {
            reason:
              "the first steps have the full learning rate, while Adam's second moment is not yet an average",
            fix: SCHEDULES[schedule].reads.some((each) => each === 'warmup')
              ? `warmup_steps: ${usualWarmup(size)}`
              : `lr_scheduler: constant_with_warmup, warmup_steps: ${usualWarmup(size)}`,
          },
  },
  'decay-beyond-the-end': {
    title: 'warm-up and decay longer than the schedule',
    severity: 'warning',
    key: 'decay_steps',
    others: ['decay_ratio'],
    find: ({ rate: { setting, schedule } }) => {
      const { warmup, decay, steps } = setting;
      const reads: readonly string[] = SCHEDULES[schedule].reads;
      if (!reads.includes('decay') || decay === undefined || warmup >= steps) return undefined;
      if (warmup + decay <= steps) return undefined;
      return {
        reason: `${formatInteger(warmup)} steps of warm-up and ${formatInteger(decay)} of decay are more than ${formatInteger(steps)}: nothing is stable between them`,
        fix: `decay_steps: ${Math.max(1, Math.round(0.1 * steps))}`,
      };
    },
  },
  'unread-setting': {
    title: 'setting that the schedule does not read',
    severity: 'warning',
    key: 'lr_scheduler',
    find: ({ rate: { unread, schedule }, settings }) => {
      const [first] = unread;
      // Other checks say more about an unknown schedule.
      const { lr_scheduler: text } = settings.values;
      if (first === undefined || (text !== undefined && !parseSchedule(text))) return undefined;
      return {
        key: first,
        reason: `the schedule ${schedule} has no ${unread.join(', ')}`,
        fix: `another lr_scheduler, or leave out ${unread.join(', ')}`,
      };
    },
  },
  'decay-type-unknown': {
    title: 'unknown curve of the decay',
    severity: 'error',
    key: 'decay_type',
    find: ({ settings: { values } }) =>
      values.decay_type === undefined || parseDecayType(values.decay_type) !== undefined
        ? undefined
        : {
            reason: `${JSON.stringify(values.decay_type)} is not a curve that minimind knows`,
            fix: 'decay_type: one of linear, cosine, 1-sqrt',
          },
  },
  'learning-rate-unread': {
    title: 'learning rate that is not read',
    severity: 'error',
    key: 'learning_rate',
    find: ({ settings: { values, unreadRates }, rate: { setting } }) => {
      const [first] = unreadRates;
      if (first === undefined || values.learning_rate !== undefined) return undefined;
      return {
        reason: `${first.path} is not a name that minimind reads, so the plan has ${shortNumber(setting.peak)}, its default`,
        fix: `learning_rate: ${first.value}`,
      };
    },
  },
  'learning-rate-absurd': {
    title: 'learning rate out of range',
    severity: 'error',
    key: 'learning_rate',
    find: ({ settings: { values }, width }) => {
      const { learning_rate: rate } = values;
      if (rate === undefined || (rate < ABSURD_RATE && rate >= LOWEST_RATE)) return undefined;
      const { rate: usual, width: at } = publishedRate(width);
      return {
        reason:
          rate < LOWEST_RATE
            ? `${shortNumber(rate)} is too small for AdamW to change a model`
            : `a training with AdamW usually diverges at ${shortNumber(rate)}; SmolLM-135M, a high case, has 3e-3`,
        fix: `learning_rate: ${shortNumber(usual)} (GPT-3 at width ${formatInteger(at)})`,
      };
    },
  },
  'learning-rate-above-width': {
    title: 'learning rate too high for the width',
    severity: 'warning',
    key: 'learning_rate',
    find: ({ settings: { values }, width }) => {
      const { learning_rate: rate } = values;
      const highest = highestRate(width);
      if (rate === undefined || rate >= ABSURD_RATE || rate <= highest) return undefined;
      const { rate: usual, width: at } = publishedRate(width);
      return {
        reason:
          `${shortNumber(rate)} at width ${formatInteger(width)}; the limit is ${shortNumber(highest)}, from GPT-3's 6e-4 at width 768, ` +
          "SmolLM's 3e-3 at 576, and 1/width (µP, arXiv 2203.03466)",
        fix: `learning_rate: ${shortNumber(usual)} (GPT-3 at width ${formatInteger(at)})`,
      };
    },
  },
  'floor-above-peak': {
    title: 'min_lr above the learning rate',
    severity: 'error',
    key: 'min_lr',
    others: ['min_lr_ratio'],
    find: ({ rate: { setting } }) =>
      setting.floor <= setting.peak
        ? undefined
        : {
            reason: `the learning rate would grow from ${shortNumber(setting.peak)} to ${shortNumber(setting.floor)}`,
            fix: `min_lr: ${shortNumber(setting.peak / 10)}`,
          },
  },
} as const satisfies Record<string, PlanCheck>;
