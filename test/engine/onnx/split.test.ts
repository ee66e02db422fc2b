import { describe, expect, it } from 'vitest';
import { queriesOfBlock } from '../../../src/engine/block-size.js';
import { compile } from '../../../src/engine/onnx/compile.js';
import { ON_CPU, type Target } from '../../../src/engine/onnx/context.js';
import { checkFits, largestValue } from '../../../src/engine/onnx/largest-tensor.js';
import { PlacedWeights } from '../../../src/engine/onnx/placed-weights.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { casesToRun, familyCase } from '../family-cases.js';
import { fixtureModel, modelOfConfig } from '../fixture-models.js';
import { partOf } from '../sequences.js';
import { largestDifference } from '../tfjs/support.js';
import { decoded, describeWithOnnx, loaded, loadedFor } from './support.js';

const TOKENS = 5;

/** A target that can hold no longer input than this. */
function tightFor(model: LanguageModel, batch: number, tokens = TOKENS): Target {
  const none = { provider: 'webgpu', compute: 'f32', maxBindingBytes: 0 } as const;
  const { elements } = largestValue(model, { batch, tokens, start: 0 }, none);
  return { ...none, maxBindingBytes: 4 * elements };
}

const CASES = casesToRun();

describeWithOnnx('weights too large for one operation', () => {
  it.each(CASES)('give the same logits: %s', async (place) => {
    const hybrid = place.startsWith('hybrid/') && place.slice('hybrid/'.length);
    const { model, weights, ids: all } = hybrid ? fixtureModel(hybrid) : await familyCase(place);
    const ids = partOf(all, 0, TOKENS);
    const target = tightFor(model, ids.batch);
    const isLarge = (elements: number) => 4 * elements > target.maxBindingBytes;
    expect(tensorsOf(model).some(({ elements }) => isLarge(elements))).toBe(true);
    const placed = new PlacedWeights(weights);
    const { graph } = compile(model, (...which) => placed.place(...which), {}, target);
    const sizes = graph.initializers.map(({ shape }) => shape.reduce((all, size) => all * size, 1));
    placed.release();
    expect(sizes.filter(isLarge)).toEqual([]);
    const { output: expected } = await (await loaded(model, weights)).run({ ids });
    const { output } = await (await loadedFor(target, model, weights)).run({ ids });
    expect(output.shape).toEqual(expected.shape);
    expect(largestDifference(output.data, expected.data)).toBeLessThan(2e-5);
    const decoding = { totalTokens: TOKENS };
    const program = await loadedFor(target, model, weights, { decoding });
    const inSteps = await decoded(program, ids, [3, 1, 1]);
    expect(largestDifference(inSteps.data, expected.data)).toBeLessThan(2e-5);
  });

  it.each([1, 2, 3])('give the same logits with %d heads at a time', async (most) => {
    const target = {
      provider: 'webgpu',
      compute: 'f32',
      maxBindingBytes: 4 * most * 4096 ** 2,
    } as const;
    for (const place of [
      'hf/bloom',
      'hf/gemma2-window',
      'hf/deepseek-v3',
      'hf/qwen2-moe',
      'minigpt/tiny-gqa',
    ]) {
      const { model, weights, ids } = await familyCase(place);
      const { output: expected } = await (await loaded(model, weights)).run({ ids });
      const { output } = await (await loadedFor(target, model, weights)).run({ ids });
      expect(largestDifference(output.data, expected.data), place).toBeLessThan(2e-5);
    }
  });

  it('give the same outputs of every layer', async () => {
    const { model, weights, ids: all } = await familyCase('hf/gpt2');
    const ids = partOf(all, 0, TOKENS);
    const target = tightFor(model, ids.batch);
    const wide = { ...target, maxBindingBytes: target.maxBindingBytes * 4 };
    const options = { taps: true };
    const { taps: expected } = await (await loaded(model, weights, options)).run({ ids });
    const { taps } = await (await loadedFor(wide, model, weights, options)).run({ ids });
    expect([...taps.keys()]).toEqual([...expected.keys()]);
    for (const [path, { data }] of expected) {
      expect(largestDifference(taps.get(path)?.data ?? [], data), path).toBeLessThan(2e-5);
    }
  });
});

