import { describe, expect, it } from 'vitest';
import type { Dtype } from '../../../src/base/tensor/dtype.js';
import { gpt2 } from '../../../src/model/architecture/models/gpt2.js';
import { minimind } from '../../../src/model/architecture/models/minimind.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { forwardFlopsOf, trainingFlopsOf } from '../../../src/model/budget/flops.js';
import { blockBudgets } from '../../../src/model/budget/profile-model.js';
import { activationsOf } from '../../../src/model/budget/saved-activations.js';
import { stateOf } from '../../../src/model/budget/state.js';
import { publishedConfig } from './published-models.js';

const SMALL = minimind.build(minimind.schema.parse(presetDocument('minimind', 'minimind2-small')));

const at = (context: number, causal = false) => ({ batch: 1, context, causal }) as const;

describe('published FLOPs', () => {
  it('are those of GPT-2 at 1024 tokens: 24 s h² and 4 s² h per layer, and 2 s h V', async () => {
    const { model } = await publishedConfig('gpt2');
    expect(forwardFlopsOf(model, at(1024)).total.value).toBe(291_648_307_200);
    const training = trainingFlopsOf(model, { ...at(1024), recompute: 'none' });
    expect(training.total.value).toBe(874_944_921_600);
  });

  it('are those of Llama-7B at 128 tokens, in MACs (calflops)', async () => {
    const { model } = await publishedConfig('llama-2-7b');
    expect(forwardFlopsOf(model, at(128)).macs.value).toBe(850_000_871_424);
  });

  it('are 30.7 GFLOP for MiniMind2-Small at 512 tokens, and 28.6 inside the mask', () => {
    const [full, causal] = [false, true].map(
      (masked) => Number(forwardFlopsOf(SMALL, at(512, masked)).total.value) / 1e9,
    );
    expect(full?.toFixed(1)).toBe('30.7');
    expect(causal?.toFixed(1)).toBe('28.6');
  });

  it('count only the chosen experts of a mixture', async () => {
    const { model } = await publishedConfig('mixtral-8x7b');
    const { parts } = forwardFlopsOf(model, at(1));
    const of = (component: string) =>
      parts.find((part) => part.component === component && part.kind === 'projection')?.flops.value;
    // 32 layers, 2 of 8 experts, 3 products each, 2 FLOP per weight.
    expect(of('experts')).toBe(32 * 2 * 3 * 4096 * 14_336 * 2);
    expect(of('router')).toBe(32 * 8 * 4096 * 2);
  });

  it('count latent attention: queries of 192, values of 128, and their products with the latent', async () => {
    const { model } = await publishedConfig('deepseek-v3-main');
    const [block] = model.blocks;
    if (!block) throw new Error('the model has no blocks');
    const { parts } = forwardFlopsOf(block, at(10));
    const of = (kind: string) =>
      parts.find((part) => part.component === 'attention' && part.kind === kind)?.flops.value;
    expect(of('scores')).toBe(2 * 10 * 10 * 128 * (192 + 128));
    // q_a, q_b, kv_a, kv_b, o: 187,105,280 weights; the two norms multiply no matrix.
    const weights = 1536 * (7168 + 24_576) + 576 * 7168 + 512 * 32_768 + 128 * 128 * 7168;
    expect(of('projection')).toBe(2 * 10 * weights);
  });
});

