import { describe, expect, it } from 'vitest';
import type { RotaryScaling } from '../../../src/model/architecture/layer.js';
import { minimind } from '../../../src/model/architecture/models/minimind.js';
import {
  amplitudeOf,
  dependsOnLength,
  rotaryFrequencies,
  yarnRamp,
} from '../../../src/model/architecture/rotary-scaling.js';
import { scalingOf } from '../../../src/model/architecture/transformer/rotary.js';
import { walk } from '../../../src/model/architecture/walk.js';

const frequencies = (scaling: RotaryScaling | undefined, tokens = 0, rotatedDim = 8) => [
  ...rotaryFrequencies({ base: 10_000, rotatedDim, scaling }, tokens),
];

/** Compares within the precision of float32. */
function expectClose(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  for (const [index, value] of expected.entries()) {
    expect(Math.abs((actual[index] ?? Number.NaN) / value - 1), `${index}`).toBeLessThan(1e-6);
  }
}

describe('rotary frequencies', () => {
  it('are base^(−2j / d)', () => expectClose(frequencies(undefined), [1, 0.1, 0.01, 0.001]));

  it('are divided by linear scaling', () => {
    expectClose(frequencies({ kind: 'linear', factor: 4 }), [0.25, 0.025, 0.0025, 0.00025]);
  });

  it('get a larger base beyond the original length with dynamic scaling', () => {
    const scaling = { kind: 'dynamic', factor: 2, originalPositions: 16 } as const;
    expect(dependsOnLength({ scaling })).toBe(true);
    expectClose(frequencies(scaling, 16), [1, 0.1, 0.01, 0.001]);
    // base · (2 · 32 / 16 − 1)^(8 / 6)
    const base = 10_000 * 3 ** (8 / 6);
    expectClose(
      frequencies(scaling, 32),
      [0, 1, 2, 3].map((j) => base ** (-j / 4)),
    );
  });

  it('of Llama 3 are kept for short waves, divided for long ones and blended between', () => {
    const scaled = frequencies({
      kind: 'llama3',
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalPositions: 1000,
    });
    // Keeps 159 and 15.9 turns, (1.5915 − 1) / 3 = 0.19718 of 1.59 turns, and divides 0.159 turns.
    const kept = (1000 * 0.01) / (2 * Math.PI);
    const smooth = (kept - 1) / 3;
    expectClose(scaled, [1, 0.1, 0.01 * (smooth + (1 - smooth) / 8), 0.001 / 8]);
  });

  it('of Llama 4 Scout, whose bounds are equal, are kept or divided', () => {
    const scaled = frequencies({
      kind: 'llama3',
      factor: 16,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 1,
      originalPositions: 1000,
    });
    // 159, 15.9 and 1.59 turns are kept; 0.159 turns are divided.
    expectClose(scaled, [1, 0.1, 0.01, 0.001 / 16]);
  });

  it('of LongRoPE have one list of divisors up to the original length, and one beyond', () => {
    const scaling = {
      kind: 'longrope',
      shortDivisors: [1, 1, 2, 2],
      longDivisors: [2, 4, 5, 8],
      originalPositions: 10,
      amplitude: 1.25,
    } as const;
    expect(amplitudeOf({ scaling })).toBe(1.25);
    expectClose(frequencies(scaling, 10), [1, 0.1, 0.005, 0.0005]);
    expectClose(frequencies(scaling, 11), [0.5, 0.025, 0.002, 0.000125]);
    expect(amplitudeOf({ scaling }, 11)).toBe(1.25);
    const longer = { ...scaling, longAmplitude: 1.5 };
    expect([10, 11].map((tokens) => amplitudeOf({ scaling: longer }, tokens))).toEqual([1.25, 1.5]);
  });
});

describe('YaRN', () => {
  it.each([
    [64, 5, 14],
    [96, 8, 21],
  ])('in MiniMind with heads of %d ramps from %d to %d', (head_dim, low, high) => {
    const model = {
      family: 'minimind',
      hidden_size: 8 * head_dim,
      num_hidden_layers: 1,
      inference_rope_scaling: true,
    };
    const built = minimind.build(minimind.schema.parse({ model }));
    const [rotary] = walk(built).flatMap(({ layer }) => (layer.kind === 'rotary' ? [layer] : []));
    if (rotary?.scaling?.kind !== 'yarn') return expect.unreachable('it has no YaRN');
    expect(yarnRamp(rotary, rotary.scaling)).toEqual([low, high]);
    const plain = rotaryFrequencies({ ...rotary, scaling: undefined });
    const scaled = rotaryFrequencies(rotary);
    expect(scaled[low]).toBe(plain[low]);
    expectClose([scaled[high] ?? 0], [(plain[high] ?? 0) / 16]);
  });

  it('is not applied by MiniMind to tables within the original length', () => {
    const model = {
      family: 'minimind',
      hidden_size: 64,
      num_hidden_layers: 1,
      inference_rope_scaling: true,
      max_position_embeddings: 2048,
    };
    const built = minimind.build(minimind.schema.parse({ model }));
    const scalings = walk(built).flatMap(({ layer }) =>
      layer.kind === 'rotary' ? [layer.scaling] : [],
    );
    expect(scalings).toEqual([undefined]);
  });

  it.each([
    // 0.1 · ln(4) + 1
    [{}, 1.138629436],
    [{ attention_factor: 1.3 }, 1.3],
    // equal: the ratio is 1
    [{ mscale: 0.7, mscale_all_dim: 0.7 }, 1],
    // (0.1 · ln(4) + 1) / (0.06 · ln(4) + 1)
    [{ mscale: 1, mscale_all_dim: 0.6 }, 1.051195],
  ])('with %j multiplies cosine and sine by %d', (given, amplitude) => {
    const scaling = scalingOf({ rope_type: 'yarn', factor: 4, ...given }, 256, 8);
    expect(amplitudeOf({ scaling })).toBeCloseTo(amplitude, 5);
  });
});

// `precompute_freqs_cis` of github.com/cklxx/mini-llm (0700a57) and of jingyaogong/minimind (6b86ea3), run in PyTorch:
// every nth frequency of its tables.
describe('YaRN of MiniMind in October and November 2025', () => {
  const early = { kind: 'earlyYarn', factor: 4, originalPositions: 2048, betaFast: 4, betaSlow: 1 };
  it.each([
    [64, 1e6, {}, [0.99999996, 0.16542134, 0.02817302, 0.004868029, 0.00025, 4.4456985e-5]],
    [
      96,
      1e4,
      { factor: 8, originalPositions: 256, betaFast: 3, betaSlow: 2 },
      [0.93749998, 0.29527765, 0.093042456, 0.029328715, 0.00125, 0.000395284736],
    ],
    [8, 1e4, { originalPositions: 4096 }, [0.99999996, 0.0875, 0.00833333216, 0.00025]],
  ] as const)('of %d dimensions', (rotatedDim, base, settings, expected) => {
    const scaling = { ...early, ...settings } as RotaryScaling;
    const all = [...rotaryFrequencies({ base, rotatedDim, scaling })];
    const every = Math.max(1, Math.floor(rotatedDim / 2 / 7));
    expectClose(all.filter((_, j) => j % every === 0).slice(0, expected.length), [...expected]);
  });
});
