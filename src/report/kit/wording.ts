/** Words that several reports use. */
import type { Origin, ResolvedSetting } from '../../budget/profile.js';
import type { CheckpointFormat } from '../../checkpoint/checkpoint.js';
import { note } from './cells.js';
import type { Block } from './report.js';
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

// At what batch, length and precision figures hold.

const ORIGINS = {
  flag: '',
  file: ' (from the file)',
  default: ' (default)',
  longest: ' (default: all that the model takes)',
} as const satisfies Record<Origin, string>;

/** Who says how long a sequence is, where it is not the user. */
export const contextText = (origin: Origin): string => ORIGINS[origin];

/** @param file What says so where no flag does. */
export const settingNotes = (setting: ResolvedSetting, file = 'file'): Block[] => [
  inferenceNote(setting, file),
  ...trainingNotes(setting, file),
];

const from = (origin: Origin, file: string) => ORIGINS[origin].replace('file', file);

/** At what the figures of inference hold. */
export const inferenceNote = ({ inference, origins }: ResolvedSetting, file: string): Block =>
  note(
    `Inference: ${formatInteger(inference.batch)} × ${formatInteger(inference.context)} tokens` +
      `${from(origins.context, file)}, ${inference.dtype}.`,
  );

function trainingNotes(setting: ResolvedSetting, file: string): Block[] {
  const { training, origins, beyondOneDevice } = setting;
  const precision = training.precision === 'mixed' ? 'mixed precision' : 'float32';
  return [
    note(
      `Training: ${formatInteger(training.batch)}${from(origins.trainingBatch, file)} × ${formatInteger(training.context)} ` +
        `tokens, ${precision}${from(origins.precision, file)}, ${training.optimizer}, ` +
        `recomputation ${training.recompute}${from(origins.recompute, file)}.`,
    ),
    ...(beyondOneDevice.length > 0
      ? [
          note(
            `The ${file === 'file' ? 'file asks' : 'files ask'} for ${beyondOneDevice.join(', ')}; one device without it is counted here.`,
          ),
        ]
      : []),
  ];
}