describe('keys and values of a token', () => {
  it.each<[string, Dtype, number]>([
    // arXiv 2505.09343, table 1: 70.272, 327.680 and 516.096 KB in bf16.
    ['deepseek-v3-main', 'bf16', 70_272],
    ['qwen2.5-72b', 'bf16', 327_680],
    ['llama-3.1-405b', 'bf16', 516_096],
  ])('of %s have the published size', async (name, dtype, bytes) => {
    const { model } = await publishedConfig(name);
    const { keyValuePerToken, keyValueCache } = stateOf(model, { batch: 3, context: 7, dtype });
    expect(keyValuePerToken.value).toBe(bytes);
    expect(keyValueCache.value).toBe(3 * 7 * bytes);
  });

  it('of MiniMind2-Small take 4096 bytes', () => {
    // 8 layers, 2 heads of 64, keys and values of 2 bytes.
    const { keyValuePerToken, windows } = stateOf(SMALL, { batch: 1, context: 1, dtype: 'f16' });
    expect(keyValuePerToken.value).toBe(4096);
    expect(windows).toEqual([]);
  });

  it('of OPT-13B take 819,200 bytes, as those of a GPT-2 of its size', () => {
    const sizes = { n_layer: 40, n_embd: 5120, n_head: 40 };
    const model = gpt2.build(gpt2.schema.parse({ model: { family: 'gpt2', ...sizes } }));
    const { keyValuePerToken } = stateOf(model, { batch: 1, context: 1, dtype: 'f16' });
    expect(keyValuePerToken.value).toBe(819_200);
  });

  it('are kept for the last tokens of a sliding window', async () => {
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

  it('are limited by windows in every other layer', async () => {
    const { model } = await publishedConfig('gemma-2-2b');
    const perLayer = 4 * 256 * 2 * 2;
    const { keyValueCache } = stateOf(model, { batch: 1, context: 5000, dtype: 'bf16' });
    expect(keyValueCache.value).toBe(13 * perLayer * (4095 + 5000));
    const [first, second] = blockBudgets(model, { inference: { ...at(5000), dtype: 'bf16' } });
    expect(first?.spans).toEqual([{ heads: 8, window: 4096, rule: 'sliding' }]);
    expect(second?.spans).toEqual([{ heads: 8 }]);
  });
});

describe('the activations of a layer', () => {
  const savedBytes = async (name: string, recompute: 'none' | 'selective' | 'full', blocks = 1) => {
    const { model } = await publishedConfig(name);
    const some = { ...model, blocks: model.blocks.slice(0, blocks) };
    const { parts } = activationsOf(some, { batch: 2, context: 100, bytesPerValue: 2, recompute });
    return new Map(parts.map(({ part, bytes }) => [part, Number(bytes.value)]));
  };
  const tokens = 2 * 100;

  it('are 34 s b h + 5 a s² b (arXiv 2205.05198) for GPT-2, less the dropout', async () => {
    const [one, two] = [await savedBytes('gpt2', 'none', 1), await savedBytes('gpt2', 'none', 2)];
    const sum = (parts: Map<unknown, number>) => [...parts.values()].reduce((a, b) => a + b);
    // A mask of dropout takes a byte per value: two masks of the layer's width, one of the scores. The output of the
    // last dropout repeats the scores.
    const dropout = { width: 2, scores: 3 };
    const perLayer = (34 - dropout.width) * tokens * 768 + (5 - dropout.scores) * 12 * tokens * 100;
    expect(sum(two) - sum(one)).toBe(perLayer);
    const selective = [
      await savedBytes('gpt2', 'selective', 1),
      await savedBytes('gpt2', 'selective', 2),
    ];
    expect(sum(selective[1] ?? new Map()) - sum(selective[0] ?? new Map())).toBe(
      (34 - dropout.width) * tokens * 768,
    );
  });

  it('include the input and four times the inner width of a gated network', async () => {
    const parts = await savedBytes('llama-2-7b', 'selective');
    expect(parts.get('feedForward')).toBe(2 * tokens * (4096 + 4 * 11_008));
    // Input, q, k, v and the output of the heads.
    expect(parts.get('attention')).toBe(2 * tokens * 5 * 4096);
    expect(parts.has('scanStates')).toBe(false);
  });

  it('include the input of a parallel block once', async () => {
    const parts = await savedBytes('pythia-70m', 'selective');
    // One norm of the two, and the last.
    expect(parts.get('norm')).toBe(2 * tokens * 2 * 512);
    const full = await savedBytes('pythia-70m', 'full');
    expect(full.get('blockInputs')).toBe(2 * tokens * 512);
    // All of the block except that input, with the scores of its eight heads.
    const inside = Number(parts.get('attention')) + Number(parts.get('feedForward'));
    expect(full.get('oneBlock')).toBe(inside + 2 * 2 * 8 * 100 * 100);
  });

  it('include the scores twice with a softcap', async () => {
    const parts = await savedBytes('gemma-2-2b', 'none');
    expect(parts.get('scores')).toBe(2 * 2 * (2 * 8 * 100 * 100));
  });

  it('include only the chosen experts of a mixture', async () => {
    const parts = await savedBytes('mixtral-8x7b', 'selective');
    expect(parts.get('experts')).toBe(2 * tokens * 2 * (2 * 4096 + 4 * 14_336));
    expect(parts.get('router')).toBe(2 * tokens * (4096 + 8 + 2));
  });
});
