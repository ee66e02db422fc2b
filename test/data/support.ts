import type { ProgressDisplay } from '../../src/progress-display.js';

/** A display that shows nothing. */
export const SILENT: ProgressDisplay = {
  bytes: () => ({ add: () => {}, end: () => {} }),
  steps: () => ({ doing: () => {}, say: () => {}, end: () => {} }),
};
