import { describe, expect, it } from 'vitest';
import { MersenneTwister, uniform53 } from '../../../src/base/random/distributions.js';
import { isTaken, replacement } from '../../../src/language/generation/generate-tokens.js';
import type {
  SamplingSettings,
  TokenDistribution,
} from '../../../src/language/generation/sampling.js';
import {
  distributionOf,
  logNorm,
  probabilityOf,
  samplingStages,
  tokenAt,
  topTokens,
} from '../../../src/language/generation/sampling.js';
import { readJson } from '../../fixtures.js';

interface Row {
  readonly logits: number[];
  readonly earlier: number[];
  readonly cases: { settings: number[]; kept: Record<string, number> }[];
}

const ROWS = readJson<Row[]>('fixtures/generation/distributions.json');

function settingsOf(values: readonly number[]): SamplingSettings {
  const [temperature = 1, topK = 0, topP = 1, minP = 0, repetitionPenalty = 1] = values;
  return { temperature, topK, topP, minP, repetitionPenalty };
}

const NEUTRAL = settingsOf([]);

const asRecord = ({ ids, probabilities }: TokenDistribution) =>
  new Map(Array.from(ids, (id, at) => [id, probabilities[at] ?? 0] as const));

describe('the filtered distribution', () => {
  it.each(ROWS.map((row, index) => [index, row] as const))(
    'equals that of transformers: logits %i',
    (_, { logits, earlier, cases }) => {
      expect(cases.length).toBeGreaterThan(150);
      for (const { settings, kept } of cases) {
        const filtered = distributionOf(
          Float32Array.from(logits),
          settingsOf(settings),
          new Set(earlier),
        );
        const positive = [...asRecord(filtered)].filter(([, probability]) => probability > 0);
        const label = settings.join(' ');
        expect(positive.map(([id]) => id).join(), label).toBe(Object.keys(kept).join());
        for (const [id, probability] of positive) {
          expect(Math.abs(probability - (kept[id] ?? 0)), label).toBeLessThan(1e-6);
        }
      }
    },
  );

  it('has only the first of the highest logits with temperature 0', () => {
    const logits = Float32Array.of(1, 3, 3, 2);
    const filtered = distributionOf(logits, { ...NEUTRAL, temperature: 0 }, []);
    expect(asRecord(filtered)).toEqual(new Map([[1, 1]]));
  });

  it('is the same for temperatures close to 0 as for 0, without division by 0', () => {
    for (const temperature of [1e-300, 1e-320, Number.MIN_VALUE]) {
      const filtered = distributionOf(
        Float32Array.of(1, 2, 3, -4),
        { ...NEUTRAL, temperature },
        [],
      );
      expect(probabilityOf(filtered, 2)).toBe(1);
    }
  });

  it('is refused for logits that are not finite', () => {
    for (const broken of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => logNorm(Float32Array.of(1, broken, 3))).toThrow('expected finite logits');
    }
    expect(logNorm(Float32Array.of(Number.NEGATIVE_INFINITY, 3))).toBe(3);
  });

  it('has the nucleus of the sorted distribution for a large vocabulary', () => {
    const twister = new MersenneTwister(1);
    const logits = Float32Array.from({ length: 5000 }, () => 12 * uniform53(twister));
    const all = distributionOf(logits, NEUTRAL, []);
    for (const topP of [0.1, 0.5, 0.9, 0.99, 0.999999]) {
      const sorted = [...asRecord(all)].sort((a, b) => b[1] - a[1]);
      let sum = 0;
      const expected = sorted.filter(([, each]) => {
        const isKept = sum < topP;
        sum += each;
        return isKept;
      });
      expect(distributionOf(logits, { ...NEUTRAL, topP }, []).ids.length).toBe(expected.length);
    }
  });

  it('is reported stage by stage', () => {
    const settings = settingsOf([0.5, 3, 0.9, 0.1, 1.2]);
    const logits = Float32Array.of(0.5, 2, 1.5, 1, -3);
    const stages = samplingStages(logits, settings, [1]);
    expect(stages.map(({ name }) => name)).toEqual([
      'model',
      'repetition penalty',
      'temperature',
      'top-k',
      'top-p',
      'min-p',
    ]);
    expect(stages.at(-1)?.distribution).toEqual(distributionOf(logits, settings, [1]));
  });
});

it('tokenAt gives the token at a position of the cumulative distribution', () => {
  const distribution = {
    ids: Int32Array.of(2, 5, 9, 11),
    probabilities: Float64Array.of(0.25, 0, 0.5, 0.25),
  };
  expect([0, 0.2499, 0.25, 0.7499, 0.75, 0.999999].map((at) => tokenAt(distribution, at))).toEqual([
    2, 2, 9, 9, 11, 11,
  ]);
  expect([2, 3, 5, 11].map((id) => probabilityOf(distribution, id))).toEqual([0.25, 0, 0, 0.25]);
});

it('topTokens lists the likeliest tokens with their log-probabilities', () => {
  const top = topTokens(Float32Array.of(0, Math.log(3), 0, Math.log(3)), 3);
  expect(top.map(({ id }) => id)).toEqual([1, 3, 0]);
  expect(top.map(({ logprob }) => Math.exp(logprob))).toEqual([
    expect.closeTo(3 / 8),
    expect.closeTo(3 / 8),
    expect.closeTo(1 / 8),
  ]);
});

describe('rejection sampling', () => {
  it('leaves the distribution of the model unchanged', () => {
    const twister = new MersenneTwister(3);
    const draw = () => uniform53(twister);
    const ids = Int32Array.of(0, 1, 2, 3, 4);
    const model = { ids, probabilities: Float64Array.of(0.4, 0.3, 0.15, 0.1, 0.05) };
    const drafts = [
      { ids, probabilities: Float64Array.of(0.05, 0.1, 0.15, 0.3, 0.4) },
      { ids: Int32Array.of(1, 3), probabilities: Float64Array.of(0.5, 0.5) },
      { ids: Int32Array.of(2), probabilities: Float64Array.of(1) },
      { ids: Int32Array.of(7), probabilities: Float64Array.of(1) },
      model,
    ];
    for (const drafted of drafts) {
      const counts = new Float64Array(5);
      const total = 20_000;
      for (let i = 0; i < total; i++) {
        const token = { id: tokenAt(drafted, draw()), distribution: drafted };
        const id = isTaken(model, token, { temperature: 1 }, draw)
          ? token.id
          : replacement(model, token, { temperature: 1 }, draw);
        counts[id] = (counts[id] ?? 0) + 1;
      }
      const chiSquare = counts.reduce((sum, count, id) => {
        const expected = total * (model.probabilities[id] ?? 0);
        return sum + (count - expected) ** 2 / expected;
      }, 0);
      // Four degrees of freedom: one in a thousand is above 18.5. The draws are the same in every run.
      expect(chiSquare).toBeLessThan(18.5);
    }
  });
});
