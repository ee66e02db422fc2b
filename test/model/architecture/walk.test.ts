import { describe, expect, it, vi } from 'vitest';
import { loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import {
  countedTensors,
  memoized,
  ownedTensors,
  walk,
  walkCounted,
} from '../../../src/model/architecture/walk.js';
import { layerPattern } from '../../../src/model/budget/parameters.js';

it('memoized computes once for each object', () => {
  const of = vi.fn(() => 1);
  const known = memoized(of);
  const key = {};
  expect([known(key), known(key), known({})]).toEqual([1, 1, 1]);
  expect(of).toHaveBeenCalledTimes(2);
});

it('a model is walked only once', () => {
  const model: LanguageModel = hybrid.build(hybrid.schema.parse(presetDocument('hybrid', 'tiny')));
  expect(walk(model)).toBe(walk(model));
  expect(ownedTensors(model)).toBe(ownedTensors(model));
  // Another description is walked on its own, even if it shares blocks.
  expect(walk({ ...model, blocks: [] }).length).toBeLessThan(walk(model).length);
});

describe('a model with experts', () => {
  const FAMILIES = [
    ['minimind', { hidden_size: 64, num_hidden_layers: 2, use_moe: true, n_routed_experts: 6 }],
    ['mixtral', { num_local_experts: 6 }],
    ['qwen2_moe', { num_experts: 6 }],
    ['qwen3_moe', { num_experts: 6 }],
    ['deepseek_v2', { n_routed_experts: 6, n_group: 1, topk_group: 1 }],
    ['deepseek_v3', { n_routed_experts: 8, n_group: 2, topk_group: 1 }],
  ] as const;

  async function built(name: (typeof FAMILIES)[number][0], keys: object): Promise<LanguageModel> {
    const { build, schema } = await loadFamily(name);
    return build(schema.parse({ model: { family: name, ...keys } }));
  }

  const sums = (tensors: ReturnType<typeof countedTensors>) => {
    const totals: Record<string, number> = {};
    for (const { tensor, component, count } of tensors) {
      const key = `${layerPattern(tensor.name)} ${component} ${tensor.shape} ${tensor.role}`;
      totals[key] = (totals[key] ?? 0) + count;
    }
    return totals;
  };

  it.each(FAMILIES)(
    'of %s has the same tensors of each shape if one expert is counted for all',
    async (name, keys) => {
      const model = await built(name, keys);
      expect(countedTensors(model).length).toBeLessThan(ownedTensors(model).length);
      expect(sums(countedTensors(model))).toEqual(sums(ownedTensors(model)));
    },
  );

  it('is counted without a walk of all experts', async () => {
    const few = await built('qwen3_moe', { num_experts: 8, num_hidden_layers: 2 });
    const many = await built('qwen3_moe', { num_experts: 512, num_hidden_layers: 2 });
    expect(walkCounted(many)).toHaveLength(walkCounted(few).length);
    expect(walk(many).length).toBeGreaterThan(10 * walkCounted(many).length);
  });
});
