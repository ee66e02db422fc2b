/** Expert and context parallelism of a training, against published runs and by their sums. */
import { describe, expect, it } from 'vitest';
import { placesOfToken } from '../../../src/estimate/fit/parallelism/model-axes.js';
import {
  parallelismOf,
  pipelineStages,
} from '../../../src/estimate/fit/parallelism/parallelism.js';
import { stepTimeOf } from '../../../src/estimate/fit/training/step-time.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import { openModelSource } from '../../../src/input/model-input/model-source.js';
import { fit as answer } from '../../../src/library/fit.js';
import { loadModel } from '../../../src/library/models/load-model.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { inPackage } from '../../fixtures.js';
import { DGX_H100, fitSetting } from './settings.js';

const configOf = (name: string) => inPackage(`fixtures/hf-configs/${name}/config.json`);

const modelOf = async (name: string): Promise<LanguageModel> =>
  (await (await openModelSource(configOf(name), {})).model([])).model;

const GIB = 2 ** 30;

const FP8 = { precision: 'fp8', recompute: 'full', attention: 'fused', zero: 3 } as const;

const stepOf = (model: LanguageModel, setting: TrainingFitSetting) => {
  const memory = fitTrainingMemory(model, setting);
  return { memory, step: stepTimeOf(model, setting, memory.stages) };
};

// pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 2 and 6: tokens per second of all GPUs.
const TITAN = [
  { context: 32_768, ring: 1, gib: 83.9, speed: 8 * 3890 },
  { context: 65_536, ring: 2, gib: 84.2, speed: 8 * 2540 },
  { context: 131_072, ring: 4, gib: 84, speed: 8 * 1071 },
] as const;

describe('context parallelism', () => {
  it.each(TITAN)('of $ring has the published memory and speed of Llama 3.1 8B', async (run) => {
    const setting = fitSetting({
      ...{ ...FP8, cluster: DGX_H100(8), context: run.context, contextParallel: run.ring },
    });
    const { memory, step } = stepOf(await modelOf('llama-3.1-8b'), setting);
    expect(memory.total.expected.value / GIB / run.gib).toBeCloseTo(1, 1);
    expect(step.published?.lower).toBeLessThan(run.speed);
    expect(step.published?.upper).toBeGreaterThan(run.speed);
  });

  it.each([
    { context: 32_768, ring: 1, speed: 512 * 76 },
    { context: 65_536, ring: 2, speed: 512 * 47 },
    { context: 131_072, ring: 4, speed: 512 * 31 },
  ])('of $ring has the published speed of Llama 3.1 405B on 512 GPUs', async (run) => {
    const setting = fitSetting({
      ...{ ...FP8, cluster: DGX_H100(512), context: run.context, contextParallel: run.ring },
      ...{ tensorParallel: 8, pipelineParallel: 8, sequenceParallel: true },
      globalBatchTokens: (64 * run.context) / run.ring,
    });
    const { step } = stepOf(await modelOf('llama-3.1-405b'), setting);
    expect(step.published?.lower).toBeLessThan(run.speed);
    expect(step.published?.upper).toBeGreaterThan(run.speed);
  });

  it('leaves each GPU a part of the activations, and all GPUs divide the state', async () => {
    const model = await modelOf('llama-3.1-8b');
    const whole = fitSetting({ ...FP8, cluster: DGX_H100(8), context: 8192 });
    const cut = { ...whole, contextParallel: 4 };
    const partOf = (setting: TrainingFitSetting, name: string) =>
      Number(
        fitTrainingMemory(model, setting).stages[0]?.parts.find(({ part }) => part === name)?.bytes
          .value,
      );
    expect(partOf(cut, 'activations')).toBe(partOf({ ...whole, context: 2048 }, 'activations'));
    expect(partOf(cut, 'optimizer')).toBe(partOf(whole, 'optimizer'));
    expect(parallelismOf(model, cut)).toMatchObject({ replicas: 2, shards: 8 });
  });

  it('is refused for lengths that have no equal parts, and for plain attention', async () => {
    const model = await modelOf('llama-3.1-8b');
    const cut = fitSetting({ ...FP8, cluster: DGX_H100(8), context: 4100, contextParallel: 8 });
    expect(() => parallelismOf(model, cut)).toThrow('4,100 tokens cannot be cut into 16');
    expect(() => parallelismOf(model, { ...cut, context: 4096, attention: 'plain' })).toThrow(
      'requires fused attention',
    );
    const mamba = await modelOf('mamba2-130m');
    expect(() => parallelismOf(mamba, { ...cut, context: 4096 })).toThrow('states of recurrent');
  });
});

