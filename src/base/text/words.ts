/** Text helpers for messages and reports: plurals, lists, sentences, and shortened names. */
import { printable } from './escape.js';
import { formatInteger } from './units.js';

/** `1 tensor`, `2,048 tensors`. */
export const counted = (number: number, what: string) =>
  `${formatInteger(number)} ${what}${number === 1 ? '' : 's'}`;

/** `a, b and c`. */
export const joined = (texts: readonly string[]) =>
  [texts.slice(0, -1).join(', '), texts.at(-1) ?? ''].filter(Boolean).join(' and ');

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** `text` with a capital and a full stop. */
export const sentence = (text: string) => `${capital(text)}.`;

/** Limit in characters. Tensor names are shorter, but a file can hold names of a megabyte. */
const MAX_TEXT = 120;

/** `text`, or its beginning and `…`. */
export function shortened(text: string, limit = MAX_TEXT): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}

/** A name from a file, as shown in a table. */
export const nameText = (name: string): string => (name === '' ? '""' : shortened(name));

/** Up to three names in full; for more, the first two and the last. */
export function namesText(names: readonly string[]): string {
  if (names.length <= 3) return names.map(nameText).join(', ');
  const [first = '', second = ''] = names;
  const shown = [first, second].map(nameText).join(', ');
  return `${shown} … ${nameText(names.at(-1) ?? '')}`;
}

// Helpers for values, used in many folders

/** Whether `value` is an object with named entries, not a list or null. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The items of a list without those that a condition leaves out: `present([first, isLong && second])`. */
export const present = <Item>(items: readonly (Item | false | null | undefined)[]): Item[] =>
  items.filter((item) => item !== false && item !== null && item !== undefined) as Item[];

/** Items by a key, in order. */
export function groupBy<Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item) => Key,
): Map<Key, [Item, ...Item[]]> {
  const groups = new Map<Key, [Item, ...Item[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** Sum of a number per item, in order. */
export function sumOf<Item>(items: Iterable<Item>, numberOf: (item: Item) => number): number {
  let sum = 0;
  if (Array.isArray(items)) {
    // Sums run over all kinds of collections, and the iterator of a list costs more than the list.
    for (let at = 0; at < items.length; at++) sum += numberOf(items[at]);
    return sum;
  }
  for (const item of items) sum += numberOf(item);
  return sum;
}

/** `layers.0–31`, `layers.0, 2`: names of some blocks. */
export function blocksText(names: readonly string[]): string {
  const numbers = names.map((name) => Number(name.slice(name.lastIndexOf('.') + 1)));
  const [first = ''] = names;
  const prefix = first.slice(0, first.lastIndexOf('.') + 1);
  return `${prefix}${runsText(numbers)}`;
}

/** Ascending numbers as ranges, the first and the last number of each. */
export function runsOf(numbers: readonly number[]): [from: number, to: number][] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}

/** `0–31`, `0, 2–5`. */
export const runsText = (numbers: readonly number[]): string =>
  runsOf(numbers)
    .map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))
    .join(', ');

/** All items: the first of each group, then the second ones, and so on. */
export function inTurn<Item>(groups: readonly (readonly Item[])[]): Item[] {
  const longest = Math.max(0, ...groups.map(({ length }) => length));
  return Array.from({ length: longest }, (_, turn) =>
    groups.flatMap((group) => group.slice(turn, turn + 1)),
  ).flat();
}

/** Whether words are for the shell of Windows. A browser has no `process`. */
const isWindows = globalThis.process?.platform === 'win32';

/** Characters that the shell of this system leaves as they are. */
const UNQUOTED = isWindows ? /^[\w@%+=:,./\\-]+$/ : /^[\w@%+=:,./-]+$/;

/** `text` as one word of a command line, quoted where a shell would read more or less than it. */
export function shellWord(text: string): string {
  if (UNQUOTED.test(text)) return text;
  if (isWindows) return `"${text}"`;
  return scriptWord(text);
}

/** A word of a script, whose language does not depend on this system. One that `isAnsi` is for bash, zsh and ksh. */
export const scriptWord = (text: string): string =>
  isAnsi(text) ? ansiQuoted(text) : posixWord(text);

/** Whether a word has characters that only the quotes `$'…'` show. */
export const isAnsi = (text: string): boolean => printable(text) !== text;

/** A word of any POSIX shell, with all its characters as they are. */
export const posixWord = (text: string): string =>
  UNQUOTED.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** A word with control or invisible characters, as bash, zsh and ksh read it: `$'a\\x1bb'`. */
const ansiQuoted = (text: string): string =>
  `$'${Array.from(text, (character) => {
    if (character === "'" || character === '\\') return `\\${character}`;
    if (printable(character) === character) return character;
    const hex = (character.codePointAt(0) ?? 0).toString(16);
    if (hex.length <= 2) return `\\x${hex.padStart(2, '0')}`;
    return hex.length <= 4 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
  }).join('')}'`;

/** Files that are named after their folder. */
const COMMON_NAMES: ReadonlySet<string> = new Set(['config', 'model', 'minimind']);

/** Where in a checkpoint its config is: `model.gguf: metadata`. */
const PLACE = /(?<=\.(?:safetensors|pt|pth|bin|gguf|onnx|ckpt)): \w+$/i;

/** `Qwen3-8B`: name of a model by its file, or by the folder of a `config.json`. */
export function modelName(file: string): string {
  const parts = file
    .replace(PLACE, '')
    .split(/[\\/]/)
    .filter((part) => part !== '' && part !== '.');
  const last =
    parts.at(-1)?.replace(/\.(?:ya?ml|json|safetensors|pt|pth|bin|gguf|onnx)$/i, '') ?? '';
  const folder = parts.at(-2);
  return COMMON_NAMES.has(last) && folder !== undefined && folder !== '..' ? folder : last || file;
}

/** The value of a key that a user typed; undefined for names that every object has, such as `constructor`. */
export const ownValue = <Value>(
  table: Readonly<Record<string, Value>>,
  key: string,
): Value | undefined => (Object.hasOwn(table, key) ? table[key] : undefined);
