import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { parseDocument } from '../../../src/config/document.js';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import type { CriterionName, Measures } from '../../../src/estimate/plan/criteria.js';
import {
  AXES,
  advantage,
  axesFor,
  balancedDepth,
  CRITERIA,
  CRITERION_NAMES,
  isAtLeastAsGood,
} from '../../../src/estimate/plan/criteria.js';
import { decodingTarget } from '../../../src/estimate/plan/decode.js';
import { unfoldedModel } from '../../../src/estimate/plan/folding.js';
import type { Plan, PlanRequest, PlanRow } from '../../../src/estimate/plan/plan-models.js';
import {
  planModels,
  rowDocument,
  searchRequest,
  spaceOf,
} from '../../../src/estimate/plan/plan-models.js';
import { measuresOf, searchedWidths, WidthSearcher } from '../../../src/estimate/plan/search.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import type { FamilyName } from '../../../src/model/architecture/families.js';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { profileModel, resolveSetting } from '../../../src/model/budget/profile-model.js';
import { isWhole, sampled } from '../../sampled.js';

const INFERENCE = { batch: 1, context: 2048, dtype: 'bf16' } as const;
const H100 = { gpu: gpuNamed('h100-80gb'), gpus: 1, network: null };

const plan = async (name: FamilyName, request: Partial<PlanRequest>): Promise<Plan> =>
  planModels(await loadFamily(name), {
    inference: INFERENCE,
    maxParameters: 26e6,
    align: 64,
    set: [],
    sort: 'balance',
    top: 10,
    ...request,
  });

/** The whole Pareto set by a criterion, planned once for all tests. */
const ranked = new Map<CriterionName, Promise<Plan>>();
const rankedBy = (sort: CriterionName): Promise<Plan> => {
  const decode = decodingTarget(H100, INFERENCE);
  const planned =
    ranked.get(sort) ?? plan('minimind', { vocabulary: 6400, sort, decode, top: 1000 });
  ranked.set(sort, planned);
  return planned;
};

/** Criteria of the tests that need the whole Pareto set, which takes seconds each. */
const RANKED_BY = sampled(CRITERION_NAMES, 4);

const PLANNED: (typeof FAMILY_NAMES)[number][] = [];
for (const name of FAMILY_NAMES) {
  if ((await loadFamily(name)).dimensions) PLANNED.push(name);
}

/** Profile of the config of a row. */
async function profileOf(planned: Plan, row: PlanRow) {
  const text = rowDocument(planned, row.place);
  const { model, warnings } = await modelOf(parseDocument(text, 'row.yaml'));
  const { batch, context, dtype } = planned.inference;
  const settings = { batch, context, dtype, causal: false, optimizer: 'adamw' } as const;
  return {
    model,
    warnings,
    profile: profileModel(model, resolveSetting(settings, {}, model.positions)),
  };
}

const measuresOfRow = (row: PlanRow): Measures => ({
  parameters: Number(row.parameters.value),
  body: Number(row.body.value),
  memory: Number(row.memory.value),
  decode: row.decode?.expected.value ?? null,
  widthPerLayer: row.widthPerLayer.value,
  offBalance: row.offBalance.value,
});

/** Rows of the embedding for tokens that the head cannot give: images, and the token before a text. */
const FURTHER_ROWS: Readonly<Record<string, number>> = { mllama_text_model: 8, moshi: 1 };

/** Longest input that Moshi takes, whatever its positions. */
const MOSHI_WINDOW = 3000;

