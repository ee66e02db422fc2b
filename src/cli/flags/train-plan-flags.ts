/** The flags of `minimind train-plan`, and the settings that they replace. */
import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import type { SettingName } from '../../base/text/setting.js';
import { nearest } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { FIT_DEFAULTS } from '../../estimate/fit/fit-options.js';
import { type TrainingAxes, trainingAxesOf } from '../../estimate/fit/parallelism/training-axes.js';
import { GROUP_RULE_NAMES, parseGroupRule } from '../../estimate/training/optimizer-groups.js';
import {
  DECAY_TYPES,
  parseSchedule,
  SCHEDULE_NAMES,
  SCHEDULE_SPELLINGS,
} from '../../estimate/training/schedules.js';
import type { GivenSettings } from '../../estimate/training/training-settings.js';
import { KIND_NAMES } from '../../language/data/data-choices.js';
import { CONVENTION_NAMES, fitFlags } from './fit-flags.js';
import type { ParsedFlags } from './flags.js';
import { hardwareFlags } from './hardware-flags.js';
import {
  count,
  learningRate,
  notNegative,
  positive,
  tokens,
  tokenTotal,
  unreadable,
} from './value-flags.js';

const SIZE = { helpGroup: 'SIZE' };
const RATE = { helpGroup: 'LEARNING RATE' };
const OPTIMIZER = { helpGroup: 'OPTIMIZER' };
const HARDWARE = { helpGroup: 'HARDWARE' };

/** `--schedule wsd`, by any usual name. */
const schedule = Flags.custom<string>({
  helpValue: 'NAME',
  parse: async (text, _context, { name }) => {
    if (parseSchedule(text) !== undefined) return text.trim();
    const near = nearest(text.trim().toLowerCase(), new Set(SCHEDULE_SPELLINGS));
    throw usageError(
      `--${name}: unknown schedule ${quote(text)}`,
      near ? `did you mean ${near}?` : `write one of ${SCHEDULE_NAMES.join(', ')}`,
    );
  },
});

const groupRule = Flags.custom<string>({
  helpValue: 'RULE',
  parse: async (text, _context, { name }) => {
    const rule = parseGroupRule(text);
    if (rule !== undefined) return rule;
    throw usageError(
      `--${name}: unknown rule ${quote(text)}`,
      `write one of ${GROUP_RULE_NAMES.join(', ')}`,
    );
  },
});

/** A number of steps, or a share of them: `500`, `2%`, `0.02`. */
interface StepsOrShare {
  readonly steps?: number;
  readonly share?: number;
}

const stepsOrShare = Flags.custom<StepsOrShare>({
  helpValue: 'STEPS',
  parse: async (text, _context, { name }) => {
    const [, percent] = /^\s*(\d+(?:\.\d+)?)\s*%\s*$/.exec(text) ?? [];
    const value = Number(percent ?? text);
    const isNumber =
      percent !== undefined || /^\s*(?:\d+(?:\.\d+)?|\.\d+)(?:e\d+)?\s*$/i.test(text);
    if (isNumber && percent !== undefined && value <= 100) return { share: value / 100 };
    if (isNumber && percent === undefined && value > 0 && value < 1) return { share: value };
    if (isNumber && percent === undefined && Number.isSafeInteger(value)) return { steps: value };
    const expected = 'steps or a share of them';
    return unreadable(name, text, expected, `write it as in --${name} 500 or --${name} 2%`);
  },
});

