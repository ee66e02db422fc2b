import { expect, it } from 'vitest';
import { fitTable } from '../../../src/estimate/fit/fit-table.js';
import {
  fitLora,
  loraMemoryOn,
  loraOn,
  QLORA_BASE,
} from '../../../src/estimate/fit/training/lora.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { inPackage } from '../../fixtures.js';

const modelOf = async (name: string) =>
  (await loadModelFile(inPackage(`fixtures/hf-configs/${name}/config.json`), { set: [] })).model;

const settingOn = (gpus: number): TrainingFitSetting => ({
  cluster: { gpu: gpuNamed('h100-80gb'), gpus, network: null },
  microBatch: 1,
  context: 1024,
  precision: 'mixed',
  optimizer: 'adamw',
  recompute: 'none',
  attention: 'fused',
  loss: 'full',
  zero: 3,
  convention: 'zero',
  tensorParallel: 1,
  pipelineParallel: 1,
  sequenceParallel: false,
});

// Rank · layers · the inputs and outputs of each linear layer, by the published config.json:
// Llama-3.1-8B: q, o [4096, 4096]; k, v [1024, 4096]; gate, up [14336, 4096]; down [4096, 14336]:
// 16 · 32 · (2 · 8,192 + 2 · 5,120 + 3 · 18,432) = 512 · 81,920.
// Qwen3-8B: the same attention; gate, up [12288, 4096]; down [4096, 12288]:
// 16 · 36 · (2 · 8,192 + 2 · 5,120 + 3 · 16,384) = 576 · 75,776.
it.each([
  ['llama-3.1-8b', 41_943_040],
  ['qwen3-8b', 43_646_976],
])('adapters of %s have %d parameters', async (name, parameters) => {
  const { adapters } = fitLora(await modelOf(name), settingOn(1));
  expect(adapters.value).toBe(parameters);
});

it('LoRA gives each expert its own adapters', async () => {
  const { adapters } = fitLora(await modelOf('mixtral-8x7b'), settingOn(1));
  const attention = 2 * (4096 + 4096) + 2 * (4096 + 1024);
  expect(adapters.value).toBe(32 * 16 * (attention + 8 * 3 * (4096 + 14_336)));
});

it('LoRA has gradients and optimizer state only for the adapters', async () => {
  const model = await modelOf('llama-3.1-8b');
  const [lora, whole] = [fitLora(model, settingOn(1)), fitTrainingMemory(model, settingOn(1))];
  expect(lora.frozen.value).toBe(2 * 8_030_261_248);
  // 16 bytes of each parameter, and 2 of each frozen one.
  const least = 2 * 8_030_261_248 + 16 * 41_943_040;
  expect(lora.total.lower.value).toBeGreaterThan(least - 2 * 41_943_040);
  expect(lora.total.expected.value).toBeLessThan(whole.total.expected.value - 12 * 8_030_261_248);
});

it('LoRA divides the frozen weights among the replicas with ZeRO-3', async () => {
  const model = await modelOf('llama-3.1-8b');
  const [one, two] = [1, 2].map((gpus) => fitLora(model, settingOn(gpus)));
  expect(two?.frozen.value).toBe(Number(one?.frozen.value) / 2);
});

it('LoRA has the same verdict as in the table of common GPUs', async () => {
  const model = await modelOf('qwen3-8b');
  const training = settingOn(1);
  const rows = fitTable(model, { serving: [], users: undefined, training });
  const single = rows.filter(({ unit }) => unit === 1);
  const counts = single.map(({ name, cells }) => {
    const cluster = { gpu: gpuNamed(name), gpus: 1, network: null };
    const { verdict, gpus } = loraOn(model, { ...training, cluster });
    expect({ verdict, gpus }, name).toEqual({
      verdict: cells[0]?.verdict,
      gpus: cells[0]?.gpus,
    });
    return gpus;
  });
  expect(counts).toContain(null);
  expect(counts).toContain(1);
});

it('the parts of LoRA memory sum to the total', async () => {
  const { frozen, parts, kept, apart, workspaceParts, total } = loraOn(
    await modelOf('llama-3.1-8b'),
    settingOn(1),
  );
  const figures = [frozen, kept, ...parts.map(({ bytes }) => bytes)];
  const bounds = [...(apart ? [apart] : []), ...workspaceParts.map(({ bytes }) => bytes)];
  const sum = [
    ...figures.map(({ value }) => Number(value)),
    ...bounds.map(({ expected }) => expected.value),
  ].reduce((all, each) => all + each, 0);
  expect(sum).toBeCloseTo(total.expected.value, -1);
});

it('LoRA has the rank and the targets that were asked for', async () => {
  const model = await modelOf('llama-3.1-8b');
  const adaptersOf = (wish: Partial<TrainingFitSetting>) =>
    fitLora(model, { ...settingOn(1), ...wish }).adapters.value;
  // torchtune's default for 8B: rank 8; q [4096, 4096] and v [1024, 4096] in 32 layers.
  expect(adaptersOf({ rank: 8, targets: ['q_proj', 'v_proj'] })).toBe(8 * 32 * (8192 + 5120));
  expect(adaptersOf({ targets: ['attention'] })).toBe(16 * 32 * (2 * 8192 + 2 * 5120));
  // No name, and names of every object, are no targets.
  for (const target of ['c_attn', '', '__proto__', 'constructor']) {
    expect(() => adaptersOf({ targets: ['q_proj', target] })).toThrow(
      `no product of the blocks is called "${target}"`,
    );
  }
});

// Published peaks in GiB: torchtune README (RTX 4090, batch 2, 2,048 tokens), unsloth.ai ("8B: 22 GB", "70B: 41 GB").
it.each([
  ['LoRA', undefined, 2, 16.2],
  ['QLoRA', QLORA_BASE, 2, 7.4],
  ['LoRA', undefined, 1, 20.489],
] as const)('%s of Llama-3.1-8B in %s, %d sequences: %d GiB', async (_, base, microBatch, gib) => {
  const setting = {
    ...settingOn(1),
    cluster: { gpu: gpuNamed('rtx-4090'), gpus: 1, network: null },
    ...{ microBatch, context: 2048, recompute: 'full', zero: 0 },
    ...(microBatch === 2 && { loss: 'chunked' }),
  } as const satisfies TrainingFitSetting;
  const { total } = loraMemoryOn(await modelOf('llama-3.1-8b'), setting, base, {
    isSearched: false,
  });
  expect(total.lower.value / 2 ** 30).toBeLessThanOrEqual(gib);
  expect(total.upper.value / 2 ** 30).toBeGreaterThanOrEqual(gib);
  expect(total.expected.value / 2 ** 30 / gib).toBeGreaterThan(0.8);
  expect(total.expected.value / 2 ** 30 / gib).toBeLessThan(1.25);
});
