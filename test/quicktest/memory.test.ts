import { describe, expect, it } from 'vitest';
import { hybrid } from '../../src/architecture/models/hybrid.js';
import { countParameters } from '../../src/budget/parameters.js';
import { fits, memoryNeed, peakBytes, usableBytes } from '../../src/quicktest/memory.js';
import { twinOf } from '../../src/quicktest/twin.js';
import { modelOfConfig } from '../runtime/fixture-models.js';

describe('what a forward pass needs', () => {
  const model = modelOfConfig({ ...hybrid.presets.tiny?.document.model });

  it('is the weights in float32, and what a block computes', () => {
    const need = memoryNeed(model, { batch: 1, tokens: 100 });
    expect(need.weightBytes).toBe(4 * countParameters(model).parameters);
    expect(need.totalBytes).toBe(need.weightBytes + need.activationBytes);
    // The scores of four heads, and the logits, are in it.
    expect(need.activationBytes).toBeGreaterThan(4 * (4 * 100 ** 2 + 100 * 256));
  });

  it('grows with batch and context, and not with layers that run one after the other', () => {
    const small = memoryNeed(model, { batch: 1, tokens: 100 });
    const wide = memoryNeed(model, { batch: 3, tokens: 100 });
    expect(wide.activationBytes).toBe(3 * small.activationBytes);
    const deep = memoryNeed(
      modelOfConfig({ ...hybrid.presets.tiny?.document.model, num_layers: 9 }),
      {
        batch: 1,
        tokens: 100,
      },
    );
    // But for the output of each of them.
    expect(deep.activationBytes - small.activationBytes).toBe(7 * 100 * 64 * 4);
  });

  it('is compared with what there is', () => {
    const need = { weightBytes: 100, activationBytes: 50, totalBytes: 150 };
    // Weights count twice: they are packed while they are made ready.
    expect([fits(need, 250), fits(need, 249)]).toEqual([true, false]);
    expect(usableBytes({ provider: 'cpu' })).toBeLessThan(process.availableMemory());
    expect(usableBytes({ provider: 'wasm' })).toBeLessThan(2 ** 32);
  });

  it('is compared with what was had', () => {
    expect(peakBytes()).toBeGreaterThanOrEqual(process.memoryUsage.rss() / 2);
  });
});

describe('a twin', () => {
  const twin = (config: Record<string, unknown>, tokens = 512) =>
    twinOf('hybrid', hybrid.schema.parse({ model: config }), tokens);

  it('is small, and of the same structure', () => {
    const { model, changes } = twin({});
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
    const { model } = twin({ srte_factorized_rank: 128, tie_word_embeddings: true });
    expect(model.head.weight).toBe(model.embedding.weight);
    expect(model.shared).toMatchObject([{ kind: 'srteLowRank', lowRank: { shape: [1, 2048, 8] } }]);
  });

  it('takes as many tokens as it has to', () => {
    expect(twin({}, 5000).model.positions).toBe(5000);
  });

  it('of a model with odd sizes can be built', () => {
    for (const [num_heads, hidden_size] of [
      [7, 7 * 642],
      [512, 8192],
      [1, 6000],
      [96, 12288],
    ]) {
      const { model } = twin({ num_heads, hidden_size });
      expect(model.norm.weight.elements % (2 * (num_heads ?? 1))).toBe(0);
      expect(model.norm.weight.elements).toBeLessThanOrEqual(1024);
    }
  });

  it('of a small model is the model', () => {
    expect(twin({ ...hybrid.presets.tiny?.document.model }).changes).toEqual([]);
  });
});
