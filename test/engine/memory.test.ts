import { describe, expect, it } from 'vitest';
import { scaledDownProxy } from '../../src/check/test-context.js';
import type { EngineName } from '../../src/engine/engine.js';
import {
  decodingBytes,
  fitsInMemory,
  memoryNeed,
  peakBytes,
  type Runner,
  refuseDecoding,
  streamedNeed,
  usableBytes,
} from '../../src/engine/memory.js';
import { loadModelFile } from '../../src/input/model-input/read-model-file.js';
import { type FamilyName, loadFamily } from '../../src/model/architecture/families.js';
import { hybrid } from '../../src/model/architecture/models/hybrid.js';
import { presetDocument } from '../../src/model/architecture/presets.js';
import { walk } from '../../src/model/architecture/walk.js';
import { countParameters } from '../../src/model/budget/parameters.js';
import { inPackage } from '../fixtures.js';
import { publishedConfig, publishedModels } from '../model/budget/published-models.js';
import { familyCase } from './family-cases.js';
import { fixtureModel, modelOfConfig } from './fixture-models.js';

describe('memory of decoding', () => {
  const { model } = fixtureModel('shared-learnable');

  it('grows with the context, and shrinks with quantized weights', () => {
    const bytes = (tokens: number, form?: { bits: 4 | 8; group: 32 }) =>
      decodingBytes({ model, form }, tokens, { name: 'onnx' });
    expect(bytes(4096)).toBeGreaterThan(bytes(512));
    expect(bytes(512, { bits: 4, group: 32 })).toBeLessThan(bytes(512, { bits: 8, group: 32 }));
    expect(bytes(512, { bits: 8, group: 32 })).toBeLessThan(bytes(512));
  });

  it('is refused with a suggestion when there is too little', () => {
    const refuse = (usable: number) => () =>
      refuseDecoding([{ model }], 64, { name: 'onnx' }, usable);
    expect(refuse(1e9)).not.toThrow();
    expect(refuse(1000)).toThrow('expected at most 0.0 GB');
    expect(refuse(1000)).toThrow(
      expect.objectContaining({ suggestion: expect.stringContaining('--weights int4') }),
    );
  });
});

describe('memory of a forward pass', () => {
  const model = modelOfConfig({ ...presetDocument('hybrid', 'tiny').model });

  it('includes the weights in float32 and the activations of a block', () => {
    const need = memoryNeed(model, { batch: 1, tokens: 100 }, { name: 'onnx' });
    expect(need.weightBytes).toBe(4 * countParameters(model).parameters);
    expect(need.totalBytes).toBe(Math.ceil(1.1 * need.weightBytes) + need.activationBytes);
    // The scores of four heads and the logits are included.
    expect(need.activationBytes).toBeGreaterThan(4 * (4 * 100 ** 2 + 100 * 256));
  });

  it('grows with batch and context, but hardly with layers', () => {
    const small = memoryNeed(model, { batch: 1, tokens: 100 }, { name: 'tfjs' });
    const long = memoryNeed(model, { batch: 1, tokens: 200 }, { name: 'tfjs' });
    expect(long.activationBytes).toBeGreaterThan(2 * small.activationBytes);
    const deeper = modelOfConfig({ ...presetDocument('hybrid', 'tiny').model, num_layers: 9 });
    const deep = memoryNeed(deeper, { batch: 1, tokens: 100 }, { name: 'tfjs' });
    // Only by the output of each layer.
    expect(deep.activationBytes - small.activationBytes).toBe(7 * 100 * 64 * 4);
  });

  it('is linear in a long context, where attention runs in blocks of queries', async () => {
    const need = (each: typeof model, tokens: number, runner: Runner = { name: 'onnx' }) =>
      memoryNeed(each, { batch: 1, tokens }, runner).totalBytes;
    const growth = (runner?: Runner) => need(model, 65_536, runner) / need(model, 16_384, runner);
    expect(growth()).toBeLessThan(4);
    expect(growth({ name: 'onnx', compute: 'f16' })).toBeGreaterThan(12);
    expect(growth({ name: 'onnx', provider: 'cuda' })).toBeGreaterThan(12);
    const { model: chooses } = await familyCase('hf/deepseek_v32-7-1');
    expect(need(chooses, 65_536) / need(chooses, 16_384)).toBeGreaterThan(12);
  });

  it('is less when the model runs layer by layer', () => {
    const size = { batch: 1, tokens: 100 };
    const [whole, streamed] = [memoryNeed, streamedNeed].map((need) =>
      need(model, size, { name: 'onnx' }),
    );
    expect(streamed?.weightBytes).toBeLessThan((whole?.weightBytes ?? 0) / 2);
    expect(streamed?.activationBytes).toBe(whole?.activationBytes);
  });

  it('is compared with the usable memory', () => {
    const need = { weightBytes: 100, activationBytes: 50, resultBytes: 20, totalBytes: 160 };
    // The results of two passes are kept while a third runs.
    expect([fitsInMemory(need, 200), fitsInMemory(need, 199)]).toEqual([true, false]);
    expect(usableBytes({ provider: 'cpu' })).toBeLessThan(process.availableMemory());
    expect(usableBytes({ provider: 'wasm' })).toBeLessThan(2 ** 32);
  });

  it('is compared with the peak', () => {
    expect(peakBytes()).toBeGreaterThanOrEqual(process.memoryUsage.rss() / 2);
  });
});

