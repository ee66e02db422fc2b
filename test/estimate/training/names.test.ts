import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { planTraining, trainingMistakes } from '../../../src/estimate/training/plan-training.js';
import { trainingSettings } from '../../../src/estimate/training/training-settings.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';

const MODEL = 'model: {family: minimind, hidden_size: 512, num_hidden_layers: 8}\n';

async function planOf(text: string) {
  const { document, model, warnings } = await modelOf(parseDocument(MODEL + text, 'm.yaml'));
  const settings = trainingSettings(document);
  const plan = planTraining(model, { settings });
  return { settings, plan, warnings, mistakes: trainingMistakes(model, { settings }) };
}

/** The same training, by the names of each program (their own documentation and code). */
const TRAININGS: readonly [program: string, text: string][] = [
  [
    'nanoGPT: train.py',
    `max_iters: 5000
lr_decay_iters: 5000
warmup_iters: 100
learning_rate: 1e-4
min_lr: 1e-5
beta1: 0.9
beta2: 0.95
weight_decay: 0.1
grad_clip: 1.0
gradient_accumulation_steps: 8
batch_size: 32
block_size: 512
dtype: bfloat16
`,
  ],
  [
    'transformers: TrainingArguments',
    `training:
  max_steps: 5000
  warmup_steps: 0
  warmup_ratio: 0.02
  learning_rate: 1e-4
  lr_scheduler_type: cosine_with_min_lr
  min_lr_rate: 0.1
  adam_beta1: 0.9
  adam_beta2: 0.95
  adam_epsilon: 1e-8
  optim: adamw_torch_fused
  weight_decay: 0.1
  max_grad_norm: 1.0
  gradient_accumulation_steps: 8
  per_device_train_batch_size: 32
  bf16: true
  fp16: false
  max_length: 512
`,
  ],
  [
    'axolotl',
    `max_steps: 5000
warmup_steps: 100
learning_rate: 0.0001
lr_scheduler: cosine
cosine_min_lr_ratio: 0.1
adam_beta1: 0.9
adam_beta2: 0.95
optimizer: adamw_torch
weight_decay: 0.1
max_grad_norm: 1.0
gradient_accumulation_steps: 8
micro_batch_size: 32
sequence_len: 512
bf16: auto
fp16:
`,
  ],
  [
    'MiniMind: train_pretrain.py, with steps',
    `train:
  total_steps: 5000
  warmup: 0.02
  learning_rate: 1e-4
  min_lr: 1e-5
  betas: [0.9, 0.95]
  weight_decay: 0.1
  grad_clip: 1.0
  accumulation_steps: 8
  batch_size: 32
  max_seq_len: 512
  dtype: bfloat16
`,
  ],
  [
    'PyTorch: AdamW, CosineAnnealingLR and clip_grad_norm_',
    `optimizer:
  name: torch.optim.AdamW
  lr: 1e-4
  betas: (0.9, 0.95)
  eps: 1e-8
  weight_decay: 0.1
lr_scheduler:
  type: CosineAnnealingLR
  T_max: 5000
  eta_min: 1e-5
training:
  num_training_steps: 5000
  num_warmup_steps: 100
  max_norm: 1.0
  grad_accum_steps: 8
  batch_size: 32
  seq_len: 512
  mixed_precision: bf16
`,
  ],
  [
    'Lightning',
    `trainer:
  max_steps: 5000
  accumulate_grad_batches: 8
  gradient_clip_val: 1.0
  precision: bf16-mixed
hyperparameters:
  lr: 1e-4
  warmup_steps: 100
  min_lr: 1e-5
  betas: [0.9, 0.95]
  weight_decay: 0.1
  micro_batch_size: 32
  seq_length: 512
`,
  ],
  [
    'DeepSpeed',
    `train_micro_batch_size_per_gpu: 32
gradient_accumulation_steps: 8
gradient_clipping: 1.0
bf16: {enabled: true}
optimizer: {type: AdamW, params: {lr: 1e-4, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1}}
training: {max_steps: 5000, warmup_steps: 100, min_lr: 1e-5, seq_len: 512}
`,
  ],
  [
    'Megatron-LM: arguments.py',
    `training:
  train_iters: 5000
  lr: 1e-4
  min_lr: 1e-5
  lr_warmup_iters: 100
  lr_decay_style: cosine
  lr_decay_iters: 5000
  adam_beta1: 0.9
  adam_beta2: 0.95
  adam_eps: 1e-8
  weight_decay: 0.1
  clip_grad: 1.0
  micro_batch_size: 32
  gradient_accumulation_steps: 8
  seq_length: 512
  bf16: true
`,
  ],
];

