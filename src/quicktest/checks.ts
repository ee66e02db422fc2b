/** The list of all checks of a quick test. A check is loaded only when it runs. */
import type { CheckFinding } from './finding.js';
import type { TestContext } from './test-context.js';

export type Check = (context: TestContext) => Promise<CheckFinding>;

interface CheckEntry {
  /** Meaning of a passed check. */
  readonly summary: string;
  /** Requirement: a check that compares logits is skipped when they are not finite. */
  readonly needs: 'program' | 'finite logits';
  readonly load: () => Promise<Check>;
}

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
    load: async () => (await import('./checks/timing.js')).checkTiming,
  },
  srte: {
    summary: 'SRTE rows have the right shape, and the right blocks share them',
    needs: 'program',
    load: async () => (await import('./checks/srte.js')).checkSrte,
  },
  cache: {
    summary: 'decoding with a cache equals the full forward pass',
    needs: 'finite logits',
    load: async () => (await import('./checks/cache.js')).checkCache,
  },
  float16: {
    summary: 'error and savings of float16 against float32',
    needs: 'finite logits',
    load: async () => (await import('./checks/reduced-precision.js')).checkFloat16,
  },
  weights: {
    summary: 'error and savings of quantized weights against float32',
    needs: 'finite logits',
    load: async () => (await import('./checks/reduced-precision.js')).checkWeightForm,
  },
  'cross-check': {
    summary: 'the other engine gives the same logits',
    needs: 'finite logits',
    load: async () => (await import('./checks/cross-check.js')).checkAcross,
  },
} as const satisfies Record<string, CheckEntry>;

export type CheckName = keyof typeof QUICK_TEST_CHECKS;

export const CHECK_NAMES = Object.keys(QUICK_TEST_CHECKS) as readonly CheckName[];

export interface CheckResult extends CheckFinding {
  /** Name of the check. */
  readonly check: CheckName;
  /** Duration of the check. */
  readonly seconds: number;
}
