/** Words that several checks use. */

/** `3 layers`, `1 layer`. */
export const counted = (number: number, what: string): string =>
  `${integer(number)} ${what}${number === 1 ? '' : 's'}`;

/** `16,384`. */
export const integer = (number: number): string => number.toLocaleString('en-US');

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

/** `layers.0–31`, `layers.0, 2`: the names of some blocks. */
export function blocksText(names: readonly string[]): string {
  const numbers = names.map((name) => Number(name.slice(name.lastIndexOf('.') + 1)));
  const [first = ''] = names;
  const prefix = first.slice(0, first.lastIndexOf('.') + 1);
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return `${prefix}${runs.map(([from, to]) => (from === to ? from : `${from}–${to}`)).join(', ')}`;
}
