import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import { presetDocument, presetsOf } from '../../../src/model/architecture/presets.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { inPackage } from '../../fixtures.js';

/** Folders of ready files; a family without presets has none. */
const FAMILIES = fs
  .readdirSync(inPackage('configs'))
  .filter((name) => !['hardware', 'published.yaml'].includes(name)) as FamilyName[];

/** Parameter counts published by the projects that made the models. */
const PUBLISHED = {
  'minimind2-small': 25_829_888,
  minimind2: 104_030_976,
  'minimind2-moe': 145_029_760,
  'minimind-3': 63_912_192,
  'minimind-3-moe': 198_416_640,
  'minimind-v1-small': 26_878_464,
  'minigpt-tiny': 2_789_504,
  'minigpt-small': 29_506_944,
  'minigpt-medium': 111_949_440,
  'minigpt-large': 298_304_256,
  'mamba-130m': 129_135_360,
  'mamba2-130m': 128_989_632,
  'lfm2-350m': 354_483_968,
  'opt-125m': 125_239_296,
  'granite-4.0-h-350m': 340_332_224,
  'qwen3.5-0.8b': 752_393_024,
  gpt2: 124_439_808,
  'smollm2-135m': 134_515_008,
  'llama-3.2-1b': 1_235_814_400,
  'qwen3-0.6b': 596_049_920,
  'gemma-3-270m': 268_098_176,
  'gemma-3-1b': 999_885_952,
  'gemma-4-26b-a4b': 25_233_141_760,
  'gemma-4-e2b': 4_628_569_344,
  'gpt-oss-20b': 20_914_757_184,
  'phi-2': 2_779_683_840,
  'olmo-3-7b': 7_298_011_136,
  'granite-4.0-h-tiny': 6_939_037_248,
  'falcon-h1-0.5b': 521_411_104,
  'lfm2-1.2b': 1_170_340_608,
  'qwen3-next-80b-a3b': 79_674_391_296,
} as const satisfies Record<string, number>;

it('the module in src has the presets of configs', () => {
  const args = [inPackage('scripts/presets.js'), '--check'];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

it('the presets of a family are listed by their order, then by name', () => {
  const names = (family: string) => presetsOf(family).map(({ name }) => name);
  expect(names('minigpt')).toEqual(
    ['tiny', 'small', 'medium', 'large'].map((size) => `minigpt-${size}`),
  );
  expect(names('gemma4_text')).toEqual(['gemma-4-26b-a4b', 'gemma-4-e2b']);
});

it.each([
  ['model: {}\n', 'a.yaml has no line "# title: TEXT", which minimind list shows'],
  ['# title: A\n# order: last\n', 'a.yaml: expected a number in "# order: NUMBER", found "last"'],
])('a file %j is refused', async (text, message) => {
  const { presetOf } = await import(inPackage('scripts/presets.js'));
  expect(() => presetOf('a.yaml', text)).toThrow(message);
});

describe.each(FAMILIES)('presets of %s', async (name) => {
  const { schema, build } = await loadFamily(name);
  const textOf = (preset: string) =>
    fs.readFileSync(inPackage('configs', name, `${preset}.yaml`), 'utf8');

  it('describe only a model of the family and its stored weights, so that nothing else makes a difference', () => {
    expect(presetsOf(name).length).toBeGreaterThan(0);
    for (const { document } of presetsOf(name)) {
      const sections = Object.keys(document).filter((key) => key !== 'quantization_config');
      expect(sections).toEqual(['model']);
      expect(schema.parse(document)).toMatchObject({ model: { family: name } });
    }
  });

  it('have the published number of parameters, and the number in the file', () => {
    for (const { name: preset, document } of presetsOf(name)) {
      const { parameters } = countParameters(build(schema.parse(document)));
      const published = PUBLISHED[preset as keyof typeof PUBLISHED];
      if (published !== undefined) expect(parameters, preset).toBe(published);
      const stated = /([\d,]+) parameters/.exec(textOf(preset))?.[1];
      if (stated) expect(stated, preset).toBe(parameters.toLocaleString('en-US'));
    }
  });
});

it('the recommended hybrid model takes less memory to train than the original', async () => {
  const { hybrid } = await import('../../../src/model/architecture/models/hybrid.js');
  const { resolveSetting } = await import('../../../src/model/budget/profile-model.js');
  const { trainingMemoryOf } = await import('../../../src/model/budget/training-budget.js');
  const [recommended = 0, original = 0] = (['recommended', 'original'] as const).map((preset) => {
    const document = hybrid.schema.parse(presetDocument('hybrid', preset));
    const settings = { dtype: 'bf16', causal: false, optimizer: 'adamw' } as const;
    const { training } = resolveSetting(settings, hybrid.trainingHints?.(document) ?? {}, 32_768);
    return Number(trainingMemoryOf(hybrid.build(document), training).total.value);
  });
  expect(recommended).toBeLessThan(original);
});

describe('MiniMind', () => {
  const build = async (model: Record<string, unknown>) => {
    const { minimind } = await import('../../../src/model/architecture/models/minimind.js');
    const base = { family: 'minimind', hidden_size: 512, num_hidden_layers: 1 };
    return minimind.build(minimind.schema.parse({ model: { ...base, ...model } }));
  };

  it.each([
    [{}, false],
    [{ n_routed_experts: 4 }, false],
    [{ head_dim: 64 }, true],
    [{ num_experts: 4 }, true],
    [{ moe_intermediate_size: 64 }, true],
    [{ head_dim: 64, version: 2 }, false],
    [{ version: 3 }, true],
  ])('with %j has norms of queries and keys: %s', async (model, normed) => {
    const { tensorsOf } = await import('../../../src/model/architecture/walk.js');
    const names = tensorsOf(await build(model)).map(({ name }) => name);
    expect(names.includes('model.layers.0.self_attn.q_norm.weight')).toBe(normed);
  });

  it.each([
    [2, 512, 1408],
    [2, 768, 2048],
    [2, 640, 1728],
    [3, 768, 2432],
  ])('version %d of width %d has an inner width of %d', async (version, hidden_size, inner) => {
    const { tensorsOf } = await import('../../../src/model/architecture/walk.js');
    const tensors = tensorsOf(await build({ version, hidden_size }));
    const up = tensors.find(({ name }) => name.endsWith('mlp.up_proj.weight'));
    expect(up?.shape).toEqual([inner, hidden_size]);
  });
});
