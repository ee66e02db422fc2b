/** How near the estimates of fit are to published runs, by group. */

import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { ACCURACY } from './accuracy-data.js';

/** Estimates of a group of runs compared with their published figures. */
export interface AccuracyOfGroup {
  /** Group of the runs, as in docs/fit-accuracy.md. */
  readonly group: string;
  /** Runs in the group. @integer @minimum 1 */
  readonly runs: number;
  /** Median of estimate divided by published figure. @real */
  readonly median: number;
  /** Smallest of these quotients. @real */
  readonly least: number;
  /** Largest of these quotients. @real */
  readonly most: number;
  /** Share of the published figures that lie in the shown range. @real */
  readonly inside: number;
  /** Upper end of the range divided by the lower end, at the median. @real */
  readonly width: number;
  /** Median quotient with the constants of the other half of the runs; null for small groups. @real */
  readonly heldOutMedian: number | null;
  /** Share of the published figures in the shown range around these estimates; null for small groups. @real */
  readonly heldOutInside: number | null;
  /** Median quotient of the rule of thumb for the same runs; null where there is none. @real */
  readonly rule: number | null;
  /** Median quotient of the npm package fitllm for the runs that it answers; null where there is none. @real */
  readonly fitllm: number | null;
}

export interface FitAccuracy {
  readonly schema: 'minimind/fit-accuracy@1';
  /** Groups of published runs. @minItems 1 */
  readonly groups: readonly AccuracyOfGroup[];
}

/** @throws UserError for a model: the runs are of many. */
export function fitAccuracy(model: string | undefined): FitAccuracy {
  if (model === undefined) return { schema: 'minimind/fit-accuracy@1', groups: ACCURACY };
  throw usageError(
    `${setting('accuracy')} is about published runs, and takes no model`,
    `leave ${model} out`,
  );
}
