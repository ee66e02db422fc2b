import { describe, expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import {
  analyseRope,
  type RopeMethod,
  type RopeOptions,
} from '../../../src/model/budget/analyse-rope.js';
import { readJson } from '../../fixtures.js';

/** Analysis of a `config.json` in the fixtures, with changed values. */
async function analysed(
  folder: string,
  options: Omit<RopeOptions, 'name'>,
  changes: Record<string, unknown> = {},
) {
  const config = {
    ...readJson<Record<string, unknown>>('fixtures', folder, 'config.json'),
    ...changes,
  };
  const family = await loadFamily(config.model_type as FamilyName);
  const model = { family: family.name, ...family.fromHuggingFace?.read(config).settings };
  return analyseRope(family.build(family.schema.parse({ model })), { name: folder, ...options });
}

async function methodsOf(...given: Parameters<typeof analysed>) {
  const { rotaries } = await analysed(...given);
  return Object.fromEntries((rotaries[0]?.methods ?? []).map((method) => [method.id, method]));
}

const LLAMA_2 = 'hf-configs/llama-2-7b';
const LLAMA_3 = 'hf-configs/llama-3.1-8b';

const wavelengths = (method: RopeMethod | undefined) =>
  method?.frequencies.map(({ wavelength }) => wavelength) ?? [];

/** Indices where changes begin: the first frequency that is not kept, and the first fully divided. */
const borders = (method: RopeMethod | undefined) => [
  method?.frequencies.findIndex(({ change }) => change !== 'kept'),
  method?.frequencies.findIndex(({ change }) => change === 'fully'),
];

/** Compares within the precision of float32 and its powers. */
function expectClose(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  for (const [j, value] of expected.entries()) {
    expect(Math.abs((actual[j] ?? Number.NaN) / value - 1), `${j}`).toBeLessThan(4e-6);
  }
}

/** [0, 1, …, 63] of heads of 128 dimensions. */
const J = Array.from({ length: 64 }, (_, j) => j);

describe('wavelengths, computed by the paper of each method', () => {
  const plain = J.map((j) => 2 * Math.PI * 10_000 ** (j / 64));
  const [L, k] = [4096, 16];
  const methods = methodsOf(LLAMA_2, { context: k * L });

  it('are 2π · base^(2j / d) for plain', async () => {
    expectClose(wavelengths((await methods).plain), plain);
  });

  it('are k times as long for linear', async () => {
    expectClose(
      wavelengths((await methods).linear),
      plain.map((wave) => k * wave),
    );
  });

  it('are k^(2j / (d − 2)) times as long for NTK-aware, so the first is kept and the last is k times as long', async () => {
    const { ntk } = await methods;
    expectClose(
      wavelengths(ntk),
      plain.map((wave, j) => wave * k ** (j / 63)),
    );
    expect(ntk?.base).toBeCloseTo(10_000 * 16 ** (128 / 126), 6);
    expect(ntk?.counts).toEqual({ kept: 1, partly: 62, fully: 1, extrapolated: 17 });
  });

  it('depend on 1 and 4 turns within the training length for llama3', async () => {
    const waves = plain.map((wave) => {
      if (wave < L / 4) return wave;
      if (wave > L) return k * wave;
      const smooth = (L / wave - 1) / (4 - 1);
      return 1 / ((1 - smooth) / (k * wave) + smooth / wave);
    });
    expectClose(wavelengths((await methods).llama3), waves);
  });

  it('ramp between the dimensions that turn 32 times and once for YaRN', async () => {
    const { yarn } = await methods;
    // d · ln(L / (2π · turns)) / (2 ln base): 20.95 and 45.03, rounded outwards.
    const at = (turns: number) =>
      (128 * Math.log(L / (2 * Math.PI * turns))) / (2 * Math.log(10_000));
    const [low, high] = [Math.floor(at(32)), Math.ceil(at(1))];
    expect([low, high]).toEqual([20, 46]);
    const waves = plain.map((wave, j) => {
      const divided = Math.min(1, Math.max(0, (j - low) / (high - low)));
      return 1 / (divided / (k * wave) + (1 - divided) / wave);
    });
    expectClose(wavelengths(yarn), waves);
    // The first 21 are kept; all from dimension 46 on are divided.
    expect(borders(yarn)).toEqual([21, 46]);
    // 0.1 · ln 16 + 1
    expect(yarn?.amplitude).toBeCloseTo(1.2772588722, 7);
  });
});

describe('the scaling of Llama 3.1', () => {
  it('is llama3 with its published numbers: factor 8, low 1, high 4, length 8192', async () => {
    const { llama3, own, plain } = await methodsOf(LLAMA_3, { context: 65_536 });
    // 65536 / 8192 is the factor of the model, so the column of the method is the model's setting.
    expect(own).toBeUndefined();
    expect(llama3?.current).toBe(true);
    expect(llama3?.scaling).toEqual({
      kind: 'llama3',
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalPositions: 8192,
    });
    expect(plain?.base).toBe(500_000);
    // 500000^(j / 64) · 2π reaches 8192 / 4 at j = 28.2, and 8192 at j = 34.98.
    expect(borders(llama3)).toEqual([29, 35]);
    expect(llama3?.counts).toEqual({ kept: 29, partly: 6, fully: 29, extrapolated: 0 });
  });

  it('is not enough for twice its length', async () => {
    const { own, llama3 } = await methodsOf(LLAMA_3, { context: 131_072 });
    expect(llama3?.current).toBe(false);
    expect(own).toMatchObject({ current: true, counts: { kept: 29, fully: 0, extrapolated: 29 } });
  });
});

describe('the training length', () => {
  it.each([
    [LLAMA_2, 4096, 'positions'],
    [LLAMA_3, 8192, 'scaling'],
    ['hf/llama-yarn', 64, 'scaling'],
    ['hf/deepseek-v3-yarn', 64, 'scaling'],
  ])('of %s is %d, from %s', async (folder, trained, trainedFrom) => {
    expect(await analysed(folder, { context: 2 * trained })).toMatchObject({
      trained,
      trainedFrom,
      factor: 2,
    });
  });

  it('can be given, and the factor too', async () => {
    const given = await analysed(LLAMA_2, { context: 8192, trained: 1024, factor: 3 });
    expect(given).toMatchObject({ trained: 1024, trainedFrom: 'flag', factor: 3 });
    // A factor of 3 is not enough for 8 times the length.
    const [rotary] = given.rotaries;
    const linear = rotary?.methods.find(({ id }) => id === 'linear');
    const isLong = (wave: number) => 2 * Math.PI * 10_000 ** (wave / 64) > 1024;
    expect(linear?.counts).toMatchObject({ fully: 64, extrapolated: J.filter(isLong).length });
  });

  it('needs no scaling for shorter contexts', async () => {
    const { factor, rotaries } = await analysed(LLAMA_2, { context: 100 });
    expect(factor).toBe(1);
    for (const { counts, amplitude } of rotaries[0]?.methods ?? []) {
      expect(counts).toEqual({ kept: 64, partly: 0, fully: 0, extrapolated: 0 });
      expect(amplitude).toBe(1);
    }
  });

  it('is compared with each wave, and longer waves are counted', async () => {
    const { plain, linear } = await methodsOf(LLAMA_2, { context: 4097 });
    // 2π · 10000^(j / 64) > 4096 from j = 45.03 on.
    expect(plain?.counts.extrapolated).toBe(18);
    expect(linear?.counts.extrapolated).toBe(0);
  });
});

describe('rotations', () => {
  it('are shown once per kind of layer, and have no new angles in windows', async () => {
    const { rotaries } = await analysed('hf/gemma3', { context: 4096 });
    expect(rotaries.map(({ layers, base, window }) => [layers, base, window])).toEqual([
      [2, 100, 4],
      [1, 10_000, null],
    ]);
    expect(rotaries[0]?.methods.map(({ counts }) => counts.extrapolated)).toEqual([0, 0, 0, 0, 0]);
  });

  it('may apply to a part of the head only', async () => {
    const { rotaries } = await analysed('hf-configs/pythia-1.4b', { context: 4096 });
    expect(rotaries).toMatchObject([{ layers: 24, headDim: 128, rotatedDim: 32 }]);
    expect(rotaries[0]?.methods[0]?.frequencies).toHaveLength(16);
  });

  it('may be absent from layers', async () => {
    // Every fourth layer of SmolLM3 has no positions.
    const { rotaries, layersWithout } = await analysed('hf/smollm3', { context: 4096 });
    expect(layersWithout).toBeGreaterThan(0);
    expect(rotaries).toHaveLength(1);
  });

  it('may depend on the length, as dynamic and LongRoPE do', async () => {
    const { plain, own } = await methodsOf('hf/llama-dynamic-beyond', { context: 512 });
    const scaling = own?.scaling;
    if (scaling?.kind !== 'dynamic') return expect.unreachable('it is not dynamic');
    const { factor, originalPositions } = scaling;
    const stretch = (factor * 512) / originalPositions - (factor - 1);
    expect((wavelengths(own).at(-1) ?? 0) / (wavelengths(plain).at(-1) ?? 0)).toBeCloseTo(
      stretch,
      4,
    );
    const longrope = await methodsOf('hf/phi3-longrope-beyond', { context: 512 });
    const divisors = longrope.own?.scaling;
    if (divisors?.kind !== 'longrope') return expect.unreachable('it is not LongRoPE');
    expectClose(
      longrope.own?.frequencies.map(({ stretch: each }) => each) ?? [],
      divisors.longDivisors,
    );
  });
});

describe('the analysis of RoPE', () => {
  it.each([
    ['hf/gpt2', 'learned positions, a row for each of 64'],
    ['hf/bloom', 'ALiBi, a penalty'],
  ])('refuses %s, which has no rotary positions', async (folder, message) => {
    await expect(analysed(folder, { context: 99 })).rejects.toThrow(
      `${folder} has no rotary positions: it has ${message}`,
    );
  });

  it.each([
    ['a base too small for float32', { rope_theta: 1e-300 }, 1],
    ['a base beyond float32', { rope_theta: 1e300 }, 1],
    ['a factor beyond float32', {}, 1e300],
  ])('refuses %s', async (_, changes, factor) => {
    await expect(analysed(LLAMA_2, { context: 8192, factor }, changes)).rejects.toThrow(
      'gives frequencies that are not numbers',
    );
  });

  it('refuses heads with too many frequencies', async () => {
    const changes = { head_dim: 2 ** 20, num_hidden_layers: 1 };
    await expect(analysed(LLAMA_2, { context: 8192 }, changes)).rejects.toThrow(
      'expected at most 8192 rotated dimensions in heads of 1048576',
    );
  });

  it('keeps heads of a single frequency, which no base stretches', async () => {
    const { ntk } = await methodsOf(LLAMA_2, { context: 8192 }, { head_dim: 2 });
    expect(ntk).toMatchObject({ base: 10_000, counts: { kept: 1, extrapolated: 0 } });
  });
});
