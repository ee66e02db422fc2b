/** Training sections of a config, the same for all families. */

import * as z from 'zod';
import { asNumber, asText } from '../../base/values.js';
import type { TrainingHints } from './family.js';

/** GPUs of a run or an estimate at most: more than any machine has, and few enough for exact counts of tokens. */
export const LARGEST_CLUSTER = 1_000_000;

const count = z.int().min(1);
const amount = z.number().min(0);
const fraction = z.number().min(0).max(1);
const probability = z.number().min(0).lt(1);

const keys = {
  max_steps: z
    .union([count, z.literal(-1)])
    .describe('Optimizer steps of the training; -1 leaves them to the epochs'),
  total_tokens: z.number().min(1).describe('Tokens of the training'),
  num_epochs: z.number().positive().describe('Passes over the data'),
  dataset_tokens: z.number().min(1).describe('Tokens of the data'),
  longest_sample: count.describe('Tokens of the longest sample of the data'),
  packing: z.boolean().describe('Whether several samples share a sequence'),
  tokenizer_size: count.describe('Tokens of the tokenizer, added ones included'),
  stage: z.string().describe('pretraining, or what follows it: sft, dpo'),
  warmup_steps: z.int().min(0).describe('Optimizer steps of the warm-up'),
  warmup_ratio: fraction.describe('Warm-up as a share of the steps'),
  learning_rate: amount,
  batch_size: count,
  gradient_accumulation_steps: count,
  weight_decay: amount,
  beta1: probability,
  beta2: probability,
  eps: z.number().positive(),
  max_grad_norm: amount,
  gradient_checkpointing: z.boolean(),
  optimizer: z.string().describe('Name of the optimizer, as adamw'),
  fp16: z.union([z.boolean(), z.literal('auto')]),
  bf16: z.union([z.boolean(), z.literal(['auto', 'full'])]),
  grad_scaler: z.boolean().describe('Whether a GradScaler scales the loss of fp16'),
  loss_scale: amount.describe('Fixed scale of the loss of fp16; 0: that of GradScaler'),
  init_scale: z.number().positive().describe('First scale of GradScaler'),
  growth_factor: z.number().positive().describe('Factor of the scale after growth_interval steps'),
  backoff_factor: z.number().positive().describe('Factor of the scale after an overflow'),
  growth_interval: count.describe('Steps without overflow before the scale grows'),
  loss_reduction: z
    .string()
    .describe(
      'token: one mean over all tokens of a step; micro_batch: a mean of means; sum: added, not divided',
    ),
  drop_last: z.boolean().describe('Whether an incomplete accumulation is left out'),
  gpus: count.max(LARGEST_CLUSTER).describe('GPUs with a micro-batch each'),
  optimizer_groups: z.string().describe('Rule of weight decay: nanogpt, huggingface or all'),
  lr_scheduler: z.string().describe('Schedule of the learning rate, as cosine, linear, wsd'),
  schedule_steps: count.describe('Steps of the schedule, if not those of the training'),
  min_lr: amount.describe('Learning rate at the end of the decay'),
  min_lr_ratio: fraction.describe('The same as a share of the learning rate'),
  decay_steps: z.int().min(0).describe('Steps of the final decay of wsd and torchtitan'),
  decay_ratio: fraction.describe('The same as a share of the steps'),
  decay_type: z.string().describe('Curve of the final decay: linear, cosine or 1-sqrt'),
  num_cycles: z.number().positive().describe('Cosines of cosine_with_restarts'),
  power: z.number().positive().describe('Power of polynomial'),
  load_balance_coeff: amount,
  entropy_reg_coeff: amount,
  distill_coeff: amount,
  distill_temperature: z.number().positive(),
  max_seq_length: count.describe('Tokens of a training sequence'),
  save_steps: count,
  eval_steps: count,
  logging_steps: count,
  save_total_limit: count,
} as const;

export type TrainingKey = keyof typeof keys;

