import { describe, expect, it } from 'vitest';
import { countParameters, parameterFigures } from '../../../src/model/budget/parameters.js';
import { publishedConfig, publishedModels } from './published-models.js';

const MODELS = publishedModels().map((published) => [published.model, published] as const);

describe('published numbers of parameters', () => {
  it('exist for 66 models', () => {
    expect(MODELS).toHaveLength(66);
  });

  it.each(MODELS)('are computed for %s, total and active', async (name, published) => {
    const { model } = await publishedConfig(name);
    const figures = parameterFigures(model);
    const { total, withContested, active, activeWithoutEmbedding, body } = figures;
    expect(withContested.value).toBe(published.total);
    expect(countParameters(model).parameters).toBe(total.value);
    // DeepSeek counts the corrections of the router, which are buffers here.
    const contested = Number(withContested.value) - Number(total.value);
    expect(contested).toBe(name.startsWith('deepseek') ? 58 * 256 : 0);
    const computed = {
      active_incl_embeddings: Number(active.value) + contested,
      active_excl_input_embedding: Number(activeWithoutEmbedding.value) + contested,
      non_embedding: body.value,
    };
    for (const count of Object.keys(computed) as (keyof typeof computed)[]) {
      if (published[count] !== undefined) expect(computed[count], count).toBe(published[count]);
    }
    if (published.experts === undefined) expect(active.value).toBe(total.value);
  });

  it('may include buffers, which are listed', async () => {
    const { model } = await publishedConfig('deepseek-v3-main');
    const { contested, total } = parameterFigures(model);
    expect(total.value).toBe(671_026_404_352);
    expect(contested).toEqual([
      {
        pattern: 'model.layers.*.mlp.gate.e_score_correction_bias',
        values: 14_848,
        reason: expect.stringContaining('DeepSeek-V3'),
      },
    ]);
  });
});
