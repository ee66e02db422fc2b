import { describe, expect, it } from 'vitest';
import { loadFamily } from '../../src/architecture/families.js';
import { layerPattern } from '../../src/budget/parameters.js';
import {
  exchangeOf,
  nearestDivisors,
  requireTensorParallel,
  sharedTensors,
} from '../../src/fit/tensor-parallel.js';
import { gptLike } from './settings.js';

async function splitsOf(family: Parameters<typeof loadFamily>[0], config: object) {
  const { build, schema } = await loadFamily(family);
  const splits: Record<string, Set<string>> = {};
  for (const { tensor, split } of sharedTensors([build(schema.parse({ model: config }))])) {
    const names = splits[split] ?? new Set();
    splits[split] = names.add(layerPattern(tensor.name));
  }
  return Object.fromEntries(
    Object.entries(splits).map(([split, names]) => [split, [...names].sort()]),
  );
}

describe('which tensors GPUs share', () => {
  it('of the hybrid model', async () => {
    const { even, whole, vocabulary } = await splitsOf('hybrid', {
      hidden_size: 64,
      num_layers: 2,
      num_heads: 4,
      srte_factorized_rank: 8,
    });
    expect(vocabulary).toEqual(['embed_tokens.weight', 'lm_head.weight']);
    expect(even?.filter((name) => name.includes('.mamba.'))).toEqual(
      ['A_log', 'D', 'conv1d.bias', 'conv1d.weight', 'dt_proj.bias', 'dt_proj.weight']
        .concat(['in_proj.bias', 'in_proj.weight', 'out_proj.weight', 'x_proj.weight'])
        .map((leaf) => `layers.*.mamba.${leaf}`),
    );
    expect(whole).toContain('layers.*.mamba.out_proj.bias');
    expect(whole?.some((name) => name.includes('srte'))).toBe(true);
    expect(even?.some((name) => /srte|norm|gate/.test(name))).toBe(false);
  });

  it('of latent attention and experts', async () => {
    const { even, whole } = await splitsOf('deepseek_v3', {
      family: 'deepseek_v3',
      num_hidden_layers: 4,
      n_routed_experts: 8,
      n_group: 1,
      topk_group: 1,
      experts_stored: 'packed',
    });
    const inLayers = (names: readonly string[] = []) =>
      names.map((name) => name.replace('model.layers.*.', ''));
    expect(inLayers(even)).toEqual([
      'mlp.down_proj.weight',
      'mlp.experts.down_proj',
      'mlp.experts.gate_up_proj',
      'mlp.gate_proj.weight',
      'mlp.shared_experts.down_proj.weight',
      'mlp.shared_experts.gate_proj.weight',
      'mlp.shared_experts.up_proj.weight',
      'mlp.up_proj.weight',
      'self_attn.kv_b_proj.weight',
      'self_attn.o_proj.weight',
      'self_attn.q_b_proj.weight',
    ]);
    expect(inLayers(whole)).toEqual([
      'input_layernorm.weight',
      'mlp.gate.e_score_correction_bias',
      'mlp.gate.weight',
      'post_attention_layernorm.weight',
      'self_attn.kv_a_layernorm.weight',
      'self_attn.kv_a_proj_with_mqa.weight',
      'self_attn.q_a_layernorm.weight',
      'self_attn.q_a_proj.weight',
      'model.norm.weight',
    ]);
  });
});

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
