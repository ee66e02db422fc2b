/** Counts the tokens of a text with a Hugging Face tokenizer.json. */
import { UserError } from '../errors.js';
import { readText } from '../files/read-file.js';
import { TextTokenizer } from './tokenizer.js';

export interface TextMeasure {
  readonly tokenizer: string;
  /** Size of the vocabulary, added tokens included. */
  readonly vocabulary: number;
  readonly tokens: number;
  /** Unicode code points. */
  readonly characters: number;
  /** In UTF-8. */
  readonly bytes: number;
}

/** The library tokenizes about 1 MB per second; a part of a longer text gives the same ratio. */
const MAX_TEXT_BYTES = 4_000_000;

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
  const bytes = Buffer.byteLength(read);
  const measures: TextMeasure[] = [];
  for (const file of files) {
    const tokenizer = await TextTokenizer.open(file, { isPlain: true, limit });
    const tokens = tokenizer.encode(read, { special: false }).length;
    const { vocabulary } = tokenizer;
    measures.push({ tokenizer: file, vocabulary, tokens, characters, bytes });
  }
  return measures;
}

function codePointsOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