describe('any plan', () => {
  it('has rows that are valid, within the budget and equal to their profile', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...PLANNED),
        fc.double({ min: 6.2, max: 8.7, noNaN: true }),
        fc.integer({ min: 1, max: 60_000 }),
        fc.constantFrom(...CRITERION_NAMES.filter((name) => name !== 'decode')),
        fc.constantFrom(64, 128),
        fc.integer({ min: 1, max: 5000 }),
        async (family, exponent, vocabulary, sort, align, context) => {
          const maxParameters = Math.round(10 ** exponent);
          const inference = { ...INFERENCE, context };
          const request = { maxParameters, vocabulary, sort, align, inference, top: 3 };
          const planned = await plan(family, request).catch((error: unknown) => error);
          if (planned instanceof UserError) {
            const isTooLong = family === 'moshi' && context > MOSHI_WINDOW;
            expect(planned.message).toMatch(
              isTooLong ? /tokens are more than the 3,000 positions/ : /the smallest candidate has/,
            );
            return;
          }
          for (const row of (planned as Plan).rows) {
            const { profile, warnings, model } = await profileOf(planned as Plan, row);
            const { parameters, inference: memory } = profile;
            // A hybrid with one head gives a warning, because it cannot have two global ones.
            if (family !== 'hybrid') expect(warnings).toEqual([]);
            expect(parameters.total).toEqual(row.parameters);
            expect(parameters.body).toEqual(row.body);
            expect(memory.total).toEqual(row.memory);
            expect(memory.state.total).toEqual(row.state);
            expect(memory.state.keyValueCache).toEqual(row.keyValueCache);
            expect(row.parameters.value).toBeLessThanOrEqual(maxParameters);
            expect(row.parameters.value).toBeGreaterThanOrEqual(
              Number((planned as Plan).limits.minParameters),
            );
            const rows = vocabulary + (FURTHER_ROWS[family] ?? 0);
            expect(model.embedding.weight.shape).toEqual([rows, row.sizes.width]);
            expect(model.blocks).toHaveLength(row.sizes.depth);
            expect((row.sizes.feedForward ?? 0) % align).toBe(0);
          }
        },
      ),
      { numRuns: isWhole ? 16 : 5 },
    );
  }, 300_000);

  it.each(RANKED_BY)('is ordered by %s, and no row is dominated by another', async (sort) => {
    const { rows, pareto } = await rankedBy(sort);
    expect(rows).toHaveLength(pareto);
    const { measure, best } = CRITERIA[sort];
    const measured = rows.map(measuresOfRow);
    const values = measured.map((each) => each[measure] ?? 0);
    const sign = best === 'least' ? 1 : -1;
    expect(values).toEqual(values.toSorted((a, b) => sign * (a - b)));
    const axes = axesFor(CRITERIA[sort]);
    for (const own of measured) {
      const better = measured.filter((other) => other !== own && isAtLeastAsGood(other, own, axes));
      expect(better).toEqual([]);
    }
  });

  it.runIf(isWhole)(
    'begins with the best row by its criterion among those of all criteria',
    async () => {
      const planned = await Promise.all(
        CRITERION_NAMES.filter((name) => name !== 'decode').map(async (sort) => ({
          sort,
          rows: (await rankedBy(sort)).rows,
        })),
      );
      const all = planned.flatMap(({ rows }) => rows.map(measuresOfRow));
      for (const { sort, rows } of planned) {
        const [first] = rows.map(measuresOfRow);
        const better = all.filter((each) => advantage(each, first as Measures, CRITERIA[sort]) > 0);
        expect(better, sort).toEqual([]);
      }
    },
  );

  it('is the same each time', async () => {
    const request = { maxParameters: 5e6, vocabulary: 6400 };
    expect(await plan('minimind', request)).toEqual(await plan('minimind', request));
  });
});

