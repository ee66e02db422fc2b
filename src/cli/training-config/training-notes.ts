/** Lines about the config of a training, for a terminal. */

import { counted as countedText } from '../../base/text/words.js';
import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import type { PlacedKey } from '../../input/training-config/training-config.js';

/** Most keys that a line names. */
const MOST_KEYS = 6;

/** Lines about a config, for a terminal. */
export function trainingNotes({
  file,
  program,
  version,
  model,
  counted,
  notCounted,
  ignored,
}: TrainingConfigAnswer): string[] {
  const whose = model === null ? '' : ` of ${model}`;
  return [
    `${file}: a training${whose} with ${program} (keys of ${version}); ${countedText(counted.length, 'key')} counted`,
    ...(notCounted.length > 0 ? [`  not counted: ${keyNames(notCounted)}`] : []),
    ...(ignored.length > 0 ? [`  ignored: ${keyNames(ignored)}`] : []),
  ];
}

const keyNames = (keys: readonly PlacedKey[]): string => {
  const shown = keys.slice(0, MOST_KEYS).map(({ key }) => key);
  const more = keys.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
};
