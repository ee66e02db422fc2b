import { describe, expect, it } from 'vitest';
import { hybrid } from '../../src/architecture/models/hybrid.js';
import { countParameters } from '../../src/budget/parameters.js';
import { profileModel } from '../../src/budget/profile.js';
import { explainPublished } from '../../src/budget/published.js';

const build = (config: Record<string, unknown>) =>
  hybrid.build(hybrid.schema.parse({ model: config }));

const SMALL = {
  vocab_size: 1001,
  hidden_size: 64,
  num_layers: 3,
  num_heads: 4,
  max_position_embeddings: 128,
};

/** The slips that explain `delta` more than the true count, the simplest set of them. */
function slips(config: Record<string, unknown>, delta: number): string[] | undefined {
  const model = build({ ...SMALL, ...config });
  const value = BigInt(countParameters(model).parameters + delta);
  const [best] = explainPublished(model, { value, tolerance: 0n }).explanations;
  return best?.reasons.map(({ id }) => id);
}

describe('explainPublished', () => {
  const matrix = 1001 * 64;
  const table = 128 * 64;
  const inverse = 3 * 8;
  const cache = 3 * 65_536 * 16;

  it.each<[string, Record<string, unknown>, number, string[]]>([
    ['the truth', {}, 0, []],
    ['a lost tie', { tie_word_embeddings: true }, matrix, ['tie-lost']],
    ['a tie that is none', {}, -matrix, ['tie-assumed']],
    ['no embedding', { tie_word_embeddings: true }, -matrix, ['no-embedding']],
    ['neither matrix', {}, -2 * matrix, ['no-vocabulary']],
    ['aliases once for each layer', {}, 2 * table, ['per-layer']],
    ['aliases under every name', {}, 3 * table, ['aliases']],
    ['padding to 8', {}, 2 * 7 * 64, ['padding-1008']],
    ['padding of a tied vocabulary to 1024', { tie_word_embeddings: true }, 23 * 64, ['padding-1024']],
    ['one kind of buffer', {}, inverse, ['buffer:layers.*.attention.rope.inv_freq']],
    [
      'all of RoPE',
      {},
      inverse + 2 * cache,
      [
        'buffer:layers.*.attention.rope.inv_freq',
        'buffer:layers.*.attention.rope.cos_cached',
        'buffer:layers.*.attention.rope.sin_cached',
      ],
    ],
    [
      'a lost tie and padding',
      { tie_word_embeddings: true },
      matrix + 2 * 7 * 64,
      ['tie-lost', 'padding-1008'],
    ],
    [
      'aliases and a buffer',
      {},
      3 * table + inverse,
      ['aliases', 'buffer:layers.*.attention.rope.inv_freq'],
    ],
  ])('names %s', (_, config, delta, expected) => {
    expect(slips(config, delta)?.sort()).toEqual(expected.sort());
  });

  it('says when nothing explains it, and how much was tried', () => {
    const { explanations, tried, difference } = explainPublished(build(SMALL), {
      value: BigInt(countParameters(build(SMALL)).parameters) + 1n,
      tolerance: 0n,
    });
    expect(explanations).toEqual([]);
    expect(difference).toBe(1n);
    expect(tried).toBeGreaterThan(100);
  });

  it('takes a rounded number as right when its digits are', () => {
    const model = build(hybrid.presets.recommended?.document.model ?? {});
    const right = explainPublished(model, { value: 13_400_000_000n, tolerance: 50_000_000n });
    expect(right.explanations).toEqual([{ value: 13_352_181_760n, reasons: [] }]);
  });

  it('knows MACs and FLOPs', () => {
    const model = build(SMALL);
    const work = profileModel(model, {
      inference: { batch: 1, context: 16, dtype: 'bf16', causal: false },
      training: { batch: 1, context: 16, precision: 'mixed', optimizer: 'sgd', recompute: 'none' },
    });
    const first = (value: bigint) =>
      explainPublished(model, { value, tolerance: 0n }, work).explanations[0]?.reasons[0]?.id;
    expect(first(BigInt(work.forwardFlops.macs.value))).toBe('macs');
    expect(first(BigInt(work.forwardFlops.forward.value))).toBe('flops');
    expect(first(BigInt(work.trainingFlops.training.value))).toBe('training-flops');
  });
});
