import { describe, expect, it } from 'vitest';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { stateDictOf } from '../../../src/model/architecture/walk.js';
import { flopsByConvention } from '../../../src/model/budget/flops.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { explainPublished } from '../../../src/model/budget/published/explain-published.js';
import { publishedConfig } from './published-models.js';

const build = (config: Record<string, unknown>) =>
  hybrid.build(hybrid.schema.parse({ model: config }));

const SMALL = {
  vocab_size: 1001,
  hidden_size: 64,
  num_layers: 3,
  num_heads: 4,
  max_position_embeddings: 128,
};

/** The simplest set of mistakes that explains a count that is larger than the true one by `delta`. */
function mistakes(config: Record<string, unknown>, delta: number): string[] | undefined {
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
    ['an assumed tie', {}, -matrix, ['tie-assumed']],
    ['no embedding', { tie_word_embeddings: true }, -matrix, ['no-embedding']],
    ['neither matrix', {}, -2 * matrix, ['no-vocabulary']],
    ['aliases once for each layer', {}, 2 * table, ['per-layer']],
    ['aliases of a single layer', { num_layers: 1 }, table, ['aliases']],
    ['aliases under every name', {}, 3 * table, ['aliases']],
    ['padding to 8', {}, 2 * 7 * 64, ['padding-1008']],
    [
      'padding of a tied vocabulary to 1024',
      { tie_word_embeddings: true },
      23 * 64,
      ['padding-1024'],
    ],
    ['one kind of buffer', {}, inverse, ['buffers:layers.*.attention.rope.inv_freq']],
    ['all of RoPE', {}, inverse + 2 * cache, ['buffers:layers.*.attention.rope.*']],
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
      ['aliases', 'buffers:layers.*.attention.rope.inv_freq'],
    ],
  ])('names %s', (_, config, delta, expected) => {
    expect(mistakes(config, delta)?.sort()).toEqual(expected.sort());
  });

  it('reports the number of tries if nothing explains the count', () => {
    const { explanations, tried, difference } = explainPublished(build(SMALL), {
      value: BigInt(countParameters(build(SMALL)).parameters) + 1n,
      tolerance: 0n,
    });
    expect(explanations).toEqual([]);
    expect(difference).toBe(1n);
    expect(tried).toBeGreaterThan(100);
  });

  it('accepts a rounded number with the right digits', () => {
    const model = build(presetDocument('hybrid', 'recommended').model);
    const right = explainPublished(model, { value: 13_400_000_000n, tolerance: 50_000_000n });
    expect(right.explanations).toEqual([{ value: 13_352_181_760n, reasons: [] }]);
  });

  it('recognises MACs and FLOPs of every convention', () => {
    const model = build(SMALL);
    const setting = { batch: 1, context: 16, causal: false } as const;
    const counts = flopsByConvention(model, setting, { ...setting, recompute: 'full' });
    expect(Object.keys(counts)).toHaveLength(6);
    for (const [name, flops] of Object.entries(counts)) {
      const first = (value: bigint) =>
        explainPublished(model, { value, tolerance: 0n }, { operations: counts }).explanations[0]
          ?.reasons[0]?.id;
      expect(first(BigInt(flops))).toBe(`flops: ${name}`);
      expect(first(BigInt(flops) / 2n)).toBe(`macs: ${name}`);
    }
  });

  it('recognises the vocabulary before its padding', () => {
    const published = 22_143_967_232n - 2n * 175n * 4096n; // 50,257 rows for 50,432
    const model = build({ srte_share_across_layers: false });
    const [best] = explainPublished(model, { value: published, tolerance: 0n }).explanations;
    expect(best?.reasons[0]?.text).toBe('a vocabulary of 50257 rows instead of 50432');
  });

  it('counts a shared buffer once per name in the state dict', () => {
    const model = build({ ...SMALL, srte_encoding: 'sincos' });
    const stored = stateDictOf(model).reduce((total, { tensor }) => total + tensor.elements, 0);
    const [best] = explainPublished(model, { value: BigInt(stored), tolerance: 0n }).explanations;
    // All buffers, and the shared one again for every layer, are the sum of the state dict.
    expect(best?.reasons.map(({ id }) => id).sort()).toEqual(['buffer-per-layer', 'buffers:all']);
  });

  it('ranks common reasons first, and lists no supersets', () => {
    const tiny = build(presetDocument('hybrid', 'tiny').model);
    const lost = explainPublished(tiny, { value: 275_200n + 16_384n, tolerance: 0n });
    expect(lost.explanations.map(({ reasons }) => reasons.map(({ id }) => id))).toEqual([
      ['tie-lost'],
    ]);
    const recommended = build(presetDocument('hybrid', 'recommended').model);
    const rounded = explainPublished(recommended, {
      value: 13_600_000_000n,
      tolerance: 50_000_000n,
    });
    expect(rounded.explanations[0]?.reasons.map(({ id }) => id)).toEqual(['tie-lost']);
    for (const { reasons } of rounded.explanations.slice(1)) {
      expect(reasons.map(({ id }) => id)).not.toContain('tie-lost');
    }
  });
});

/** Numbers of huggingface.co, and one of a model whose tied head was counted twice. */
describe('a published number that differs', () => {
  it.each<[string, bigint, string[]]>([
    ['gpt2', 137_022_720n, ['masks']],
    ['llama-2-7b', 6_738_417_664n, ['rotary-frequencies']],
    ['llama-3.2-1b', 1_498_482_688n, ['tie-lost']],
    [
      'deepseek-v3-main',
      671_026_419_200n,
      ['contested:model.layers.*.mlp.gate.e_score_correction_bias'],
    ],
    [
      'deepseek-v3-main',
      684_531_386_000n,
      ['contested:model.layers.*.mlp.gate.e_score_correction_bias', 'prediction-layers', 'scales'],
    ],
  ])('is explained for %s: %d', async (name, value, expected) => {
    const { family, document, model } = await publishedConfig(name);
    const predictionLayers = family.predictionLayers?.(document) ?? 0;
    const { explanations } = explainPublished(
      model,
      { value, tolerance: 0n },
      { predictionLayers },
    );
    expect(explanations[0]?.reasons.map(({ id }) => id).sort()).toEqual(expected);
  });

  it('is not explained by layers that a config does not name', async () => {
    const { model } = await publishedConfig('deepseek-v3-main');
    const published = { value: 684_531_386_000n, tolerance: 0n };
    expect(explainPublished(model, published).explanations).toEqual([]);
  });
});
