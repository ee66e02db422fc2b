/** Words that several reports use. */
import type { Origin, ResolvedSetting } from '../../budget/profile.js';
import { formatInteger } from '../../text/units.js';
import { note } from './cells.js';
import type { Block } from './report.js';

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
