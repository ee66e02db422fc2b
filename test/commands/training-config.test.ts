import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { onTestEnd } from '../cleanup.js';
import { runHere } from '../run-here.js';

const FILES = 'fixtures/training-configs';
const json = async (...args: string[]) => {
  const { stdout, code } = await runHere([...args, '--json']);
  return { ...JSON.parse(stdout), exit: code };
};

describe('a training config in fit, train-plan and validate', () => {
  it('is a model for fit, with the settings of the file', async () => {
    const { training, purpose, trainingConfig, file } = await json(
      'fit',
      `${FILES}/torchtitan.toml`,
      '--gpu',
      '8xh100',
    );
    expect(purpose).toBe('training');
    expect(file).toBe('llama/llama-3.1-8b');
    expect(training.setting).toMatchObject({
      microBatch: 2,
      context: 4096,
      zero: 3,
      tensorParallel: 2,
      sequenceParallel: true,
      recompute: 'operations',
      globalBatchTokens: 64 * 4096,
      trainTokens: 5000 * 64 * 4096,
    });
    expect(trainingConfig).toMatchObject({ program: 'torchtitan', version: '0.2.2' });
    expect(trainingConfig.counted).toContainEqual({
      key: 'parallelism.tensor_parallel_degree',
      line: 24,
      setting: 'tensor parallelism',
    });
    expect(trainingConfig.notCounted).toContainEqual({ key: 'compile.enable', line: 31 });
  });

  it('describes the model of a script by its sizes', async () => {
    const { parameters, file, training, cluster } = await json(
      'fit',
      `${FILES}/megatron.sh`,
      '--gpu',
      'h100',
    );
    expect(file).toBe(`${FILES}/megatron.sh`);
    // 2 × 128,256 × 2,048 for embedding and head; 16 × (2 × 2,048² + 2 × 2,048 × 512 + 3 × 2,048 × 8,192 + 2 × 2,048) + 2,048.
    expect(parameters).toBe(
      2 * 128_256 * 2048 +
        16 * (2 * 2048 ** 2 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048) +
        2048,
    );
    expect(cluster.gpus).toBe(16);
    expect(training.setting).toMatchObject({
      zero: 1,
      convention: 'megatron',
      globalBatchTokens: 64 * 4096,
    });
  });

  it('counts beside another model, and flags take precedence', async () => {
    const { training, file } = await json(
      ...['fit', 'llama-3.1-8b', '--training-config', `${FILES}/nanotron.yaml`, '--gpu', 'h100'],
      ...['--micro-batch', '1', '--accumulation', '5', '--zero', '0'],
    );
    expect(file).toBe('llama/llama-3.1-8b');
    expect(training.setting).toMatchObject({
      microBatch: 1,
      zero: 0,
      tensorParallel: 2,
      context: 1024,
      globalBatchTokens: 5 * 1024 * 4,
      // 200 steps of that batch.
      trainTokens: 200 * 5 * 1024 * 4,
    });
  });

  it.each([[], ['--pipeline-parallel', '2', '--context-parallel', '2', '--expert-parallel', '4']])(
    'plans the replicas, batch and memory of fit %j',
    async (...axes) => {
      const line = ['qwen3-30b-a3b', '--training-config', `${FILES}/megatron.sh`, ...axes];
      const hardware = ['--gpu', 'h100', '--recompute', 'full'];
      const { training } = await json('fit', ...line, ...hardware);
      const plan = await json('train-plan', ...line, ...hardware);
      const { tensorParallel, pipelineParallel, contextParallel = 1 } = training.setting;
      const replicas = 16 / (tensorParallel * pipelineParallel * contextParallel);
      expect(plan.size).toMatchObject({
        gpus: 16,
        replicas,
        accumulation: 64 / replicas,
        tokensPerStep: 64 * 4096,
        tokens: training.setting.trainTokens,
      });
      expect(plan.hardware.memory.expected).toBe(training.fit.total.expected.value);
      expect(plan.hardware.verdict).toBe(training.fit.verdict);
      expect(plan.trainingConfig.notCounted.map(({ key }: { key: string }) => key)).not.toContain(
        'tensor-model-parallel-size',
      );
    },
  );

  it('plans degrees of the command line, and refuses those that do not divide the GPUs', async () => {
    const line = [
      'train-plan',
      'minimind2-small',
      '--tokens',
      '1B',
      '--gpu',
      'h100',
      '--gpus',
      '8',
    ];
    const { size } = await json(...line, '--tensor-parallel', '2');
    expect(size).toMatchObject({ gpus: 8, replicas: 4 });
    const { code, stderr } = await runHere([...line, '--pipeline-parallel', '3']);
    expect(code).toBe(2);
    expect(stderr).toContain('--pipeline-parallel: 3 does not divide 8 GPUs');
  });

  it('fits adapters as the file has them', async () => {
    const { adapters, purpose } = await json('fit', `${FILES}/axolotl.yaml`, '--gpu', '2x4090');
    expect(purpose).toBe('qlora');
    expect(adapters.setting).toMatchObject({
      rank: 32,
      targets: ['q_proj', 'v_proj'],
      optimizer: 'paged-adamw-8bit',
      microBatch: 2,
      context: 4096,
      recompute: 'full',
    });
  });

  it('counts the optimizer in system memory where the state is divided', async () => {
    const line = ['fit', `${FILES}/axolotl-mistakes.yaml`, '--context', '4096', '--gpu', '8xh100'];
    const { trainingConfig, training } = await json(...line);
    expect(training.setting).toMatchObject({
      zero: 2,
      trainTokens: 100 * 4 * 8 * 4096,
      offload: { part: 'optimizer' },
    });
    const keys = trainingConfig.notCounted.map(({ key }: { key: string }) => key);
    expect(keys).not.toContain('deepspeed (optimizer in system memory)');
    // Each replica would keep all of the optimizer.
    const undivided = await json(...line, '--zero', '0');
    expect(undivided.training.setting.offload).toBeUndefined();
    expect(undivided.trainingConfig.notCounted.map(({ key }: { key: string }) => key)).toContain(
      'deepspeed (optimizer in system memory)',
    );
  });

  it('counts adapters with the division of the file or the flag', async () => {
    const line = ['fit', 'llama-3.1-8b', '--gpu', '4x4090', '--for', 'lora'];
    const weights = async (...more: string[]) => {
      const { adapters } = await json(...line, ...more);
      return [adapters.setting.zero, Number(adapters.fit.frozen.value)];
    };
    const [, divided] = await weights();
    const whole = 2 * 8_030_261_248;
    expect(await weights()).toEqual([3, whole / 4]);
    expect(await weights('--zero', '0')).toEqual([0, whole]);
    // LLaMA-Factory without DeepSpeed and FSDP: DistributedDataParallel.
    const config = ['--training-config', `${FILES}/llama-factory.yaml`];
    expect((await weights(...config))[0]).toBe(0);
    expect(await weights(...config, '--zero', '3')).toEqual([3, divided]);
    const { stdout } = await runHere([...line, ...config]);
    expect(stdout).toMatch(/recompute, DDP\n/);
    expect((await runHere(line)).stdout).toMatch(/recompute, ZeRO-3\n/);
  });

  it('is planned by train-plan, and its mistakes have the line of the file', async () => {
    const { size, learningRate, mistakes, optimizer } = await json(
      'train-plan',
      `${FILES}/nanotron.yaml`,
    );
    expect(size).toMatchObject({
      steps: 200,
      microBatch: 8,
      accumulation: 2,
      gpus: 8,
      context: 1024,
    });
    expect(learningRate).toMatchObject({
      schedule: 'cosine_with_min_lr',
      peak: 5e-4,
      floor: 1e-5,
      warmup: 20,
    });
    expect(optimizer.weightDecay).toBe(0.1);
    const places = mistakes.map(({ place }: { place: string }) => place);
    expect(places).toContain(`${FILES}/nanotron.yaml:45 tokens.train_steps`);
  });

  it('replaces the training of a preset', async () => {
    const line = [
      'train-plan',
      'minimind2-small',
      '--training-config',
      `${FILES}/llama-factory.yaml`,
    ];
    const { size, learningRate } = await json(...line);
    expect(size).toMatchObject({ steps: 300, microBatch: 4, accumulation: 2 });
    expect(learningRate).toMatchObject({ schedule: 'cosine', peak: 1e-4, warmup: 30 });
  });

  it('says what was read, and warns of mistakes', async () => {
    const { stderr } = await runHere([
      'fit',
      `${FILES}/megatron.yaml`,
      '--gpu',
      'h100',
      '--tensor-parallel',
      '1',
    ]);
    expect(stderr).toContain(
      'a training of fixtures/training-configs/megatron.yaml with Megatron-LM',
    );
    expect(stderr).toContain(
      'megatron.yaml:10:33: tensor-model-parallel-size: tensor parallelism of 3 does not divide 8',
    );
  });

  it('requires a model where the file names none', async () => {
    for (const file of ['ds-zero2.json', 'accelerate.yaml']) {
      const { exit, message, suggestion, problems } = await json('fit', `${FILES}/${file}`);
      expect(exit).toBe(2);
      expect(message).toContain('names no model');
      expect(JSON.stringify([suggestion, problems])).toContain('--training-config');
      expect(problems[0]).toMatchObject({ file: `${FILES}/${file}`, line: expect.any(Number) });
    }
    const { training } = await json(
      ...['fit', 'llama-3.1-8b', '--training-config', `${FILES}/accelerate.yaml`, '--gpu', 'h100'],
    );
    expect(training.setting).toMatchObject({ zero: 3, recompute: 'full' });
  });

  it('says the mistake of the file where its sizes cannot be read', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    onTestEnd(() => fs.rmSync(folder, { recursive: true }));
    const script = path.join(folder, 'gpt.sh');
    const sizes = '--num-layers 4 --hiden-size 128 --num-attention-heads 4 --seq-length 128';
    fs.writeFileSync(script, `torchrun pretrain_gpt.py ${sizes} --micro-batch-size 1\n`);
    const { exit, message, problems } = await json('fit', script, '--gpu', 'h100');
    expect(exit).toBe(2);
    expect(message).not.toContain('names no model');
    expect(JSON.stringify(problems)).toContain('hiden-size');
  });

  it('is checked by validate', async () => {
    const names = ['axolotl.yaml', 'torchtitan.toml', 'megatron.sh', 'ds-zero2.json'];
    const { exit, files } = await json(
      'validate',
      ...names.map((name) => `${FILES}/${name}`),
      'hybrid/tiny',
    );
    expect(exit).toBe(0);
    expect(files.map(({ program, family }: Record<string, unknown>) => [program, family])).toEqual([
      ['axolotl', 'qwen3'],
      ['torchtitan', 'llama'],
      ['Megatron-LM', 'llama'],
      ['DeepSpeed', null],
      [undefined, 'hybrid'],
    ]);
  });

  it('names the key of the file where the question is about serving', async () => {
    const line = ['fit', 'llama-3.1-8b', '--training-config', `${FILES}/ds-zero2.json`];
    const { exit, message } = await json(...line, '--gpu', 'h100', '--for', 'serving');
    expect(exit).toBe(2);
    expect(message).toMatch(
      /--for serving does not ask about the training of .*ds-zero2\.json:3 zero_optimization\.stage/,
    );
  });

  it('finds mistakes with validate, also those that need the model', async () => {
    const { exit, problems } = await json('validate', `${FILES}/axolotl-mistakes.yaml`);
    expect(exit).toBe(1);
    const found = problems.map(
      ({ line, message }: Record<string, unknown>) => `${line} ${message}`,
    );
    expect(found).toHaveLength(5);
    expect(found).toContainEqual(
      '4 sequences of 400,000 tokens are longer than the 131,072 positions of the model',
    );
    const { stdout, stderr } = await runHere(['validate', `${FILES}/axolotl-mistakes.yaml`]);
    expect(stdout + stderr).toMatch(
      /axolotl-mistakes\.yaml:3:1: sequnce_len: unknown key[\s\S]*did you mean "sequence_len"\?/,
    );
  });
});

