import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const answer = async (...words: string[]) => runHere(['fit', ...words]);
const json = async (...words: string[]) => JSON.parse((await answer(...words, '--json')).stdout);

describe('minimind fit --offload', () => {
  it('trains a model on a card that holds its weights alone', async () => {
    const line = ['qwen3-4b', '--gpu', 'rtx-4090', '--recompute', 'full', '--for', 'training'];
    expect((await json(...line)).training.fit.verdict).toBe('does not fit');
    const { stdout } = await answer(...line, '--offload', 'optimizer', '--ram', '128GB');
    expect(stdout).toMatch(/^Fits on 1 × NVIDIA GeForce RTX 4090/m);
    expect(stdout).toMatch(
      /^ {2}offload +optimizer: 64\.4 GB of system memory .* 128\.0 GB installed/m,
    );
    expect(stdout).toMatch(/limited by system memory/);
    const small = await answer(...line, '--offload', 'optimizer', '--ram', '32GB', '--check');
    expect(small.code).toBe(1);
    expect(small.stdout).toMatch(/^Does not fit/m);
  });

  // deepspeed.ai/tutorials/zero-offload: GPT-2 with 10 billion parameters on one V100 with 32 GB.
  it('holds what the tutorial of ZeRO-Offload trains', async () => {
    const gpt = ['gpt2-xl', '--gpu', 'v100-32gb', '--recompute', 'full', '--context', '1024'];
    const sizes = ['n_embd=4096', 'n_layer=50', 'n_head=32'].flatMap((each) => [
      '--set',
      `model.${each}`,
    ]);
    const { parameters, training } = await json(...gpt, ...sizes, '--offload', 'optimizer');
    expect(parameters).toBeGreaterThan(10e9);
    expect(training.fit.verdict).not.toBe('does not fit');
    expect(training.fit.host.bytes.expected.value).toBeCloseTo(16 * parameters, -8);
  });

  it('divides among GPUs with ZeRO, and asks for it', async () => {
    const line = ['qwen3-8b', '--gpu', 'h100-80gb', '--gpus', '8'];
    const { stderr } = await answer(...line, '--offload', 'optimizer');
    expect(stderr).toContain('requires ZeRO-1 or more');
    expect(stderr).toContain('--zero 2');
    const both = await json(...line, '--offload', 'parameters', '--zero', '3');
    expect(both.training.fit.host.part).toBe('parameters');
    expect(both.training.fit.step.published).toBeNull();
  });

  it('counts the GPUs with the same weights, and runs its own proposal', async () => {
    const line = ['qwen3-8b', '--for', 'training', '--gpu', '4090', '--recompute', 'full'];
    const { stdout } = await answer(...line, '--offload', 'optimizer');
    expect(stdout).toMatch(/^Next: .* --offload optimizer --gpus 2 --tensor-parallel 2/m);
    const shared = ['--offload', 'optimizer', '--gpus', '2', '--tensor-parallel', '2'];
    expect((await json(...line, ...shared)).training.fit.verdict).toBe('fits');
    const copies = await answer(...line, '--offload', 'optimizer', '--gpus', '2');
    expect(copies.code).toBe(2);
    expect(copies.stderr).toContain('on several GPUs with the same weights requires ZeRO-1');
  });

  it('proposes parameters in system memory, and says how much', async () => {
    const small = await answer('qwen3-1.7b', '--for', 'training', '--gpu', 'rtx-4060');
    expect(small.stdout).toMatch(
      /to train .*--offload parameters \(at most [\d.]+ GB per GPU and [\d.]+ GB of system memory/,
    );
    const large = await answer('qwen3-14b', '--for', 'training', '--gpu', 'rtx-4090');
    expect(large.stdout).toMatch(/no number of these .* is enough without system memory/);
  });

  it('takes the memory that the user named', async () => {
    const line = ['qwen3-4b', '--gpu', 'rtx-4090', '--ram'];
    const gpus = async (ram: string) => (await json(...line, ram)).training.fit.gpus;
    expect(await gpus('128GB')).toBe(1);
    expect(await gpus('32GB')).toBeGreaterThan(1);
    const short = await answer(...line, '32GB', '--recompute', 'full', '--offload', 'optimizer');
    expect(short.stdout).toMatch(/^Does not fit .*: too little system memory$/m);
    expect(short.stdout).toMatch(/to train +needs 96\.5 GB of system memory, found 32\.0 GB/);
    const lone = await answer(...line, '32GB', '--for', 'training');
    expect(lone.stderr).toContain('add --offload optimizer or --offload parameters');
  });

  it('names places of serving', async () => {
    const places = async (...words: string[]) => (await json(...words)).serving.places;
    const experts = await places(
      'qwen3-30b-a3b',
      '--gpu',
      '4090',
      '--dtype',
      'q4_k_m',
      '--offload',
      'experts',
    );
    expect(experts).toMatchObject({ gpuLayers: 49, cpuExperts: 48 });
    const dense = ['qwen3-8b', '--gpu', '4060', '--dtype', 'q8_0', '--offload'];
    expect((await places(...dense, 'layers')).gpuLayers).toBeLessThan(37);
    const line = ['qwen3-8b', '--gpu', '4060', '--dtype', 'q4_k_m', '--context', '32k'];
    const cache = await places(...line, '--offload', 'cache');
    expect(cache).toMatchObject({ verdict: 'fits', onGpus: { cache: 0 } });
    expect(cache.inSystem.cache).toBeGreaterThan(4e9);
    expect((await answer(...line, '--offload', 'cache')).stdout).toMatch(/-ngl 37 -nkvo -c/);
  });

  it.each([
    [['--for', 'lora', '--offload', 'optimizer'], /applies to a training of all weights/],
    [['--for', 'serving', '--offload', 'parameters'], /applies to a training/],
    [['--for', 'training', '--offload', 'cache'], /applies to serving/],
    [['--offload', 'optimizer', '--gpu-layers', '3'], /--gpu-layers applies to serving/],
    [['--offload', 'experts'], /--offload experts requires a model with routed experts/],
  ])('refuses %j', async (flags, message) => {
    const { code, stderr } = await answer('qwen3-8b', '--gpu', '4090', ...flags);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
