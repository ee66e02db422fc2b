import { describe, expect, it } from 'vitest';
import { gpt2 } from '../../src/architecture/models/gpt2.js';
import { minimind } from '../../src/architecture/models/minimind.js';
import { forwardFlopsOf, trainingFlopsOf } from '../../src/budget/flops.js';
import { blocksOf } from '../../src/budget/profile-model.js';
import { activationsOf } from '../../src/budget/saved-activations.js';
import { stateOf } from '../../src/budget/state.js';
import type { Dtype } from '../../src/tensor/dtype.js';
import { publishedConfig } from './published-models.js';

const SMALL = minimind.build(minimind.schema.parse(minimind.presets['minimind2-small']?.document));

const at = (context: number, causal = false) => ({ batch: 1, context, causal }) as const;

describe('FLOPs that others have worked out', () => {
  it('GPT-2 at 1024 tokens: 24 s h² and 4 s² h a layer, and 2 s h V', async () => {
    const { model } = await publishedConfig('gpt2');
    expect(forwardFlopsOf(model, at(1024)).total.value).toBe(291_648_307_200);
    const training = trainingFlopsOf(model, { ...at(1024), recompute: 'none' });
    expect(training.total.value).toBe(874_944_921_600);
  });

  it('Llama-7B at 128 tokens, in MACs (calflops)', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    expect(forwardFlopsOf(model, at(128)).macs.value).toBe(850_000_871_424);
  });

  it('MiniMind2-Small at 512 tokens: 30.7 GFLOP, of which the mask leaves 28.6', () => {
    const [full, causal] = [false, true].map(
      (masked) => Number(forwardFlopsOf(SMALL, at(512, masked)).total.value) / 1e9,
    );
    expect(full?.toFixed(1)).toBe('30.7');
    expect(causal?.toFixed(1)).toBe('28.6');
  });

  it('a mixture counts the chosen experts of a token', async () => {
    const { model } = await publishedConfig('mixtral-8x7b');
    const { parts } = forwardFlopsOf(model, at(1));
    const of = (component: string) =>
      parts.find((part) => part.component === component && part.kind === 'projection')?.flops.value;
    // 32 layers, 2 of 8 experts, 3 products each, 2 FLOP a weight.
    expect(of('experts')).toBe(32 * 2 * 3 * 4096 * 14_336 * 2);
    expect(of('router')).toBe(32 * 8 * 4096 * 2);
  });

  it('latent attention: 192 wide queries, 128 wide values, and their products with the latent', async () => {
    const { model } = await publishedConfig('deepseek-v3-main');
    const [block] = model.blocks;
    if (!block) throw new Error('there are no blocks');
    const { parts } = forwardFlopsOf(block, at(10));
    const of = (kind: string) =>
      parts.find((part) => part.component === 'attention' && part.kind === kind)?.flops.value;
    expect(of('scores')).toBe(2 * 10 * 10 * 128 * (192 + 128));
    // q_a, q_b, kv_a, kv_b, o: 187,105,280 weights; the two norms multiply no matrix.
    const weights = 1536 * (7168 + 24_576) + 576 * 7168 + 512 * 32_768 + 128 * 128 * 7168;
    expect(of('projection')).toBe(2 * 10 * weights);
  });
});

