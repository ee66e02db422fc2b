/** Names of GPUs and machines as people write them: `RTX 4090`, `h100`, `8xA100`, `A100 80GB`. */
import { type UserError, usageError } from '../../base/errors.js';
import { commandText, setting } from '../../base/text/setting.js';
import { ownValue } from '../../base/values.js';
import { nearestWithDigits } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { knownProcessor } from './processors.js';

interface Named {
  readonly name: string;
  readonly title: string;
}

/** `8 x a100`, `2×4090`, `4090 x 2`; the first letter of a name is never the sign, nor that of an XT. */
const COUNT_BEFORE = /^\s*(\d{1,5})\s*[x×*](?!tx?\b)\s*(\D.*|\d{2,}.*)$/i;
const COUNT_AFTER =
  /^(.*?\S)\s*[×*:]\s*(\d{1,5})\s*$|^(.*?\S)\s+x\s*(\d{1,5})\s*$|^(.*?\d[a-wyz]{0,2})x(\d{1,3})\s*$/i;

/** `2 4090`, `8 h100`; `24 GB` is a memory. */
const COUNT_APART = /^\s*(\d{1,3})\s+((?!g?i?b\b)[a-z].*|\d{4}\b.*)$/i;

/** `dual 3090`. */
const DUAL = /^\s*(?:dual|two|twin)\s+/i;

/** Words before the name of a GPU that say where it is. */
const PLACE =
  /^\s*(?:google\s+)?(?:colab|kaggle|runpod|lambda|vast(?:\.ai)?|aws|gcp|azure|paperspace|modal)(?:\s+(?:pro|free|plus))?\s+/i;

/** A name and its count. */
export function splitCount(text: string): { readonly name: string; readonly count?: number } {
  const own = text.replace(PLACE, '').replace(DUAL, '2x ');
  const [, before, name] = COUNT_BEFORE.exec(own) ?? COUNT_APART.exec(own) ?? [];
  if (before !== undefined && name !== undefined) return { name, count: Number(before) };
  const after = COUNT_AFTER.exec(own);
  const first = after?.[1] ?? after?.[3] ?? after?.[5];
  if (first === undefined) return { name: own };
  return { name: first, count: Number(after?.[2] ?? after?.[4] ?? after?.[6]) };
}

/** Meaning of a name. */
interface NameMatch<Entry> {
  readonly entry: Entry;
  /** Other entries that the name could mean. */
  readonly others: readonly Entry[];
  /** Whether the name lacks a word of the model, as `7800` does of the RX 7800 XT. */
  readonly isShort: boolean;
}

/** Words that most names leave out; they make no difference between two entries. */
const SERIES: ReadonlySet<string> = new Set(['rtx', 'gtx', 'rx', 'arc', 'radeon', 'ryzen', 'tpu']);

/** Words that make another model of a name: an RTX 2080 is no RTX 2080 Ti. */
const VARIANTS: ReadonlySet<string> = new Set(['ti', 'super', 'xt', 'xtx', 'gre', 'laptop']);

/** Words of AMD, of whose models many have no plain one: there is no RX 7800. */
const OF_AMD: ReadonlySet<string> = new Set(['xt', 'xtx', 'gre']);

/** Most common of the entries that a name could mean, where it is not the first of the table. */
const USUAL: ReadonlySet<string> = new Set(['a100-80gb', 'jetson-thor-t5000-128gb']);

const isMemory = (word: string): boolean => /^\d+gb$/.test(word);

/** A memory alone: `24GB`, `16 GB VRAM`. */
const MEMORY_ALONE = /^\s*(\d{1,4})\s*g(?:i?b)?\s*(?:of\s+)?(?:v?ram|gpu|card)?\s*$/i;

/** An entry with the words of its name that a text lacks. */
interface Candidate<Entry> {
  readonly entry: Entry;
  readonly lacks: readonly string[];
}

/** Order of candidates: words that make another model count most. */
const distance = <Entry>({ lacks }: Candidate<Entry>): number =>
  100 * lacks.filter((word) => VARIANTS.has(word)).length + lacks.length;

/** Words that a candidate has beyond the text, but for its memory. */
const modelWords = <Entry>({ lacks }: Candidate<Entry>): string =>
  lacks.filter((word) => !isMemory(word)).join(' ');

/**
 * The entry that `text` means. Every word of the text must be a word of the name or of the title, in their order. Of
 * several entries the one with the fewest further words is chosen; of those that differ in memory, the most common.
 * @throws UserError with the nearest name when there is none, and with the candidates when several models are as near.
 */