/**
 * Names of the same settings in other programs: nanoGPT (train.py), MiniMind (trainer/train_pretrain.py), PyTorch
 * (optim.AdamW, CosineAnnealingLR, clip_grad_norm_), transformers (TrainingArguments, optimization.py), axolotl and
 * LLaMA-Factory (their YAML files), Lightning (Trainer), DeepSpeed (its JSON), Megatron-LM (arguments.py), torchtitan.
 */
const TRAINING_SYNONYMS = {
  lr: 'learning_rate',
  max_lr: 'learning_rate',
  base_lr: 'learning_rate',
  peak_lr: 'learning_rate',
  initial_lr: 'learning_rate',
  max_learning_rate: 'learning_rate',
  peak_learning_rate: 'learning_rate',
  max_iters: 'max_steps',
  total_steps: 'max_steps',
  num_training_steps: 'max_steps',
  num_train_steps: 'max_steps',
  max_train_steps: 'max_steps',
  training_steps: 'max_steps',
  train_steps: 'max_steps',
  train_iters: 'max_steps',
  num_steps: 'max_steps',
  train_tokens: 'total_tokens',
  epochs: 'num_epochs',
  num_train_epochs: 'num_epochs',
  max_epochs: 'num_epochs',
  data_tokens: 'dataset_tokens',
  warmup_iters: 'warmup_steps',
  num_warmup_steps: 'warmup_steps',
  lr_warmup_steps: 'warmup_steps',
  lr_warmup_iters: 'warmup_steps',
  warmup_fraction: 'warmup_ratio',
  lr_warmup_fraction: 'warmup_ratio',
  micro_batch_size: 'batch_size',
  per_device_train_batch_size: 'batch_size',
  train_micro_batch_size_per_gpu: 'batch_size',
  local_batch_size: 'batch_size',
  device_batch_size: 'batch_size',
  accumulation_steps: 'gradient_accumulation_steps',
  grad_accum_steps: 'gradient_accumulation_steps',
  accumulate_grad_batches: 'gradient_accumulation_steps',
  wd: 'weight_decay',
  adam_beta1: 'beta1',
  adam_beta2: 'beta2',
  adam_epsilon: 'eps',
  adam_eps: 'eps',
  epsilon: 'eps',
  grad_clip: 'max_grad_norm',
  clip_grad: 'max_grad_norm',
  clip_grad_norm: 'max_grad_norm',
  gradient_clipping: 'max_grad_norm',
  gradient_clip_val: 'max_grad_norm',
  max_norm: 'max_grad_norm',
  optim: 'optimizer',
  optimizer_name: 'optimizer',
  optimizer_type: 'optimizer',
  use_fp16: 'fp16',
  use_bf16: 'bf16',
  use_grad_scaler: 'grad_scaler',
  loss_scale_window: 'growth_interval',
  activation_checkpointing: 'gradient_checkpointing',
  use_gradient_checkpointing: 'gradient_checkpointing',
  world_size: 'gpus',
  num_gpus: 'gpus',
  n_gpus: 'gpus',
  nproc_per_node: 'gpus',
  lr_scheduler_type: 'lr_scheduler',
  lr_schedule: 'lr_scheduler',
  lr_decay_style: 'lr_scheduler',
  scheduler: 'lr_scheduler',
  scheduler_type: 'lr_scheduler',
  lr_decay_iters: 'schedule_steps',
  lr_decay_steps: 'schedule_steps',
  T_max: 'schedule_steps',
  eta_min: 'min_lr',
  lr_end: 'min_lr',
  final_lr: 'min_lr',
  min_learning_rate: 'min_lr',
  min_lr_rate: 'min_lr_ratio',
  min_lr_factor: 'min_lr_ratio',
  cosine_min_lr_ratio: 'min_lr_ratio',
  lr_decay_type: 'decay_type',
  block_size: 'max_seq_length',
  seq_len: 'max_seq_length',
  seq_length: 'max_seq_length',
  sequence_len: 'max_seq_length',
  sequence_length: 'max_seq_length',
  max_seq_len: 'max_seq_length',
  max_length: 'max_seq_length',
  cutoff_len: 'max_seq_length',
  sample_packing: 'packing',
  save_interval: 'save_steps',
  eval_interval: 'eval_steps',
  log_interval: 'logging_steps',
  tokenizer_vocab_size: 'tokenizer_size',
} as const satisfies Readonly<Record<string, TrainingKey>>;