describe('expert parallelism', () => {
  // NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary.md (25.11).
  it.each([
    {
      ...{ name: 'gpt-oss-120b', machine: 'dgx-h100', gpus: 64, speed: 360_320 },
      ...{ microBatch: 4, pipelineParallel: 4, expertParallel: 8, tokens: 2_097_152 },
      precision: 'mixed',
    },
    {
      ...{ name: 'deepseek-v3-main', machine: 'gb200-nvl72', gpus: 256, speed: 803_584 },
      ...{ microBatch: 1, pipelineParallel: 4, expertParallel: 64, tokens: 16_777_216 },
      precision: 'mixed',
    },
    {
      ...{ name: 'qwen3-30b-a3b', machine: 'dgx-h100', gpus: 16, speed: 84_400 },
      ...{ microBatch: 2, pipelineParallel: 2, expertParallel: 8, tokens: 2_097_152 },
      precision: 'fp8',
    },
  ] as const)('of $expertParallel has the published speed of $name', async (run) => {
    const { name, machine, gpus, speed, tokens, ...changes } = run;
    const cluster = clusterNamed(machine, gpus, { gpus: [], machines: [] });
    const setting = fitSetting({
      ...{ ...changes, cluster, context: 4096, attention: 'fused', zero: 1 },
      globalBatchTokens: tokens,
    });
    const { step } = stepOf(await modelOf(name), setting);
    expect(step.tokensPerSecond.value / speed).toBeGreaterThan(0.8);
    expect(step.tokensPerSecond.value / speed).toBeLessThan(1.25);
  });

  it('leaves each GPU its experts whole, and the state of all in as many copies less', async () => {
    const model = await modelOf('qwen3-30b-a3b');
    const whole = fitSetting({ cluster: DGX_H100(8), attention: 'fused', zero: 1 });
    const cut = { ...whole, expertParallel: 4 };
    const [all, own] = [whole, cut].map((setting) => {
      const [stage] = pipelineStages(model, parallelismOf(model, setting));
      return Number(stage?.parameters.value);
    }) as [number, number];
    const [stage] = pipelineStages(model, parallelismOf(model, cut));
    const experts = (stage?.experts ?? []).reduce(
      (sum, { elements, count = 1 }) => sum + count * elements,
      0,
    );
    expect(all - own).toBe(3 * experts);
    const optimizerOf = (setting: TrainingFitSetting) =>
      Number(
        fitTrainingMemory(model, setting).stages[0]?.parts.find(({ part }) => part === 'optimizer')
          ?.bytes.value,
      );
    expect(optimizerOf(cut) / optimizerOf(whole)).toBeCloseTo(1, 2);
  });

  it('sends a token to the places of its experts, each once', () => {
    // All experts on each place but the own one.
    expect(placesOfToken({ experts: 8, expertsPerToken: 8 }, 4)).toBe(3);
    expect(placesOfToken({ experts: 8, expertsPerToken: 1 }, 4)).toBeCloseTo(0.75);
    // 256 experts of which 8 on 8 machines: 5.26 of 8, 7 of 8 of them others.
    expect(placesOfToken({ experts: 256, expertsPerToken: 8 }, 8)).toBeCloseTo(4.6, 1);
  });

  it('is refused without experts, and for numbers that do not divide them', async () => {
    const dense = await modelOf('llama-3.1-8b');
    const setting = fitSetting({ cluster: DGX_H100(8), expertParallel: 8 });
    expect(() => parallelismOf(dense, setting)).toThrow('requires a model with routed experts');
    const mixture = await modelOf('qwen3-30b-a3b');
    expect(() => parallelismOf(mixture, { ...setting, expertParallel: 3 })).toThrow(
      'cannot share 128 experts',
    );
    expect(() => parallelismOf(mixture, { ...setting, expertParallel: 16 })).toThrow(
      'does not divide the 8 GPUs',
    );
  });
});

describe('serving on several axes', () => {
  const serve = async (options: Omit<Parameters<typeof answer>[1], 'gpu'>) => {
    const model = await loadModel(configOf('deepseek-v3-main'));
    const { serving } = answer(model, {
      gpu: 'dgx-h200',
      for: 'serving',
      context: 4096,
      ...options,
    });
    if (!serving) throw new Error('no serving');
    return serving;
  };

  it('has the published weights of DeepSeek-R1 on 8 GPUs: 79.41 GiB (HabanaAI/vllm-fork, 809)', async () => {
    const { fit: found } = await serve({ gpus: 8, tensorParallel: 8 });
    expect(Number(found.weights.value) / GIB / 79.41).toBeCloseTo(1, 2);
  });

  it('keeps whole experts and a copy of the attention on each GPU', async () => {
    const shared = await serve({ gpus: 16, tensorParallel: 16 });
    const apart = await serve({ gpus: 16, dataParallelAttention: 16, expertParallel: 16 });
    const partOf = ({ fit: { weightParts } }: typeof shared, name: string) =>
      Number(weightParts.find(({ part }) => part === name)?.bytes.value);
    expect(partOf(apart, 'experts') / partOf(shared, 'experts')).toBeCloseTo(1, 2);
    expect(partOf(apart, 'attention')).toBeGreaterThan(5 * partOf(shared, 'attention'));
    // A latent cache has a copy on each GPU of a layer, and one copy of all on the GPUs of a sequence.
    const room = ({ users }: typeof shared) => users.total.expected.value;
    expect(room(apart)).toBeGreaterThan(10 * room(shared));
  });

  it('cuts caches that would be copies, and gives each stage its blocks', async () => {
    const whole = await serve({ gpus: 8, tensorParallel: 8 });
    const cut = await serve({ gpus: 8, tensorParallel: 8, contextParallel: 8 });
    const cache = ({ fit: { cachePerSequence } }: typeof whole) => Number(cachePerSequence.value);
    expect(cache(whole) / cache(cut)).toBeCloseTo(8, 5);
    const stages = await serve({ gpus: 16, tensorParallel: 8, pipelineParallel: 2 });
    const weights = Number(stages.fit.weights.value) / Number(whole.fit.weights.value);
    expect(weights).toBeGreaterThan(0.5);
    expect(weights).toBeLessThan(0.56);
    expect(stages.users.replicas).toBe(1);
  });

  it('is refused where servers do not divide experts so', async () => {
    await expect(serve({ gpus: 16, tensorParallel: 8, expertParallel: 4 })).rejects.toThrow(
      'among all GPUs of a stage: 8',
    );
    await expect(serve({ gpus: 8, tensorParallel: 8, contextParallel: 3 })).rejects.toThrow(
      '8 hold the same keys',
    );
  });
});
