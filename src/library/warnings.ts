import type { Problem } from '../base/errors.js';
import { NO_PROGRESS, type ProgressDisplay } from '../base/progress-display.js';

/** Progress and warnings of a long task. */
export interface Surroundings {
  readonly display: ProgressDisplay;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/** Surroundings that show nothing and keep the warnings, for the result. */
export function silent(): Surroundings & { readonly warnings: readonly Problem[] } {
  const warnings: Problem[] = [];
  return {
    display: NO_PROGRESS,
    warn: async (more) => {
      warnings.push(...more);
    },
    warnings,
  };
}
