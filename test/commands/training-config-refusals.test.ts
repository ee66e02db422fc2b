/** Values of a training config that are refused, or that leave a setting to the program. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { onFileEnd } from '../cleanup.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
onFileEnd(() => fs.rmSync(folder, { recursive: true }));

/** Lines of a file of torchtitan with Llama 3 8B. */
const TORCHTITAN = [
  ...['[model]', 'name = "llama3"', 'flavor = "8B"', '[training]', 'local_batch_size = 1'],
  ...['seq_len = 8192', 'steps = 1000', '[parallelism]', 'tensor_parallel_degree = 2'],
];

/** Lines of TrainingArguments. */
const TRAINER = [
  ...['model_name_or_path: llama-3.1-8b', 'per_device_train_batch_size: 1'],
  ...['gradient_accumulation_steps: 1', 'num_train_epochs: 1', 'output_dir: x', 'bf16: true'],
];

const AXOLOTL = [
  ...['base_model: llama-3.1-8b', 'micro_batch_size: 1', 'num_epochs: 1', 'adapter: lora'],
  ...['lora_r: 8', 'sequence_len: 2048', 'learning_rate: 1.0e-4', 'gradient_accumulation_steps: 1'],
];

function written(name: string, lines: readonly string[]): string {
  fs.writeFileSync(path.join(folder, name), `${lines.join('\n')}\n`);
  return name;
}

const answerTo = (...words: string[]) => runHere(words, { cwd: folder });

const FIT = ['--gpu', 'h100', '--gpus', '8'];

describe('a refusal of a value that a config gave', () => {
  it.each([
    [
      'a.toml',
      [...TORCHTITAN.slice(0, -1), 'tensor_parallel_degree = 3'],
      ['fit', ...FIT],
      'a.toml:9:1: parallelism.tensor_parallel_degree: 3 does not divide 8 GPUs',
      'write 2 or 4',
    ],
    [
      'a.toml',
      [...TORCHTITAN.slice(0, -1), 'tensor_parallel_degree = 3'],
      ['train-plan', '--gpus', '8'],
      'a.toml:9:1: parallelism.tensor_parallel_degree: 3 does not divide 8 GPUs',
      'write 2 or 4',
    ],
    [
      'a.toml',
      [...TORCHTITAN, 'expert_parallel_degree = 4'],
      ['fit', ...FIT],
      'a.toml:10:1: parallelism.expert_parallel_degree: requires a model with routed experts',
      'leave it out',
    ],
    [
      'a.yaml',
      [...TRAINER, 'max_length: 999999'],
      ['fit', ...FIT],
      'a.yaml:7:13: max_length: 999,999 tokens are more than the 131,072 positions',
      'write max_length 131072, or less',
    ],
    [
      'b.yaml',
      [...AXOLOTL, 'world_size: 2000000'],
      ['fit', '--gpu', 'h100'],
      'b.yaml:9:13: world_size: expected at most 1,000,000 GPUs, found 2,000,000',
      'correct world_size, or leave it out',
    ],
    [
      'b.yaml',
      [...AXOLOTL, 'lora_target_modules: [foo_proj]'],
      ['fit', '--gpu', '4090'],
      'b.yaml:9:22: lora_target_modules: no product of the blocks is called "foo_proj"',
      'write attention, mlp',
    ],
    [
      'b.yaml',
      [...AXOLOTL, 'adam_beta1: 1.5'],
      ['train-plan', '--data-tokens', '1e8'],
      'b.yaml:9:13: adam_beta1: must be a number ≥ 0 and < 1, but is 1.5',
      'correct adam_beta1',
    ],
  ] as const)('has its place: %s', async (name, lines, [command, ...words], place, advice) => {
    const { code, stderr } = await answerTo(command, written(name, lines), ...words);
    expect(code).toBe(2);
    expect(stderr).toContain(place);
    expect(stderr).toContain(`→ ${advice}`);
    const json = await answerTo(command, name, ...words, '--json');
    expect(JSON.parse(json.stdout).problems[0]).toMatchObject({
      file: name,
      line: expect.any(Number),
    });
  });

  it('keeps the flag of a value that the line gave', async () => {
    const file = written('a.toml', TORCHTITAN);
    const { stderr } = await answerTo('fit', file, ...FIT, '--tensor-parallel', '3');
    expect(stderr).toContain('error: --tensor-parallel: 3 does not divide 8 GPUs');
  });
});

