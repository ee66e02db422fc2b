/** Which YaRN a config of MiniMind 2 means, and the kind `minillm`. */
import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { walk } from '../../../src/model/architecture/walk.js';
import { countParameters } from '../../../src/model/budget/parameters.js';

const SIZES = { hidden_size: 512, num_hidden_layers: 8, inference_rope_scaling: true };
/** rope_scaling in `MiniMindConfig`, model/model_minimind.py of jingyaogong/minimind at 4e35fb9 and at 151fdf7. */
const EARLY = {
  beta_fast: 4,
  beta_slow: 1,
  factor: 4,
  original_max_position_embeddings: 2048,
  type: 'yarn',
};
const TODAY = { ...EARLY, beta_fast: 32, factor: 16, attention_factor: 1 };

const scalingOf = (model: LanguageModel) => {
  const scalings = walk(model).flatMap(({ layer }) =>
    layer.kind === 'rotary' ? [layer.scaling] : [],
  );
  return scalings[0];
};

async function read(config: object) {
  const text = JSON.stringify({ model_type: 'minimind', ...config });
  const { model, warnings } = await modelOf(parseDocument(text, 'config.json'));
  return { model, scaling: scalingOf(model), warnings: warnings.map(({ message }) => message) };
}

describe('YaRN of MiniMind 2', () => {
  it('follows the keys, and the early one is said', async () => {
    const { scaling, warnings } = await read({ ...SIZES, rope_scaling: EARLY });
    expect(scaling).toEqual({
      kind: 'earlyYarn',
      factor: 4,
      originalPositions: 2048,
      betaFast: 4,
      betaSlow: 1,
    });
    expect(warnings).toEqual([expect.stringMatching(/^beta_fast without attention_factor/)]);
  });

  it.each([
    [{ ...SIZES, rope_scaling: TODAY }, 16],
    [{ ...SIZES, rope_scaling: { ...EARLY, attention_factor: 1 } }, 4],
    [{ ...SIZES, rope_scaling: { ...EARLY, formula: 'ramp' } }, 4],
    [{ ...SIZES, rope_scaling: { ...EARLY, beta_fast: 32 } }, 4],
    [{ ...SIZES }, 16],
    [{ ...SIZES, head_dim: 64, rope_scaling: EARLY }, 4],
  ])('is that with a ramp: %j', async (config, factor) => {
    const { scaling, warnings } = await read(config);
    expect(scaling).toMatchObject({ kind: 'yarn', factor });
    expect(warnings).toEqual([]);
  });

  it('is the early one where it is asked for', async () => {
    const asked = { ...SIZES, rope_scaling: { type: 'yarn', formula: 'early' } };
    const { scaling, warnings } = await read(asked);
    expect(scaling).toMatchObject({ kind: 'earlyYarn', factor: 4, betaFast: 4 });
    expect(warnings).toEqual([]);
  });

  it('scales without a type, which the code does not read', async () => {
    const { type: _, ...untyped } = TODAY;
    expect((await read({ ...SIZES, rope_scaling: untyped })).scaling).toMatchObject({ factor: 16 });
  });

  it('has no effect without inference_rope_scaling', async () => {
    const off = { ...SIZES, inference_rope_scaling: false, rope_scaling: EARLY };
    expect(await read(off)).toMatchObject({ scaling: undefined, warnings: [] });
  });
});

// github.com/cklxx/mini-llm, model/model_minillm.py: the sizes by default are those of MiniMind2-Small.
describe('a config.json of MiniLLM', () => {
  it('is read as MiniMind 2', async () => {
    const { model, warnings } = await read({ model_type: 'minillm' });
    expect(countParameters(model).parameters).toBe(25_829_888);
    expect(warnings).toEqual([]);
    const { model: experts } = await read({
      model_type: 'minillm',
      use_moe: true,
      hidden_size: 640,
    });
    expect(countParameters(experts).parameters).toBe(145_029_760);
  });

  it.each([undefined, null, EARLY])('has the early YaRN, and says so: %j', async (rope_scaling) => {
    const config = { model_type: 'minillm', inference_rope_scaling: true, rope_scaling };
    const { scaling, warnings } = await read(config);
    expect(scaling).toMatchObject({ kind: 'earlyYarn', factor: 4, betaFast: 4 });
    expect(warnings).toEqual([
      'YaRN is computed as the code of minillm does: by the formula "early"',
    ]);
  });
});
