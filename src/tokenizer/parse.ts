/** Reads a tokenizer.json and checks it before the library gets it. */
import { UserError } from '../errors.js';
import { isRecord } from '../text/values.js';
import { decomposedLength, growthOf } from './growth.js';

interface ParsedTokenizer {
  /** What the library needs in order to cut a text. */
  readonly content: object;
  /** Number of tokens, added ones included. */
  readonly vocabulary: number;
}

/** Most unused ids below the highest. Some tokenizers reserve a few hundred. */
const MAX_UNUSED_IDS = 100_000;

/** Most characters for each one of the text after normalization; several times what published tokenizers need. */
const MAX_GROWTH = 16;

/** Characters that every tokenizer may make of a short text. */
const ALWAYS_ALLOWED = 2 ** 20;

/**
 * @param file For messages.
 * @param measured The text that it will cut.
 * @throws UserError when the file is not JSON, its vocabulary is not valid, or it can lengthen the text too much.
 */
export function parseTokenizer(text: string, file: string, measured: string): ParsedTokenizer {
  const refuse = (what: string) =>
    new UserError('refused-file', `${file} is not a tokenizer: ${what}`, {
      suggestion: 'give the tokenizer.json of a model',
    });
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    throw refuse((cause as Error).message);
  }
  const model = isRecord(content) ? content.model : undefined;
  if (!isRecord(content) || !isRecord(model)) throw refuse('expected a mapping with "model"');
  const { vocab } = model;
  const { added_tokens: added = [] } = content;
  if (!isRecord(vocab) && !Array.isArray(vocab)) throw refuse('expected "vocab" in "model"');
  if (!Array.isArray(added)) throw refuse('expected a list for "added_tokens"');
  const tokens = new Map<unknown, unknown>();
  // The id of a token in a list is its position.
  if (Array.isArray(vocab)) {
    for (const [id, entry] of vocab.entries()) {
      if (!Array.isArray(entry)) throw refuse(`expected a token with its score at "vocab" ${id}`);
      tokens.set(entry[0], id);
    }
  } else {
    for (const token of Object.keys(vocab)) tokens.set(token, vocab[token]);
  }
  for (const token of added) {
    if (!isRecord(token)) throw refuse('expected mappings in "added_tokens"');
    tokens.set(token.content, token.id);
  }
  const most = tokens.size + MAX_UNUSED_IDS;
  for (const [token, id] of tokens) {
    if (typeof token !== 'string') throw refuse('expected a text for every token');
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > most) {
      throw refuse(
        `expected ids from 0 to ${most} for ${tokens.size} tokens, found ${shown(id)} for ${shown(token)}`,
      );
    }
  }
  const { normalizer, pre_tokenizer: preTokenizer } = content;
  const length = added.reduce(
    (sum, token) => sum + decomposedLength(String(token.content)),
    decomposedLength(measured),
  );
  const growth = growthOf(normalizer) * growthOf(preTokenizer);
  if (growth > MAX_GROWTH && growth * length > ALWAYS_ALLOWED) {
    throw new UserError(
      'refused-file',
      `${file}: its normalizer and pre-tokenizer can lengthen a text more than ${MAX_GROWTH} times`,
      {
        suggestion: 'remove their Replace and Prepend steps, or give the tokenizer.json of a model',
      },
    );
  }
  // Both come after the cut: special tokens, and the way back to a text.
  return {
    content: { ...content, post_processor: null, decoder: null },
    vocabulary: tokens.size,
  };
}

/** JSON of a value, cut: it can be a list of any length. */
const shown = (value: unknown) => String(JSON.stringify(value)).slice(0, 60);
