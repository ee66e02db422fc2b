/** The list of all checks of a quick test. A check is loaded only when it runs. */
import { usageError } from '../base/errors.js';
import { setting } from '../base/text/setting.js';
import type { CheckFinding } from './finding.js';
import type { TestContext } from './test-context.js';

export type Check = (context: TestContext) => Promise<CheckFinding>;

/** Conditions under which a check runs. */
export interface CheckWish {
  /** Checks by name; undefined for the usual ones. */
  readonly only?: readonly CheckName[] | undefined;
  readonly isCrossChecked: boolean;
  readonly isReduced: boolean;
  readonly isQuantized: boolean;
}

interface CheckEntry {
  /** Meaning of a passed check. */
  readonly summary: string;
  /** Requirement: a check that compares logits is skipped when they are not finite. */
  readonly needs: 'program' | 'finite logits';
  /** Wish that makes the check a usual one; absent for a check that always is one. */
  readonly usualWith?: 'isCrossChecked' | 'isReduced' | 'isQuantized';
  /** Whether the wish selects the check even when other checks are named. */
  readonly isAskedByWish?: true;
  /** Settings that only checks with this entry read. */
  readonly reads?: readonly CheckSetting[];
  /** Whether it uses random tokens even where tokens are given. */
  readonly isRandom?: true;
  readonly load: () => Promise<Check>;
}

export type CheckSetting = 'outputTokens' | 'repeats';

/** Every check, in the order in which they run. */
export const QUICK_TEST_CHECKS = {
  created: {
    summary: 'the engine received every parameter once',
    needs: 'program',
    load: async () => (await import('./checks/created.js')).checkCreated,
  },
  forward: {
    summary: 'logits of the right shape, all finite',
    needs: 'program',
    load: async () => (await import('./checks/forward.js')).checkForward,
  },
  causality: {
    summary: 'no token sees a later one',
    needs: 'finite logits',
    load: async () => (await import('./checks/causality.js')).checkCausality,
  },
  batch: {
    summary: 'sequences of a batch are independent',
    needs: 'finite logits',
    isRandom: true,
    load: async () => (await import('./checks/batch.js')).checkBatch,
  },
  repeat: {
    summary: 'two runs give identical logits',
    needs: 'program',
    load: async () => (await import('./checks/forward.js')).checkRepeat,
  },
  timing: {
    summary: 'speed, and time by part',
    needs: 'program',
    reads: ['outputTokens', 'repeats'],
    load: async () => (await import('./checks/timing.js')).checkTiming,
  },
  srte: {
    summary: 'SRTE rows have the right shape, and the right blocks share them',
    needs: 'program',
    isRandom: true,
    load: async () => (await import('./checks/srte.js')).checkSrte,
  },
  cache: {
    summary: 'decoding with a cache equals the full forward pass',
    needs: 'finite logits',
    reads: ['outputTokens'],
    load: async () => (await import('./checks/cache.js')).checkCache,
  },
  float16: {
    summary: 'error and savings of float16 against float32',
    needs: 'finite logits',
    usualWith: 'isReduced',
    reads: ['repeats'],
    load: async () => (await import('./checks/reduced-precision.js')).checkFloat16,
  },
  weights: {
    summary: 'error and savings of quantized weights against float32',
    needs: 'finite logits',
    usualWith: 'isQuantized',
    isAskedByWish: true,
    load: async () => (await import('./checks/reduced-precision.js')).checkWeightForm,
  },
  'cross-check': {
    summary: 'the other engine gives the same logits',
    needs: 'finite logits',
    usualWith: 'isCrossChecked',
    isAskedByWish: true,
    load: async () => (await import('./checks/cross-check.js')).checkAcross,
  },
} as const satisfies Record<string, CheckEntry>;

export type CheckName = keyof typeof QUICK_TEST_CHECKS;

export const CHECK_NAMES = Object.keys(QUICK_TEST_CHECKS) as readonly CheckName[];

const entryOf = (name: CheckName): CheckEntry => QUICK_TEST_CHECKS[name];

/** The checks to run, in the order of the table. */
export function checksFor({ only = [], ...wish }: CheckWish): CheckName[] {
  const unknown = only.find((name) => !CHECK_NAMES.includes(name));
  if (unknown !== undefined) {
    throw usageError(
      `${setting('only')}: there is no check ${JSON.stringify(unknown)}`,
      `write one of ${CHECK_NAMES.join(', ')}`,
    );
  }
  return CHECK_NAMES.filter((name) => {
    const { usualWith, isAskedByWish = false } = entryOf(name);
    if (only.length === 0) return usualWith === undefined || wish[usualWith];
    return only.includes(name) || (isAskedByWish && usualWith !== undefined && wish[usualWith]);
  });
}

/** Checks that read a setting. */
const readersOf = (setting: CheckSetting): CheckName[] =>
  CHECK_NAMES.filter((name) => entryOf(name).reads?.includes(setting));

/** @throws UserError for a setting of checks of which none runs. */
export function refuseUnread(
  only: readonly CheckName[] | undefined,
  given: Readonly<Partial<Record<CheckSetting, number | undefined>>>,
): void {
  if (only === undefined) return;
  for (const name of ['outputTokens', 'repeats'] as const) {
    if (given[name] === undefined) continue;
    const readers = readersOf(name);
    if (readers.some((check) => only.includes(check))) continue;
    throw usageError(
      `${setting(name)} requires the check ${readers.join(' or ')}`,
      `write ${setting('only', [...only, 'timing'].join(','))}, or leave ${setting(name)} out`,
    );
  }
}

export const isRandomCheck = (name: CheckName): boolean => entryOf(name).isRandom === true;

export interface CheckResult extends CheckFinding {
  /** Name of the check. */
  readonly check: CheckName;
  /** Duration of the check. */
  readonly seconds: number;
}
