/** Checks of a training plan: one table of mistakes that ruin a run, each with its reason and what to write. */
import type { TrainingKey } from '../../architecture/training-section.js';
import { formatInteger, percentText, shortCount, shortNumber } from '../../text/units.js';
import { counted } from '../../text/words.js';
import type { LearningRate } from '../learning-rate.js';
import { highestRate, learningRateAt, parseDecayType, publishedRate } from '../learning-rate.js';
import type { GroupRuleName, OptimizerGroup } from '../optimizer-groups.js';
import { GROUP_RULES, parseGroupRule } from '../optimizer-groups.js';
import type { RunSize } from '../run-size.js';
import {
  OPTIMAL_TOKENS_PER_PARAMETER,
  partialAccumulation,
  stepsFor,
  worthOfRepeated,
} from '../run-size.js';
import { parseSchedule, SCHEDULE_NAMES, SCHEDULES } from '../schedules.js';
import type { TrainingSettings, TrainingValues } from '../training-settings.js';
import { FIRST_SCALE, FP16_LARGEST, type Underflow } from '../underflow.js';

/** Facts of a plan that the checks use. */
export interface PlanFacts {
  readonly settings: TrainingSettings;
  readonly size: RunSize;
  readonly rate: LearningRate;
  readonly rule: GroupRuleName;
  readonly weightDecay: number;
  readonly groups: readonly OptimizerGroup[];
  /** Parameters of the model, and its width and vocabulary. */
  readonly parameters: number;
  readonly width: number;
  readonly vocabulary: number;
  /** Highest id of the data; undefined where it was not read. */
  readonly highestId: number | undefined;
  /** Share of gradients that fp16 loses; undefined in other types without measured gradients. */
  readonly underflow: (Underflow & { readonly isMeasured: boolean }) | undefined;
}

export type Severity = 'error' | 'warning';

export interface Mistake {
  readonly check: MistakeName;
  readonly title: string;
  /** `error`: the run fails or is wasted; `warning`: it is likely worse than it could be. */
  readonly severity: Severity;
  /** Setting that is wrong, or that is missing. */
  readonly key: TrainingKey;
  /** Where it is: `training.warmup_steps` or `--warmup`. */
  readonly place: string;
  readonly reason: string;
  /** Line to write. */
  readonly fix: string;
}

interface Check {
  readonly title: string;
  readonly severity: Severity;
  readonly key: TrainingKey;
  /** Other keys that can be the wrong one, in order of precedence. */
  readonly others?: readonly TrainingKey[];
  find(facts: PlanFacts): Found | undefined;
}

interface Found {
  readonly reason: string;
  readonly fix: string;
  /** Key that is wrong, where it is not that of the check. */
  readonly key?: TrainingKey;
}

/** Epochs up to which repeated data is nearly as good as new data (Muennighoff et al. 2023, arXiv 2305.16264). */
const MOST_EPOCHS = 4;

/** The optimum less a tenth: a round number of tokens near it is no mistake. */
const FEWEST_TOKENS_PER_PARAMETER = 0.9 * OPTIMAL_TOKENS_PER_PARAMETER;

/** Several times what small models are trained with: 3e-3 for SmolLM-135M (huggingface/smollm). */
const ABSURD_RATE = 0.02;
const LOWEST_RATE = 1e-7;

/** Rows of an embedding beyond the tokenizer that padding to a multiple of 128 explains. */
const PADDED_ROWS = 128;

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

/** Whether the stage trains a model from the start. */
const isPretraining = ({ stage }: TrainingValues) =>
  stage === undefined || /^pre-?_?train/i.test(stage);

const hasScaler = ({ grad_scaler, loss_scale }: TrainingValues) =>
  grad_scaler === true || (grad_scaler === undefined && loss_scale !== undefined);

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