describeWithOnnx('attention in blocks of queries', () => {
  it.each(CASES)('gives the same outputs: %s', async (place) => {
    const hybrid = place.startsWith('hybrid/') && place.slice('hybrid/'.length);
    const { model, weights, ids } = hybrid ? fixtureModel(hybrid) : await familyCase(place);
    // Blocks of equal size; others, with rows that belong to no token; and one for each token.
    for (const queriesPerBlock of [2, 3, 1]) {
      const { output: expected } = await (await loaded(model, weights)).run({ ids });
      const target = { ...ON_CPU, queriesPerBlock };
      const { output, blocks } = await (await loadedFor(target, model, weights)).run({ ids });
      expect(output.shape).toEqual(expected.shape);
      expect(blocks.size).toBe(model.blocks.length);
      expect(largestDifference(output.data, expected.data)).toBeLessThan(2e-5);
    }
  });

  it('gives the same logits where a sequence is long enough for several', async () => {
    const tokens = 2100;
    const config = {
      num_layers: 1,
      num_heads: 8,
      global_heads: 4,
      max_position_embeddings: tokens,
    };
    const model = modelOfConfig({ ...config, vocab_size: 50, hidden_size: 16, window_size: 300 });
    const ids = { batch: 1, tokens, data: Int32Array.from({ length: tokens }, (_, at) => at % 50) };
    expect(queriesOfBlock(4, 1, tokens)).toBeLessThan(tokens);
    const weights = randomWeights(model, 0);
    const { output } = await (await loaded(model, weights)).run({ ids });
    const whole = await loadedFor({ ...ON_CPU, queriesPerBlock: tokens }, model, weights);
    const { output: expected } = await whole.run({ ids });
    expect(largestDifference(output.data, expected.data)).toBeLessThan(2e-5);
  });

  it('gives the logits of the last tokens, of each sequence', async () => {
    const { model, weights, ids } = await familyCase('hf/gemma2-window');
    const program = await loaded(model, weights);
    const { output: all } = await program.run({ ids });
    const { output } = await program.run({ ids, lastTokens: 2 });
    const [batch = 0, tokens = 0, width = 0] = all.shape;
    expect(output.shape).toEqual([batch, 2, width]);
    for (let row = 0; row < batch; row++) {
      const last = all.data.subarray(
        (row * tokens + tokens - 2) * width,
        (row + 1) * tokens * width,
      );
      const own = output.data.subarray(row * 2 * width, (row + 1) * 2 * width);
      expect(largestDifference(own, last)).toBeLessThan(2e-5);
    }
  });
});

const small = modelOfConfig({
  vocab_size: 4000,
  hidden_size: 32,
  num_layers: 1,
  num_heads: 2,
  window_size: 4,
  gate_rank: 2,
  max_position_embeddings: 512,
});

describe('a call with values too large for one operation', () => {
  const target = tightFor(small, 2, 100);

  it('is refused with a size that fits', () => {
    const call = (batch: number, tokens: number, start = 0) => {
      checkFits(small, { batch, tokens, start }, target, true);
    };
    expect(() => call(2, 100)).not.toThrow();
    expect(() => call(5, 100)).toThrow(
      expect.objectContaining({
        code: 'system',
        message: expect.stringContaining('5 × 100 tokens need a tensor of'),
        suggestion: 'take a batch of at most 2, or --device cpu',
      }),
    );
    // The widest product makes 2 · 100 · 130 values; the scores of a head are tokens · keys.
    expect(() => call(3, 400)).toThrow(
      expect.objectContaining({ suggestion: expect.stringContaining('at most 161 tokens') }),
    );
  });

  it('includes logits where they do not leave the graph in parts', () => {
    const call = { batch: 2, tokens: 100, start: 0 };
    expect(() => checkFits(small, call, target, false)).toThrow('lm_head');
  });
});
