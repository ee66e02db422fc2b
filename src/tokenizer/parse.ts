/** The vocabulary of a tokenizer.json, checked before a library makes anything of it. */
import { UserError } from '../errors.js';

interface ParsedTokenizer {
  readonly content: object;
  /** How many tokens there are, those that were added included. */
  readonly vocabulary: number;
}

/** Most ids that may be left out below the highest. Some tokenizers keep a few hundred for later. */
const MAX_UNUSED_IDS = 100_000;

/**
 * @param file For messages.
 * @throws UserError when the text is not JSON, or its vocabulary is none.
 */
export function parseTokenizer(text: string, file: string): ParsedTokenizer {
  const refuse = (what: string) =>
    new UserError('refused-file', `${file} is no tokenizer: ${what}`, {
      suggestion: 'give the tokenizer.json of a model',
    });
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    throw refuse((cause as Error).message);
  }
  const model = isMapping(content) ? content.model : undefined;
  if (!isMapping(content) || !isMapping(model)) throw refuse('expected a mapping with "model"');
  const { vocab } = model;
  const { added_tokens: added = [] } = content;
  if (!isMapping(vocab) && !Array.isArray(vocab)) throw refuse('expected "vocab" in "model"');
  if (!Array.isArray(added)) throw refuse('expected a list for "added_tokens"');
  const tokens = new Map<unknown, unknown>();
  // The ids of a list are its places.
  if (Array.isArray(vocab)) {
    for (const [id, entry] of vocab.entries()) {
      if (!Array.isArray(entry)) throw refuse(`expected a token with its score at "vocab" ${id}`);
      tokens.set(entry[0], id);
    }
  } else {
    for (const token of Object.keys(vocab)) tokens.set(token, vocab[token]);
  }
  for (const token of added) {
    if (!isMapping(token)) throw refuse('expected mappings in "added_tokens"');
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
  return { content, vocabulary: tokens.size };
}

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is not a token can be a list of any length. */
const shown = (value: unknown) => String(JSON.stringify(value)).slice(0, 60);