/** A setting in another form: its schema, and the settings that a value means. */
interface Form {
  readonly schema: z.ZodType;
  readonly of: readonly TrainingKey[];
  /** Settings of a value; undefined for a value without a meaning here. */
  read(value: unknown): Partial<Record<TrainingKey, unknown>> | undefined;
}

/** `0.9, 0.95` as a list, or as the text of a tuple of Python. */
const PAIR = /^\(\s*(\d*\.?\d+)\s*,\s*(\d*\.?\d+)\s*,?\s*\)$/;

const BETAS_NEEDED = 'must be two numbers from 0 to 1, as [0.9, 0.95]';

const betas: Form = {
  schema: z
    .union(
      [z.tuple([probability, probability], BETAS_NEEDED), z.string().regex(PAIR)],
      BETAS_NEEDED,
    )
    .describe('beta1 and beta2, as [0.9, 0.95]'),
  of: ['beta1', 'beta2'],
  read(value) {
    const [, first, second] = (typeof value === 'string' && PAIR.exec(value)) || [];
    const [beta1, beta2] = Array.isArray(value) ? value : [first, second].map(Number);
    return { beta1, beta2 };
  },
};

/** Types of a training by their names in PyTorch, transformers, accelerate and Lightning. */
const PRECISIONS: Readonly<Record<string, { readonly fp16: boolean; readonly bf16: boolean }>> =
  Object.fromEntries(
    [
      { names: ['float16', 'fp16', 'half', 'f16', '16', '16mixed', 'fp16mixed'], fp16: true },
      { names: ['bfloat16', 'bf16', 'bf16mixed'], bf16: true },
      { names: ['float32', 'fp32', 'float', 'f32', 'no', 'none', '32', '32true', 'tf32'] },
    ].flatMap(({ names, fp16 = false, bf16 = false }) =>
      names.map((name) => [name, { fp16, bf16 }]),
    ),
  );

const precisionNamed = (value: unknown) => {
  const name = asText(value)
    .toLowerCase()
    .replace(/^torch\./, '')
    .replaceAll(/[-_ ]/g, '');
  return Object.hasOwn(PRECISIONS, name) ? PRECISIONS[name] : undefined;
};

const PRECISION_NEEDED = 'must be float16, bfloat16 or float32';

const precision: Form = {
  schema: z
    .union([z.string(), z.literal([16, 32]), z.boolean()], PRECISION_NEEDED)
    .refine((value) => value === false || precisionNamed(value) !== undefined, PRECISION_NEEDED)
    .describe('Type of the training: float16, bfloat16 or float32'),
  of: ['fp16', 'bf16'],
  read: (value) => precisionNamed(value === false ? 'no' : value),
};

/** Autocast of PyTorch on a GPU is in float16 by default. */
const autocast: Form = {
  schema: z.boolean().describe('Whether autocast of PyTorch is on, in float16'),
  of: ['fp16'],
  read: (value) => (value === true ? { fp16: true } : { fp16: false }),
};

const warmup: Form = {
  schema: amount.describe('Warm-up: steps, or below 1 a share of the steps'),
  of: ['warmup_steps', 'warmup_ratio'],
  read: (value) =>
    asNumber(value) > 0 && asNumber(value) < 1 ? { warmup_ratio: value } : { warmup_steps: value },
};

/** The first scale of DeepSpeed's fp16 section, as a power of two. */
const scalePower: Form = {
  schema: z.number().min(0).max(127).describe('First scale of GradScaler, as a power of two'),
  of: ['init_scale'],
  read: (value) => ({ init_scale: 2 ** asNumber(value) }),
};

