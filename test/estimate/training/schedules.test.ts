import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  parseSchedule,
  SCHEDULE_NAMES,
  SCHEDULES,
  type ScheduleName,
  type ScheduleSetting,
} from '../../../src/estimate/training/schedules.js';
import { inPackage } from '../../fixtures.js';

interface Case {
  readonly schedule: ScheduleName;
  readonly origin: string;
  readonly setting: Partial<Omit<ScheduleSetting, 'decayType'>> & {
    readonly peak: number;
    readonly steps: number;
    readonly decayType?: string;
    /** Steps of the schedule, when it ends before the training. */
    readonly scheduleSteps?: number;
  };
  /** Rates as 1,000 doubles in base64. */
  readonly rates: string;
}

const { cases }: { readonly cases: readonly Case[] } = JSON.parse(
  fs.readFileSync(inPackage('fixtures/training/schedules.json'), 'utf8'),
);

const settingOf = ({
  setting: { scheduleSteps, decayType, ...setting },
}: Case): ScheduleSetting => ({
  warmup: 0,
  floor: 0,
  decay: undefined,
  cycles: 1,
  power: 1,
  ...setting,
  decayType: (decayType === 'sqrt' ? '1-sqrt' : (decayType ?? 'linear')) as 'linear',
  steps: scheduleSteps ?? setting.steps,
});

const numbersOf = (packed: string): number[] => {
  const bytes = Buffer.from(packed, 'base64');
  return Array.from({ length: bytes.length / 8 }, (_, index) => bytes.readDoubleLE(8 * index));
};

describe('a schedule', () => {
  it.each(cases.map((each) => [each.schedule, JSON.stringify(each.setting), each] as const))(
    'gives the rates of the original at 1,000 steps: %s %s',
    (schedule, _, each) => {
      const setting = settingOf(each);
      const expected = numbersOf(each.rates);
      expect(expected).toHaveLength(1000);
      const worst = Math.max(
        ...expected.map((rate, step) => Math.abs(SCHEDULES[schedule].rateAt(setting, step) - rate)),
      );
      expect(worst / setting.peak).toBeLessThan(1e-12);
    },
  );

  it('of each kind is compared with an original', () => {
    expect([...new Set(cases.map(({ schedule }) => schedule))].toSorted()).toEqual(
      [...SCHEDULE_NAMES].toSorted(),
    );
  });

  it.each(SCHEDULE_NAMES)('is finite at every step of short runs: %s', (name) => {
    for (const steps of [1, 2, 3, 10]) {
      for (const warmup of [0, 1, steps, steps + 5]) {
        const setting = { ...BASE, steps, warmup };
        for (let step = 0; step <= steps + 1; step++) {
          const rate = SCHEDULES[name].rateAt(setting, step);
          expect(rate).toBeGreaterThanOrEqual(0);
          expect(rate).toBeLessThanOrEqual(setting.peak * (1 + 1e-12));
        }
      }
    }
  });

  it.each([
    ['Cosine', 'cosine'],
    ['warmup-stable-decay', 'wsd'],
    ['WSD', 'wsd'],
    ['cosine with restarts', 'cosine_with_restarts'],
    ['cosin', undefined],
    ['__proto__', undefined],
  ])('is read from %s as %s', (text, name) => {
    expect(parseSchedule(text)).toBe(name);
  });
});

const BASE = {
  peak: 1e-3,
  floor: 1e-4,
  decay: undefined,
  decayType: 'linear',
  cycles: 1,
  power: 1,
} as const;
