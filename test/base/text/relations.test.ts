import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { type Relation, refuseBroken } from '../../../src/base/text/relations.js';
import { PLAIN_SPELLING, type SettingName, useSpelling } from '../../../src/base/text/setting.js';
import { spellAsFlags } from '../../../src/cli/flag-spelling.js';

beforeAll(() => useSpelling(PLAIN_SPELLING));
// Other files of this process read texts of the command line.
afterAll(() => spellAsFlags());

const refusal = (
  relation: Relation<SettingName>,
  given: Partial<Record<SettingName, unknown>>,
): readonly [string, string | undefined] | undefined => {
  try {
    refuseBroken([relation], given);
    return undefined;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.code).toBe('usage');
    return [error.message, error.suggestion];
  }
};

describe('a setting that requires another', () => {
  const relation: Relation<SettingName> = { of: ['rank', 'requires', ['layout', 'low-rank']] };

  it('is refused without it, with both ways out', () => {
    const expected = [
      'rank requires layout: low-rank',
      'leave out rank, or write layout: low-rank',
    ];
    expect(refusal(relation, { rank: 4 })).toEqual(expected);
    expect(refusal(relation, { rank: 4, layout: 'shared' })).toEqual(expected);
  });

  it('is accepted with it, and where it is not given', () => {
    expect(refusal(relation, { rank: 4, layout: 'low-rank' })).toBeUndefined();
    expect(refusal(relation, { layout: 'shared' })).toBeUndefined();
    expect(refusal({ of: ['saturate', 'requires', 'dtype'] }, { saturate: false })).toBeUndefined();
  });

  it('is accepted with any of several, of which some are named', () => {
    const some: Relation<SettingName> = {
      of: ['saturate', 'requires', 'dtype', 'rank', 'tie'],
      named: 2,
      advice: () => 'write one',
    };
    expect(refusal(some, { saturate: true, tie: 'mean' })).toBeUndefined();
    expect(refusal(some, { saturate: true })).toEqual([
      'saturate requires dtype or rank',
      'write one',
    ]);
  });
});

describe('a setting that excludes others', () => {
  const relation: Relation<SettingName> = {
    of: ['image', 'excludes', ['launch', 'slurm'], ['launch', 'parallel']],
  };

  it('is refused with one of them, which is named', () => {
    expect(refusal(relation, { image: 'a', launch: 'parallel' })).toEqual([
      'image has no effect with launch: parallel',
      'leave out image, or launch: parallel',
    ]);
  });

  it('is accepted without them', () => {
    expect(refusal(relation, { image: 'a', launch: 'kubernetes' })).toBeUndefined();
    expect(refusal(relation, { image: 'a' })).toBeUndefined();
    expect(refusal(relation, { launch: 'slurm' })).toBeUndefined();
  });
});
