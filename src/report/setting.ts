/** At what batch, length and precision figures hold. */
import type { Origin, ResolvedSetting } from '../budget/setting.js';
import { note } from './cells.js';
import type { Block } from './report.js';
import { formatInteger } from './units.js';

const ORIGINS = {
  flag: '',
  file: ' (from the file)',
  default: ' (default)',
  longest: ' (default: all that the model takes)',
} as const satisfies Record<Origin, string>;

/** @param file What says so where no flag does. */
export function settingNotes(setting: ResolvedSetting, file = 'file'): Block[] {
  const { inference, training, origins, beyondOneDevice } = setting;
  const from = (origin: Origin) => ORIGINS[origin].replace('file', file);
  const precision = training.precision === 'mixed' ? 'mixed precision' : 'float32';
  return [
    note(
      `Inference: ${formatInteger(inference.batch)} × ${formatInteger(inference.context)} tokens` +
        `${from(origins.context)}, ${inference.dtype}.`,
    ),
    note(
      `Training: ${formatInteger(training.batch)}${from(origins.trainingBatch)} × ${formatInteger(training.context)} ` +
        `tokens, ${precision}${from(origins.precision)}, ${training.optimizer}, ` +
        `recomputation ${training.recompute}${from(origins.recompute)}.`,
    ),
    ...(beyondOneDevice.length > 0
      ? [
          note(
            `The file asks for ${beyondOneDevice.join(', ')}; one device without it is counted here.`,
          ),
        ]
      : []),
  ];
}
