/** TrainingArguments of transformers, as JSON or YAML, and the keys that programs on top of it share. */
import { isRecord } from '../../../base/values.js';
import { TRANSFORMERS_KEYS, TRANSFORMERS_OLD_KEYS } from '../known-keys.js';
import {
  alias,
  amount,
  count,
  type KeyRow,
  meaning,
  onOff,
  switchedOn,
  switchOf,
  type TrainingProgram,
  textRow,
} from '../program.js';
import { deepspeedMeaning } from './deepspeed.js';
import { deepspeedFileMeaning, fsdpOf, optimizerRow, warmupRow } from './shared-values.js';

/** Strategies of FSDP that divide the same parts of the state (trainer_utils.py: FSDPOption). */
const STRATEGIES: Readonly<Record<string, string>> = {
  '2': 'shard_grad_op',
  '3': 'full_shard',
  fsdp: 'full_shard',
  fsdp2: 'full_shard',
  hsdp: 'hybrid_shard',
};

/** The length of a training without a number of steps. */
export const EPOCHS_DECIDE = { '-1': 'the epochs decide', '0': 'the epochs decide' };

const microBatch = count('per_device_train_batch_size', 'microBatch');

/** Keys of TrainingArguments. */
export const TRAINER_ROWS: readonly KeyRow[] = [
  microBatch,
  alias('per_gpu_train_batch_size', microBatch),
  count('gradient_accumulation_steps', 'accumulation'),
  amount('num_train_epochs', 'epochs'),
  // trainer.py: only `max_steps > 0` counts.
  count('max_steps', 'steps', EPOCHS_DECIDE),
  amount('learning_rate', 'learningRate'),
  textRow('lr_scheduler_type', 'schedule'),
  meaning('lr_scheduler_kwargs', (value) => {
    if (!isRecord(value)) return undefined;
    const { min_lr: floor, min_lr_rate: ratio } = value;
    return {
      ...(typeof floor === 'number' && { minLearningRate: floor }),
      ...(typeof ratio === 'number' && { minLearningRateRatio: ratio }),
    };
  }),
  warmupRow('warmup_steps'),
  amount('warmup_ratio', 'warmupRatio'),
  optimizerRow('optim'),
  amount('weight_decay', 'weightDecay'),
  amount('adam_beta1', 'beta1'),
  amount('adam_beta2', 'beta2'),
  amount('adam_epsilon', 'epsilon'),
  amount('max_grad_norm', 'gradientClip'),
  onOff('bf16', 'bf16'),
  switchedOn('fp16', 'fp16'),
  meaning(
    'gradient_checkpointing',
    (value) => {
      const isOn = switchOf(value);
      return isOn === undefined ? undefined : { recompute: isOn ? 'full' : 'none' };
    },
    ({ recompute }) => recompute && recompute !== 'none',
  ),
  meaning('deepspeed', (value) => {
    if (typeof value === 'string') return deepspeedFileMeaning(value);
    return isRecord(value) ? deepspeedMeaning(value) : undefined;
  }),
  meaning(
    'fsdp',
    (value, { fsdp_config: section }) =>
      fsdpOf(
        value,
        section,
        isRecord(section) ? (section.version ?? section.fsdp_version) : undefined,
      ),
    ({ division = '0', offloadParameters }) => {
      const strategy = STRATEGIES[division];
      return strategy && `${strategy}${offloadParameters ? ' offload' : ''} auto_wrap`;
    },
  ),
  meaning(
    'fsdp_config',
    (value) => (isRecord(value) ? {} : undefined),
    ({ division }) => (division === 'fsdp2' ? { fsdp_version: 2 } : undefined),
  ),
];

/** Keys of TrainingArguments that change memory or time and are not counted. */
export const TRAINER_UNCOUNTED = [
  ...[
    'torch_compile',
    'use_liger_kernel',
    'tf32',
    'auto_find_batch_size',
    'torch_empty_cache_steps',
  ],
  ...[
    'parallelism_config',
    'dataloader_drop_last',
    'group_by_length',
    'gradient_checkpointing_kwargs',
  ],
];

/** Sections of TrainingArguments with keys of their own. */
export const TRAINER_OPEN = [
  ...[
    'deepspeed',
    'fsdp_config',
    'lr_scheduler_kwargs',
    'gradient_checkpointing_kwargs',
    'optim_args',
  ],
  ...['accelerator_config', 'parallelism_config', 'liger_kernel_config', 'model_init_kwargs'],
];

/** Values of TrainingArguments where a config has none. */
export const TRAINER_DEFAULTS = {
  microBatch: 8,
  accumulation: 1,
  epochs: 3,
  learningRate: 5e-5,
  schedule: 'linear',
  optimizer: 'adamw-fused',
  weightDecay: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  gradientClip: 1,
  warmupSteps: 0,
  recompute: 'none',
} as const;

const model = textRow('model_name_or_path', 'model');
const context = count('max_length', 'context');

/** Keys of a config of LoRA of peft, which scripts of trl take beside TrainingArguments (trl, ModelConfig). */
const PEFT = ['use_peft', 'lora_alpha', 'lora_dropout', 'load_in_8bit', 'torch_dtype', 'dtype'];

export const TRANSFORMERS: TrainingProgram = {
  title: 'TrainingArguments of transformers',
  version: '5.0',
  source:
    'huggingface/transformers, commit 00349ae8: src/transformers/training_args.py; optim and scheduler names: trainer_utils.py',
  rows: [
    ...TRAINER_ROWS,
    model,
    context,
    alias('max_seq_length', context),
    alias('max_seq_len', context),
    alias('block_size', context),
    onOff('packing', 'packing'),
    count('lora_r', 'rank'),
    meaning('use_peft', (value, { load_in_4bit: in4 }) =>
      switchOf(value) ? { kind: in4 === true ? 'qlora' : 'lora' } : {},
    ),
    meaning('load_in_4bit', () => ({})),
  ],
  uncounted: [...TRAINER_UNCOUNTED, 'load_in_8bit', 'lora_dropout'],
  known: [...TRANSFORMERS_KEYS, ...TRANSFORMERS_OLD_KEYS, ...PEFT],
  open: TRAINER_OPEN,
  // Scripts add keys of their own to those of TrainingArguments.
  isLoose: true,
  defaults: { kind: 'training', ...TRAINER_DEFAULTS },
  recognises: ({ value }) =>
    [
      'per_device_train_batch_size',
      'gradient_accumulation_steps',
      'num_train_epochs',
      'lr_scheduler_type',
    ].filter((key) => Object.hasOwn(value, key)).length >= 2 ||
    (Object.hasOwn(value, 'per_device_train_batch_size') && Object.hasOwn(value, 'output_dir')),
};
