/** Reads names of GPUs and machines as people write them: `RTX 4090`, `h100`, `8xA100`, `A100 80GB`. */
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';

interface Named {
  readonly name: string;
  readonly title: string;
}

/** `8 x a100`, `2×4090`, `4090 x 2`; the first letter of a name is never the sign. */
const COUNT_BEFORE = /^\s*(\d{1,5})\s*[x×*]\s*(\D.*|\d{2,}.*)$/i;
const COUNT_AFTER = /^(.*?\S)\s*[×*]\s*(\d{1,5})\s*$|^(.*?\S)\s+x\s*(\d{1,5})\s*$/i;

/** A name and its count. */
export function splitCount(text: string): { readonly name: string; readonly count?: number } {
  const [, before, name] = COUNT_BEFORE.exec(text) ?? [];
  if (before !== undefined && name !== undefined) return { name, count: Number(before) };
  const after = COUNT_AFTER.exec(text);
  const first = after?.[1] ?? after?.[3];
  if (first === undefined) return { name: text };
  return { name: first, count: Number(after?.[2] ?? after?.[4]) };
}

/** Meaning of a name. */
export interface NameMatch<Entry> {
  readonly entry: Entry;
  /** Other entries that the name could mean. */
  readonly others: readonly Entry[];
}

/** Words that most names leave out; they make no difference between two entries. */
const SERIES: ReadonlySet<string> = new Set(['rtx', 'rx', 'arc', 'radeon', 'ryzen', 'tpu']);

/** Most common variant of a name without its memory, where it is not the first of the table. */
const USUAL: ReadonlySet<string> = new Set(['a100-80gb']);

/**
 * The entry that `text` means. Every word of the text must be a word of the name or of the title, in their order. Of
 * several entries the one with the fewest further words is chosen, and of those the most common.
 * @throws UserError with the nearest name when there is none.
 */
export function entryNamed<Entry extends Named>(
  text: string,
  entries: readonly Entry[],
): NameMatch<Entry> {
  const exact = entries.find(({ name }) => name === text);
  if (exact) return { entry: exact, others: [] };
  const query = joined(text);
  if (query === '') throw unknown(text, entries);
  const same = entries.find(({ name }) => joined(name) === query);
  if (same) return { entry: same, others: [] };
  const found = entries.flatMap((entry) => {
    const further = furtherWords(query, entry);
    return further === undefined ? [] : [{ entry, further }];
  });
  const least = Math.min(...found.map(({ further }) => further));
  const [first, ...more] = found.filter(({ further }) => further === least);
  if (first === undefined) throw unknown(text, entries);
  const usual = [first, ...more].find(({ entry }) => USUAL.has(entry.name)) ?? first;
  const others = found.filter(({ entry, further }) => entry !== usual.entry && further > 0);
  return { entry: usual.entry, others: least === 0 ? [] : others.map(({ entry }) => entry) };
}

const MAKER = /\b(?:nvidia|geforce|tesla|quadro|amd|instinct|apple|intel|google|aws)\b/g;

/** Lower case, without makers and separators; `sxm5` is `sxm`. */
const joined = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('_', ' ')
    .replaceAll(MAKER, ' ')
    .replaceAll(/sxm\d/g, 'sxm')
    .replaceAll(/(\d)\s*gi?b?\b/g, '$1gb')
    .replaceAll(/[^a-z0-9]/g, '');

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .replaceAll(MAKER, ' ')
    .replaceAll(/sxm\d/g, 'sxm')
    .replaceAll(/(\d)\s+gb\b/g, '$1gb')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');

/** Number of words of the name that `wanted` lacks; undefined when the entry is another one. */
function furtherWords(query: string, { name, title }: Named): number | undefined {
  const own = wordsOf(name);
  const byName = lacking(query, own);
  const counted = byName ?? lacking(query, wordsOf(title));
  return counted?.filter((word) => own.includes(word) && !SERIES.has(word)).length;
}

/** The words that are left over when the others, in their order, are `wanted`. */
function lacking(query: string, words: readonly string[]): string[] | undefined {
  const [word, ...rest] = words;
  if (word === undefined) return query === '' ? [] : undefined;
  // A memory can be written without its unit.
  for (const spelling of [word, word.replace(/(?<=^\d+)gb$/, '')]) {
    if (!query.startsWith(spelling)) continue;
    const after = lacking(query.slice(spelling.length), rest);
    if (after) return after;
  }
  const without = query === '' ? [...rest] : lacking(query, rest);
  return without && [word, ...without];
}

function unknown(text: string, entries: readonly Named[]): UserError {
  const bases = entries.map(({ name }) => name.replace(/-\d+gb$/, ''));
  const names = entries.map(({ name }) => name);
  const close = nearest(text, [...names, ...bases]) ?? nearest(joined(text), bases.map(joined));
  return new UserError('usage', `unknown GPU or machine ${quote(text)}`, {
    suggestion: close ? `did you mean ${close}?` : 'minimind fit --list-gpus lists them',
  });
}

/** Entries whose name or title contains every word of a pattern. */
export function entriesMatching<Entry extends Named>(
  pattern: string,
  entries: readonly Entry[],
): Entry[] {
  const words = pattern
    .toLowerCase()
    .split(/[^a-z0-9.]+/)
    .filter(Boolean);
  return entries.filter(({ name, title }) => {
    const own = `${name} ${title}`.toLowerCase();
    return words.every((word) => own.includes(word)) || joined(own).includes(joined(pattern));
  });
}
