import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { globMatcher } from './glob.js';

/**
 * The entries whose names match the glob of `--filter`; all of them without one.
 * @throws UserError when none does.
 */
export function filterByName<T>(
  entries: ReadonlyMap<string, T>,
  glob: string | undefined,
): ReadonlyMap<string, T> {
  if (glob === undefined) return entries;
  const isWanted = matcherOf(glob);
  const wanted = new Map([...entries].filter(([name]) => isWanted(name)));
  if (wanted.size > 0) return wanted;
  throw new UserError('usage', `--filter: no tensor has a name like ${quote(glob)}`, {
    suggestion: betterFilter(glob, [...entries.keys()]),
  });
}

function matcherOf(glob: string): (name: string) => boolean {
  try {
    return globMatcher(glob);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UserError('usage', `--filter: ${quote(glob)}: ${error.message}`, { cause: error });
  }
}

function betterFilter(glob: string, names: readonly string[]): string {
  const within = `*${glob}*`;
  const lastParts = [...new Set(names.map((name) => name.split('.').at(-1) ?? name))];
  const part = nearest(glob, lastParts);
  const close = names.some(globMatcher(within))
    ? within
    : (nearest(glob, names) ?? (part === undefined ? undefined : `*.${part}`));
  if (close !== undefined) return `did you mean ${quote(close)}?`;
  const [first] = names;
  return first === undefined
    ? 'there are no tensors'
    : `--tensors lists them all; the first is ${quote(first)}`;
}
