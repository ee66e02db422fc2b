import { describe, expect, it } from 'vitest';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { decodingTarget } from '../../../src/estimate/plan/decode.js';
import { Folding, unfoldedModel } from '../../../src/estimate/plan/folding.js';
import { type PlanRequest, planModels } from '../../../src/estimate/plan/plan-models.js';
import { measuresOf } from '../../../src/estimate/plan/search.js';
import { ModelSpace } from '../../../src/estimate/plan/space.js';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import type { Family } from '../../../src/model/architecture/family.js';

const INFERENCE = { batch: 3, context: 2048, dtype: 'bf16' } as const;
const DECODE = decodingTarget({ gpu: gpuNamed('h100-80gb'), gpus: 1, network: null }, INFERENCE);

const REQUEST: PlanRequest = {
  inference: INFERENCE,
  maxParameters: 26e6,
  vocabulary: 6400,
  align: 64,
  set: [],
  sort: 'balance',
  top: 3,
};

const SIZES = {
  width: 256,
  heads: 4,
  keyValueHeads: 2,
  headDim: 64,
  feedForward: 512,
  rank: null,
} as const;

async function spaceOf(name: FamilyName, set: readonly string[] = []) {
  const family = await loadFamily(name);
  if (!family.dimensions) throw new Error(`${name} has no sizes`);
  return new ModelSpace(family, family.dimensions, { context: 2048, vocabulary: 6400, set });
}

/** A family that counts the models and blocks that it builds. */
function counting(
  family: Family,
  change: (model: ReturnType<Family['build']>) => typeof model = (m) => m,
) {
  const built = { models: 0, blocks: 0 };
  const build: Family['build'] = (document) => {
    const model = change(family.build(document));
    built.models += 1;
    built.blocks += model.blocks.length;
    return model;
  };
  return { built, family: { ...family, build } as Family };
}

describe('a folded model', () => {
  it.each([
    ['llama', []],
    ['gpt2', []],
    ['gemma2', []],
    ['gemma3_text', []],
    [
      'qwen2',
      ['model.use_sliding_window=true', 'model.max_window_layers=10', 'model.sliding_window=99'],
    ],
    [
      'qwen3_moe',
      ['model.num_experts=4', 'model.num_experts_per_tok=2', 'model.mlp_only_layers=[3]'],
    ],
    ['hybrid', []],
    ['hybrid', ['model.srte_share_across_layers=false']],
    ['hybrid', ['model.attention_type=pyramidal']],
  ] as const)('%s %j has the figures of the whole model, at each depth', async (name, set) => {
    const space = await spaceOf(name, set);
    const folding = new Folding(space);
    for (const [depth, width] of [
      [4, 192],
      [7, 256],
      [13, 256],
      [30, 512],
    ] as const) {
      const heads = width / 64;
      const sizes = { ...SIZES, depth, width, heads, keyValueHeads: heads };
      const whole = space.model(sizes);
      const folded = folding.model(sizes);
      if (!whole || !folded) throw new Error('not valid');
      const measured = measuresOf(folded, sizes, INFERENCE, DECODE);
      expect(measured).toEqual(measuresOf(unfoldedModel(whole), sizes, INFERENCE, DECODE));
      expect(folding.parameters(sizes)).toBe(measured.parameters);
    }
  });

  it('is built with few blocks', async () => {
    const { built, family } = counting(await loadFamily('llama'));
    const { compared, rows, spectrum } = planModels(family, { ...REQUEST, decode: DECODE });
    const shown = new Map([...rows, ...spectrum].map((row) => [row.place, row.sizes.depth]));
    const whole = [...shown.values()].reduce((total, depth) => total + depth, 0);
    // Powers of two up to 128, and small models: those for predictions, and one for each compared model.
    expect(compared).toBeGreaterThan(100);
    expect(built.blocks - whole).toBeLessThan(255 + 10 * compared);
  });

  it('is not used where blocks of other widths differ', async () => {
    const llama = await loadFamily('llama');
    const deceive = (model: ReturnType<Family['build']>) => {
      const isWide = (model.embedding.weight.shape[1] ?? 0) > 256;
      const blocks = isWide && model.blocks.length > 4 ? model.blocks.slice(1) : model.blocks;
      return { ...model, blocks };
    };
    const { family } = counting(llama, deceive);
    const { rows, limits } = planModels(family, {
      ...REQUEST,
      maxParameters: 12e6,
      depth: { least: 2, most: 16 },
      width: { least: 192, most: 384 },
      top: 1000,
    });
    // With a block less than predicted, they would have fewer parameters than the minimum.
    for (const { parameters } of rows) {
      expect(parameters.value).toBeGreaterThanOrEqual(Number(limits.minParameters));
    }
    expect(rows.some(({ sizes }) => sizes.width > 256)).toBe(true);
  });
});