/** Flags of a training plan. */
export const trainPlanFlags = {
  tokens: tokenTotal({
    ...SIZE,
    description: 'tokens of the training, as in 10B [default: as in the file, or 20 a parameter]',
  }),
  steps: count({ ...SIZE, description: 'optimizer steps, instead of tokens' }),
  epochs: positive({
    ...SIZE,
    helpValue: 'N',
    description: 'passes over the data, instead of tokens',
  }),
  'data-tokens': tokenTotal({ ...SIZE, description: 'tokens of the data; shows the epochs' }),
  data: Flags.string({
    ...SIZE,
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'FILE',
    description: 'training data, whose tokens are counted as by minimind data (repeatable)',
    exclusive: ['data-tokens'],
  }),
  as: Flags.option({
    ...SIZE,
    options: KIND_NAMES,
    helpValue: 'KIND',
    description: 'kind of the files of --data [default: found from the content]',
    dependsOn: ['data'],
  } as const)(),
  key: Flags.string({
    ...SIZE,
    helpValue: 'NAME',
    description: 'key of the text in --data [default: text]',
    dependsOn: ['data'],
  }),
  batch: count({
    ...SIZE,
    description: 'sequences per GPU and micro-batch [default: as in the file, or 1]',
  }),
  accumulation: count({
    ...SIZE,
    description:
      'micro-batches per optimizer step [default: as in the file, or 0.5M tokens a step]',
  }),
  context: tokens({
    ...SIZE,
    description: 'tokens per sequence; 32k is 32,768 [default: as in the file, or 2048]',
  }),
  tokenizer: Flags.string({
    ...SIZE,
    helpValue: 'FILE',
    description:
      'tokenizer.json of the data, or its folder; its size is compared with the vocabulary',
  }),
  schedule: schedule({
    ...RATE,
    description: `${SCHEDULE_NAMES.join(', ')} [default: as in the file, or cosine]`,
  }),
  lr: learningRate({
    ...RATE,
    helpValue: 'RATE',
    description:
      'highest learning rate, as in 5e-4 [default: as in the file, or as published for the width]',
  }),
  'min-lr': notNegative({ ...RATE, helpValue: 'RATE', description: 'learning rate at the end' }),
  warmup: stepsOrShare({ ...RATE, description: 'steps of the warm-up, or a share as in 2%' }),
  decay: stepsOrShare({
    ...RATE,
    description: 'steps of the last decay of wsd and torchtitan, or a share',
  }),
  'decay-type': Flags.option({
    ...RATE,
    options: DECAY_TYPES,
    description: 'curve of that decay [default: as in the file, or linear]',
  } as const)(),
  groups: groupRule({
    ...OPTIMIZER,
    description:
      'rule of weight decay: nanogpt, huggingface or all [default: as in the file, or of its schedule, or nanogpt]',
  }),
  'weight-decay': notNegative({
    ...OPTIMIZER,
    helpValue: 'N',
    description: 'weight decay of AdamW',
  }),
  gradients: Flags.string({
    ...OPTIMIZER,
    helpValue: 'FILE',
    description: 'a checkpoint of gradients; counts what fp16 would lose',
  }),
  'loss-scale': positive({
    ...OPTIMIZER,
    helpValue: 'N',
    description: 'scale of the loss in fp16 [default: as in the file, or 65536]',
  }),
  gpu: { ...hardwareFlags.gpu, ...HARDWARE, exclusive: [] },
  gpus: { ...hardwareFlags.gpus, ...HARDWARE },
  reserve: { ...hardwareFlags.reserve, ...HARDWARE },
  hardware: { ...hardwareFlags.hardware, ...HARDWARE, exclusive: [] },
  price: positive({
    ...HARDWARE,
    helpValue: 'N',
    description: 'price of a GPU for an hour, as in 2.50; shows the cost',
    dependsOn: ['gpu'],
  }),
  mfu: { ...fitFlags.mfu, ...HARDWARE, dependsOn: ['gpu'] },
  recompute: { ...fitFlags.recompute, ...HARDWARE },
  zero: { ...fitFlags.zero, ...HARDWARE },
  'tensor-parallel': { ...fitFlags['tensor-parallel'], ...HARDWARE },
  'pipeline-parallel': { ...fitFlags['pipeline-parallel'], ...HARDWARE },
  'context-parallel': count({
    ...HARDWARE,
    description: 'GPUs that each have a part of every sequence [default: 1]',
  }),
  'expert-parallel': { ...fitFlags['expert-parallel'], ...HARDWARE },
  'expert-tensor-parallel': { ...fitFlags['expert-tensor-parallel'], ...HARDWARE },
  'sequence-parallel': Flags.boolean({
    ...HARDWARE,
    description: 'split the residual stream among the GPUs that share a layer',
    dependsOn: ['tensor-parallel'],
  }),
  convention: Flags.option({
    ...HARDWARE,
    options: CONVENTION_NAMES,
    default: FIT_DEFAULTS.convention,
    description: 'gradients in the type of the weights (zero), or in float32 (megatron)',
  } as const)(),
};

export type TrainPlanFlags = ParsedFlags<typeof trainPlanFlags>;

/** Degrees of parallelism on some GPUs. @throws UserError for degrees that contradict each other. */
export const axesOf = (flags: TrainPlanFlags, gpus: number): TrainingAxes =>
  trainingAxesOf(
    {
      tensorParallel: flags['tensor-parallel'],
      pipelineParallel: flags['pipeline-parallel'],
      contextParallel: flags['context-parallel'],
      expertParallel: flags['expert-parallel'],
      expertTensorParallel: flags['expert-tensor-parallel'],
      sequenceParallel: flags['sequence-parallel'],
    },
    gpus,
  );

/** The settings that the flags give. @throws UserError for two lengths. */
export function givenSettingsOf(flags: TrainPlanFlags): GivenSettings {
  refuseTwoLengths(flags);
  const { warmup, decay } = flags;
  const one = <Value>(setting: SettingName, value: Value) =>
    value === undefined ? undefined : { setting, value };
  const given = {
    total_tokens: one('tokens', flags.tokens),
    max_steps: one('steps', flags.steps),
    num_epochs: one('epochs', flags.epochs),
    dataset_tokens: one('dataTokens', flags['data-tokens']),
    batch_size: one('batch', flags.batch),
    gradient_accumulation_steps: one('accumulation', flags.accumulation),
    max_seq_length: one('context', flags.context),
    lr_scheduler: one('schedule', flags.schedule),
    learning_rate: one('learningRate', flags.lr),
    min_lr: one('minLearningRate', flags['min-lr']),
    warmup_steps: one('warmup', warmup?.steps),
    warmup_ratio: one('warmup', warmup?.share),
    decay_steps: one('decay', decay?.steps),
    decay_ratio: one('decay', decay?.share),
    decay_type: one('decayType', flags['decay-type']),
    optimizer_groups: one('groups', flags.groups),
    weight_decay: one('weightDecay', flags['weight-decay']),
    loss_scale: one('lossScale', flags['loss-scale']),
    gpus: one('gpus', flags.gpus),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

const LENGTHS = ['tokens', 'steps', 'epochs'] as const;

/** @throws UserError for two lengths. */
export function refuseTwoLengths(flags: Pick<TrainPlanFlags, (typeof LENGTHS)[number]>): void {
  const [first, second] = LENGTHS.filter((name) => flags[name] !== undefined);
  if (first === undefined || second === undefined) return;
  throw usageError(
    `--${first} and --${second} both set the length of the training`,
    'write only one of them',
  );
}