/**
 * Growth of the peak resident set, in megabytes, when a process loads a model and runs it once. Linux with Node 20.20,
 * onnxruntime-node 1.30.0 and tfjs-backend-wasm 4.22.0, two threads. tiny has 65,536 positions.
 */
describe('predictions are 0.9 to 1.5 times the measurements:', () => {
  const MEASURED: [EngineName, 'tiny' | 'bench-60m', object, number, number, number][] = [
    ['onnx', 'tiny', {}, 1, 256, 9],
    ['onnx', 'tiny', {}, 1, 1024, 54],
    ['onnx', 'tiny', {}, 1, 2048, 111],
    ['onnx', 'tiny', {}, 1, 4096, 279],
    ['onnx', 'tiny', {}, 1, 8192, 300],
    ['onnx', 'tiny', {}, 1, 16384, 454],
    ['onnx', 'tiny', {}, 4, 2048, 219],
    ['onnx', 'tiny', { global_heads: 4 }, 1, 2048, 119],
    ['onnx', 'tiny', { global_heads: 0 }, 1, 2048, 91],
    ['onnx', 'tiny', { global_heads: 0 }, 1, 8192, 138],
    ['onnx', 'tiny', { num_layers: 6 }, 1, 4096, 291],
    ['onnx', 'bench-60m', {}, 1, 512, 391],
    ['onnx', 'bench-60m', {}, 1, 2048, 774],
    ['onnx', 'bench-60m', {}, 4, 512, 726],
    ['onnx', 'bench-60m', { num_layers: 2 }, 1, 2048, 554],
    ['tfjs', 'tiny', {}, 1, 256, 27],
    ['tfjs', 'tiny', {}, 1, 1024, 65],
    ['tfjs', 'tiny', {}, 1, 2048, 93],
    ['tfjs', 'tiny', {}, 1, 4096, 132],
    ['tfjs', 'tiny', {}, 1, 8192, 250],
    ['tfjs', 'tiny', {}, 4, 2048, 205],
    ['tfjs', 'tiny', { global_heads: 4 }, 1, 2048, 99],
    ['tfjs', 'tiny', { global_heads: 0 }, 1, 2048, 85],
    ['tfjs', 'tiny', { global_heads: 0 }, 1, 8192, 220],
    ['tfjs', 'tiny', { num_layers: 6 }, 1, 4096, 174],
    ['tfjs', 'bench-60m', {}, 1, 512, 595],
    ['tfjs', 'bench-60m', {}, 1, 2048, 834],
    ['tfjs', 'bench-60m', {}, 4, 512, 870],
    ['tfjs', 'bench-60m', { num_layers: 2 }, 1, 2048, 458],
  ];

  it.each(MEASURED)(
    '%s, %s %j: %i × %i tokens',
    (engine, name, changes, batch, tokens, megabytes) => {
      const positions = name === 'tiny' ? { max_position_embeddings: 65_536 } : {};
      const model = modelOfConfig({
        ...presetDocument('hybrid', name).model,
        ...positions,
        ...changes,
      });
      const { totalBytes } = memoryNeed(model, { batch, tokens }, { name: engine });
      const ratio = totalBytes / 1e6 / megabytes;
      // Small measurements are mostly overhead of the engine.
      if (megabytes > 50) expect(ratio).toBeGreaterThan(0.9);
      expect(ratio).toBeLessThan(1.5);
    },
  );
});

/** The same for quick-test of a fixture with 4,096 positions. */
describe('predictions where attention is not in blocks are 0.8 to 1.6 times the measurements:', () => {
  const MEASURED: [string, string[], Partial<Runner>, number, number, number][] = [
    ['llama', [], { compute: 'f16' }, 1, 3000, 621],
    ['llama', [], { compute: 'f16' }, 3, 3000, 1823],
    ['llama', ['model.vocab_size=32000'], { compute: 'f16' }, 3, 600, 788],
    ['deepseek_v32-7-1', [], {}, 2, 1500, 797],
    ['glm_moe_dsa-7-11', [], {}, 1, 1500, 312],
    ['doge-7-6', [], {}, 2, 1500, 119],
  ];

  it.each(MEASURED)('%s %j %j: %i × %i tokens', async (place, changes, runner, ...numbers) => {
    const [batch, tokens, megabytes] = numbers;
    const set = ['model.max_position_embeddings=4096', ...changes];
    const { model } = await loadModelFile(inPackage(`fixtures/hf/${place}/config.json`), { set });
    const { totalBytes } = memoryNeed(model, { batch, tokens }, { name: 'onnx', ...runner });
    const ratio = totalBytes / 1e6 / megabytes;
    expect(ratio).toBeGreaterThan(0.8);
    expect(ratio).toBeLessThan(1.6);
  });
});