describe('a plan with 26M parameters and 6400 tokens', () => {
  // 25,829,888 parameters by its own repository: hidden 512, 8 layers, 8 and 2 heads, feed-forward 1408.
  const sizes = {
    depth: 8,
    width: 512,
    heads: 8,
    keyValueHeads: 2,
    headDim: 64,
    feedForward: 1408,
    rank: null,
  };
  const decode = decodingTarget(H100, INFERENCE);

  const published = async () => {
    const family = await loadFamily('minimind');
    const document = presetDocument('minimind', 'minimind2-small');
    const model = unfoldedModel(family.build(family.schema.parse(document)));
    return measuresOf(model, sizes, INFERENCE, decode);
  };

  it.each(RANKED_BY)('has a model at least as good as minimind2-small by %s', async (sort) => {
    const { rows } = await rankedBy(sort);
    const [best, reference] = [measuresOfRow(rows[0] as PlanRow), await published()];
    expect(reference.parameters).toBe(25_829_888);
    const { measure, best: direction } = CRITERIA[sort];
    if (direction === 'least') expect(best[measure]).toBeLessThanOrEqual(reference[measure] ?? 0);
    else expect(best[measure]).toBeGreaterThanOrEqual(reference[measure] ?? 0);
  });

  it('has a model at least as good as minimind2-small by all criteria at once', async () => {
    const { rows } = await rankedBy('balance');
    const reference = await published();
    expect(rows.filter((row) => isAtLeastAsGood(measuresOfRow(row), reference, AXES))).not.toEqual(
      [],
    );
  });

  it('gives minimind2-small itself for its sizes', async () => {
    const set = [
      'hidden_size=512',
      'num_hidden_layers=8',
      'num_attention_heads=8',
      'num_key_value_heads=2',
    ];
    const { rows } = await plan('minimind', {
      vocabulary: 6400,
      set: set.map((each) => `model.${each}`),
    });
    expect(rows.map((row) => row.sizes)).toEqual([sizes]);
    expect(rows[0]?.parameters.value).toBe(25_829_888);
  });

  it('ranges from deep and thin to shallow and wide', async () => {
    const { spectrum } = await rankedBy('balance');
    const [deep, wide] = [spectrum[0], spectrum.at(-1)] as [PlanRow, PlanRow];
    expect(deep.sizes.depth / wide.sizes.depth).toBeGreaterThan(10);
    expect(deep.keyValueCache.value).toBeGreaterThan(Number(wide.keyValueCache.value));
    expect(deep.decode?.expected.value).toBeLessThan(wide.decode?.expected.value ?? 0);
    const ratios = spectrum.map(({ widthPerLayer }) => widthPerLayer.value);
    expect(ratios).toEqual(ratios.toSorted((a, b) => a - b));
  });
});

describe('the balance of depth and width', () => {
  // Optimal depths and widths for the sizes of GPT-3, arXiv 2006.12467, table 1; the widths are rounded there.
  it.each([
    [23, 555],
    [38, 1220],
    [47, 2110],
    [54, 3010],
    [80, 13_500],
  ])('is %d layers for a width of %d', (depth, width) => {
    expect(Math.abs(balancedDepth(width).value - depth)).toBeLessThan(1);
  });

  it('is at least one layer', () => expect(balancedDepth(64).value).toBe(1));
});

describe('a budget without a model', () => {
  it.each([
    [{ maxParameters: 0 }, /at most 0 parameters: the smallest candidate has 483,648/],
    [{ maxParameters: 1e5 }, /with 2 layers of width 64$/],
    [{ vocabulary: Number.MAX_SAFE_INTEGER }, /the smallest candidate has more than 2\^53/],
    [{ minParameters: 26e6 }, /26,000,000 to 26,000,000 parameters: the largest candidate below/],
    [{ minParameters: 27e6 }, /--min-params: expected at most --max-params .*, found 27,000,000/],
    [{ maxMemory: 1e6 }, /at most 1,000,000 bytes: the leanest needs/],
    [{ width: { least: 100, most: 110 } }, /its heads must divide its width/],
    [{ set: ['model.nonsense=1'] }, /the plan is not valid: 1 error/],
    [{ set: ['model=3'] }, /the plan is not valid: 1 error/],
    [{ set: ['model.hidden_size=wide'] }, /the plan is not valid: 1 error/],
    [
      { set: ['model.max_position_embeddings=100'] },
      /2,048 tokens are more than the 100 positions/,
    ],
    [{ sort: 'decode' }, /^--sort decode requires --gpu$/],
  ] satisfies [Partial<PlanRequest>, RegExp][])('%j is reported', async (request, message) => {
    const error = await plan('minimind', { vocabulary: 6400, ...request }).catch((each) => each);
    expect(error).toBeInstanceOf(UserError);
    expect(error.message).toMatch(message);
  });

  it('starts just below the smallest candidate', async () => {
    const smallest = await plan('minimind', { vocabulary: 6400, maxParameters: 483_648 });
    expect(smallest.rows[0]?.parameters.value).toBe(483_648);
    await expect(plan('minimind', { vocabulary: 6400, maxParameters: 483_647 })).rejects.toThrow(
      UserError,
    );
  });

  it('is reported with the least sufficient memory', async () => {
    const error = await plan('minimind', { vocabulary: 6400, maxMemory: 1 }).catch((each) => each);
    const maxMemory = Number(/--max-memory to (\d+)/.exec(error.suggestion)?.[1]);
    const { rows } = await plan('minimind', { vocabulary: 6400, maxMemory });
    expect(rows.map(({ memory }) => memory.value)).toEqual([maxMemory]);
  });

  it.each(['deepseek_v2', 'deepseek_v3', 'qwen2_moe'] as const)(
    'is reported for %s, which has no sizes to choose',
    async (name) => {
      await expect(plan(name, {})).rejects.toThrow(/has no table of sizes to search/);
    },
  );
});