describe('keys and values of a token, in bytes', () => {
  it.each<[string, Dtype, number]>([
    // arXiv 2505.09343, table 1: 70.272, 327.680 and 516.096 KB in bf16.
    ['deepseek-v3-main', 'bf16', 70_272],
    ['qwen2.5-72b', 'bf16', 327_680],
    ['llama-3.1-405b', 'bf16', 516_096],
  ])('%s', async (name, dtype, bytes) => {
    const { model } = await publishedConfig(name);
    const { keyValuePerToken, keyValueCache } = stateOf(model, { batch: 3, context: 7, dtype });
    expect(keyValuePerToken.value).toBe(bytes);
    expect(keyValueCache.value).toBe(3 * 7 * bytes);
  });

  it('MiniMind2-Small', () => {
    // 8 layers, 2 heads of 64, keys and values of 2 bytes.
    const { keyValuePerToken, windows } = stateOf(SMALL, { batch: 1, context: 1, dtype: 'f16' });
    expect(keyValuePerToken.value).toBe(4096);
    expect(windows).toEqual([]);
  });

  it('OPT-13B, whose attention is that of a GPT-2 of its size', () => {
    const sizes = { n_layer: 40, n_embd: 5120, n_head: 40 };
    const model = gpt2.build(gpt2.schema.parse({ model: { family: 'gpt2', ...sizes } }));
    const { keyValuePerToken } = stateOf(model, { batch: 1, context: 1, dtype: 'f16' });
    expect(keyValuePerToken.value).toBe(819_200);
  });

  it('a sliding window keeps those of its last tokens', async () => {
    const { model } = await publishedConfig('mistral-7b-v0.1');
    const { keyValueCache, windows, keyValuePerTokenPastWindows } = stateOf(model, {
      batch: 1,
      context: 10_000,
      dtype: 'bf16',
    });
    expect(windows).toEqual([{ rule: 'sliding', tokens: 4096 }]);
    // 32 layers of 8 key heads of 128; the next token brings the last of the 4096 itself.
    expect(keyValueCache.value).toBe(4095 * 32 * 8 * 128 * 2 * 2);
    expect(keyValuePerTokenPastWindows.value).toBe(0);
  });

  it('windows in every other layer', async () => {
    const { model } = await publishedConfig('gemma-2-2b');
    const perLayer = 4 * 256 * 2 * 2;
    const { keyValueCache } = stateOf(model, { batch: 1, context: 5000, dtype: 'bf16' });
    expect(keyValueCache.value).toBe(13 * perLayer * (4095 + 5000));
    const [first, second] = blocksOf(model, { inference: { ...at(5000), dtype: 'bf16' } });
    expect(first?.spans).toEqual([{ heads: 8, window: 4096, rule: 'sliding' }]);
    expect(second?.spans).toEqual([{ heads: 8 }]);
  });
});

describe('activations of a layer', () => {
  const kept = async (name: string, recompute: 'none' | 'selective' | 'full', blocks = 1) => {
    const { model } = await publishedConfig(name);
    const some = { ...model, blocks: model.blocks.slice(0, blocks) };
    const { parts } = activationsOf(some, { batch: 2, context: 100, bytesPerValue: 2, recompute });
    return new Map(parts.map(({ part, bytes }) => [part, Number(bytes.value)]));
  };
  const tokens = 2 * 100;

  it('GPT-2 keeps 34 s b h + 5 a s² b (arXiv 2205.05198) without dropout masks', async () => {
    const [one, two] = [await kept('gpt2', 'none', 1), await kept('gpt2', 'none', 2)];
    const sum = (parts: Map<unknown, number>) => [...parts.values()].reduce((a, b) => a + b);
    // Masks of dropout are a byte a value: two of the width of the layer, one of the scores; and the scores
    // stand there once more, behind it.
    const dropout = { width: 2, scores: 3 };
    const perLayer = (34 - dropout.width) * tokens * 768 + (5 - dropout.scores) * 12 * tokens * 100;
    expect(sum(two) - sum(one)).toBe(perLayer);
    const selective = [await kept('gpt2', 'selective', 1), await kept('gpt2', 'selective', 2)];
    expect(sum(selective[1] ?? new Map()) - sum(selective[0] ?? new Map())).toBe(
      (34 - dropout.width) * tokens * 768,
    );
  });

  it('a gated network keeps its input and four times its inner width', async () => {
    const parts = await kept('llama-2-7b', 'selective');
    expect(parts.get('feedForward')).toBe(2 * tokens * (4096 + 4 * 11_008));
    // Input, q, k, v and the output of the heads.
    expect(parts.get('attention')).toBe(2 * tokens * 5 * 4096);
    expect(parts.has('scanStates')).toBe(false);
  });

  it('a parallel block keeps its input once', async () => {
    const parts = await kept('pythia-70m', 'selective');
    // One norm of the two, and the last.
    expect(parts.get('norm')).toBe(2 * tokens * 2 * 512);
    const full = await kept('pythia-70m', 'full');
    expect(full.get('blockInputs')).toBe(2 * tokens * 512);
    // All of the block but that input, and the scores of its eight heads.
    const inside = Number(parts.get('attention')) + Number(parts.get('feedForward'));
    expect(full.get('oneBlock')).toBe(inside + 2 * 2 * 8 * 100 * 100);
  });

  it('a softcap keeps its scores once more', async () => {
    const parts = await kept('gemma-2-2b', 'none');
    expect(parts.get('scores')).toBe(2 * 2 * (2 * 8 * 100 * 100));
  });

  it('a mixture keeps those of the chosen experts', async () => {
    const parts = await kept('mixtral-8x7b', 'selective');
    expect(parts.get('experts')).toBe(2 * tokens * 2 * (2 * 4096 + 4 * 14_336));
    expect(parts.get('router')).toBe(2 * tokens * (4096 + 8 + 2));
  });
});
