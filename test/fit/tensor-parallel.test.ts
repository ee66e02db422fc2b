import { describe, expect, it } from 'vitest';
import { loadFamily } from '../../src/architecture/families.js';
import {
  exchangeOf,
  nearestDivisors,
  requireTensorParallel,
} from '../../src/fit/tensor-parallel.js';
import { gptLike } from './settings.js';

describe('what they tell each other', () => {
  it('is 8bsh(t − 1)/t for a block of GPT (arXiv 2104.04473, section 3.2)', () => {
    const { blocks } = gptLike({ n_embd: 48, n_head: 4, n_layer: 3 });
    const { forward, backward } = exchangeOf(blocks);
    expect(forward + backward).toBe(3 * 8 * 48);
  });
});

describe('how many GPUs can share', () => {
  it('divides heads and key-value heads', async () => {
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
    [12, 5, [4, 6]],
    [12, 4, [4]],
    [12, 13, [12]],
    [7, 2, [1, 7]],
  ])('the divisors of %d nearest to %d are %j', (of, to, nearest) => {
    expect(nearestDivisors(of, to)).toEqual(nearest);
  });
});
