import { describe, expect, it } from 'vitest';
import { loadModelFile } from '../../../../src/input/model-input/read-model-file.js';
import { attentionMethodsOf } from '../../../../src/model/budget/attention/attention-methods.js';
import type {
  AttentionMethod,
  AttentionRow,
  AttentionSetting,
} from '../../../../src/model/budget/attention/attention-result.js';
import { matchRatios } from '../../../../src/model/budget/attention/match-ratios.js';
import { forwardFlopsOf } from '../../../../src/model/budget/flops.js';
import { normOperations } from '../../../../src/model/budget/norm-operations.js';
import { stateOf } from '../../../../src/model/budget/state.js';

const SMALL = 'configs/minimind/minimind2-small.yaml';
/** Shared memory per block of an A100. */
const A100 = { bytes: 163 * 1024, source: 'CUDA programming guide' };

const SETTING = { contexts: [512], dtype: 'bf16', onChip: A100, block: 128 } as const;

async function methodsOf(file: string, options: Partial<AttentionSetting> = {}) {
  const { model } = await loadModelFile(file);
  return attentionMethodsOf(model, { ...SETTING, ...options });
}

function rowOf(rows: readonly AttentionRow[] = [], method: AttentionMethod): AttentionRow {
  const row = rows.find((each) => each.method === method);
  if (!row) throw new Error(`no row ${method}`);
  return row;
}

const rowsOf = async (...args: Parameters<typeof methodsOf>) => {
  const { contexts } = await methodsOf(...args);
  return (method: AttentionMethod) => rowOf(contexts.at(-1)?.rows, method);
};