describe('a plan with given values', () => {
  it('keeps a list of layers', async () => {
    const set = ['model.no_rope_layers=[1, 0, 1, 0]'];
    const { rows } = await plan('smollm3', { vocabulary: 6400, set });
    expect(new Set(rows.map(({ sizes }) => sizes.depth))).toEqual(new Set([4]));
  });

  it('counts learned positions for the context', async () => {
    const inference = { ...INFERENCE, context: 4096 };
    const planned = await plan('gpt2', { vocabulary: 6400, inference });
    const { rows } = planned;
    const { profile } = await profileOf(planned, rows[0] as PlanRow);
    const positions = profile.parameters.components.find(
      ({ component }) => component === 'positions',
    );
    expect(positions?.parameters.value).toBe(4096 * (rows[0]?.sizes.width ?? 0));
  });

  it('accepts a budget beyond the range of exact doubles', async () => {
    const { rows } = await plan('minimind', { vocabulary: 6400, maxParameters: 10n ** 40n });
    expect(rows[0]?.parameters.value).toBeGreaterThan(8e12);
  });
});

describe('a plan for a GPU that is too small', () => {
  const decode = decodingTarget({ gpu: gpuNamed('h100-80gb'), gpus: 1, network: null }, INFERENCE);
  const request = {
    maxParameters: 42.6e9,
    width: { least: 8192, most: 10_240 },
    decode,
    top: 1000,
  };

  it('ranks models that do not fit last, with the reason instead of tokens/s', async () => {
    const { rows, gpuMemory } = await plan('llama', { ...request, sort: 'decode' });
    const usable = gpuNamed('h100-80gb').usable?.bytes ?? 0;
    expect(gpuMemory?.value).toBe(usable);
    const fits = rows.map(({ memory }) => memory.value <= usable);
    expect(new Set(fits)).toEqual(new Set([true, false]));
    expect(rows.map((row) => row.decode !== null)).toEqual(fits);
    expect(rows.map(({ misfit }) => misfit === null)).toEqual(fits);
    expect(fits.lastIndexOf(true)).toBeLessThan(fits.indexOf(false));
    const misfit = rows.find((row) => row.misfit !== null);
    expect(misfit?.misfit).toBe(
      `${misfit?.memory.value.toLocaleString('en-US')} bytes do not fit in the ${usable.toLocaleString('en-US')} bytes of the GPU`,
    );
  });

  it('omits models that do not fit with a memory limit', async () => {
    const { rows } = await plan('llama', { ...request, maxMemory: 84e9 });
    expect(rows.every(({ decode, misfit }) => decode !== null && misfit === null)).toBe(true);
  });
});

describe('the predicted work of a width', () => {
  it.each<[FamilyName, number, number]>([
    ['llama', 7e9, 32_000],
    ['minimind', 26e6, 6400],
    ['hybrid', 3e9, 32_000],
  ])('equals the number of models of %s at this width', async (name, maxParameters, vocabulary) => {
    const common = { inference: INFERENCE, align: 64, set: [], sort: 'balance', top: 10 } as const;
    const planRequest: PlanRequest = { ...common, maxParameters, vocabulary };
    const request = searchRequest(planRequest);
    const space = spaceOf(await loadFamily(name), planRequest);
    const widths = searchedWidths(space, request);
    const work = [...new WidthSearcher(space, request).work(widths)];
    const searcher = new WidthSearcher(space, request);
    const counts = widths.map((width) => searcher.width(width).found.length);
    expect(work.map(({ models }) => models)).toEqual(counts);
    expect(Math.max(...counts)).toBeGreaterThan(3);
  });
});
