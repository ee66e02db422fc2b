/** Training sections of a config, the same for all families. */
import * as z from 'zod';
import type { TrainingHints } from './family.js';

const count = z.int().min(1);
const amount = z.number().min(0);
const fraction = z.number().min(0).max(1);
const probability = z.number().min(0).lt(1);

const keys = {
  max_steps: count.describe('Optimizer steps of the training'),
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
  fp16: z.boolean(),
  bf16: z.boolean(),
  grad_scaler: z.boolean().describe('Whether a GradScaler scales the loss of fp16'),
  loss_scale: z.number().positive().describe('Fixed scale of the loss of fp16'),
  loss_reduction: z
    .string()
    .describe(
      'token: one mean over all tokens of a step; micro_batch: a mean of means; sum: added, not divided',
    ),
  drop_last: z.boolean().describe('Whether an incomplete accumulation is left out'),
  gpus: count.describe('GPUs with a micro-batch each'),
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

/** Names of the same settings in nanoGPT, minimind, transformers and torchtitan. */
const TRAINING_SYNONYMS = {
  max_iters: 'max_steps',
  total_steps: 'max_steps',
  train_tokens: 'total_tokens',
  epochs: 'num_epochs',
  num_train_epochs: 'num_epochs',
  data_tokens: 'dataset_tokens',
  warmup_iters: 'warmup_steps',
  num_warmup_steps: 'warmup_steps',
  micro_batch_size: 'batch_size',
  per_device_train_batch_size: 'batch_size',
  local_batch_size: 'batch_size',
  accumulation_steps: 'gradient_accumulation_steps',
  adam_beta1: 'beta1',
  adam_beta2: 'beta2',
  adam_epsilon: 'eps',
  grad_clip: 'max_grad_norm',
  gradient_clipping: 'max_grad_norm',
  use_grad_scaler: 'grad_scaler',
  world_size: 'gpus',
  lr_scheduler_type: 'lr_scheduler',
  lr_schedule: 'lr_scheduler',
  scheduler: 'lr_scheduler',
  lr_decay_iters: 'schedule_steps',
  min_lr_rate: 'min_lr_ratio',
  min_lr_factor: 'min_lr_ratio',
  lr_decay_type: 'decay_type',
  block_size: 'max_seq_length',
  seq_len: 'max_seq_length',
  max_seq_len: 'max_seq_length',
  save_interval: 'save_steps',
  tokenizer_vocab_size: 'tokenizer_size',
} as const satisfies Readonly<Record<string, TrainingKey>>;

const named = Object.fromEntries(
  Object.entries(TRAINING_SYNONYMS).map(([name, key]) => [
    name,
    keys[key].describe(`Another name of ${key}`),
  ]),
) as {
  readonly [Name in keyof typeof TRAINING_SYNONYMS]: (typeof keys)[(typeof TRAINING_SYNONYMS)[Name]];
};

const training = z.looseObject({ ...keys, ...named });

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

/** Settings of a section by their first name, and the key of the file that has each. */
export interface NamedTraining {
  readonly settings: { readonly [Key in TrainingKey]?: TrainingSection[Key] };
  readonly keys: Readonly<Partial<Record<TrainingKey, string>>>;
  /** Keys that repeat a setting with another value, with the key of the value that counts. */
  readonly contradictions: readonly { readonly key: string; readonly first: string }[];
}

/** Reads the settings of a training section under any of their names. */
export function namedTraining(section: TrainingSection | null | undefined): NamedTraining {
  const settings: Record<string, unknown> = {};
  const found: Partial<Record<TrainingKey, string>> = {};
  const contradictions: { key: string; first: string }[] = [];
  for (const [name, value] of Object.entries(section ?? {})) {
    const key = nameOf(name);
    if (key === undefined || value === undefined) continue;
    const first = found[key];
    if (first === undefined) {
      settings[key] = value;
      found[key] = name;
    } else if (settings[key] !== value) contradictions.push({ key: name, first });
  }
  return { settings, keys: found, contradictions };
}

function nameOf(name: string): TrainingKey | undefined {
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
