/** Formulas of "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198). */
import { describe, expect, it } from 'vitest';
import type { ActivationSetting } from '../../../src/model/budget/kernel-activations.js';
import { activationsOf } from '../../../src/model/budget/saved-activations.js';
import { gptLike } from './settings.js';

const s = 2048;

const MODELS = {
  'GPT-3': { h: 12_288, a: 96, L: 96, scores: 80, saved: 70 },
  '530B': { h: 20_480, a: 128, L: 105, scores: 64, saved: 65 },
};

/** Activations of a layer that is neither first nor last, with dropout, as the paper counts them. */
const layerOf =
  ({ h, a, L }: { h: number; a: number; L: number }) =>
  (changes: Partial<ActivationSetting>) => {
    const model = gptLike({ vocab_size: 51_200, n_positions: s, n_embd: h, n_layer: L, n_head: a });
    return activationsOf(model, {
      batch: 1,
      context: s,
      bytesPerValue: 2,
      recompute: 'none',
      dropout: true,
      stage: { from: 1, to: 2, microBatches: 1 },
      ...changes,
    });
  };

describe.each(Object.entries(MODELS))('a layer of %s', (_, shape) => {
  const { h, a, scores, saved } = shape;
  const layer = layerOf(shape);
  const total = (changes: Partial<ActivationSetting>) => Number(layer(changes).total.value);
  const sbh = s * h;
  const t = 8;

  it(`keeps scores of 5as/h = ${scores}`, () => {
    const kept = layer({}).parts.find(({ part }) => part === 'scores');
    expect(Number(kept?.bytes.value) / sbh).toBe(scores);
    expect((5 * a * s) / h).toBe(scores);
  });

  it('keeps sbh(34 + 5as/h)', () => expect(total({})).toBe(sbh * (34 + scores)));

  it('keeps sbh(10 + 24/t + 5as/(ht)) with tensor parallelism t', () => {
    expect(total({ tensor: t })).toBe(sbh * (10 + 24 / t + scores / t));
  });

  it('keeps sbh(34 + 5as/h)/t with sequence parallelism', () => {
    expect(total({ tensor: t, sequence: true })).toBe((sbh * (34 + scores)) / t);
  });

  it('keeps 34sbh/t with selective recomputation', () => {
    expect(total({ tensor: t, sequence: true, recompute: 'selective' })).toBe((34 * sbh) / t);
  });

  it('keeps 2sbh with full recomputation, plus the current layer', () => {
    const { parts } = layer({ tensor: t, recompute: 'full' });
    expect(parts.map(({ part }) => part)).toEqual(['blockInputs', 'oneBlock']);
    expect(parts[0]?.bytes.value).toBe(2 * sbh);
  });

  it(`saves ${saved} % by selective recomputation`, () => {
    const share = 1 - total({ recompute: 'selective' }) / total({});
    expect((100 * share).toFixed(0)).toBe(String(saved));
  });
});

describe('a stage at an end of the model', () => {
  // Section 4.3: sbhp/t of the embeddings' dropout; 4sbh/t(1 + v/h) of norm, head and loss, in the last stage.
  const shape = { h: 1024, a: 16, L: 4 };
  const t = 2;
  const stage = (from: number, to: number, microBatches: number) =>
    Number(
      layerOf(shape)({ tensor: t, sequence: true, stage: { from, to, microBatches } }).total.value,
    );
  const layers = (2 * (s * 1024) * (34 + (5 * 16 * s) / 1024)) / t;

  it('keeps masks of the embeddings for each micro-batch in progress', () => {
    expect(stage(0, 2, 3)).toBe(3 * (layers + (s * 1024) / t));
  });

  it('keeps norm, head and logits for one micro-batch', () => {
    expect(stage(2, 4, 1)).toBe(layers + (4 * s * 1024 * (1 + 51_200 / 1024)) / t);
  });
});

describe('fused attention', () => {
  it('keeps one float32 per head and token instead of the scores', () => {
    const layer = layerOf(MODELS['GPT-3']);
    const scores = layer({}).parts.find(({ part }) => part === 'scores');
    const plain = Number(layer({}).total.value);
    expect(Number(layer({ attention: 'fused' }).total.value)).toBe(
      plain - Number(scores?.bytes.value) + 4 * s * 96,
    );
  });
});