export const CHECKS = {
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
            : `AdamW hardly survives ${shortNumber(rate)}; SmolLM-135M, a high case, trains at 3e-3`,
        fix: `learning_rate: ${shortNumber(usual)} (GPT-3 at width ${formatInteger(at)})`,
      };
    },
  },
  'learning-rate-above-width': {
    title: 'learning rate above what the width bears',
    severity: 'warning',
    key: 'learning_rate',
    find: ({ settings: { values }, width }) => {
      const { learning_rate: rate } = values;
      const highest = highestRate(width);
      if (rate === undefined || rate >= ABSURD_RATE || rate <= highest) return undefined;
      const { rate: usual, width: at } = publishedRate(width);
      return {
        reason:
          `${shortNumber(rate)} at width ${formatInteger(width)}; the limit is ${shortNumber(highest)}: 8 × GPT-3's 6e-4 at width 768, ` +
          'in proportion to 1/width (µP, arXiv 2203.03466)',
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
  'no-clipping': {
    title: 'no gradient clipping',
    severity: 'warning',
    key: 'max_grad_norm',
    find: ({ settings: { values } }) => {
      const { max_grad_norm: norm, learning_rate, lr_scheduler } = values;
      // The trainers of the named schedules clip at 1.0 unless told otherwise.
      const isUnset =
        norm === undefined && learning_rate !== undefined && lr_scheduler === undefined;
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
            fix: values.loss_scale === undefined ? 'bf16: true' : `loss_scale: ${FIRST_SCALE}`,
          };
    },
  },
  'partial-accumulation': {
    title: 'last accumulation is incomplete',
    severity: 'warning',
    key: 'gradient_accumulation_steps',
    find: ({ settings: { values }, size }) => {
      const partial = partialAccumulation(size);
      const isRight = values.drop_last === true || isTokenMean(values) || isMeanOfMeans(values);
      if (partial === undefined || isRight) return undefined;
      return {
        reason:
          `an epoch has ${counted(partial.microSteps, 'micro-step')}, so its last step has ${formatInteger(partial.last)} of ${formatInteger(size.accumulation)}: ` +
          `divided by ${formatInteger(size.accumulation)}, its gradient is ${percentText(partial.last / size.accumulation)} of a full one`,
        fix: 'loss_reduction: token (divide by the tokens of the step), or drop_last: true',
      };
    },
  },
  'mean-of-means': {
    title: 'loss is a mean of means',
    severity: 'warning',
    key: 'loss_reduction',
    find: ({ settings: { values }, size }) => {
      const isEqual = values.packing === true;
      if (!isMeanOfMeans(values) || isEqual || size.accumulation * size.gpus === 1)
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
  'few-tokens': {
    title: 'few tokens for the model',
    severity: 'warning',
    key: 'total_tokens',
    others: ['max_steps', 'num_epochs', 'dataset_tokens'],
    find: ({ settings: { values }, size, parameters }) =>
      size.length === 'default' ||
      size.tokensPerParameter >= FEWEST_TOKENS_PER_PARAMETER ||
      !isPretraining(values)
        ? undefined
        : {
            reason: `${shortNumber(size.tokensPerParameter)} tokens a parameter; 20 is the best use of compute (Chinchilla, arXiv 2203.15556)`,
            fix: `total_tokens: ${shortNumber(OPTIMAL_TOKENS_PER_PARAMETER * parameters)}, or stage: sft after a pre-training`,
          },
  },
  'data-repeated': {
    title: 'data repeated too often',
    severity: 'warning',
    key: 'num_epochs',
    others: ['total_tokens', 'max_steps', 'dataset_tokens'],
    find: ({ size: { epochs, dataTokens } }) =>
      epochs === undefined || dataTokens === undefined || epochs <= MOST_EPOCHS * (1 + 1e-9)
        ? undefined
        : {
            reason:
              `${shortNumber(epochs)} epochs of ${shortCount(dataTokens)} tokens are worth ${shortCount(Math.round(worthOfRepeated(dataTokens, epochs)))} new tokens; ` +
              'up to 4 epochs are nearly as good as new data (Muennighoff et al., arXiv 2305.16264)',
            fix: `num_epochs: 4, or ${shortCount(Math.ceil((epochs * dataTokens) / MOST_EPOCHS))} tokens of data`,
          },
  },
  'tokenizer-apart': {
    title: 'vocabulary and tokenizer differ',
    severity: 'error',
    key: 'tokenizer_size',
    find: ({ settings: { values }, vocabulary, highestId }) => {
      const { tokenizer_size: size } = values;
      if (highestId !== undefined && highestId >= vocabulary) {
        return {
          key: size === undefined ? 'dataset_tokens' : 'tokenizer_size',
          reason: `the data has ids up to ${formatInteger(highestId)}, and the embedding ${formatInteger(vocabulary)} rows`,
          fix: `model.vocab_size: ${size ?? highestId + 1}, or the tokenizer of this model`,
        };
      }
      if (size === undefined || (size <= vocabulary && vocabulary - size < PADDED_ROWS))
        return undefined;
      return size > vocabulary
        ? {
            reason: `the tokenizer has ${formatInteger(size)} tokens, and the embedding ${formatInteger(vocabulary)} rows: ids from ${formatInteger(vocabulary)} on fail`,
            fix: `model.vocab_size: ${size}`,
          }
        : {
            reason: `the tokenizer has ${formatInteger(size)} tokens: ${formatInteger(vocabulary - size)} of ${formatInteger(vocabulary)} rows of the embedding are never trained`,
            fix: `model.vocab_size: ${size}, or the tokenizer of this model`,
          };
    },
  },
  'context-beyond-data': {
    title: 'context longer than the data',
    severity: 'warning',
    key: 'max_seq_length',
    others: ['longest_sample'],
    find: ({ settings: { values }, size: { context, dataTokens } }) => {
      const longest = values.packing === true ? undefined : values.longest_sample;
      const reach = longest ?? dataTokens;
      if (reach === undefined || context <= reach) return undefined;
      return {
        reason:
          longest === undefined
            ? `a sequence of ${formatInteger(context)} tokens is more than all ${formatInteger(reach)} tokens of the data`
            : `the longest sample has ${formatInteger(reach)} tokens, so ${percentText(1 - reach / context)} or more of each sequence of ${formatInteger(context)} is padding`,
        fix: `max_seq_length: ${reach}${longest === undefined ? '' : ', or packing: true'}`,
      };
    },
  },
  'nothing-saved': {
    title: 'no checkpoint within the run',
    severity: 'warning',
    key: 'save_steps',
    find: ({ settings: { values }, size }) =>
      values.save_steps === undefined || values.save_steps <= size.steps
        ? undefined
        : {
            reason: `save_steps ${formatInteger(values.save_steps)} is more than the ${formatInteger(size.steps)} steps of the run`,
            fix: `save_steps: ${Math.max(1, Math.round(size.steps / 10))}`,
          },
  },
  contradiction: {
    title: 'setting with two values',
    severity: 'error',
    key: 'max_steps',
    find: ({ settings: { contradictions } }) => {
      const [first] = contradictions;
      return first === undefined
        ? undefined
        : {
            reason: `${first.key} is another name of ${first.first}, with another value; ${first.first} counts`,
            fix: `only ${first.first}`,
          };
    },
  },
} as const satisfies Record<string, Check>;

export type MistakeName = keyof typeof CHECKS;

export const MISTAKE_NAMES = Object.keys(CHECKS) as MistakeName[];

/** All mistakes of a plan, errors first. */
export function mistakesOf(facts: PlanFacts): Mistake[] {
  const found = MISTAKE_NAMES.flatMap((name): Mistake[] => {
    const check: Check = CHECKS[name];
    const result = check.find(facts);
    if (result === undefined) return [];
    const { values } = facts.settings;
    const keys = [check.key, ...(check.others ?? [])];
    const key = result.key ?? keys.find((each) => values[each] !== undefined) ?? check.key;
    const { title, severity } = check;
    const { reason, fix } = result;
    return [{ check: name, title, severity, key, place: facts.settings.placeOf(key), reason, fix }];
  });
  const rank = ({ severity }: Mistake) => (severity === 'error' ? 0 : 1);
  return found.toSorted((a, b) => rank(a) - rank(b));
}