export function entryNamed<Entry extends Named>(
  text: string,
  entries: readonly Entry[],
): NameMatch<Entry> {
  const exact = entries.find(({ name }) => name === text);
  if (exact) return { entry: exact, others: [], isShort: false };
  const [, size] = MEMORY_ALONE.exec(text) ?? [];
  if (size !== undefined) throw memoryAlone(text, Number(size), entries);
  const target = targetCards(text, entries);
  if (target !== undefined) return target;
  const query = withSuper(foldedGpuName(text), entries);
  if (query === '') throw unknown(text, entries);
  const same = entries.find(({ name }) => foldedGpuName(name) === query);
  if (same) return { entry: same, others: [], isShort: false };
  const inOrder = matching(entries, (entry) => furtherWords(query, entry));
  const found =
    inOrder.length > 0 ? inOrder : matching(entries, (entry) => furtherInAnyOrder(text, entry));
  const least = Math.min(...found.map(distance));
  const near = found.filter((each) => distance(each) === least);
  // Entries that differ in memory alone are the same model.
  const sameModel = near.filter(({ lacks }) => lacks.every(isMemory));
  const nearest = sameModel.length > 0 ? sameModel : near;
  const [first] = nearest;
  if (first === undefined) return namedWithMemory(text, entries);
  const usual = nearest.find(({ entry }) => USUAL.has(entry.name));
  const models = new Set(nearest.map(modelWords));
  if (usual === undefined && models.size > 1) throw ambiguous(text, found);
  const taken = usual ?? first;
  const variants = taken.lacks.filter((word) => VARIANTS.has(word));
  if (!variants.every((word) => OF_AMD.has(word))) throw ambiguous(text, nearest);
  const isMachine = 'gpu' in taken.entry;
  const others = found.filter(
    ({ entry, lacks }) => entry !== taken.entry && lacks.length > 0 && 'gpu' in entry === isMachine,
  );
  // A bare number is also the beginning of other names: 4060 of the Ti.
  const isWhole = least === 0 && !/^\d{4}$/.test(query);
  return {
    entry: taken.entry,
    others: isWhole ? [] : others.map(({ entry }) => entry),
    isShort: variants.length > 0,
  };
}

/** Letters after the number of a card for its faster kinds: 4080s, 4070 tis. */
const SHORT_SUPER = /^((?:rtx|gtx)?\d{4})(t?i?)s$/;

/** A name with the word for a letter, where such a card is known. */
function withSuper(query: string, entries: readonly Named[]): string {
  const [, base, ti] = SHORT_SUPER.exec(query) ?? [];
  if (base === undefined) return query;
  const whole = `${base}${ti === '' ? '' : 'ti'}super`;
  const isKnown = entries.some((entry) => furtherWords(whole, entry) !== undefined);
  return isKnown ? whole : query;
}

/** Cards by their targets in ROCm, the usual one first: ROCm documentation, "Accelerator and GPU hardware specifications". */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  gfx906: ['mi50-32gb', 'mi60', 'mi50-16gb'],
  gfx908: ['mi100'],
  gfx90a: ['mi210', 'mi250', 'mi250x'],
  gfx942: ['mi300x', 'mi325x', 'mi300a'],
  gfx950: ['mi355x', 'mi350x'],
  gfx1030: ['rx-6800-xt', 'rx-6900-xt', 'rx-6800', 'rx-6950-xt'],
  gfx1031: ['rx-6700-xt', 'rx-6750-xt', 'rx-6700'],
  gfx1032: ['rx-6600', 'rx-6600-xt', 'rx-6650-xt'],
  gfx1100: ['rx-7900-xtx', 'rx-7900-xt', 'rx-7900-gre'],
  gfx1101: ['rx-7800-xt', 'rx-7700-xt'],
  gfx1102: ['rx-7600', 'rx-7600-xt'],
  gfx1200: ['rx-9060-xt-16gb', 'rx-9060-xt-8gb'],
  gfx1201: ['rx-9070-xt', 'rx-9070', 'rx-9070-gre'],
};

/**
 * The only card of a target; undefined for another text.
 * @throws UserError with the cards of a target that has several.
 */
