/** Checks of the gradient scaler of fp16 (torch.amp.GradScaler) and of its constants. */
import { formatInteger, percentText, shortNumber } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import type { TrainingValues } from '../training-settings.js';
import { FIRST_SCALE } from '../underflow.js';
import type { PlanCheck } from './plan-check.js';

/** Constants of torch.amp.GradScaler without settings. */
const USUAL = { growth: 2, backoff: 0.5, interval: 2000 } as const;

/** Share of skipped steps that costs a training more than noise. */
const MOST_SKIPPED = 0.01;

/** Largest scale: GradScaler keeps it in float32. */
const LARGEST_SCALE = 2 ** 127;

const constantsOf = ({ growth_factor, backoff_factor, growth_interval }: TrainingValues) => ({
  growth: growth_factor ?? USUAL.growth,
  backoff: backoff_factor ?? USUAL.backoff,
  interval: growth_interval ?? USUAL.interval,
});

/** Skipped steps until a scale that is too large by a factor fits again. */
const skippedFor = (factor: number, backoff: number): number =>
  factor <= 1 ? 0 : Math.ceil(Math.log(factor) / -Math.log(backoff) - 1e-9);

const isPossible = (values: TrainingValues): boolean => {
  const { growth, backoff } = constantsOf(values);
  return growth > 1 && backoff < 1;
};

/** In the order of the answer. */
export const SCALER_CHECKS = {
  'scaler-factors': {
    title: 'factors that GradScaler refuses',
    severity: 'error',
    key: 'growth_factor',
    others: ['backoff_factor'],
    find: ({ settings: { values } }) => {
      if (isPossible(values)) return undefined;
      const { growth, backoff } = constantsOf(values);
      return growth <= 1
        ? {
            key: 'growth_factor',
            reason: `the scale must grow, and ${shortNumber(growth)} is not more than 1: PyTorch stops at the first step`,
            fix: `growth_factor: ${USUAL.growth.toFixed(1)}`,
          }
        : {
            key: 'backoff_factor',
            reason: `the scale must shrink after an overflow, and ${shortNumber(backoff)} is not less than 1: PyTorch stops at the first step`,
            fix: `backoff_factor: ${USUAL.backoff}`,
          };
    },
  },
  'scaler-skips-steps': {
    title: 'GradScaler skips many steps',
    severity: 'error',
    key: 'growth_interval',
    others: ['growth_factor', 'backoff_factor'],
    find: ({ settings: { values } }) => {
      if (values.grad_scaler !== true || !isPossible(values)) return undefined;
      const { growth, backoff, interval } = constantsOf(values);
      const skipped = skippedFor(growth, backoff);
      const share = skipped / (skipped + interval);
      if (share <= MOST_SKIPPED) return undefined;
      return {
        reason:
          `every ${counted(interval, 'step')} the scale grows ${shortNumber(growth)} × until gradients overflow, ` +
          `and ${counted(skipped, 'step')} are lost to make it fit again: ${percentText(share)} of all steps`,
        fix: `growth_interval: ${USUAL.interval}, growth_factor: ${USUAL.growth.toFixed(1)}, backoff_factor: ${USUAL.backoff}`,
      };
    },
  },
  'scaler-starts-too-high': {
    title: 'first scale too high',
    severity: 'error',
    key: 'init_scale',
    find: ({ settings: { values }, size }) => {
      const { init_scale: scale } = values;
      if (scale === undefined || !isPossible(values)) return undefined;
      const { backoff } = constantsOf(values);
      const skipped = skippedFor(scale / FIRST_SCALE, backoff);
      if (scale <= LARGEST_SCALE && skipped <= MOST_SKIPPED * size.steps) return undefined;
      return {
        reason:
          scale > LARGEST_SCALE
            ? `${shortNumber(scale)} is infinite in float32, which GradScaler keeps it in`
            : `${shortNumber(scale)} overflows: about ${formatInteger(skipped)} of ${formatInteger(size.steps)} steps are skipped before it is ${formatInteger(FIRST_SCALE)}`,
        fix: `init_scale: ${FIRST_SCALE}`,
      };
    },
  },
  'scaler-without-fp16': {
    title: 'a gradient scaler without fp16',
    severity: 'warning',
    key: 'grad_scaler',
    others: ['init_scale'],
    find: ({ settings: { values } }) => {
      if (values.grad_scaler !== true || values.fp16 === true) return undefined;
      const isSaid = values.bf16 === true || values.fp16 === false;
      return {
        reason: isSaid
          ? 'only fp16 needs one: the other types hold gradients as small as those of float32'
          : 'the file does not say fp16, so the plan counts bf16, which needs none',
        fix: isSaid ? 'grad_scaler: false, and none of its settings' : 'fp16: true',
      };
    },
  },
} as const satisfies Record<string, PlanCheck>;
