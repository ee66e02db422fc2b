import { describe, expect, it } from 'vitest';
import { parseScores, sampleGiven } from '../../../src/language/generation/given-distribution.js';
import { GREEDY, type SamplingSettings } from '../../../src/language/generation/sampling.js';

const SOFTMAX: SamplingSettings = { ...GREEDY, temperature: 1 };

const sampled = (
  [flag, text]: ['logits' | 'probabilities', string],
  settings: Partial<SamplingSettings> = {},
  earlier: readonly number[] = [],
) => sampleGiven(parseScores(flag, text), { ...SOFTMAX, ...settings }, earlier);

const lastOf = (...given: Parameters<typeof sampled>) =>
  sampled(...given).stages.at(-1)?.probabilities ?? [];

// softmax of the logits processors of transformers 5.18 in float32 (TemperatureLogitsWarper, TopKLogitsWarper,
// TopPLogitsWarper, MinPLogitsWarper).
describe('given logits are sampled as in transformers', () => {
  it.each<[string, Partial<SamplingSettings>, number[]]>([
    ['8,7,6,3,2', {}, [0.66119, 0.24324, 0.08948, 0.00446, 0.00164]],
    ['8,7,6,3,2', { temperature: 0.1 }, [0.99995, 5e-5, 0, 0, 0]],
    ['8,7,6,3,2', { temperature: 2 }, [0.47477, 0.28796, 0.17466, 0.03897, 0.02364]],
    ['8,7,6,3,2', { topP: 0.9 }, [0.73106, 0.26894, 0, 0, 0]],
    ['8,7,6,3,2', { temperature: 2, topP: 0.9 }, [0.50648, 0.3072, 0.18632, 0, 0]],
    ['15,3,2.8,2.5', { temperature: 2 }, [0.99339, 0.00246, 0.00223, 0.00192]],
    ['15,3,2.8,2.5', { temperature: 2, topP: 0.9 }, [1, 0, 0, 0]],
    ['5,4.8,4.5,4.3', {}, [0.34225, 0.28021, 0.20758, 0.16996]],
    ['5,4.8,4.5,4.3', { topP: 0.5 }, [0.54983, 0.45017, 0, 0]],
    ['5,4.8,4.5,4.3', { temperature: 0.8, topP: 0.9 }, [0.36618, 0.28518, 0.196, 0.15265]],
    ['5,4.8,4.5,4.3', { topK: 2 }, [0.54983, 0.45017, 0, 0]],
    ['5,4.8,4.5,4.3', { minP: 0.7 }, [0.54983, 0.45017, 0, 0]],
  ])('%s with %j', (text, settings, expected) => {
    const found = lastOf(['logits', text], settings);
    expect(found).toHaveLength(expected.length);
    for (const [token, value] of expected.entries()) expect(found[token]).toBeCloseTo(value, 4);
  });
});

it('a share that printed probabilities reach exactly is reached', () => {
  // 0.5 + 0.25 + 0.15 = 0.9
  const { kept } = sampled(['probabilities', '0.5,0.25,0.15,0.05,0.03,0.02'], { topP: 0.9 });
  expect(kept.map(({ token }) => token)).toEqual([0, 1, 2]);
  expect(kept[0]?.probability).toBeCloseTo(0.5 / 0.9, 12);
  expect(
    sampled(['probabilities', '0.5,0.25,0.15,0.05,0.03,0.02'], { topP: 0.5 }).kept,
  ).toHaveLength(1);
});

it('probabilities are divided by their sum', () => {
  const { sum, stages } = sampled(['probabilities', '0.62,0.23,0.08,0.04,0.01']);
  expect(sum).toBeCloseTo(0.98, 12);
  expect(stages[0]?.probabilities[0]).toBeCloseTo(0.62 / 0.98, 12);
});

it('each stage has the entropy of its distribution', () => {
  // A fair coin has 1 bit, four equal tokens 2.
  const { stages } = sampled(['logits', '1,1,1,1'], { topK: 4, repetitionPenalty: 1e6 }, [0, 1]);
  expect(stages.map(({ name }) => name)).toEqual(['softmax', 'repetition penalty', 'top-k']);
  expect(stages[0]?.entropy).toBeCloseTo(2, 12);
  const [coin] = sampled(['probabilities', '0.5 0.5 0']).stages;
  expect(coin).toMatchObject({ entropy: 1, kept: 2 });
});

it('a masked logit is never drawn', () => {
  expect(sampled(['logits', '[2, -inf, 1]']).kept.map(({ token }) => token)).toEqual([0, 2]);
});

describe('refused scores', () => {
  it.each<['logits' | 'probabilities', string, RegExp]>([
    ['logits', '', /expected numbers, found none/],
    ['logits', '8,x', /expected numbers, found "x"/],
    ['logits', 'nan,1', /found "nan"/],
    ['logits', '1e999', /found "1e999"/],
    ['logits', '0x10', /found "0x10"/],
    ['logits', '-inf', /expected a finite logit/],
    ['probabilities', '0.5,-1', /from 0 on, found -1/],
    ['probabilities', '0,0', /above 0/],
    ['probabilities', '-inf', /found "-inf"/],
    ['logits', '1,'.repeat(1001), /up to 1000 numbers, found 1001/],
  ])('--%s %j', (flag, text, expected) => expect(() => parseScores(flag, text)).toThrow(expected));

  it('an earlier token without a score', () =>
    expect(() => sampled(['logits', '1,2'], {}, [2])).toThrow(/from 0 to 1, found 2/));
});
