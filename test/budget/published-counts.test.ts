import { describe, expect, it } from 'vitest';
import { countParameters, parameterFigures } from '../../src/budget/parameters.js';
import { publishedConfig, publishedModels } from './published-models.js';

const MODELS = publishedModels().map((published) => [published.model, published] as const);

describe('published numbers of parameters', () => {
  it('are those of 66 models', () => {
    expect(MODELS).toHaveLength(66);
  });

  it.each(MODELS)(
    '%s has the published count, and the published active count',
    async (name, published) => {
      const { model } = await publishedConfig(name);
      const figures = parameterFigures(model);
      const { total, withContested, active, activeWithoutEmbedding, body } = figures;
      expect(withContested.value).toBe(published.total);
      expect(countParameters(model).parameters).toBe(total.value);
      // Its publisher counts the router's corrections, which are buffers here.
      const contested = Number(withContested.value) - Number(total.value);
      expect(contested).toBe(name.startsWith('deepseek') ? 58 * 256 : 0);
      const told = {
        active_incl_embeddings: Number(active.value) + contested,
        active_excl_input_embedding: Number(activeWithoutEmbedding.value) + contested,
        non_embedding: body.value,
      };
      for (const what of Object.keys(told) as (keyof typeof told)[]) {
        if (published[what] !== undefined) expect(told[what], what).toBe(published[what]);
      }
      if (published.experts === undefined) expect(active.value).toBe(total.value);
    },
  );

  it('names buffers that others count', async () => {
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