describe('methods of attention', () => {
  it('have the traffic of the FlashAttention paper, plain and tiled', async () => {
    const row = await rowsOf(SMALL);
    // 8 heads × 512² scores of 2 bytes; 8 layers of 4 passes over them, and Q, K, V, O once.
    expect(row('plain').scores.value).toBe(8 * 512 ** 2 * 2);
    expect(row('plain').traffic.value).toBe(8 * 8 * (4 * 512 ** 2 + 4 * 512 * 64) * 2);
    // M = 166,912 / 2 values, Bc = ⌈M / 256⌉ = 326, so two passes over Q, O (twice), ℓ and m (twice).
    expect(row('flash').tile).toEqual({ rows: 64, columns: 326 });
    expect(row('flash').traffic.value).toBe(8 * 8 * (2 * 512 * 64 + 2 * 512 * (3 * 64 + 4)) * 2);
    expect(row('flash').scores.value).toBe(8 * 2 * 512 * 2);
    expect(row('flash').ratios).toMatchObject({ flops: 1, cache: 1 });
  });

  it('approach traffic N²d²/M with FlashAttention: the ratio to plain grows to M / d² over 3', async () => {
    const row = await rowsOf(SMALL, { contexts: [2 ** 20] });
    // 4 N² against (N / (M / 4d)) · N · (3d + 4).
    const [M, d] = [166_912 / 2, 64];
    expect(row('flash').ratios.traffic).toBeCloseTo((4 * M) / (4 * d * (3 * d + 4)), 1);
  });

  it('have the FLOPs and cache of the profile', async () => {
    const { model } = await loadModelFile(SMALL);
    const row = await rowsOf(SMALL, { contexts: [700] });
    const forward = forwardFlopsOf(model, { batch: 1, context: 700, causal: false });
    const scores = forward.parts.find(({ kind }) => kind === 'scores');
    expect(row('plain').flops.value).toBe(scores?.flops.value);
    const state = stateOf(model, { batch: 1, context: 700, dtype: 'bf16' });
    expect(row('grouped').isModel).toBe(true);
    expect(row('grouped').cache.value).toBe(state.keyValueCache.value);
  });

  it('divide the cache by heads per key head: 2, 8 and 32 for 32 heads', async () => {
    const { contexts } = await methodsOf('configs/hybrid/original.yaml', { keyHeads: [16, 4, 1] });
    const grouped = contexts[0]?.rows.filter(({ method }) => method === 'grouped') ?? [];
    expect(grouped.map(({ ratios }) => ratios.cache)).toEqual([2, 8, 32]);
    expect(grouped.map(({ ratios }) => ratios.scores)).toEqual([1, 1, 1]);
  });

  it('limit scores, FLOPs, cache and reach to a window', async () => {
    const row = await rowsOf(SMALL, { contexts: [4096], window: 128 });
    const plain = row('plain');
    const { ratios, reach, cache } = row('window');
    expect(ratios.scores).toBe(32);
    expect(ratios.flops).toBe(32);
    // Each of 8 layers reaches 127 positions further back.
    expect(reach.value).toBe(8 * 127 + 1);
    expect(plain.reach.value).toBe(4096);
    // The keys that the next token sees in addition to its own.
    expect(cache.value).toBe((Number(plain.cache.value) * 127) / 4096);
  });

  it('use the described heads of the hybrid family', async () => {
    const { model } = await loadModelFile('configs/hybrid/original.yaml');
    const row = await rowsOf('configs/hybrid/original.yaml', { contexts: [8192] });
    const { isModel, scores, cache, reach } = row('hierarchical');
    expect(isModel).toBe(true);
    // Blocks of 1,024 queries: each sees itself, and all but the first 512 keys before it. 30 local heads of 32.
    expect(scores.value).toBe(2 * (30 * 1024 * (1024 + 7 * 1536) + 2 * 8192 ** 2));
    expect(cache.value).toBe(
      stateOf(model, { batch: 1, context: 8192, dtype: 'bf16' }).keyValueCache.value,
    );
    expect(reach.value).toBe(8192);
  });

  it('add the reach of each layer if all heads have windows', async () => {
    const set = ['model.global_heads=0', 'model.window_size=16'];
    const { model } = await loadModelFile('configs/hybrid/tiny.yaml', { set });
    const { contexts, layers } = attentionMethodsOf(model, { ...SETTING, contexts: [100] });
    expect(rowOf(contexts[0]?.rows, 'hierarchical').reach.value).toBe(8 * layers + 1);
  });

  it('count the blocks of a block-sparse mask: the first, the previous and the own one', async () => {
    const row = await rowsOf(SMALL, { contexts: [1024], block: 128 });
    const { ratios, reach } = row('block-sparse');
    // 1 + 2 + 6 · 3 = 21 of 64 blocks.
    expect(ratios.flops).toBeCloseTo(64 / 21, 12);
    // 8 layers reach 8 blocks back, which are all.
    expect(reach.value).toBe(1024);
    const far = await rowsOf(SMALL, { contexts: [4096], block: 128 });
    expect(far('block-sparse').reach.value).toBe(9 * 128);
  });

  it.each([1, 99, 100, 101, 200, 250, 300, 777])(
    'count the scores of blocks of 100 in %d tokens',
    async (context) => {
      let pairs = 0;
      for (let first = 0; first < context; first += 100) {
        const rows = Math.min(100, context - first);
        pairs += rows * (Math.min(first, 200) + rows);
      }
      const row = await rowsOf(SMALL, { contexts: [context], block: 100 });
      // 8 layers of 8 heads, 2 FLOP for each of 64 + 64 values.
      expect(row('block-sparse').flops.value).toBe(8 * 8 * 2 * 128 * pairs);
    },
  );

  it('include a row of the model if no other row matches it', async () => {
    const { contexts } = await methodsOf('fixtures/hf-configs/deepseek-v3-main');
    const own = contexts[0]?.rows.filter(({ isModel }) => isModel) ?? [];
    expect(own.map(({ method }) => method)).toEqual(['own']);
    // 70,272 bytes a token (arXiv 2505.09343, table 1).
    expect(own[0]?.cache.value).toBe(512 * 70_272);
  });

  it.each([
    ['fixtures/hf/gemma3', 'own'],
    ['fixtures/hf/mistral-window', 'own'],
    ['fixtures/hf/llama', 'grouped'],
    ['fixtures/hf/llama4-text-7-4', 'own'],
    ['fixtures/hf/gemma3n-text-7-8', 'own'],
    ['configs/hybrid/tiny.yaml', 'hierarchical', 'model.attention_type=pyramidal'],
  ])('mark the row of %s, with the cache of the profile', async (file, method, ...set) => {
    const { model } = await loadModelFile(file, { set });
    const { contexts } = attentionMethodsOf(model, { ...SETTING, contexts: [100] });
    const row = rowOf(contexts[0]?.rows, method as AttentionMethod);
    expect(row.isModel).toBe(true);
    const { keyValueCache } = stateOf(model, { batch: 1, context: 100, dtype: 'bf16' });
    expect(row.cache.value).toBe(keyValueCache.value);
    expect(row.reach.value).toBeLessThanOrEqual(100);
    for (const { formula } of [row.scores, row.traffic, row.flops, row.cache]) {
      expect(formula).not.toBe('');
    }
  });

  it('require a model with attention', async () => {
    await expect(methodsOf('fixtures/hf/mamba')).rejects.toThrow('no softmax attention');
  });

  it('match published ratios', async () => {
    const methods = await methodsOf(SMALL, { contexts: [512, 2048], keyHeads: [4, 1] });
    const [four, eight, odd] = matchRatios(methods, [2, 8, 3.8]);
    expect(four?.matches).toContainEqual(
      expect.objectContaining({ method: 'grouped', figure: 'cache', context: 512, ratio: 2 }),
    );
    expect(eight?.matches.length).toBeGreaterThan(0);
    expect(odd?.matches).toEqual([]);
    expect(odd?.nearest?.ratio).toBeGreaterThan(1);
  });

  it('match a published ratio within 2 %', async () => {
    const methods = await methodsOf(SMALL, { keyHeads: [4] });
    const published = [0.979, 0.981, 1.019, 1.021].map((share) => 2 / share);
    const matches = matchRatios(methods, published).map((each) =>
      each.matches.some(({ ratio }) => ratio === 2),
    );
    expect(matches).toEqual([false, true, true, false]);
  });
});

describe('a norm', () => {
  it('has 7 operations per value in LayerNorm, 4 in RMSNorm: 42.9 % fewer, not 60 %', () => {
    const { layerNorm, rmsNorm, saved } = normOperations(512);
    expect(layerNorm.operations.value).toBe(7 * 512 + 2);
    expect(rmsNorm.operations.value).toBe(4 * 512 + 2);
    expect([layerNorm.reductions, rmsNorm.reductions]).toEqual([2, 1]);
    expect(saved).toBeCloseTo(3 / 7, 3);
  });
});
