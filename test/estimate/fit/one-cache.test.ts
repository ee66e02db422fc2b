/** The cache of a token, and of a sequence, is one figure in `profile`, `fit` and `compare`, with windows and without. */
import { describe, expect, it } from 'vitest';
import { compare } from '../../../src/library/compare.js';
import { fit as fitOf } from '../../../src/library/fit.js';
import { loadModel } from '../../../src/library/models/load-model.js';
import { profile } from '../../../src/library/profile.js';
import { inPackage } from '../../fixtures.js';

const MODELS = ['gpt-oss-20b', 'gemma-2-9b', 'jamba-v0.1', 'lfm2-1.2b', 'pythia-70m'];

describe('the cache of a sequence', () => {
  it.each(MODELS)('is one figure: %s', async (name) => {
    const model = await loadModel(inPackage('fixtures', 'hf-configs', name, 'config.json'));
    // Beyond the windows of both models that have some.
    const context = Math.min(8192, model.model.positions);
    const { state } = profile(model, { context }).inference;
    const { serving } = fitOf(model, { gpu: 'h200', for: 'serving', runtime: 'vllm', context });
    expect(serving?.fit.cachePerToken.value).toBe(state.keyValuePerToken.value);
    expect(serving?.fit.cachePerSequence.value).toBe(state.keyValueCache.value);
    const [row] = (await compare([model], { context, columns: ['kv-per-token', 'kv-cache'] })).rows;
    expect(row?.figures?.['kv-per-token']).toBe(state.keyValuePerToken.value);
    expect(row?.figures?.['kv-cache']).toBe(state.keyValueCache.value);
  });
});
