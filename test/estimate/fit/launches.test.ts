import { describe, expect, it } from 'vitest';
import { kernelLaunchesOf } from '../../../src/estimate/fit/efficiency.js';
import { loadFamily } from '../../../src/model/architecture/families.js';

async function mixtureOf(experts: number, stored: 'packed' | 'separate') {
  const { build, schema } = await loadFamily('qwen3_moe');
  const { blocks } = build(
    schema.parse({
      model: {
        family: 'qwen3_moe',
        num_hidden_layers: 1,
        hidden_size: 32,
        num_experts: experts,
        num_experts_per_tok: 2,
        experts_stored: stored,
      },
    }),
  );
  return kernelLaunchesOf(blocks);
}

describe('kernel launches of a mixture', () => {
  it('are the same for any number of experts, packed or separate', async () => {
    const all = await Promise.all([
      mixtureOf(2, 'separate'),
      mixtureOf(64, 'separate'),
      mixtureOf(64, 'packed'),
    ]);
    // Attention with four products, two norms and the rotation; two norms; router, three kernels, and their sum.
    const layers = 1 + 4 + 2 + 1 + 2 + (1 + 3 + 1);
    expect(all).toEqual([1, 2, 3].map(() => ({ layers, kernels: 1 })));
  });
});
