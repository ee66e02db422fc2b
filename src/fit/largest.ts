/** The largest number from 1 to `most` that holds, of what holds for no number beyond one that fails; 0 for none. */
export function largest(most: number, holds: (count: number) => boolean): number {
  let [held, fails] = [0, 1];
  // Doubling first: answers are mostly far below `most`, and trying is not free.
  while (fails <= most && holds(fails)) [held, fails] = [fails, 2 * fails];
  fails = Math.min(fails, most + 1);
  while (fails - held > 1) {
    const middle = held + Math.floor((fails - held) / 2);
    if (holds(middle)) held = middle;
    else fails = middle;
  }
  return held;
}