describe('whole numbers below 1', () => {
  it.each([
    ['a.yaml', [...TRAINER, 'max_steps: -1'], 'max_steps (-1: the epochs decide)'],
    ['a.yaml', [...TRAINER, 'max_steps: 0'], 'max_steps (0: the epochs decide)'],
    ['b.yaml', [...AXOLOTL, 'max_steps: -1'], 'max_steps (-1: the epochs decide)'],
    [
      'a.toml',
      [...TORCHTITAN, 'data_parallel_shard_degree = -1'],
      'parallelism.data_parallel_shard_degree (-1: all other GPUs)',
    ],
    [
      'a.toml',
      [...TORCHTITAN.slice(0, 5), 'global_batch_size = -1', ...TORCHTITAN.slice(5)],
      'training.global_batch_size (-1: the local batch decides)',
    ],
  ] as const)('leave a setting to the program: %s %j', async (name, lines, text) => {
    const file = written(name, lines);
    expect((await answerTo('fit', file, ...FIT)).stderr).toContain(text);
    expect((await answerTo('validate', file)).code).toBe(0);
  });

  it.each([
    [
      'a.yaml',
      [...TRAINER.slice(0, 1), 'per_device_train_batch_size: 0', ...TRAINER.slice(2)],
      'a.yaml:2:30: per_device_train_batch_size: expected an integer of at least 1, found 0',
    ],
    [
      'a.toml',
      [...TORCHTITAN.slice(0, -1), 'tensor_parallel_degree = -1'],
      'a.toml:9:1: parallelism.tensor_parallel_degree: expected an integer of at least 1, found -1',
    ],
    [
      'a.toml',
      [...TORCHTITAN, 'data_parallel_shard_degree = 0'],
      'a.toml:10:1: parallelism.data_parallel_shard_degree: expected -1 for all other GPUs, or an integer of at least 1, found 0',
    ],
    [
      'a.json',
      ['{', '"train_micro_batch_size_per_gpu": -1,', '"zero_optimization": {"stage": 3}', '}'],
      'a.json:2:35: train_micro_batch_size_per_gpu: expected an integer of at least 1, found -1',
    ],
  ] as const)('are mistakes elsewhere: %s %j', async (name, lines, text) => {
    const { code, stderr } = await answerTo('validate', written(name, lines));
    expect(code).toBe(1);
    expect(stderr).toContain(text);
  });
});

describe('expert parallelism of a config', () => {
  it('is a warning of validate for a model without experts', async () => {
    const file = written('a.toml', [...TORCHTITAN, 'expert_parallel_degree = 4']);
    const { code, stdout, stderr } = await answerTo('validate', file);
    expect(code).toBe(0);
    expect(`${stdout}${stderr}`).toContain(
      'a.toml:10:1: parallelism.expert_parallel_degree: expert parallelism of 4 has no experts to divide',
    );
    expect((await answerTo('validate', file, '--strict')).code).toBe(1);
  });

  it('is an error where it does not divide the experts', async () => {
    const lines = TORCHTITAN.with(1, 'name = "qwen3"').with(2, 'flavor = "30B-A3B"');
    const { code, stderr } = await answerTo(
      'validate',
      written('c.toml', [...lines, 'expert_parallel_degree = 3']),
    );
    expect(code).toBe(1);
    expect(stderr).toContain(
      'c.toml:10:1: parallelism.expert_parallel_degree: expert parallelism of 3 does not divide 128 experts',
    );
  });
});

it('does not count an optimizer in system memory without a stage of ZeRO, and writes stage 0', async () => {
  const file = written('zero.json', [
    '{"train_micro_batch_size_per_gpu": 1, "zero_optimization":',
    '{"stage": 0, "offload_optimizer": {"device": "cpu"}}}',
  ]);
  const line = ['fit', 'llama-3.1-8b', '--training-config', file, '--gpu', 'h100', '--gpus', '4'];
  const { training, trainingConfig } = JSON.parse((await answerTo(...line, '--json')).stdout);
  expect(training.setting).toMatchObject({ zero: 0 });
  expect(training.setting.offload).toBeUndefined();
  expect(trainingConfig.notCounted).toEqual([
    { key: 'zero_optimization.offload_optimizer.device', line: 2 },
  ]);
  const { stdout } = await answerTo(...line, '--emit', 'deepspeed');
  expect(JSON.parse(stdout).zero_optimization).toMatchObject({ stage: 0 });
});
