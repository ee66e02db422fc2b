import { expect, it } from 'vitest';
import { RunFold } from '../../../src/language/evaluation/token-scores.js';

const folded = (count: number) => {
  const fold = new RunFold();
  for (let value = 0; value < count; value++) fold.add(value);
  return fold.result();
};

it('keeps every value of a short text, and means of runs of a long one', () => {
  expect(folded(3)).toEqual({ tokens: 1, means: [0, 1, 2] });
  expect(folded(256).means).toHaveLength(256);
  const { tokens, means } = folded(257);
  expect([tokens, means.length, means[0], means.at(-1)]).toEqual([2, 129, 0.5, 256]);
  const long = folded(100_000);
  expect(long.means.length).toBeLessThanOrEqual(256);
  // 512 values from 0: their mean is 255.5.
  expect([long.tokens, long.means[0]]).toEqual([512, 255.5]);
  expect(folded(0)).toEqual({ tokens: 1, means: [] });
});
