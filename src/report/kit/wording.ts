/** Words that several reports use. */
import type { CheckpointFormat } from '../../checkpoint/checkpoint.js';
import { formatInteger } from './units.js';

/** As `src/checkpoint/checkpoint.ts` has them, of which a report takes the types alone. */
export const FORMAT_NAMES = {
  safetensors: 'safetensors',
  'torch-zip': 'PyTorch (zip)',
  'torch-legacy': 'PyTorch (legacy)',
} as const satisfies Record<CheckpointFormat, string>;

/** `1 tensor`, `2,048 tensors`. */
export const counted = (number: number, what: string) =>
  `${formatInteger(number)} ${what}${number === 1 ? '' : 's'}`;

/** `a, b and c`. */
export const joined = (texts: readonly string[]) =>
  [texts.slice(0, -1).join(', '), texts.at(-1) ?? ''].filter(Boolean).join(' and ');

/** With a capital, and a stop. */
export const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
