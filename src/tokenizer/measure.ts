/** A text cut into tokens by a Hugging Face tokenizer.json: how many there are, and of how many kinds. */
import { readFile, stat } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import { UserError } from '../errors.js';
import { noteInput } from '../files/inputs.js';

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

/**
 * Cuts a text with each of some tokenizers, without the tokens that mark its beginning and end.
 * @param files Paths of tokenizer.json files.
 * @throws UserError when a file cannot be read, is too large, or is no tokenizer; when the text is empty.
 */
export async function measureText(files: readonly string[], text: string): Promise<TextMeasure[]> {
  const read = await readWhole(text, MAX_TEXT_BYTES, 'measure a part of it');
  const characters = [...read].length;
  if (characters === 0) throw refused(text, 'is empty', 'name a text with --text');
  const measures: TextMeasure[] = [];
  for (const file of files) {
    const tokenizer = await readTokenizer(file);
    measures.push({
      tokenizer: file,
      vocabulary: tokenizer.get_vocab(true).size,
      tokens: tokenizer.encode(read, { add_special_tokens: false }).ids.length,
      characters,
    });
  }
  return measures;
}

const refused = (file: string, what: string, suggestion: string) =>
  new UserError('refused-file', `${file} ${what}`, { suggestion });

async function readTokenizer(file: string): Promise<Tokenizer> {
  const text = await readWhole(file, MAX_TOKENIZER_BYTES, 'give the tokenizer.json of a model');
  try {
    return new Tokenizer(JSON.parse(text), {});
  } catch (cause) {
    // The library says by an Error of any kind what it misses in a file.
    const why = cause instanceof Error ? cause.message : String(cause);
    throw refused(file, `is no tokenizer: ${why}`, 'give the tokenizer.json of a model');
  }
}

async function readWhole(file: string, most: number, suggestion: string): Promise<string> {
  try {
    const status = await stat(file, { bigint: true });
    noteInput(file, status);
    if (status.size > most) {
      throw refused(file, `is larger than ${most / 1e6} MB, the most that is read`, suggestion);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (cause) {
    if (cause instanceof UserError || !(cause instanceof Error)) throw cause;
    if (cause instanceof TypeError) throw refused(file, 'is not UTF-8 text', 'save it as UTF-8');
    const isMissing = 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'EISDIR');
    throw new UserError(isMissing ? 'usage' : 'system', `cannot read ${file}: ${cause.message}`);
  }
}
