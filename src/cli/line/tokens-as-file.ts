/** Output tokens that were written as the file of the answer. */
import { usageError } from '../../base/errors.js';
import { pasteable } from './line-mistake.js';

/** @throws UserError for a number as the file of `--output`: output tokens are meant. */
export function refuseTokensAsFile(output: string | undefined, words: readonly string[]): void {
  if (output === undefined || !/^\d+[kKmM]?$/.test(output)) return;
  throw usageError(
    `--output: expected a file for the answer, found ${output}`,
    `for tokens, write ${pasteable(['fit', ...words.map(asTokens)])}`,
  );
}

const asTokens = (word: string) => word.replace(/^(?:--output|-o)(?==|$)/, '--output-tokens');
