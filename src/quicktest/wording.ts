/** Words that several checks use. */

/** `0`, `2.4e-7`, `infinite`. */
export function differenceText(difference: number): string {
  if (difference === 0) return '0';
  return Number.isFinite(difference) ? difference.toExponential(1) : 'infinite';
}

/** Nothing, where what rounding does was not asked for. */
export const roundingText = (rounding: number | undefined): string =>
  rounding === undefined
    ? ''
    : `, and rounding alone moves the logits by ${differenceText(rounding)}`;