const FORMS = {
  betas,
  adam_betas: betas,
  dtype: precision,
  amp_dtype: precision,
  precision,
  mixed_precision: precision,
  amp: autocast,
  use_amp: autocast,
  warmup,
  initial_scale_power: scalePower,
} as const satisfies Readonly<Record<string, Form>>;

const keyForm = (name: string): Form | undefined =>
  Object.hasOwn(FORMS, name) ? FORMS[name as keyof typeof FORMS] : undefined;

/** Settings that only GradScaler has: a training with one uses it. */
const SCALER_KEYS = ['init_scale', 'growth_factor', 'backoff_factor', 'growth_interval'] as const;

const OPTIMIZER_NAMES = { name: 'optimizer', type: 'optimizer', kind: 'optimizer' } as const;
const SCHEDULE_NAMES = {
  ...{ name: 'lr_scheduler', type: 'lr_scheduler', kind: 'lr_scheduler' },
  ...{ steps: 'schedule_steps', num_steps: 'schedule_steps' },
} as const;

/** Mappings inside a section with more of its keys, as in the JSON of DeepSpeed. */
export const INNER_SECTIONS: ReadonlySet<string> = new Set(['params', 'kwargs', 'args']);

/** Sections whose keys belong to the training, with the names that keys have only there. */
export const SECTIONS_OF_TRAINING: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map([
  ...[
    'train',
    'trainer',
    'training_args',
    'training_arguments',
    'hyperparameters',
    'optimization',
  ].map((name) => [name, {}] as const),
  ...['optimizer', 'optim', 'adamw'].map((name) => [name, OPTIMIZER_NAMES] as const),
  ...['scheduler', 'lr_scheduler', 'lr_schedule', 'schedule'].map(
    (name) => [name, SCHEDULE_NAMES] as const,
  ),
  ...['scaler', 'grad_scaler', 'gradscaler'].map(
    (name) => [name, { enabled: 'grad_scaler' }] as const,
  ),
  ...['amp', 'mixed_precision', 'autocast'].map((name) => [name, { enabled: 'amp' }] as const),
  ...['fp16', 'bf16'].map((name) => [name, { enabled: name }] as const),
]);

const named = Object.fromEntries(
  Object.entries(TRAINING_SYNONYMS).map(([name, key]) => [
    name,
    keys[key].describe(`Another name of ${key}`),
  ]),
) as {
  readonly [Name in keyof typeof TRAINING_SYNONYMS]: (typeof keys)[(typeof TRAINING_SYNONYMS)[Name]];
};

const formed = Object.fromEntries(
  Object.entries(FORMS).map(([name, { schema }]) => [name, schema]),
) as { readonly [Name in keyof typeof FORMS]: z.ZodType };

const training = z.looseObject({ ...keys, ...named, ...formed });

const system = z.looseObject({
  distributed: z.boolean(),
  backend: z.string(),
  use_deepspeed: z.boolean(),
  zero_stage: z.int().min(0).max(3),
  offload_optimizer: z.boolean(),
  offload_params: z.boolean(),
  find_unused_parameters: z.boolean(),
  compile_model: z.boolean(),
});

/** A section whose keys minimind does not check. */
const open = (what: string) => z.unknown().optional().describe(what);

/** Document keys other than `model`. */
export const TRAINING_SECTIONS = {
  // YAML reads `training:` with only comments below it as null.
  training: training.partial().nullish().describe('How it is trained'),
  data: open('What it is trained on'),
  curriculum: open('How the data changes while training'),
  device: open('Where it is trained'),
  logging: open('What is logged'),
  gate_monitor: open('How the gate is watched'),
  system: system.partial().nullish().describe('How the training is distributed'),
};

type Sections = z.output<z.ZodObject<typeof TRAINING_SECTIONS>>;

type TrainingSection = NonNullable<Sections['training']>;

