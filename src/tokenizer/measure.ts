/** A text cut into tokens by a Hugging Face tokenizer.json: how many there are, and of how many kinds. */
import vm from 'node:vm';
import { Tokenizer } from '@huggingface/tokenizers';
import { UserError } from '../errors.js';
import { readText } from '../files/read-file.js';
import { parseTokenizer } from './parse.js';

/** What a tokenizer makes of a text. */
export interface TextMeasure {
  readonly tokenizer: string;
  /** How many tokens the tokenizer knows, those that were added to it included. */
  readonly vocabulary: number;
  readonly tokens: number;
  /** Unicode code points of the text. */
  readonly characters: number;
}

/** About a megabyte a second is cut; of a longer text, a part says the same. */
const MAX_TEXT_BYTES = 4_000_000;

/** The largest tokenizers in use have a quarter of a million tokens, in 35 MB. */
const MAX_TOKENIZER_BYTES = 100_000_000;

/** Cutting takes longer only with a pattern that tries ever more ways to match. */
const MAX_MILLISECONDS = 120_000;

/**
 * Cuts a text with each of some tokenizers, without the tokens that mark its beginning and end.
 * @param files Paths of tokenizer.json files.
 * @param limit Most milliseconds that a tokenizer may take.
 * @throws UserError when a file cannot be read, is too large, or is no tokenizer; when the text is empty.
 */
export async function measureText(
  files: readonly string[],
  text: string,
  limit = MAX_MILLISECONDS,
): Promise<TextMeasure[]> {
  const read = await readText(text, { most: MAX_TEXT_BYTES, suggestion: 'measure a part of it' });
  const characters = codePointsOf(read);
  if (characters === 0) {
    throw new UserError('refused-file', `${text} is empty`, {
      suggestion: 'name a text with --text',
    });
  }
  const measures: TextMeasure[] = [];
  for (const file of files) measures.push({ ...(await measured(file, read, limit)), characters });
  return measures;
}

function codePointsOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

const SUGGESTION = 'give the tokenizer.json of a model';

async function measured(
  file: string,
  text: string,
  limit: number,
): Promise<Omit<TextMeasure, 'characters'>> {
  const json = await readText(file, { most: MAX_TOKENIZER_BYTES, suggestion: SUGGESTION });
  const { content, vocabulary } = parseTokenizer(json, file);
  try {
    const tokens = within(limit, () => {
      const tokenizer = new Tokenizer(content, {});
      return tokenizer.encode(text, { add_special_tokens: false }).ids.length;
    });
    return { tokenizer: file, vocabulary, tokens };
  } catch (cause) {
    // An error of the machine that ran it, which is not of this realm.
    if ((cause as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
      const message = `${file} takes more than ${limit / 1000} s for the text`;
      throw new UserError('refused-file', message, {
        cause,
        suggestion: 'measure a shorter text; if that is as slow, a pattern in the file is to blame',
      });
    }
    // The library says by an Error of any kind what it misses in a file.
    const why = cause instanceof Error ? cause.message : String(cause);
    const suggestion = SUGGESTION;
    throw new UserError('refused-file', `${file} is no tokenizer: ${why}`, { suggestion });
  }
}

/**
 * What `work` returns, unless that takes longer: patterns of regular expressions come out of the file, and
 * only the machine that runs a script can stop one.
 */
function within<Result>(milliseconds: number, work: () => Result): Result {
  const context = vm.createContext({ work });
  return vm.runInContext('work()', context, { timeout: milliseconds }) as Result;
}
