/** Text helpers for messages and reports: plurals, lists, sentences, and shortened names. */
import { runsOf } from '../values.js';
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

/** `layers.0–31`, `layers.0, 2`: names of some blocks. */
export function blocksText(names: readonly string[]): string {
  const numbers = names.map((name) => Number(name.slice(name.lastIndexOf('.') + 1)));
  const [first = ''] = names;
  const prefix = first.slice(0, first.lastIndexOf('.') + 1);
  return `${prefix}${runsText(numbers)}`;
}

/** `0–31`, `0, 2–5`. */
export const runsText = (numbers: readonly number[]): string =>
  runsOf(numbers)
    .map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))
    .join(', ');

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
