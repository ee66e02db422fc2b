import type { ProgressDisplay } from '../../../src/base/progress-display.js';

/** Display that shows nothing. */
export const SILENT: ProgressDisplay = {
  bytes: () => ({ add: () => {}, end: () => {} }),
  steps: () => ({ doing: () => {}, say: () => {}, end: () => {} }),
};