function targetCards<Entry extends Named>(
  text: string,
  entries: readonly Entry[],
): NameMatch<Entry> | undefined {
  const names = ownValue(TARGETS, text.trim().toLowerCase()) ?? [];
  const found = names.flatMap((name) => entries.find((entry) => entry.name === name) ?? []);
  const [first] = found;
  if (first === undefined) return undefined;
  if (found.length > 1)
    throw ambiguous(
      text,
      found.map((entry) => ({ entry, lacks: [] })),
    );
  return { entry: first, others: [], isShort: true };
}

/**
 * The entry that a name with a memory means, which its name in the table lacks: `RTX 4090 24GB`.
 * @throws UserError as `entryNamed`, and for a memory that the card does not have.
 */
function namedWithMemory<Entry extends Named>(
  text: string,
  entries: readonly Entry[],
): NameMatch<Entry> {
  const [whole, size] = /\b(\d{1,4})\s*g(?:i?b)?\b/i.exec(text) ?? [];
  if (whole === undefined) throw unknown(text, entries);
  const rest = text.replace(whole, ' ').trim();
  const isOf = ({ entry, lacks }: Candidate<Entry>) =>
    lacks.every(isMemory) && 'memoryBytes' in entry;
  const models = matching(entries, (entry) => furtherWords(foldedGpuName(rest), entry)).filter(
    isOf,
  );
  const found = models.find(
    ({ entry }) => 'memoryBytes' in entry && entry.memoryBytes === Number(size) * 1e9,
  );
  if (found) return { entry: found.entry, others: [], isShort: false };
  if (models.length === 0) throw unknown(text, entries);
  const names = models.map(({ entry }) => entry.name);
  throw usageError(
    `no ${quote(rest)} with ${size} GB is known`,
    `write ${gpuList(names)}, or describe it in a file for ${setting('hardware', 'FILE')}`,
  );
}

/** Candidates that an error lists. */
const MOST_LISTED = 8;

