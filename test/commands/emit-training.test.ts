import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const train = async (line: string, emit: string, model = 'llama-3.1-8b') =>
  (await runHere(['fit', model, '--for', 'training', ...line.split(' '), '--emit', emit, '-q']))
    .stdout;

describe('minimind fit --emit for the division of the state', () => {
  it('writes the switches that FSDP of Megatron needs, and calls nothing missing that is there', async () => {
    const text = await train('--gpu 8xh100 --zero 3 --optimizer adamw', 'megatron');
    expect(text).toContain('--use-torch-fsdp2 ');
    expect(text).toContain('--no-gradient-accumulation-fusion');
    expect(text).toContain('--optimizer adam ');
    expect(text).not.toMatch(/no counterpart: (?:division|optimizer)/);
    const { stdout } = await runHere([
      ...['train-plan', 'llama-3.1-8b', '--gpu', '8xh100', '--steps', '1000'],
      ...['--emit', 'megatron', '-q'],
    ]);
    expect(stdout).toContain('--lr-decay-style cosine');
    expect(stdout).not.toContain('no counterpart: schedule');
  });

  it.each([
    ['3', 'full_shard auto_wrap'],
    ['2', 'shard_grad_op auto_wrap'],
    ['hsdp', 'hybrid_shard auto_wrap'],
  ])('writes FSDP of TrainingArguments for %s', async (zero, value) => {
    const text = await train(`--gpu 16xh100 --zero ${zero}`, 'torchrun');
    expect(text).toContain(`--fsdp '${value}'`);
    expect(text).not.toContain('no counterpart: division');
  });

  it('writes replicas of torchtitan, and FP8', async () => {
    const text = await train('--gpu 16xh100 --zero hsdp --precision fp8', 'torchtitan');
    expect(parse(text)).toMatchObject({
      model: { converters: ['quantize.linear.float8'] },
      parallelism: { data_parallel_replicate_degree: 2, data_parallel_shard_degree: -1 },
    });
    expect(text).not.toMatch(/no counterpart: (?:division|FP8)/);
  });
});

describe('a part of the state in system memory', () => {
  const line = '--gpu rtx-4090 --recompute full --offload';

  // Stage 0 of DeepSpeed is no ZeRO at all, and does not offload.
  it('has a stage that offloads', async () => {
    const deepspeed = JSON.parse(await train(`${line} optimizer`, 'deepspeed', 'qwen3-4b'));
    expect(deepspeed.zero_optimization).toEqual({
      stage: 2,
      offload_optimizer: { device: 'cpu' },
    });
    const accelerate = await train(`${line} optimizer`, 'accelerate', 'qwen3-4b');
    expect(accelerate).toContain('distributed_type: DEEPSPEED');
    expect(accelerate).toContain('offload_optimizer_device: cpu');
    const axolotl = await train(`${line} parameters`, 'axolotl', 'qwen3-4b');
    expect(axolotl).toContain('zero3_bf16_cpuoffload_all.json');
    expect(axolotl).toMatch(/^# fits on 1 × NVIDIA GeForce RTX 4090 \(estimate\)$/m);
  });

  it('is named where the file does not ask for it', async () => {
    const text = await train(`${line} optimizer`, 'torchtitan', 'qwen3-4b');
    expect(text).toMatch(
      /^# fits on .* with optimizer in system memory, which this file does not ask for$/m,
    );
    const experts = '--gpu dgx-h100 --gpus 32 --expert-parallel 8 --zero 3 --recompute full';
    expect(await train(experts, 'torchrun', 'qwen3-30b-a3b')).toMatch(
      /^# fits on .* with expert parallelism 8, which this file does not ask for$/m,
    );
  });
});

it('writes the sequence parallelism that Megatron-LM needs beside experts', async () => {
  const line = '--gpu dgx-h100 --gpus 32 --expert-parallel 8 --tensor-parallel 2 --zero 1';
  const text = await train(`${line} --recompute full`, 'megatron', 'qwen3-30b-a3b');
  expect(text).toContain('--sequence-parallel');
  expect(text).toMatch(/^# sequence-parallel: required/m);
});

describe('machines of a plan', () => {
  it.each([
    ['12xh100', 2, 6],
    ['16xh100', 2, 8],
    ['8xh100', 1, 8],
    // NVIDIA, GB300 NVL72: 18 hosts of four GPUs.
    ['gb300-nvl72', 18, 4],
  ])('%s: %i of %i GPUs', async (gpu, count, each) => {
    const torchrun = await train(`--gpu ${gpu} --zero fsdp`, 'torchrun');
    expect(torchrun).toContain(
      `torchrun ${count > 1 ? `--nnodes ${count} ` : ''}--nproc-per-node ${each} train.py`,
    );
    expect(torchrun.includes('rdzv-endpoint')).toBe(count > 1);
    const accelerate = await train(`--gpu ${gpu} --zero fsdp`, 'accelerate');
    expect(accelerate).toContain(`num_machines: ${count}\n`);
    expect(accelerate.includes('machine_rank')).toBe(count > 1);
  });
});

it('writes a rank only for adapters', async () => {
  const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'emit-training-')), 'a.yaml');
  writeFileSync(
    file,
    'base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nlora_r: 8\nsequence_len: 1024\nmicro_batch_size: 1\n',
  );
  expect(await train('--gpu 8xh100', 'axolotl', file)).not.toContain('lora');
});
