/** Reads a tokenizer.json and validates it before the library loads it. */
import { UserError } from '../../base/errors.js';
import { parseJson } from '../../base/text/json.js';
import { asText, isRecord, sumOf } from '../../base/values.js';
import { decomposedLength, excessOfParts, growthOf, MAX_GROWTH, repetitionsOf } from './parts.js';
import { isLargeTrie, MOST_NODES, pieceCheck, USUAL_LENGTHS } from './token-trie.js';

interface ParsedTokenizer {
  readonly content: object;
  /** Number of tokens, added ones included. */
  readonly vocabulary: number;
  /** @throws UserError if the normalizer and the pre-tokenizer can lengthen this text too much. */
  readonly checkText: (text: string) => void;
}

/**
 * Maximum tokens. LaBSE has one of the largest vocabularies in use: 501,153 tokens (Feng et al., 2020, arXiv
 * 2007.01852).
 */
const MAX_TOKENS = { small: 600_000, perByte: 1 / 40 };

/** Maximum unused ids below the highest id. Some tokenizers reserve a few hundred. */
const MAX_UNUSED_IDS = 100_000;

/** Characters that any tokenizer may produce for a short text. */
const ALWAYS_ALLOWED = 2 ** 20;

/**
 * @param file File name for messages.
 * @param isPlain Whether its post-processor is left out.
 * @throws UserError if the file is not JSON, its vocabulary is not valid, or its decoder can lengthen a text too much.
 */
export function parseTokenizer(text: string, file: string, isPlain = false): ParsedTokenizer {
  const refuse = (what: string) =>
    new UserError('refused-file', `${file} is not a tokenizer: ${what}`, {
      suggestion: 'give the tokenizer.json of a model',
    });
  const mostTokens = Math.max(MAX_TOKENS.small, Math.floor(MAX_TOKENS.perByte * text.length));
  // Each key has a colon, each token with a score or merge of two tokens a bracket, and each item of a list a comma.
  // A token of a converted SentencePiece model can have several merges.
  if (
    isMoreOften(':', text, mostTokens) ||
    isMoreOften('[', text, mostTokens) ||
    isMoreOften(',', text, 2 * mostTokens)
  ) {
    throw refuse(`expected at most ${mostTokens} tokens and the same number of merges`);
  }
  let content: unknown;
  try {
    content = parseJson(text);
  } catch (cause) {
    throw refuse((cause as Error).message);
  }
  const model = isRecord(content) ? content.model : undefined;
  if (!isRecord(content) || !isRecord(model)) throw refuse('expected a mapping with "model"');
  const { vocab } = model;
  const { added_tokens: added = [] } = content;
  if (!isRecord(vocab) && !Array.isArray(vocab)) throw refuse('expected "vocab" in "model"');
  if (!Array.isArray(added)) throw refuse('expected a list for "added_tokens"');
  // The id of a token in a list is its position. Checking each token would be the slowest step.
  const ids: readonly unknown[] = Array.isArray(vocab) ? vocab : objectValues(vocab);
  const listed = Array.isArray(vocab) ? tokensOf(vocab, refuse) : undefined;
  const isKnown = (token: string) => (listed ? listed.has(token) : Object.hasOwn(vocab, token));
  const more = new Set<string>();
  for (const token of added) {
    if (!isRecord(token)) throw refuse('expected mappings in "added_tokens"');
    if (typeof token.content !== 'string') throw refuse('expected a text for every token');
    if (!isKnown(token.content)) more.add(token.content);
  }
  const vocabulary = (listed?.size ?? ids.length) + more.size;
  const most = vocabulary + MAX_UNUSED_IDS;
  const check = (id: unknown, token: () => unknown) => {
    if (Number.isInteger(id) && (id as number) >= 0 && (id as number) <= most) return;
    throw refuse(
      `expected ids from 0 to ${most} for ${vocabulary} tokens, found ${excerpt(id)} for ${excerpt(token())}`,
    );
  };
  if (!listed) for (const [at, id] of ids.entries()) check(id, () => Object.keys(vocab)[at]);
  for (const token of added) check(token.id, () => token.content);
  const {
    normalizer,
    pre_tokenizer: preTokenizer,
    post_processor: ownPostProcessor,
    decoder,
  } = content;
  const postProcessor = isPlain ? null : ownPostProcessor;
  const excess = excessOfParts([normalizer, preTokenizer, postProcessor, decoder]);
  if (excess !== undefined) throw refuse(excess);
  const addedLength = sumOf(added, (token) => decomposedLength(asText(token.content)));
  const growth = growthOf(normalizer) * growthOf(preTokenizer);
  if (growthOf(decoder) > MAX_GROWTH) throw lengthens(file, 'decoder', 'Replace');
  if (repetitionsOf(postProcessor) > MAX_GROWTH) {
    throw lengthens(file, 'post-processor', 'TemplateProcessing');
  }
  const mostNodes = Math.max(MOST_NODES.small, Math.floor(MOST_NODES.perByte * text.length));
  // The normalizer runs on added tokens too.
  if (addedLength * Math.min(growthOf(normalizer), MAX_GROWTH) > mostNodes) {
    throw refuse(`its added tokens have more than ${mostNodes} characters`);
  }
  if (listed && isLargeTrie([...listed], mostNodes)) {
    throw refuse(`its tokens differ in more than ${mostNodes} characters`);
  }
  const hasFewPieces = listed ? pieceCheck([...listed]) : () => true;
  return {
    content,
    vocabulary,
    checkText(measured) {
      if (!hasFewPieces(measured.length)) {
        throw refuse(
          `its tokens have more than ${USUAL_LENGTHS} lengths, too many for a long text`,
        );
      }
      if (growth <= MAX_GROWTH) return;
      const length = addedLength + decomposedLength(measured);
      if (growth * length > ALWAYS_ALLOWED) {
        throw lengthens(file, 'normalizer and pre-tokenizer', 'Replace and Prepend');
      }
    },
  };
}

const lengthens = (file: string, parts: string, steps: string) =>
  new UserError(
    'refused-file',
    `${file}: its ${parts} can lengthen a text more than ${MAX_GROWTH} times`,
    { suggestion: `remove their ${steps} steps, or give the tokenizer.json of a model` },
  );

/** Whether a text contains a character more than `most` times. */
function isMoreOften(character: string, text: string, most: number): boolean {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) {
    if (++count > most) return true;
  }
  return false;
}

/** Tokens in a list of pairs [token, score]. */
function tokensOf(vocab: readonly unknown[], refuse: (what: string) => UserError): Set<string> {
  const tokens = new Set<string>();
  for (const [id, entry] of vocab.entries()) {
    if (!Array.isArray(entry)) throw refuse(`expected a token with its score at "vocab" ${id}`);
    if (typeof entry[0] !== 'string') throw refuse('expected a text for every token');
    tokens.add(entry[0]);
  }
  return tokens;
}

/** JSON of a value, truncated: it may be a list of any length. */
const excerpt = (value: unknown) => String(JSON.stringify(value)).slice(0, 60);

/** Values of a parsed object in the order of its keys; `Object.values` takes three times as long for half a million. */
function objectValues(parsed: Readonly<Record<string, unknown>>): unknown[] {
  const values: unknown[] = [];
  for (const key in parsed) values.push(parsed[key]);
  return values;
}
