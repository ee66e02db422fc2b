import { describe, expect, it } from 'vitest';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import {
  decodingFlopsOf,
  forwardFlopsOf,
  generationFlopsOf,
  lastTokensFlopsOf,
} from '../../../src/model/budget/flops.js';
import { inPackage } from '../../fixtures.js';

const SMALL = 'configs/minimind/minimind2-small.yaml';

const modelOf = async (config: string): Promise<LanguageModel> =>
  (await loadModelFile(inPackage(config), {})).model;

const forward = (model: LanguageModel, context: number) =>
  BigInt(forwardFlopsOf(model, { batch: 1, context, causal: true }).total.value);

describe('FLOPs of generation', () => {
  it.each([
    SMALL,
    'configs/hybrid/bench-60m.yaml',
    'fixtures/hf/deepseek-v2/config.json',
    'fixtures/hf/gemma2-window/config.json',
  ])('are the sum over its calls: %s', async (config) => {
    const model = await modelOf(config);
    const steps = [101, 102, 103].map((context) => {
      const { perToken, scores } = decodingFlopsOf(model, context);
      return BigInt(perToken.value) + BigInt(scores.value);
    });
    const passes = [100, 101, 102, 103].map((context) => forward(model, context));
    const sum = (values: readonly bigint[]) => values.reduce((all, each) => all + each, 0n);
    const flops = generationFlopsOf(model, { prompt: 100, generated: 4 });
    expect(BigInt(flops.cached)).toBe(sum([forward(model, 100), ...steps]));
    expect(BigInt(flops.recomputed)).toBe(sum(passes));
  });

  it('with a cache are those of one forward pass over all tokens but the last', async () => {
    const model = await modelOf(SMALL);
    const { cached, ratio } = generationFlopsOf(model, { prompt: 512, generated: 100 });
    expect(BigInt(cached)).toBe(forward(model, 611));
    // If the prompt cost nothing, the ratio would be 561.5, the mean length.
    expect(ratio).toBeCloseTo(91.26, 2);
  });

  it('are counted for the last tokens of a context', async () => {
    const model = await modelOf(SMALL);
    expect(lastTokensFlopsOf(model, 2048)).toMatchObject({ prompt: 1920, generated: 128 });
    expect(lastTokensFlopsOf(model, 5)).toMatchObject({ prompt: 3, generated: 2 });
    expect(lastTokensFlopsOf(model, 1)).toBeUndefined();
  });
});
