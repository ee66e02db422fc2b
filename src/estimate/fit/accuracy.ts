/** How near the estimates of fit are to published runs, by group. */

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
  /** Runs that did not give the constants. @count */
  readonly checkedRuns: number;
  /** Median quotient of these runs; null without any. @real */
  readonly checkedMedian: number | null;
  /** Share of these runs that lie in the shown range; null without any. @real */
  readonly checkedInside: number | null;
  /** Median quotient of the rule of thumb for the same runs; null where there is none. @real */
  readonly rule: number | null;
}
