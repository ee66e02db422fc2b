/** Counts the tokens of a text with a Hugging Face tokenizer.json. */
import vm from 'node:vm';
import { Tokenizer } from '@huggingface/tokenizers';
import { UserError } from '../errors.js';
import { readText } from '../files/read-file.js';
import { parseTokenizer } from './parse.js';

export interface TextMeasure {
  readonly tokenizer: string;
  /** Size of the vocabulary, added tokens included. */
  readonly vocabulary: number;
  readonly tokens: number;
  /** Unicode code points. */
  readonly characters: number;
}

/** The library tokenizes about 1 MB per second; a part of a longer text gives the same ratio. */
const MAX_TEXT_BYTES = 4_000_000;

/** The largest tokenizers in use have 250,000 tokens, in 35 MB. */
const MAX_TOKENIZER_BYTES = 100_000_000;

/**
 * Time limit of a tokenizer in milliseconds: about ten times the need of the library on one slow core, for each
 * million characters of the text and of the file. Only a pattern with exponential backtracking takes longer.
 */
const timeLimit = (text: string, json: string) =>
  1500 + Math.ceil((10_000 * text.length + 500 * json.length) / 1e6);

/**
 * Counts the tokens of a text per tokenizer, without tokens for its beginning and end.
 * @param files Paths of tokenizer.json files.
 * @param limit Time limit per tokenizer in milliseconds, instead of the one by size of file and text.
 * @throws UserError if a file cannot be read, is too large, or is not a tokenizer, or if the text is empty.
 */
export async function measureText(
  files: readonly string[],
  text: string,
  limit?: number,
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
  fixedLimit: number | undefined,
): Promise<Omit<TextMeasure, 'characters'>> {
  const json = await readText(file, { most: MAX_TOKENIZER_BYTES, suggestion: SUGGESTION });
  const { content, vocabulary } = parseTokenizer(json, file, text);
  const limit = fixedLimit ?? timeLimit(text, json);
  try {
    const tokens = within(limit, () => {
      const tokenizer = new Tokenizer(content, {});
      return tokenizer.encode(text, { add_special_tokens: false }).ids.length;
    });
    return { tokenizer: file, vocabulary, tokens };
  } catch (cause) {
    // An error of the other context is not an instance of this context's Error.
    if ((cause as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
      const message = `${file} takes more than ${Math.ceil(limit / 100) / 10} s for the text`;
      throw new UserError('refused-file', message, {
        cause,
        suggestion: 'measure a shorter text, or check the regular expressions in the file',
      });
    }
    // The library throws errors of any kind if a field is missing.
    const why = cause instanceof Error ? cause.message : String(cause);
    const suggestion = SUGGESTION;
    throw new UserError('refused-file', `${file} is not a tokenizer: ${why}`, { suggestion });
  }
}

/**
 * Result of `work`, with a time limit. The file contains regular expressions, and only in a `vm` context can a
 * match be stopped.
 */
function within<Result>(milliseconds: number, work: () => Result): Result {
  const context = vm.createContext({ work });
  return vm.runInContext('work()', context, { timeout: milliseconds }) as Result;
}
