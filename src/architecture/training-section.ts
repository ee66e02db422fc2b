/** Training sections of a config, the same for all families. */
import * as z from 'zod';
import type { TrainingHints } from './family.js';

const count = z.int().min(1);
const amount = z.number().min(0);
const fraction = z.number().min(0).max(1);
const probability = z.number().min(0).lt(1);

const training = z.looseObject({
  max_steps: count,
  warmup_steps: z.int().min(0),
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
  lr_scheduler: z.string(),
  min_lr_ratio: fraction,
  load_balance_coeff: amount,
  entropy_reg_coeff: amount,
  distill_coeff: amount,
  distill_temperature: z.number().positive(),
  max_seq_length: count.describe('Tokens of a training sequence'),
  save_steps: count,
  eval_steps: count,
  logging_steps: count,
  save_total_limit: count,
});

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

/** Keys that spread the training over devices or offload it. */
const BEYOND_ONE_DEVICE = ['zero_stage', 'offload_optimizer', 'offload_params'] as const;

/** Undefined when the file sets no number format. */
function mixedOrFull(bf16?: boolean, fp16?: boolean): 'mixed' | 'float32' | undefined {
  if (bf16 === undefined && fp16 === undefined) return undefined;
  return bf16 || fp16 ? 'mixed' : 'float32';
}

export const trainingHints = ({ training, system }: Sections): TrainingHints => ({
  batch: training?.batch_size,
  context: training?.max_seq_length,
  precision: mixedOrFull(training?.bf16, training?.fp16),
  recompute: training?.gradient_checkpointing,
  zeroStage: system?.zero_stage,
  beyondOneDevice: BEYOND_ONE_DEVICE.flatMap((key) =>
    system?.[key] ? `system.${key}: ${system[key]}` : [],
  ),
});