describe('a training of adapters, by train-plan', () => {
  const linesOf = async (file: string) => {
    const line = [`${FILES}/${file}`, '--gpu', '8xh100'];
    return { plan: await json('train-plan', ...line), fit: await json('fit', ...line) };
  };

  it.each(['axolotl.yaml', 'llama-factory.yaml'])(
    '%s: memory and speed are those of fit',
    async (file) => {
      const { plan, fit } = await linesOf(file);
      expect(plan.hardware.memory.expected).toBe(fit.adapters.fit.total.expected.value);
      expect(plan.hardware.tokensPerSecond).toBe(fit.adapters.fit.step.tokensPerSecond.value);
      expect(plan.hardware.verdict).toBe('fits');
      expect(plan.adapters.rank).toBe(fit.adapters.fit.rank);
    },
  );

  it('counts the adapters, and has the length of a fine-tuning', async () => {
    const { plan } = await linesOf('axolotl.yaml');
    expect(plan.adapters).toMatchObject({ kind: 'qlora', rank: 32, targets: ['q_proj', 'v_proj'] });
    // 36 layers, rank 32: q 4,096 → 4,096 and v 4,096 → 1,024.
    expect(plan.adapters.parameters).toBe(36 * 32 * (4096 + 4096 + 4096 + 1024));
    expect(plan.size.tokens).toBe(30_000_000);
    expect(plan.mistakes).toEqual([]);
    expect(plan.trainingConfig.notCounted.map(({ key }: { key: string }) => key)).not.toContain(
      'adapter',
    );
    const { stdout, stderr } = await runHere([
      'train-plan',
      `${FILES}/axolotl.yaml`,
      '--gpu',
      '8xh100',
    ]);
    expect(stdout).toMatch(
      /^QLoRA of 8\.19B parameters on 30\.0M tokens: 115 steps; no mistake found$/m,
    );
    expect(stderr).toContain('10.0M tokens are assumed; write --data-tokens N, or --data FILE');
  });

  it('keeps the epochs of the config in an emitted one', async () => {
    const { stdout } = await runHere(['train-plan', `${FILES}/axolotl.yaml`, '--emit', 'axolotl']);
    expect(stdout).toMatch(/^num_epochs: 3$/m);
    expect(stdout).not.toContain('max_steps');
  });

  it.each(['torchtitan', 'megatron'])(
    'is refused by --emit %s, which trains all weights',
    async (name) => {
      for (const line of [
        ['fit', 'qwen3-8b', '--gpu', '8xh100', '--for', 'lora'],
        ['train-plan', `${FILES}/axolotl.yaml`],
      ]) {
        const { code, stdout, stderr } = await runHere([...line, '--emit', name]);
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
        expect(stderr).toContain('write --emit axolotl');
      }
    },
  );
});

describe('the next command', () => {
  it('of validate plans on as many GPUs as the degrees of the config need', async () => {
    const file = `${FILES}/torchtitan.toml`;
    const { stdout } = await runHere(['validate', file]);
    expect(stdout).toContain(`Next: minimind train-plan ${file}`);
    const { size, exit } = await json('train-plan', file);
    expect({ exit, gpus: size.gpus }).toEqual({ exit: 0, gpus: 2 });
    const { stderr } = await runHere(['train-plan', file, '--gpus', '1']);
    expect(stderr).toContain('write 1, or ask for more with --gpus 2');
  });

  it('of profile keeps the name, the type and the context', async () => {
    const { stdout } = await runHere([
      'profile',
      'qwen3-8b',
      '--dtype',
      'int4',
      '--context',
      '4096',
    ]);
    expect(stdout).toMatch(/^Next: minimind fit qwen3-8b --dtype int4 --context 4096 {2,}/m);
  });
});