const gpuList = (names: readonly string[]): string => {
  const rest = names.length - MOST_LISTED;
  return `${names.slice(0, MOST_LISTED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
};

function ambiguous(text: string, found: readonly Candidate<Named>[]): UserError {
  const names = found.toSorted((a, b) => distance(a) - distance(b)).map(({ entry }) => entry.name);
  const [first = ''] = names;
  if (names.length === 1) {
    return usageError(`unknown GPU or machine ${quote(text)}`, `did you mean ${first}?`);
  }
  return usageError(
    `${setting('gpu')} ${quote(text)} could be ${gpuList(names)}`,
    `write one of them, as in ${setting('gpu', first)}`,
  );
}

/** The error for a memory, which many cards have. */
function memoryAlone(text: string, gigabytes: number, entries: readonly Named[]): UserError {
  const has = (entry: Named) =>
    'memoryBytes' in entry &&
    entry.memoryBytes === gigabytes * 1e9 &&
    !/laptop|^m\d/.test(entry.name);
  const names = entries.filter(has).map(({ name }) => name);
  const consumer = names.filter((name) => /^(?:rtx|rx|arc)-/.test(name));
  const all = [...consumer, ...names.filter((name) => !consumer.includes(name))];
  return usageError(
    `${setting('gpu')}: expected the name of a GPU, found the memory ${quote(text.trim())}`,
    all.length > 0
      ? `write a GPU that has it: ${gpuList(all)}`
      : `see ${commandText('fit')} ${setting('listGpus')}`,
  );
}

/** Entries that a name can mean, with the words that it lacks. */
const matching = <Entry extends Named>(
  entries: readonly Entry[],
  lacksOf: (entry: Entry) => readonly string[] | undefined,
): Candidate<Entry>[] =>
  entries.flatMap((entry) => {
    const lacks = lacksOf(entry);
    return lacks === undefined ? [] : [{ entry, lacks }];
  });

/** Makers, and words that drivers add: the kind of memory, `Generation`. */
const MAKER =
  /\b(?:nvidia|geforce|tesla|quadro(?=\s+(?:rtx\s+)?a\d)|amd|radeon(?=\s+instinct)|instinct|apple|intel|google|aws|huawei|hbm\d?e?|generation|edition|gpu|graphics|480gb)\b/g;

/** A computer of Apple, in addition to the name of its chip. */
const MAC = /\b(?:macbook|imac|mac)(?:\s*(?:pro|air|mini|studio))?\b/g;

/** Words for a card of a laptop. */
const LAPTOP = /\b(?:mobile|notebook|max-?q)\b/g;

/** Lower case, without makers and separators; `sxm5` is `sxm`. */
const foldedGpuName = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('_', ' ')
    .replaceAll(MAC, ' ')
    .replaceAll(MAKER, ' ')
    .replaceAll(LAPTOP, 'laptop')
    .replaceAll(/sxm\d/g, 'sxm')
    .replaceAll(/(\d)\s*gi?b?\b/g, '$1gb')
    .replaceAll(/[^a-z0-9]/g, '');

const gpuWords = (text: string): string[] =>
  text
    .toLowerCase()
    .replaceAll(MAC, ' ')
    .replaceAll(MAKER, ' ')
    .replaceAll(LAPTOP, 'laptop')
    .replaceAll(/sxm\d/g, 'sxm')
    .replaceAll(/(\d)\s+gb\b/g, '$1gb')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');

/** Words of the name that `query` lacks; undefined when the entry is another one. */
function furtherWords(query: string, { name, title }: Named): string[] | undefined {
  const own = gpuWords(name);
  const byName = lacking(query, own);
  const further = byName ?? lacking(query, gpuWords(title));
  return further?.filter((word) => own.includes(word) && !SERIES.has(word));
}

/** The same for words in any order: `A100 80GB PCIe` is a100-pcie-80gb. */
function furtherInAnyOrder(text: string, { name, title }: Named): string[] | undefined {
  const wanted = gpuWords(text);
  const own = gpuWords(name);
  const all = new Set([...own, ...gpuWords(title)]);
  const isThis = wanted.length > 1 && wanted.every((word) => all.has(word));
  if (!isThis || !wanted.some((word) => own.includes(word))) return undefined;
  return own.filter((word) => !wanted.includes(word) && !SERIES.has(word));
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

/** Names that mean one of many chips. */
const MANY =
  /^\s*(?:mac|macbook|mac\s*book|imac|mac\s*mini|mac\s*studio|apple(?:\s*silicon)?|m-?series)(?:\s*(?:air|pro|laptop))?\s*$/i;

function unknown(text: string, entries: readonly Named[]): UserError {
  const message = `unknown GPU or machine ${quote(text)}`;
  const processor = knownProcessor(text);
  if (processor) {
    const settings = `${setting('gpu', 'cpu')} ${setting('cpu', text.trim())}`;
    return usageError(
      `${setting('gpu')}: ${quote(text)} is a processor (${processor.title})`,
      `write ${settings} for it alone, or a graphics card with ${setting('cpu', text.trim())}`,
    );
  }
  if (MANY.test(text)) {
    const chips = entries.filter(({ name }) => /^m\d-\d+gb$/.test(name)).map(({ name }) => name);
    return usageError(message, `write its chip and memory, one of ${chips.join(', ')}`);
  }
  if (/\b(?:laptop|mobile|max-?q|notebook)\b/i.test(text)) {
    const desktop = text.replaceAll(/\b(?:laptop|mobile|max-?q|notebook|gpu)\b/gi, ' ').trim();
    const query = foldedGpuName(desktop);
    const named = entries.filter(
      (entry) => query !== '' && furtherWords(query, entry)?.length === 0,
    );
    const names = named.map(({ name }) => name);
    const card = names.length > 0 ? `${names.join(', ')} is the desktop card; ` : '';
    return usageError(
      `${message}, a card of laptops`,
      `${card}describe it in a file for ${setting('hardware', 'FILE')}`,
    );
  }
  // A name with other digits, or another first letter, is another card.
  const [letter = ''] = foldedGpuName(text);
  const alike = entries.filter(({ name }) => foldedGpuName(name).startsWith(letter));
  const bases = alike.map(({ name }) => name.replace(/-\d+gb$/, ''));
  const names = alike.map(({ name }) => name);
  const query = foldedGpuName(text);
  const longer = names.filter((name) => query.length > 3 && foldedGpuName(name).startsWith(query));
  // A digit that was typed twice: h1000.
  const once = query.replace(/(\d)\1$/, '$1');
  const close =
    (longer.length === 1 ? longer[0] : undefined) ??
    bases.find((base) => once !== query && foldedGpuName(base) === once) ??
    nearestWithDigits(text, [...names, ...bases]) ??
    nearestWithDigits(foldedGpuName(text), bases.map(foldedGpuName));
  return usageError(
    message,
    close
      ? `did you mean ${close}?`
      : `see ${commandText('fit')} ${setting('listGpus')}, or describe it in a file for ${setting('hardware', 'FILE')}`,
  );
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
    return (
      words.every((word) => own.includes(word)) ||
      foldedGpuName(own).includes(foldedGpuName(pattern))
    );
  });
}
