import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { significant } from '../../../src/base/text/units.js';
import { median } from '../../../src/base/values.js';
import { proportionalLayers } from '../../../src/estimate/fit/places/card-layers.js';
import { layeredModel, placedContent } from '../../../src/estimate/fit/places/placed-parts.js';
import { placesFit } from '../../../src/estimate/fit/places/places.js';
import { PUBLISHED_SPREADS } from '../../../src/estimate/fit/published-range.js';
import { servedWeights } from '../../../src/estimate/fit/serving/quantized.js';
import type { ServingFitSetting } from '../../../src/estimate/fit/serving/serving-work.js';
import { sequenceState, servedModel } from '../../../src/estimate/fit/serving/serving-work.js';
import { usualFormat, type WeightDtype } from '../../../src/estimate/fit/serving/weight-types.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import { PROCESSOR, systemMemory } from '../../../src/estimate/hardware/system-memory.js';
import { openModelSource } from '../../../src/input/model-input/model-source.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { inPackage } from '../../fixtures.js';

const modelOf = async (name: string): Promise<LanguageModel> =>
  (await (await openModelSource(name, {})).model([])).model;

const clusterOf = (name: string) => clusterNamed(name, undefined, { gpus: [], machines: [] });

const RTX_2080 = clusterOf('rtx-2080');

const settingOf = (
  cluster: ServingFitSetting['cluster'],
  dtype: WeightDtype,
  context = 2048,
): ServingFitSetting => ({
  cluster,
  weights: usualFormat(dtype),
  cacheDtype: 'bf16',
  stateDtype: 'bf16',
  context,
  batch: 1,
  prompt: context - 128,
  output: 128,
  tensorParallel: 1,
});

const wish = (
  gpuLayers?: number,
  cpuExperts?: number,
  speed?: string,
  bytes: number | null = null,
) => ({
  memory: systemMemory(bytes, speed),
  gpuLayers,
  cpuExperts,
  maySpill: true,
});

const I9_10900X = '102GB/s';

/** Model, type, card, number of cards, `-ngl`, `--n-cpu-moe`, memory, tokens per second, source. */
type Run = readonly [string, WeightDtype, string, number, number, number, string, number, string];

const LLMFIT = 'llmfit, pull requests 755, 774, 775 and 778';

/** Runs of llama.cpp: AlexsJones/llmfit and issues and pull requests of ggml-org/llama.cpp. */
const RUNS: readonly Run[] = [
  ['gemma-3-12b', 'q4_k_m', 'rtx-2080', 1, 44, 0, I9_10900X, 26.1, LLMFIT],
  ['qwen3-14b', 'q4_k_m', 'rtx-2080', 1, 32, 0, I9_10900X, 16.9, LLMFIT],
  ['phi-4', 'q4_k_m', 'rtx-2080', 1, 32, 0, I9_10900X, 16.7, LLMFIT],
  ['gemma-2-9b', 'q4_k_m', 'rtx-2080', 1, 36, 0, I9_10900X, 23.7, LLMFIT],
  ['qwen2.5-14b', 'q4_k_m', 'rtx-2080', 1, 42, 0, I9_10900X, 20.8, LLMFIT],
  ['mistral-small-24b', 'q4_k_m', 'rtx-2080', 1, 16, 0, I9_10900X, 5.2, LLMFIT],
  ['deepseek-coder-v2-lite', 'q4_k_m', 'rtx-2080', 1, 99, 16, I9_10900X, 49.6, LLMFIT],
  ['qwen3-30b-a3b', 'q4_k_m', 'rtx-2080', 1, 99, 36, I9_10900X, 36.7, LLMFIT],
  ['gpt-oss-20b', 'mxfp4', 'rtx-2080', 1, 99, 12, I9_10900X, 36.4, LLMFIT],
  // DeepSeek-V3.2, whose other layers are those of V3, on an Epyc 9374F.
  [
    'deepseek-v3',
    'q8_0',
    'rtx-pro-6000-blackwell',
    1,
    99,
    999,
    '12xddr5-4800',
    10.91,
    'llama.cpp 23346',
  ],
  // The memory is not stated.
  ['gpt-oss-120b', 'mxfp4', 'rtx-5090', 2, 99, 3, 'ddr5-5600', 108, 'llama.cpp 15077'],
  // Processors alone.
  ['mixtral-8x7b', 'q8_0', 'cpu', 1, 0, 0, 'ddr4-3600', 3.58, 'llama.cpp 4716'],
  ['mixtral-8x7b', 'q8_0', 'cpu', 1, 0, 0, 'ddr5-3600', 3.37, 'llama.cpp 4716'],
  ['qwen2.5-32b', 'q4_k_m', 'cpu', 1, 0, 0, 'ddr5-5600', 3.54, 'llama.cpp 19480'],
  ['llama-2-7b', 'q4_k_m', 'cpu', 1, 0, 0, 'ddr4-2667', 7.22, 'llama.cpp 7244'],
  ['deepseek-coder-v2-lite', 'q6_k', 'cpu', 1, 0, 0, 'ddr4-2133', 9.51, 'llama.cpp 12922'],
];

