import { describe, expect, it } from 'vitest';
import { nearestDivisors } from '../../../src/estimate/fit/parallelism/divisors.js';
import {
  collectivesOf,
  requireTensorParallel,
} from '../../../src/estimate/fit/parallelism/parallelism.js';
import { loadFamily } from '../../../src/model/architecture/families.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { gptLike } from './settings.js';

describe('the exchange between GPUs', () => {
  it('is 8bsh(t − 1)/t values for a block of GPT (arXiv 2104.04473, section 3.2)', () => {
    const { blocks } = gptLike({ n_embd: 48, n_head: 4, n_layer: 3 });
    const { forward, backward } = collectivesOf(blocks);
    expect(forward.values + backward.values).toBe(3 * 8 * 48);
    // Four all-reduces a layer, two each way.
    expect([forward.times, backward.times]).toEqual([3 * 2, 3 * 2]);
  });

  it('is one all-reduce forward for parallel branches, and one per norm backward (arXiv 2204.06745)', async () => {
    const { model } = await publishedConfig('gpt-neox-20b');
    const { forward, backward } = collectivesOf(model.blocks);
    expect(forward).toEqual({ values: 44 * 2 * 6144, times: 44 });
    expect(backward).toEqual({ values: 44 * 2 * 2 * 6144, times: 44 * 2 });
  });

  it.each([
    // Low-rank values and output of Mamba; attention; fusion; MLP; the alignment's network and its sum.
    [true, 7],
    [false, 5],
  ])(
    'takes, with a learned alignment (%s), %d collectives in a hybrid block',
    async (aligned, times) => {
      const { build, schema } = await loadFamily('hybrid');
      const { blocks } = build(
        schema.parse({
          model: {
            family: 'hybrid',
            hidden_size: 64,
            num_layers: 1,
            num_heads: 4,
            use_alignment: aligned,
          },
        }),
      );
      expect(collectivesOf(blocks).forward.times).toBe(times);
      expect(collectivesOf(blocks).backward.times).toBe(times);
    },
  );
});

describe('tensor parallelism', () => {
  it('requires a number of GPUs that divides heads and key-value heads', async () => {
    const { build, schema } = await loadFamily('llama');
    const model = build(
      schema.parse({
        model: {
          family: 'llama',
          hidden_size: 96,
          intermediate_size: 192,
          num_hidden_layers: 1,
          num_attention_heads: 12,
          num_key_value_heads: 3,
          head_dim: 8,
        },
      }),
    );
    expect(() => requireTensorParallel(model, 3)).not.toThrow();
    expect(() => requireTensorParallel(model, 2)).toThrow(
      '--tensor-parallel: 2 GPUs cannot share the 3 key-value heads of model.layers.0.self_attn equally',
    );
  });

  it.each([
    ['mamba2', 'the 1 groups of backbone.layers.0.mixer equally'],
    ['qwen3_next', 'the 1 key heads of model.layers.0.linear_attn equally'],
  ] as const)('names what %s shares among its heads', async (family, words) => {
    const { build, schema } = await loadFamily(family);
    const one = { mamba2: { n_groups: 1 }, qwen3_next: { linear_num_key_heads: 1 } }[family];
    const model = build(schema.parse({ model: { family, ...one } }));
    expect(() => requireTensorParallel(model, 2)).toThrow(words);
  });

  it.each([
    [12, 5, [4, 6]],
    [12, 4, [4]],
    [12, 13, [12]],
    [7, 2, [1, 7]],
  ])('suggests the divisors of %d nearest to %d: %j', (of, to, nearest) => {
    expect(nearestDivisors(of, to)).toEqual(nearest);
  });
});