describe('a proxy', () => {
  const proxy = (config: Record<string, unknown>, tokens = 512) =>
    scaledDownProxy(hybrid, hybrid.schema.parse({ model: config }), tokens);

  it('is small and has the same structure', () => {
    const { model, changes } = proxy({});
    expect(countParameters(model).parameters).toBeLessThan(10e6);
    expect(changes).toEqual([
      { path: 'model.hidden_size', from: 4096, to: 256 },
      { path: 'model.num_layers', from: 32, to: 4 },
      { path: 'model.vocab_size', from: 50432, to: 1024 },
      { path: 'model.max_position_embeddings', from: 65536, to: 2048 },
      { path: 'model.window_size', from: 1024, to: 256 },
      { path: 'model.gate_rank', from: 256, to: 16 },
    ]);
    const [block] = model.blocks;
    expect(block).toMatchObject({
      attention: { heads: 32, spans: [{ heads: 30 }, { heads: 2, window: undefined }] },
    });
  });

  it('keeps sharing, tying and the form of the SRTE', () => {
    const { model } = proxy({ srte_factorized_rank: 128, tie_word_embeddings: true });
    expect(model.head.weight).toBe(model.embedding.weight);
    expect(model.shared).toMatchObject([{ kind: 'srteLowRank', lowRank: { shape: [1, 2048, 8] } }]);
  });

  it('uses the required number of tokens', () => {
    expect(proxy({}, 5000).model.positions).toBe(5000);
  });

  it('can be built for models with odd sizes', () => {
    for (const [num_heads, hidden_size] of [
      [7, 7 * 642],
      [512, 8192],
      [1, 6000],
      [96, 12288],
    ]) {
      const { model } = proxy({ num_heads, hidden_size });
      expect(model.hidden % (2 * (num_heads ?? 1))).toBe(0);
      expect(model.hidden).toBeLessThanOrEqual(1024);
    }
  });

  it('of a small model is the model itself', () => {
    expect(proxy({ ...presetDocument('hybrid', 'tiny').model }).changes).toEqual([]);
  });
});

describe('a proxy with the keys of Hugging Face', () => {
  const proxy = async (model: Record<string, unknown> & { family: FamilyName }, tokens = 512) => {
    const family = await loadFamily(model.family);
    return scaledDownProxy(family, family.schema.parse({ model }), tokens);
  };
  const LARGE = {
    llama: {
      vocab_size: 128_256,
      hidden_size: 8192,
      num_attention_heads: 64,
      num_hidden_layers: 80,
    },
    minimind: { hidden_size: 4096, num_attention_heads: 32, num_hidden_layers: 32, use_moe: true },
    minigpt: {
      hidden_size: 8192,
      num_attention_heads: 64,
      num_hidden_layers: 80,
      intermediate_size: 28_672,
    },
  } as const satisfies Partial<Record<FamilyName, Record<string, unknown>>>;

  it.each(Object.entries(LARGE))('is small for the family %s', async (family, config) => {
    const { model } = await proxy({ family: family as FamilyName, ...config });
    expect(countParameters(model).parameters).toBeLessThan(80e6);
  });

  it('keeps grouped heads and their width', async () => {
    const { model, changes } = await proxy({
      family: 'llama',
      ...LARGE.llama,
      num_key_value_heads: 8,
      intermediate_size: 28_672,
    });
    expect(changes).toEqual([
      { path: 'model.hidden_size', from: 8192, to: 512 },
      { path: 'model.num_attention_heads', from: 64, to: 4 },
      { path: 'model.num_key_value_heads', from: 8, to: 2 },
      { path: 'model.intermediate_size', from: 28_672, to: 1792 },
      { path: 'model.num_hidden_layers', from: 80, to: 6 },
      { path: 'model.vocab_size', from: 128_256, to: 1024 },
    ]);
    const [attention] = model.blocks
      .flatMap(walk)
      .map(({ layer }) => layer)
      .filter(({ kind }) => kind === 'attention');
    expect(attention).toMatchObject({ heads: 4, keyValueHeads: 2, headDim: 128 });
  });

  it.each(publishedModels().map(({ model }) => model))('of %s is small', async (name) => {
    const { family, document, model } = await publishedConfig(name);
    const proxy = scaledDownProxy(family, document, 512).model;
    expect(countParameters(proxy).parameters).toBeLessThan(countParameters(model).parameters / 2);
    expect(countParameters(proxy).parameters).toBeLessThan(150e6);
    const kinds = (each: typeof model) => new Set(walk(each).map(({ layer }) => layer.kind));
    expect(kinds(proxy)).toEqual(kinds(model));
  });
});