const clusterOfRun = (card: string, gpus: number) =>
  card === 'cpu' ? PROCESSOR : { ...clusterOf(card), gpus };

describe('a model in system memory', () => {
  it('decodes as fast as published runs', async () => {
    const { lower, upper, runs } = PUBLISHED_SPREADS['decode-places'];
    expect(RUNS).toHaveLength(runs);
    const ratios: number[] = [];
    const rows: string[] = [];
    for (const [name, dtype, card, gpus, layers, experts, speed, measured, source] of RUNS) {
      const setting = settingOf(clusterOfRun(card, gpus), dtype, 1024);
      const { decode } = placesFit(
        await modelOf(name),
        setting,
        wish(layers, experts, speed),
        true,
      );
      const estimate = decode.tokensPerSecond.expected.value;
      ratios.push(measured / estimate);
      const place = [gpus > 1 ? `${gpus} × ${card}` : card, speed].join(', ');
      const flags =
        card === 'cpu' ? '–' : `-ngl ${layers}${experts > 0 ? ` --n-cpu-moe ${experts}` : ''}`;
      rows.push(
        `| ${name}, ${dtype} | ${place} | ${flags} | ${measured} | ${significant(estimate)} | ${(estimate / measured).toFixed(2)} | ${source} |`,
      );
      expect(decode.tokensPerSecond.lower.value, name).toBeLessThan(measured);
      expect(decode.tokensPerSecond.upper.value, name).toBeGreaterThan(measured);
    }
    const [, table = ''] =
      /<!-- places: start -->\n\|.*\n\|.*\n([\s\S]*)\n<!-- places: end -->/.exec(
        fs.readFileSync(inPackage('docs/fit-accuracy.md'), 'utf8'),
      ) ?? [];
    expect(table.split('\n')).toEqual(rows);
    ratios.sort((a, b) => a - b);
    expect(ratios[0]).toBeGreaterThan(lower);
    expect(ratios.at(-1)).toBeLessThan(upper);
    const middle = median(ratios);
    expect(middle).toBeGreaterThan(0.9);
    expect(middle).toBeLessThan(1.1);
  });

  it.each([
    'qwen3-30b-a3b',
    'gemma-3-4b',
    'deepseek-v3',
    'fixtures/hf/zamba2-7-0/config.json',
    'fixtures/hf/gemma3n-text-7-17/config.json',
    'fixtures/hf/bamba/config.json',
    'hybrid/shared',
    'minimind2-small',
  ])('is divided without loss: %s', async (name) => {
    const model = await modelOf(name);
    const setting = settingOf(RTX_2080, 'q8_0', 300);
    const served = servedModel(model, setting);
    const layered = layeredModel(served, 300);
    const weights = Number(servedWeights(served.layout, setting.weights, 1).total.value);
    const { cache, state } = sequenceState(served, 300);
    const whole = weights + Number(cache.value) + Number(state.value);
    const blocks = layered.blocks.length;
    const isTied = model.embedding.weight === model.head.weight;
    for (const gpuLayers of [0, 1, Math.ceil(blocks / 2), blocks, blocks + 1]) {
      for (const cpuExperts of [0, 1, blocks]) {
        const { gpu, system } = placedContent(layered, { gpuLayers, cpuExperts }, 1);
        // The rows of a tied embedding are in system memory, too.
        const again = isTied ? layered.embeddingBytes : 0;
        expect(gpu.bytes + system.bytes - again).toBeCloseTo(whole, 0);
      }
    }
  });

  it('takes the last layers to the GPU, the output first, and the first experts from it', async () => {
    const layered = layeredModel(
      servedModel(await modelOf('qwen3-30b-a3b'), settingOf(RTX_2080, 'q4_k_m')),
      64,
    );
    const { blocks, output } = layered;
    const experts = (part: { expertGroups: readonly { bytes: number }[] }) =>
      part.expertGroups.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(placedContent(layered, { gpuLayers: 1, cpuExperts: 0 }, 1).gpu.bytes).toBe(
      output.weightBytes,
    );
    const last = blocks.at(-1);
    const two = placedContent(layered, { gpuLayers: 2, cpuExperts: 0 }, 1);
    expect(two.gpu.weightBytes).toBe(output.weightBytes + (last?.weightBytes ?? 0));
    expect(two.crossings).toBe(1);
    const apart = placedContent(layered, { gpuLayers: blocks.length + 1, cpuExperts: 3 }, 1);
    const first = blocks.slice(0, 3).reduce((sum, each) => sum + experts(each), 0);
    expect(experts(apart.system)).toBe(first);
    expect(apart.crossings).toBe(6);
    expect(apart.system.weightBytes).toBe(0);
  });

  it.each([
    ['qwen3-30b-a3b', 'rtx-4060', 'q4_k_m'],
    ['llama-3.3-70b', 'rtx-4090', 'q4_k_m'],
    ['gpt-oss-120b', 'rtx-3090', 'mxfp4'],
    ['qwen3-14b', 'rtx-4060', 'q8_0'],
  ] as const)('is placed as fast as fits: %s on %s', async (name, gpu, dtype) => {
    const model = await modelOf(name);
    const setting = settingOf(clusterOf(gpu), dtype);
    const found = placesFit(model, setting, wish(), false);
    expect(found.verdict).toBe('fits');
    const speed = found.decode.tokensPerSecond.expected.value;
    // No placement with a layer, or the experts of one, more on the GPU fits.
    const { gpuLayers, cpuExperts } = found;
    const more = cpuExperts > 0 ? wish(gpuLayers, cpuExperts - 1) : wish(gpuLayers + 1, 0);
    expect(placesFit(model, setting, more, true).verdict).not.toBe('fits');
    const slower = placesFit(model, setting, wish(0, 0), true);
    expect(slower.decode.tokensPerSecond.expected.value).toBeLessThan(speed);
    expect(slower.verdict).toBe('fits');
  });

  it('does not fit where the system memory lacks room for it', async () => {
    const model = await modelOf('llama-3.3-70b');
    const setting = settingOf(clusterOf('rtx-4090'), 'q4_k_m');
    const { verdict, lacking, system } = placesFit(
      model,
      setting,
      wish(undefined, undefined, undefined, 16e9),
      true,
    );
    expect(verdict).toBe('does not fit');
    expect(lacking).toBe(system.value + 3e9 - 16e9);
  });
});

