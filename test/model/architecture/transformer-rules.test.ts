import { describe, expect, it } from 'vitest';
import type { Severity } from '../../../src/base/errors.js';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import { countParameters } from '../../../src/model/budget/parameters.js';

/** Findings of a family's rules for a model. */
async function findings(name: FamilyName, model: Record<string, unknown>) {
  const { schema, rules } = await loadFamily(name);
  const document = schema.parse({ model: { family: name, ...model } });
  return rules.flatMap(({ severity, check }) => {
    const finding = check(document);
    return finding ? [`${severity}: ${finding.message}`] : [];
  });
}

describe('rules of transformers', () => {
  it.each<[FamilyName, Record<string, unknown>, Severity, string]>([
    ['llama', { num_attention_heads: 7 }, 'error', '7 heads do not divide hidden_size 4096'],
    ['llama', { num_key_value_heads: 5 }, 'error', '5 key-value heads do not divide 32 heads'],
    [
      'llama',
      { head_dim: 7 },
      'error',
      '7 dimensions of a head would be rotated, but RoPE rotates pairs',
    ],
    ['llama', { rope_scaling: { rope_type: 'linear' } }, 'error', 'linear needs factor'],
    [
      'llama',
      {
        rope_scaling: {
          rope_type: 'llama3',
          factor: 8,
          low_freq_factor: 4,
          high_freq_factor: 3,
        },
      },
      'error',
      'high_freq_factor 3 is below low_freq_factor 4',
    ],
    [
      'phi3',
      { rope_scaling: { rope_type: 'longrope', short_factor: [1, 1], long_factor: [1, 1] } },
      'error',
      'expected 48 entries in short_factor and long_factor',
    ],
    ['gpt2', { n_head: 5 }, 'error', '5 heads do not divide n_embd 768'],
    ['bloom', { n_head: 3 }, 'error', '3 heads do not divide hidden_size 64'],
    ['gpt_neox', { rotary_pct: 0.01 }, 'error', '0 dimensions of a head would be rotated'],
    ['gemma2', { layer_types: ['full_attention'] }, 'error', '1 entries for 26 layers'],
    ['smollm3', { no_rope_layers: [1, 0] }, 'error', '2 entries for 36 layers'],
    ['mixtral', { num_experts_per_tok: 9 }, 'error', '9 experts for a token are more than the 8'],
    ['deepseek_v3', { n_group: 7 }, 'error', '7 groups do not divide 256 experts'],
    ['deepseek_v3', { topk_group: 9 }, 'error', 'expected topk_group from 1 to n_group 8, found 9'],
    ['deepseek_v3', { qk_rope_head_dim: 5 }, 'error', '5 dimensions of a head would be rotated'],
    ['deepseek_v3', { first_k_dense_replace: 61 }, 'warning', 'none has experts'],
    ['deepseek_v2', { norm_topk_prob: true }, 'warning', 'norm_topk_prob has no effect'],
    [
      'deepseek_v2',
      { topk_method: 'group_limited_greedy' },
      'error',
      'needs n_group and topk_group',
    ],
    [
      'minimind',
      { hidden_size: 64, num_hidden_layers: 1, use_moe: true, head_dim: 8, n_routed_experts: 8 },
      'warning',
      'n_routed_experts has no effect in version 3',
    ],
    [
      'minimind',
      { hidden_size: 64, num_hidden_layers: 1, use_moe: true, version: 2, num_experts: 8 },
      'warning',
      'num_experts has no effect in version 2',
    ],
    [
      'minimind',
      { hidden_size: 64, num_hidden_layers: 1, use_moe: true, num_experts_per_tok: 5 },
      'error',
      '5 experts for a token are more than the 4',
    ],
  ])('report for %s with %j: %s, %s', async (name, model, severity, message) => {
    const reported = await findings(name, model);
    expect(reported).toContainEqual(
      expect.stringMatching(new RegExp(`^${severity}: .*${message}`)),
    );
  });

  it('have no finding for the defaults of transformers', async () => {
    for (const name of ['llama', 'qwen2', 'gemma2', 'phi3', 'gpt2', 'deepseek_v3'] as const) {
      expect(await findings(name, {}), name).toEqual([]);
    }
  });

  it('refuse a billion experts before they are built', async () => {
    const { schema, build } = await loadFamily('qwen2_moe');
    const document = schema.parse({ model: { family: 'qwen2_moe', num_experts: 1e9 } });
    expect(() => build(document)).toThrow(/3,000,000,000 tensor names; the limit is 200,000/);
  });
});

describe('a mixture without experts', () => {
  it.each(['qwen2_moe', 'qwen3_moe', 'qwen3_next'] as const)(
    'of %s has dense layers, as in transformers',
    async (name) => {
      const none = { num_experts: 0, num_hidden_layers: 4 };
      expect(await findings(name, none)).toEqual([]);
      const { schema, build } = await loadFamily(name);
      const parameters = (model: object) =>
        countParameters(build(schema.parse({ model: { family: name, ...model } }))).parameters;
      const dense = { num_hidden_layers: 4, mlp_only_layers: [0, 1, 2, 3] };
      expect(parameters(none)).toBe(parameters(dense));
    },
  );
});
