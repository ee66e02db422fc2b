import { describe, expect, it } from 'vitest';
import type { Shape } from '../../../src/base/tensor/dtype.js';
import { readOff } from '../../../src/model/architecture/models/hybrid-reading.js';
import { hybridCases } from '../../fixtures.js';

/** Settings read from tensors of these shapes. Grouped tensors hold equal values if `areOne`. */
function read(shapes: Record<string, Shape>, areOne = false): Record<string, unknown> {
  const names = Object.keys(shapes);
  const layers = names.flatMap((name) => /^layers\.(\d+)\./.exec(name)?.[1] ?? []);
  const readings = readOff({
    size: names.length,
    names: () => names,
    shapeOf: (name) => shapes[name],
    numbersUnder: () => [...new Set(layers.map(Number))].sort((a, b) => a - b),
    areOne: (group) => group.length === 1 || areOne,
  });
  return Object.fromEntries(readings.map(({ path, value }) => [path.replace('model.', ''), value]));
}

describe('the settings read from weights of the original implementation', () => {
  it.each(hybridCases().map((each) => [each.name, each] as const))(
    'are those of the configuration %s',
    (_, { config, layout }) => {
      const { num_heads, ...shown } = read(layout);
      // Only the tables of RoPE show the number of heads.
      expect(num_heads).toBe(undefined);
      const hidden = Number(config.hidden_size);
      const expected: Record<string, unknown> = {
        vocab_size: 50432,
        num_layers: 32,
        srte_encoding: 'learnable',
        srte_share_across_layers: true,
        srte_factorized_rank: 0,
        use_alignment: true,
        tie_word_embeddings: false,
        max_position_embeddings: 65536,
        ...config,
        gate_rank: Math.min(Number(config.gate_rank ?? 256), Math.floor(hidden / 2)),
      };
      for (const [key, value] of Object.entries(shown)) {
        expect({ [key]: value }).toEqual({ [key]: expected[key] });
      }
      const table = expected.srte_encoding === 'learnable' ? ['max_position_embeddings'] : [];
      expect(Object.keys(shown)).toEqual(
        expect.arrayContaining(['vocab_size', 'hidden_size', 'num_layers', 'gate_rank', ...table]),
      );
    },
  );
});

describe('the settings read from other tensors', () => {
  const [{ layout }] = hybridCases().filter(({ name }) => name === 'per-layer-learnable') as [
    ReturnType<typeof hybridCases>[number],
  ];

  it('include the heads, if there are tables of RoPE', () => {
    const [hidden = 0] = layout['norm.weight'] ?? [];
    const shapes = { ...layout, 'layers.0.attention.rope.inv_freq': [hidden / 8] };
    expect(read(shapes).num_heads).toBe(4);
  });

  it('say shared and tied if the tables hold equal values', () => {
    expect(read(layout, true)).toMatchObject({
      srte_share_across_layers: true,
      tie_word_embeddings: true,
    });
    expect(read(layout, false)).toMatchObject({
      srte_share_across_layers: false,
      tie_word_embeddings: false,
    });
  });

  it('lack the number of layers if a layer is missing', () => {
    const shapes = Object.entries(layout).filter(([name]) => !name.startsWith('layers.1.'));
    expect(read(Object.fromEntries(shapes))).not.toHaveProperty('num_layers');
  });

  it('are empty for another model, and for made-up layers', () => {
    expect(read({ 'model.embed_tokens.weight': [4, 4] })).toEqual({});
    const made = Array.from({ length: 9 }, (_, layer) => [
      [`layers.${layer}.mamba.A_log`, [16, 64]],
      [`layers.${layer}.gate.u.weight`, [4, 8]],
    ]).flat();
    expect(read(Object.fromEntries(made))).toEqual({});
  });
});
