import { distance } from 'fastest-levenshtein';

/** Letters that people do not tell apart when they remember a name. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll('-', '_');
}

/** Whether two names have the same letters in another order: one slip of the fingers, not two. */
function isSwapped(a: string, b: string): boolean {
  return a !== b && a.length === b.length && [...a].sort().join() === [...b].sort().join();
}

/**
 * The candidate that a person most likely meant by `name`, or undefined when none is near: at most a
 * third of the letters may be wrong, or some of its words be missing. Case, and `-` for `_`, count for
 * nothing.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = fold(name);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const folded = fold(candidate);
    const longest = Math.max(wanted.length, folded.length);
    const allowed = longest <= 2 ? 0 : Math.max(1, Math.floor(longest / 3));
    // The length alone can rule a candidate out, and spares the work on a name of a megabyte.
    if (Math.abs(wanted.length - folded.length) > allowed) continue;
    const letters = isSwapped(wanted, folded) ? 1 : distance(wanted, folded);
    if (letters <= allowed && letters < bestDistance) {
      best = candidate;
      bestDistance = letters;
    }
  }
  return best ?? onlyOneWith(wanted, candidates);
}

/** `num_hidden_layers` for `num_layers`: the one candidate that has all words of `wanted`. */
function onlyOneWith(wanted: string, candidates: Iterable<string>): string | undefined {
  const words = wanted.split('_');
  const fitting = [...candidates].filter((candidate) => {
    const own = new Set(fold(candidate).split('_'));
    return words.every((word) => own.has(word));
  });
  return fitting.length === 1 ? fitting[0] : undefined;
}
