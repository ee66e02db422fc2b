/** Checks of clipping, half precision, accumulation, weight decay and the constants of AdamW. */
import { formatInteger, percentText, shortNumber } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import { GROUP_RULES, parseGroupRule } from '../optimizer-groups.js';
import { parseOptimizer } from '../optimizers.js';
import { partialAccumulation } from '../run-size.js';
import type { TrainingValues } from '../training-settings.js';
import { FIRST_SCALE, FP16_LARGEST } from '../underflow.js';
import { undividedLossOf } from '../undivided-loss.js';
import type { PlanCheck } from './plan-check.js';

/** Share of gradients below the smallest value of fp16 that is too many at a scale. */
const MOST_UNDERFLOW = 0.01;

/** Names of the mean over all tokens of a step, and of means of means. */
const TOKEN_MEANS = ['token', 'tokens', 'token_mean', 'token-mean', 'per_token', 'global_token'];
const MEANS_OF_MEANS = [
  'micro_batch',
  'micro-batch',
  'microbatch',
  'batch',
  'sequence',
  'sample',
  'mean_of_means',
  'mean-of-means',
];

const isTokenMean = ({ loss_reduction: text }: TrainingValues) =>
  text !== undefined && TOKEN_MEANS.includes(text.toLowerCase());

const isMeanOfMeans = ({ loss_reduction: text }: TrainingValues) =>
  text !== undefined && MEANS_OF_MEANS.includes(text.toLowerCase());

const isSum = ({ loss_reduction: text }: TrainingValues) => text?.toLowerCase() === 'sum';

const hasScaler = ({ grad_scaler, loss_scale }: TrainingValues) =>
  grad_scaler === true || (grad_scaler === undefined && loss_scale !== undefined);

/** Line for a scale at which fewer gradients are lost. */
const scaleFix = ({ loss_scale, init_scale }: TrainingValues): string => {
  if (loss_scale !== undefined) return `loss_scale: ${FIRST_SCALE}`;
  return init_scale === undefined || init_scale >= FIRST_SCALE
    ? 'bf16: true'
    : `init_scale: ${FIRST_SCALE}`;
};

