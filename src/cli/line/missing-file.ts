/** Files of a line that are not there. */
import fs from 'node:fs';
import { isHubName } from '../../base/text/hub-names.js';
import { quote } from '../../config/quote.js';

/** Whether a word is written as a file: with a folder or an ending, and not as ORG/NAME. */
const isWrittenAsFile = (word: string): boolean =>
  !isHubName(word) && /[/\\]|\.[a-z]\w*$/i.test(word);

/** Message for a word that names neither a file nor a known model. */
export const missingText = (word: string): string =>
  `there is no ${isWrittenAsFile(word) ? 'file' : 'model'} ${quote(word)}`;

/** Message for the first word that is written as a file, and is not there; undefined if all are there. */
export function missingFile(words: readonly string[]): string | undefined {
  const missing = words.find((word) => isWrittenAsFile(word) && !fs.existsSync(word));
  return missing === undefined ? undefined : missingText(missing);
}