describe('GPUs of several kinds', () => {
  const placed = async (gpu: string, name: string, dtype: WeightDtype, more = {}) =>
    placesFit(
      await modelOf(name),
      settingOf(clusterOf(gpu), dtype),
      { ...wish(999, 0), maySpill: false, ...more },
      true,
    );

  it('share the layers in proportion to their memory, as llama.cpp does', () => {
    // 24 and 8 GB, 33 layers: layer 24 is at 24/33 = 0.727, the last below 0.75.
    expect(proportionalLayers(33, [24, 8])).toEqual([25, 8]);
    expect(proportionalLayers(4, [1, 1])).toEqual([2, 2]);
    expect(proportionalLayers(3, [1, 0])).toEqual([3, 0]);
    expect(proportionalLayers(0, [1, 2])).toEqual([0, 0]);
  });

  it('hold all of a model that no single one holds, and the faster one holds more', async () => {
    const { verdict, cards, cardLayers, inSystem, onGpus, isSplit } = await placed(
      '5090+3090',
      'llama-3.3-70b',
      'q4_k_m',
    );
    expect(verdict).toBe('fits');
    expect(cards.map(({ gpu }) => gpu)).toEqual(['rtx-5090', 'rtx-3090']);
    expect(cards.reduce((sum, { layers }) => sum + layers, 0)).toBe(81);
    expect(cards.map(({ layers }) => layers)).toEqual(cardLayers);
    expect(cards.reduce((sum, { holds }) => sum + holds.weights, 0)).toBeCloseTo(onGpus.weights, 0);
    expect(inSystem.weights + inSystem.experts).toBe(0);
    for (const { memory, capacity } of cards) {
      expect(memory.upper.value).toBeLessThan(capacity.value);
    }
    // Another layer on the faster GPU does not fit.
    const [first] = cards;
    const layer = (first?.holds.weights ?? 0) / (first?.layers ?? 1);
    expect((first?.capacity.value ?? 0) - (first?.memory.upper.value ?? 0)).toBeLessThan(layer);
    expect(isSplit).toBe(true);
  });

  it('take the times of both in turn', async () => {
    const seconds = async (gpu: string, tensorSplit?: readonly number[]) =>
      (await placed(gpu, 'qwen3-14b', 'q4_k_m', { tensorSplit })).decode.seconds.expected.value;
    const [fast, slow] = [await seconds('4090'), await seconds('3060')];
    const half = await seconds('4090+3060', [1, 1]);
    expect(half).toBeGreaterThan(fast);
    expect(half).toBeLessThan(slow);
    expect(half).toBeCloseTo((fast + slow) / 2, 2);
    // Without proportions, the faster one takes all.
    expect(await seconds('4090+3060')).toBeCloseTo(fast, 4);
  });

  it('compute a prompt in turn, and pass the values of each token once', async () => {
    const seconds = async (gpu: string, tensorSplit?: readonly number[]) =>
      (await placed(gpu, 'qwen3-14b', 'q4_k_m', { tensorSplit })).prefill?.expected.value ?? 0;
    const [fast, slow] = [await seconds('4090'), await seconds('3060')];
    const layers = 41;
    const [onFast, onSlow] = proportionalLayers(layers, [1, 1]) as [number, number];
    // 1,920 tokens of 5,120 values in float32, over the slower link.
    const passing = (await seconds('4090+3060', [1, 1])) - (onFast * fast + onSlow * slow) / layers;
    const bytes = 1920 * 5120 * 4;
    const { link } = await placed('4090+3060', 'qwen3-14b', 'q4_k_m', { tensorSplit: [1, 1] });
    expect(passing).toBeCloseTo(bytes / (link?.bandwidth ?? 0), 9);
    // A single card passes nothing, also where the other one holds no layers.
    expect(await seconds('4090+3060', [1, 0])).toBeCloseTo(fast, 9);
    const three = (await seconds('3x4090', [1, 1, 1])) - fast;
    const { link: ofThree } = await placed('3x4090', 'qwen3-14b', 'q4_k_m');
    expect(three).toBeCloseTo((2 * bytes) / (ofThree?.bandwidth ?? 0), 9);
  });

  it('of equal speed share equally', async () => {
    const { cardLayers } = await placed('2x3090+4090', 'llama-3.3-70b', 'q4_k_m');
    const [a = 0, b = 0, c = 0] = cardLayers ?? [];
    expect(Math.abs(a - b)).toBeLessThanOrEqual(1);
    expect(c).toBeGreaterThan(a);
  });

  it('leave the experts that they do not hold in system memory', async () => {
    const found = await placed('4090+3060', 'gpt-oss-120b', 'mxfp4', wish());
    expect(found.verdict).toBe('fits');
    expect(found.cpuExperts).toBeGreaterThan(0);
    expect(found.inSystem.experts).toBeGreaterThan(20e9);
  });
});

describe('system memory', () => {
  it.each([
    ['ddr5-5600', 89.6e9],
    ['DDR4-3200', 51.2e9],
    ['4xddr4-3200', 102.4e9],
    ['12 x ddr5-4800', 460.8e9],
    ['8xLPDDR5X-8533', 546.112e9],
    ['102GB/s', 102e9],
    ['76.8 gb/s', 76.8e9],
  ])('has the bandwidth of its channels: %s', (text, bandwidth) => {
    const found = systemMemory(null, text);
    expect(found.bandwidth).toBeCloseTo(bandwidth, -3);
    expect(found.isAssumed).toBe(false);
  });

  it.each([
    '',
    'fast',
    'ddr5',
    'ddr9-5600',
    '0xddr5-5600',
    '99xddr5-5600',
    'ddr5-1',
    '0GB/s',
    '-1GB/s',
    '1e400GB/s',
  ])('refuses %j', (text) => {
    expect(() => systemMemory(null, text)).toThrow(/expected the speed of a memory/);
  });
});
