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
export const CHECKS = {
  created: {
    summary: 'the engine received what is described',
    needs: 'program',
    load: async () => (await import('./checks/created.js')).checkCreated,
  },
  forward: {
    summary: 'logits of the right shape, all finite',
    needs: 'program',
    load: async () => (await import('./checks/forward.js')).checkForward,
  },
  causality: {
    summary: 'no logit changes with a later token',
    needs: 'finite logits',
    load: async () => (await import('./checks/causality.js')).checkCausality,
  },
  batch: {
    summary: 'the rows of a batch do not see each other',
    needs: 'finite logits',
    load: async () => (await import('./checks/batch.js')).checkBatch,
  },
  repeat: {
    summary: 'two runs give the same',
    needs: 'program',
    load: async () => (await import('./checks/forward.js')).checkRepeat,
  },
  timing: {
    summary: 'how fast it is, and where the time goes',
    needs: 'program',
    load: async () => (await import('./checks/timing.js')).checkTiming,
  },
  srte: {
    summary: 'rows of the right shape, and whose they are',
    needs: 'program',
    load: async () => (await import('./checks/srte.js')).checkSrte,
  },
  cache: {
    summary: 'decoding step by step gives what the full forward pass does',
    needs: 'finite logits',
    load: async () => (await import('./checks/cache.js')).checkCache,
  },
  float16: {
    summary: 'how far float16 is from float32, and what it saves',
    needs: 'finite logits',
    load: async () => (await import('./checks/float16.js')).checkFloat16,
  },
  'cross-check': {
    summary: 'the other engine gives the same',
    needs: 'finite logits',
    load: async () => (await import('./checks/cross-check.js')).checkAcross,
  },
} as const satisfies Record<string, CheckEntry>;

export type CheckName = keyof typeof CHECKS;

export const CHECK_NAMES = Object.keys(CHECKS) as readonly CheckName[];

export interface CheckResult extends CheckFinding {
  readonly check: CheckName;
  /** Duration of the check. */
  readonly seconds: number;
}
