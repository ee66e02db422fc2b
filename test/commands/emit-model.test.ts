import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const folder = mkdtempSync(path.join(os.tmpdir(), 'emit-model-'));
const emitted = async (model: string, ...rest: string[]) =>
  (await runHere(['fit', model, '--gpu', '4090', ...rest, '-q'])).stdout;
const served = async (model: string) =>
  /^vllm serve (.*) \\$/m.exec(await emitted(model, '--emit', 'vllm'))?.[1];

describe('the model that --emit names', () => {
  it.each([
    ['llama-3-8b', 'meta-llama/Meta-Llama-3-8B'],
    ['llama/llama-3-8b', 'meta-llama/Meta-Llama-3-8B'],
    ['qwen2.5-coder-7b', 'Qwen/Qwen2.5-Coder-7B'],
    ['meta-llama/Llama-3.1-8B-Instruct', 'meta-llama/Llama-3.1-8B-Instruct'],
    ['llama-3.1-8b-instruct', 'meta-llama/Llama-3.1-8B-Instruct'],
    ['llama-3.1-8b', 'meta-llama/Llama-3.1-8B'],
    ['mistral-7b-instruct', 'mistralai/Mistral-7B-Instruct-v0.3'],
    ['llama-2-7b-chat', 'meta-llama/Llama-2-7b-chat-hf'],
    ['kimi-k2-base', 'moonshotai/Kimi-K2-Base'],
  ])('%s is %s', async (model, repository) => {
    expect(await served(model)).toBe(repository);
  });

  it('is said where only the sizes are those of the name', async () => {
    const text = await emitted('qwen3-8b-base', '--emit', 'vllm');
    expect(text).toContain('# Qwen/Qwen3-8B has the sizes of qwen3-8b-base: write the repository');
    expect(await emitted('qwen3-8b', '--emit', 'vllm')).not.toContain('has the sizes');
  });

  it('is a placeholder where nobody published weights', async () => {
    for (const model of ['minimind/minimind2', 'hybrid/recommended']) {
      const text = await emitted(model, '--emit', 'vllm');
      expect(text).toContain('vllm serve MODEL \\');
      expect(text).toContain(`# MODEL: a folder with the weights of ${model}\n`);
      const training = await emitted(model, '--for', 'training', '--emit', 'axolotl');
      expect(training).toContain('base_model: MODEL\n');
      expect(training).toContain(`# MODEL: a folder with the weights of ${model}\n`);
    }
  });

  it('is the folder of a checkpoint of the user', async () => {
    const own = path.join(folder, 'Llama-3.1-8B');
    mkdirSync(own);
    for (const name of ['config.json', 'model.safetensors'])
      cpSync(path.join('fixtures/alibi/bloom', name), path.join(own, name));
    for (const model of [own, path.join(own, 'config.json')]) {
      expect(await served(model)).toBe(own);
      expect(await emitted(model, '--for', 'lora', '--emit', 'axolotl')).toContain(
        `base_model: ${own}\n`,
      );
    }
  });

  it('is the model of a config as it is written there', async () => {
    const file = path.join(folder, 'a.yaml');
    writeFileSync(
      file,
      'base_model: unsloth/Llama-3.1-8B-bnb-4bit\nadapter: lora\nlora_r: 8\nsequence_len: 1024\nmicro_batch_size: 1\n',
    );
    expect(await emitted(file, '--emit', 'torchrun')).toContain(
      '--model_name_or_path unsloth/Llama-3.1-8B-bnb-4bit',
    );
  });
});

describe('a training with its state in system memory', () => {
  const train = async (offload: string, zero: string, emit: string) =>
    (
      await runHere([
        ...['fit', 'llama-3.1-8b', '--gpu', '4xa100', '--for', 'training', '--ram', '512GB'],
        ...['--offload', offload, '--zero', zero, '--emit', emit, '-q'],
      ])
    ).stdout;

  it('is written with it', async () => {
    const { zero_optimization: optimizer } = JSON.parse(await train('optimizer', '2', 'deepspeed'));
    expect(optimizer).toEqual({ stage: 2, offload_optimizer: { device: 'cpu' } });
    const { zero_optimization: all } = JSON.parse(await train('parameters', '3', 'deepspeed'));
    expect(all).toMatchObject({ stage: 3, offload_param: { device: 'cpu' } });
    expect(await train('parameters', 'fsdp', 'accelerate')).toContain('fsdp_offload_params: true');
    expect(await train('parameters', 'fsdp2', 'torchtitan')).toContain('enable_cpu_offload = true');
    expect(await train('optimizer', '2', 'torchtitan')).toContain(
      '# no counterpart: optimizer in system memory\n',
    );
  });
});