/** `auto` is read as one of the two. */
type Setting<Key extends TrainingKey> = Key extends 'fp16' | 'bf16'
  ? boolean
  : TrainingSection[Key];

interface Contradiction {
  readonly setting: TrainingKey;
  readonly key: string;
  readonly first: string;
}

/** Settings of a section by their first name, and the key of the file that has each. */
export interface NamedTraining {
  readonly settings: { readonly [Key in TrainingKey]?: Setting<Key> };
  readonly keys: Readonly<Partial<Record<TrainingKey, string>>>;
  /** Keys that repeat a setting with another value, with the key of the value that counts. */
  readonly contradictions: readonly Contradiction[];
  /** Keys without a meaning here. */
  readonly unread: readonly string[];
}

/** Whether a key is one of a training, under any name. */
export const isTrainingKey = (name: string): boolean =>
  trainingKey(name) !== undefined || keyForm(name) !== undefined;

/** Reads the settings of a training section under any of their names. */
export function namedTraining(section: TrainingSection | null | undefined): NamedTraining {
  const settings: Record<string, unknown> = {};
  const found: Partial<Record<TrainingKey, string>> = {};
  const contradictions: Contradiction[] = [];
  const unread: string[] = [];
  for (const [name, value] of Object.entries(section ?? {})) {
    if (value === undefined || value === null) continue;
    const said = trainingSettings(name, value);
    if (said === undefined) {
      unread.push(name);
      continue;
    }
    for (const [key, own] of Object.entries(said) as [TrainingKey, unknown][]) {
      const first = found[key];
      if (first === undefined) {
        settings[key] = own;
        found[key] = name;
      } else if (settings[key] !== own) {
        contradictions.push({ setting: key, key: name, first });
      }
    }
  }
  const scaler = SCALER_KEYS.find((key) => settings[key] !== undefined);
  if (scaler !== undefined && settings.grad_scaler === undefined) {
    settings.grad_scaler = true;
    found.grad_scaler = found[scaler] ?? scaler;
  }
  return { settings, keys: found, contradictions, unread };
}

function trainingSettings(
  name: string,
  value: unknown,
): Partial<Record<TrainingKey, unknown>> | undefined {
  const key = trainingKey(name);
  // Defaults of transformers and DeepSpeed.
  if (key === 'max_steps' && value === -1) return {};
  if (key === 'loss_scale' && value === 0) return { grad_scaler: true };
  if (key !== undefined) return { [key]: isSwitch(key) ? value !== false : value };
  return keyForm(name)?.read(value);
}

/** Switches that can be `auto`, which is on where the GPU has the type. */
const isSwitch = (key: TrainingKey) => key === 'fp16' || key === 'bf16';

function trainingKey(name: string): TrainingKey | undefined {
  if (Object.hasOwn(keys, name)) return name as TrainingKey;
  return Object.hasOwn(TRAINING_SYNONYMS, name)
    ? TRAINING_SYNONYMS[name as keyof typeof TRAINING_SYNONYMS]
    : undefined;
}

/** Keys that spread the training over devices or offload it. */
const BEYOND_ONE_DEVICE = ['zero_stage', 'offload_optimizer', 'offload_params'] as const;

/** Undefined when the file sets no number format. */
function mixedOrFull(bf16?: boolean, fp16?: boolean): 'mixed' | 'float32' | undefined {
  if (bf16 === undefined && fp16 === undefined) return undefined;
  return bf16 || fp16 ? 'mixed' : 'float32';
}

export function trainingHints(sections: Sections): TrainingHints {
  const { settings } = namedTraining(sections.training);
  const { system } = sections;
  return {
    batch: settings.batch_size,
    context: settings.max_seq_length,
    precision: mixedOrFull(settings.bf16, settings.fp16),
    recompute: settings.gradient_checkpointing,
    zeroStage: system?.zero_stage,
    beyondOneDevice: BEYOND_ONE_DEVICE.flatMap((key) =>
      system?.[key] ? `system.${key}: ${system[key]}` : [],
    ),
  };
}