describe('the settings of a training', () => {
  it.each(TRAININGS)('are read by the names of %s', async (_, text) => {
    const { settings, plan, warnings, mistakes } = await planOf(text);
    expect(warnings).toEqual([]);
    expect(settings.values).toMatchObject({
      beta1: 0.9,
      beta2: 0.95,
      weight_decay: 0.1,
      max_grad_norm: 1,
    });
    expect(plan).toMatchObject({
      precision: 'bf16',
      size: { steps: 5000, microBatch: 32, accumulation: 8, context: 512 },
      rate: { setting: { peak: 1e-4, warmup: 100, floor: 1e-5, steps: 5000 } },
    });
    expect(mistakes).toEqual([]);
  });

  it('are read at any level, with their places', async () => {
    const { settings } = await planOf(
      'optimizer: {lr: 3e-4}\ntraining: {scaler: {init_scale: 1024}}\n',
    );
    expect(settings.values).toMatchObject({
      learning_rate: 3e-4,
      init_scale: 1024,
      grad_scaler: true,
    });
    expect(settings.placeOf('learning_rate')).toBe('training.lr');
  });

  it('can ask for the defaults of transformers and DeepSpeed', async () => {
    const { settings, plan } = await planOf(
      'training: {max_steps: -1, total_tokens: 1e9}\nfp16: {enabled: true, loss_scale: 0, initial_scale_power: 12}\n',
    );
    expect(plan.size.length).toBe('tokens');
    expect(settings.values).toMatchObject({ fp16: true, grad_scaler: true, init_scale: 4096 });
  });

  it('that contradict each other are reported', async () => {
    const { mistakes } = await planOf('training: {lr: 1e-4, learning_rate: 2e-4}\n');
    expect(mistakes.find(({ check }) => check === 'contradiction')).toMatchObject({
      place: 'training.learning_rate',
      reason: expect.stringContaining('lr is another name of learning_rate'),
    });
    const { warnings } = await planOf('training: {lr: 1e-4}\noptimizer: {lr: 2e-4}\n');
    expect(warnings).toMatchObject([
      { message: '"optimizer.lr" is not used: the training already has another lr' },
    ]);
  });

  it.each([
    ['dtype: float8', 'training.dtype', 'must be float16, bfloat16 or float32'],
    ['precision: [16]', 'training.precision', 'must be float16, bfloat16 or float32'],
    ['betas: [0.9]', 'training.betas', 'must be two numbers from 0 to 1, as [0.9, 0.95]'],
    ['betas: 0.9', 'training.betas', 'must be two numbers from 0 to 1, as [0.9, 0.95]'],
    ['growth_interval: 0', 'training.growth_interval', 'must be an integer ≥ 1, but is 0'],
    ['betas: [0.9, 1.0]', 'training.betas', 'must be a number ≥ 0 and < 1, but is 1'],
  ])('are refused where they mean nothing: %s', async (line, path, message) => {
    await expect(planOf(`training: {${line}}\n`)).rejects.toMatchObject({
      problems: [{ path: expect.stringContaining(path), message }],
    });
  });

  it.each([
    ['solver: {lr: 2e-3}', 'solver.lr'],
    ['training: {peak-learning-rate: 2e-3}', 'training.peak-learning-rate'],
    ['training: {groups: {encoder_lr: 2e-3}}', 'training.groups.encoder_lr'],
  ])('lack a learning rate that has an unknown name: %s', async (line, place) => {
    const { mistakes } = await planOf(`${line}\n`);
    const unread = mistakes.find(({ check }) => check === 'learning-rate-unread');
    expect(unread?.reason).toContain(`${place} is not a name`);
    expect(unread?.fix).toBe('learning_rate: 0.002');
  });
});

/** Highest rates of published trainings with AdamW, and rates beyond them. */
describe('a learning rate', () => {
  it.each([
    [512, 5e-4, false],
    [576, 3e-3, false],
    [512, 5e-3, true],
    [640, 5e-3, true],
    [4096, 1.2e-4, false],
    [4096, 3e-3, true],
  ])('at width %i of %f: mistake %s', async (width, rate, isMistake) => {
    const text = `model: {family: minimind, hidden_size: ${width}, num_hidden_layers: 2, num_attention_heads: 8}\ntraining: {lr: ${rate}}\n`;
    const { document, model } = await modelOf(parseDocument(text, 'm.yaml'));
    const found = trainingMistakes(model, { settings: trainingSettings(document) });
    expect(found.some(({ check }) => check === 'learning-rate-above-width')).toBe(isMistake);
  });
});
