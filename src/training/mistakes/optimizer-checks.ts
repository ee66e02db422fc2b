/** Checks of AdamW: its groups of tensors, weight decay and constants. */
import { percentText, shortNumber } from '../../text/units.js';
import { counted } from '../../text/words.js';
import { GROUP_RULES, parseGroupRule } from '../optimizer-groups.js';
import type { PlanCheck } from './plan-check.js';

/** In the order of the answer. */
export const OPTIMIZER_CHECKS = {
  'decayed-norms': {
    title: 'norms or biases are decayed',
    severity: 'warning',
    key: 'optimizer_groups',
    others: ['weight_decay'],
    find: ({ groups, rule, weightDecay, settings: { values } }) => {
      const isAsked = values.weight_decay !== undefined || values.optimizer_groups !== undefined;
      if (!isAsked || weightDecay === 0) return undefined;
      const decayed = groups.find(({ isDecayed }) => isDecayed);
      const wrong = (decayed?.kinds ?? []).filter(({ kind }) => kind === 'norm' || kind === 'bias');
      if (wrong.length === 0) return undefined;
      const what = wrong.map(({ kind, tensors }) =>
        counted(tensors, `${kind === 'bias' ? 'bias' : 'norm'} tensor`),
      );
      return {
        reason: `weight decay ${shortNumber(weightDecay)} pulls ${what.join(' and ')} to 0 (${GROUP_RULES[rule].title})`,
        fix: 'optimizer_groups: nanogpt (decay tensors of two or more dimensions only)',
      };
    },
  },
  'groups-unknown': {
    title: 'unknown rule of optimizer groups',
    severity: 'error',
    key: 'optimizer_groups',
    find: ({ settings: { values } }) =>
      values.optimizer_groups === undefined || parseGroupRule(values.optimizer_groups) !== undefined
        ? undefined
        : {
            reason: `${JSON.stringify(values.optimizer_groups)} is not a rule that minimind knows`,
            fix: 'optimizer_groups: one of nanogpt, huggingface, all',
          },
  },
  'weight-decay-out-of-range': {
    title: 'weight decay out of range',
    severity: 'warning',
    key: 'weight_decay',
    find: ({ settings: { values }, rate: { setting } }) => {
      const { weight_decay: decay } = values;
      if (decay === undefined || decay <= 1) return undefined;
      return {
        reason: `each step takes ${percentText(Math.min(1, decay * setting.peak))} off every weight; nanoGPT has 0.1`,
        fix: 'weight_decay: 0.1',
      };
    },
  },
  'beta1-out-of-range': {
    title: 'beta1 out of range',
    severity: 'warning',
    key: 'beta1',
    find: ({ settings: { values } }) =>
      values.beta1 === undefined || (values.beta1 >= 0.5 && values.beta1 <= 0.98)
        ? undefined
        : {
            reason: `the first moment averages about ${shortNumber(1 / (1 - values.beta1))} steps; nanoGPT and PyTorch have 0.9`,
            fix: 'beta1: 0.9',
          },
  },
  'beta2-out-of-range': {
    title: 'beta2 out of range',
    severity: 'warning',
    key: 'beta2',
    find: ({ settings: { values } }) =>
      values.beta2 === undefined || (values.beta2 >= 0.9 && values.beta2 <= 0.9999)
        ? undefined
        : {
            reason: `the second moment averages about ${shortNumber(1 / (1 - values.beta2))} steps; nanoGPT has 0.95, PyTorch 0.999`,
            fix: 'beta2: 0.95',
          },
  },
  'eps-out-of-range': {
    title: 'eps out of range',
    severity: 'warning',
    key: 'eps',
    find: ({ settings: { values } }) =>
      values.eps === undefined || (values.eps >= 1e-16 && values.eps <= 1e-5)
        ? undefined
        : {
            reason:
              values.eps > 1e-5
                ? `${shortNumber(values.eps)} is larger than the gradients: AdamW becomes SGD with a tiny step`
                : `${shortNumber(values.eps)} does not guard a division by a second moment of 0`,
            fix: 'eps: 1e-8',
          },
  },
} as const satisfies Record<string, PlanCheck>;
