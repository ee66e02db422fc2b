import { beforeAll, describe, expect, it } from 'vitest';
import { type FitEstimate, fitEstimate, type Measurement, measurements } from './measurements.js';

const all = await measurements();
const estimates = new Map<Measurement, FitEstimate>();

const estimateFor = (measurement: Measurement): FitEstimate => {
  const estimate = estimates.get(measurement);
  if (!estimate) throw new Error(`${measurement.name}: no estimate`);
  return estimate;
};

beforeAll(async () => {
  for (const each of all) estimates.set(each, await fitEstimate(each));
}, 300_000);

describe('published measurements', () => {
  it('cover 60 settings', () => {
    expect(all).toHaveLength(60);
  });

  it.each(all.map((each) => [each.name, each] as const))('%s is within the bounds', (_, each) => {
    const { lower, upper } = estimateFor(each);
    for (const value of each.published) {
      expect(value).toBeGreaterThanOrEqual(lower);
      expect(value).toBeLessThanOrEqual(upper);
    }
  });

  it('keep bounds as narrow as in the first comparison', () => {
    const wider = all
      .filter(({ width }) => width !== null)
      .map((each) => ({ name: each.name, firstWidth: each.width ?? 0, ...estimateFor(each) }))
      .filter(({ lower, upper, firstWidth }) => upper / lower > firstWidth * 1.001);
    expect(wider).toEqual([]);
  });
});

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = Number.NaN, high = Number.NaN] = sorted.slice(
    sorted.length % 2 === 1 ? middle : middle - 1,
    middle + 1,
  );
  return sorted.length % 2 === 1 ? low : (low + high) / 2;
};

describe('the estimate', () => {
  const groups = [...new Set(all.map(({ group }) => group))];

  it.each(groups)('for %s has a median ratio to the measurements between 0.8 and 1.25', (group) => {
    const ratios = all
      .filter((each) => each.group === group)
      .map((each) => estimateFor(each).expected / (each.published.at(-1) ?? Number.NaN));
    expect(median(ratios)).toBeGreaterThan(0.8);
    expect(median(ratios)).toBeLessThan(1.25);
  });
});