/** In the order of the answer. */
export const OPTIMIZER_CHECKS = {
  'no-clipping': {
    title: 'no gradient clipping',
    severity: 'warning',
    key: 'max_grad_norm',
    find: ({ settings: { values, isInFile } }) => {
      const { max_grad_norm: norm, lr_scheduler } = values;
      // The trainers of the named schedules clip at 1.0 by default, and a plan without a file does.
      const isUnset = norm === undefined && isInFile('learning_rate') && lr_scheduler === undefined;
      return norm === 0 || isUnset
        ? {
            reason: `${norm === 0 ? 'max_grad_norm: 0 switches clipping off' : 'no max_grad_norm is set'}: one bad batch can undo the training`,
            fix: 'max_grad_norm: 1.0',
          }
        : undefined;
    },
  },
  'both-types': {
    title: 'fp16 and bf16 are both on',
    severity: 'error',
    key: 'fp16',
    find: ({ settings: { values } }) =>
      values.fp16 && values.bf16
        ? { reason: 'a training has one of them', fix: 'fp16: false' }
        : undefined,
  },
  'fp16-without-scaler': {
    title: 'fp16 without a gradient scaler',
    severity: 'error',
    key: 'grad_scaler',
    find: ({ settings: { values }, underflow }) => {
      if (!values.fp16 || values.bf16 || hasScaler(values)) return undefined;
      const share = underflow
        ? `: ${percentText(underflow.below)} of the gradients are smaller, and ${percentText(underflow.zeroed)} become 0 (${underflow.isMeasured ? 'measured' : 'assumed normal'})`
        : '';
      return {
        reason: `the smallest value of fp16 is 6.0e-8${share}`,
        fix: 'grad_scaler: true, or bf16: true instead of fp16',
      };
    },
  },
  'fp16-underflow': {
    title: 'gradients that fp16 cannot hold',
    severity: 'warning',
    key: 'loss_scale',
    find: ({ settings: { values }, underflow }) => {
      if (!values.fp16 || values.bf16 || !hasScaler(values) || underflow === undefined)
        return undefined;
      const how = underflow.isMeasured
        ? 'of the measured gradients'
        : 'of the gradients (assumed normal)';
      if (underflow.above > 0 && underflow.isMeasured) {
        return {
          reason: `at a scale of ${shortNumber(underflow.scale, 6)}, ${percentText(underflow.above)} ${how} are above ${formatInteger(FP16_LARGEST)}: GradScaler skips such steps and halves its scale`,
          fix: `loss_scale: ${underflow.scale / 2}, or less`,
        };
      }
      return underflow.below <= MOST_UNDERFLOW
        ? undefined
        : {
            reason: `at a scale of ${shortNumber(underflow.scale, 6)}, ${percentText(underflow.below)} ${how} are below 6.0e-8`,
            fix: scaleFix(values),
          };
    },
  },
  'partial-accumulation': {
    title: 'last accumulation is incomplete',
    severity: 'warning',
    key: 'gradient_accumulation_steps',
    find: ({ settings: { values }, size }) => {
      const partial = partialAccumulation(size);
      const isDivided = !isTokenMean(values) && !isMeanOfMeans(values) && !isSum(values);
      const isRight = values.drop_last === true || !isDivided;
      if (partial === undefined || isRight) return undefined;
      return {
        reason:
          `an epoch has ${counted(partial.microSteps, 'micro-step')}, so its last step has ${formatInteger(partial.last)} of ${formatInteger(size.accumulation)}: ` +
          `divided by ${formatInteger(size.accumulation)}, its gradient is ${percentText(partial.last / size.accumulation)} of a full one`,
        fix: 'loss_reduction: token (divide by the tokens of the step), or drop_last: true',
      };
    },
  },
  'undivided-loss': {
    title: 'losses of an accumulation are added, not divided',
    severity: 'warning',
    key: 'loss_reduction',
    find: ({ settings: { values }, size, rate }) => {
      if (!isSum(values)) return undefined;
      const effect = undividedLossOf(size, rate.setting.peak, values.max_grad_norm);
      if (effect === null) return undefined;
      const { gradientFactor: times, sgdLearningRate, clippedAbove } = effect;
      const clipping =
        clippedAbove === null
          ? ''
          : `, but clipping begins at a norm of ${shortNumber(clippedAbove)} of the mean gradient`;
      return {
        reason:
          `the gradient of a step is ${formatInteger(times)} × the mean: SGD steps as with a learning rate of ${shortNumber(sgdLearningRate)}; ` +
          `AdamW takes the same steps${clipping}, and fp16 overflows ${formatInteger(times)} × sooner`,
        fix: `loss_reduction: token, or loss / ${formatInteger(times)} in each micro-step`,
      };
    },
  },
  'mean-of-means': {
    title: 'loss is a mean of means',
    severity: 'warning',
    key: 'loss_reduction',
    find: ({ settings: { values }, size }) => {
      const isEqual = values.packing === true;
      if (!isMeanOfMeans(values) || isEqual || size.accumulation * size.replicas === 1)
        return undefined;
      return {
        reason:
          'micro-batches have unequal numbers of counted tokens, and each has the same weight: tokens of short samples count more',
        fix: 'loss_reduction: token (sum of losses / counted tokens of the step)',
      };
    },
  },
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
  'optimizer-other': {
    title: 'an optimizer other than AdamW',
    severity: 'warning',
    key: 'optimizer',
    find: ({ settings: { values } }) => {
      const { optimizer: name } = values;
      const known = name === undefined ? 'adamw' : parseOptimizer(name);
      // States in 8 bits or in system memory take the same steps.
      if (known?.includes('adamw')) return undefined;
      return {
        reason: `the groups${known === undefined ? ', the limits and the memory' : ' and the limits'} of this plan are those of AdamW, not of ${JSON.stringify(name)}`,
        fix: 'optimizer: adamw',
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
