/** Prompts as token ids: texts, chats, lists of ids, and files of prompts. */

import { UserError, usageError } from '../../base/errors.js';
import { readText } from '../../base/files/read-file.js';
import { parseJson } from '../../base/text/json.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { isRecord } from '../../base/values.js';
import { firstInvalidId, idLimitsOf, listedIds, parseIds } from '../../engine/token-ids.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { ChatMessage } from '../tokenizer/chat-template.js';
import { renderChat } from '../tokenizer/chat-template.js';
import type { ModelText } from '../tokenizer/model-text.js';
import { requireTokenizer } from '../tokenizer/model-text.js';
import type { TextTokenizer } from '../tokenizer/tokenizer.js';

export interface PromptReader {
  /** Folders of the model, for messages. */
  readonly folders: readonly string[];
  readonly text: ModelText;
  readonly isChat: boolean;
  readonly system: string | undefined;
  /** Tokens that the model has positions for; no prompt can have more. */
  readonly positions: number;
}

/** Source of the prompts. */
export type PromptSource =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'stdin'; readonly read: () => Promise<string> }
  | { readonly kind: 'ids'; readonly ids: string }
  | { readonly kind: 'batch'; readonly file: string }
  | { readonly kind: 'talk' };

/** Maximum bytes of a file of prompts: larger than any batch needs. */
const MAX_BATCH_BYTES = 16_000_000;

/** Limit of a file of ids. */
const IDS_READ = { most: MAX_BATCH_BYTES, suggestion: 'give fewer ids' };

/**
 * Token ids of each prompt; none for a conversation.
 * @throws UserError for a prompt that cannot be read, or is not valid.
 */
export async function promptsFrom(
  source: PromptSource,
  reader: PromptReader,
  model: LanguageModel,
): Promise<readonly (readonly number[])[]> {
  const limits = idLimitsOf(model);
  switch (source.kind) {
    case 'talk':
      requireTokenizer(reader.text, reader.folders);
      return [];
    case 'text':
      return [await promptIds(reader, source.text)];
    case 'stdin':
      return [await promptIds(reader, await source.read())];
    case 'batch':
      return batchIds(reader, source.file, limits.vocabulary);
    case 'ids': {
      const listed = listedIds(source.ids, limits.vocabulary);
      if (listed) return [listed];
      const text = await readText(source.ids, IDS_READ);
      const { batch, tokens, data } = parseIds(text, source.ids, limits);
      return Array.from({ length: batch }, (_, row) =>
        Array.from(data.subarray(row * tokens, (row + 1) * tokens)),
      );
    }
  }
}

/**
 * Token ids of a text that the model continues, or of a user's message in a chat.
 * @param earlier Earlier messages of the chat.
 * @throws UserError without a tokenizer or a chat template, or when the prompt has no tokens.
 */
export async function promptIds(
  reader: PromptReader,
  prompt: string,
  earlier: readonly ChatMessage[] = [],
): Promise<number[]> {
  const { folders, text, isChat } = reader;
  if (isChat) return chatIds(reader, [...earlier, { role: 'user', content: prompt }]);
  const tokenizer = requireTokenizer(text, folders);
  refuseFarTooLong(tokenizer, prompt, reader.positions);
  return nonEmpty(tokenizer.encode(prompt, { special: true }));
}

/** Characters of a token, more than an average one has in any language: texts up to this are not looked at first. */
const LONG_TOKEN = 16;

/**
 * Refuses a text of many megabytes, as a template can write it, before all of it is tokenized: its beginning alone has
 * twice the tokens that the model has positions for, so that nothing behind it can make the text short enough.
 */
function refuseFarTooLong(tokenizer: TextTokenizer, text: string, positions: number): void {
  const beginning = LONG_TOKEN * positions;
  if (text.length <= 2 * beginning) return;
  const tokens = tokenizer.encode(text.slice(0, beginning), { special: false }).length;
  if (tokens <= 2 * positions) return;
  throw usageError(
    `expected a prompt below ${formatInteger(positions)} tokens (the positions of the model), found more than ${formatInteger(tokens)}`,
    'give a shorter prompt',
  );
}

/**
 * Token ids of a chat, up to the beginning of the answer. Messages without a system prompt get the one of the reader.
 * @throws UserError without a tokenizer or a chat template.
 */
async function chatIds(
  { folders, text, system, positions }: PromptReader,
  messages: readonly ChatMessage[],
): Promise<number[]> {
  const tokenizer = requireTokenizer(text, folders);
  if (text.template === undefined) {
    throw usageError(
      'expected a chat template, found none',
      `add chat_template.jinja to the folder of the model, or leave ${setting('chat')} out to continue a text`,
    );
  }
  const all: readonly ChatMessage[] =
    system === undefined || messages[0]?.role === 'system'
      ? messages
      : [{ role: 'system', content: system }, ...messages];
  const rendered = await renderChat(text.template, all, text.specialTokens);
  refuseFarTooLong(tokenizer, rendered, positions);
  // The template writes the special tokens.
  return nonEmpty(tokenizer.encode(rendered, { special: false }));
}

/**
 * Token ids of each prompt of a file.
 * @param vocabulary Upper bound of the ids, exclusive.
 * @throws UserError when the file cannot be read, or a line is not valid.
 */
async function batchIds(
  reader: PromptReader,
  file: string,
  vocabulary: number,
): Promise<(readonly number[])[]> {
  const all: (readonly number[])[] = [];
  for (const prompt of await readPrompts(file, vocabulary)) {
    if (prompt.kind === 'ids') all.push(prompt.ids);
    else if (prompt.kind === 'text') all.push(await promptIds(reader, prompt.text));
    else all.push(await chatIds(reader, prompt.messages));
  }
  return all;
}

function nonEmpty(ids: number[]): number[] {
  if (ids.length > 0) return ids;
  throw usageError(
    'expected a prompt with at least one token, found none',
    'write a prompt that is not empty',
  );
}

/** A text, token ids, or the messages of a chat. */
type BatchPrompt =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'ids'; readonly ids: readonly number[] }
  | { readonly kind: 'messages'; readonly messages: readonly ChatMessage[] };

/**
 * Prompts of a file: one for each line, or JSON Lines with "prompt", "messages" or "ids".
 * @throws UserError when it cannot be read, or a line is not valid.
 */
async function readPrompts(file: string, vocabulary: number): Promise<BatchPrompt[]> {
  const text = await readText(file, { most: MAX_BATCH_BYTES, suggestion: 'split the file' });
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== '');
  if (lines.length === 0) {
    throw new UserError('refused-file', `${file}: expected a prompt on each line, found none`, {
      suggestion: 'write one prompt a line, or {"prompt": "…"} a line',
    });
  }
  const isJson = lines[0]?.line.trimStart().startsWith('{');
  return lines.map(({ line, number }) =>
    isJson ? promptOf(line, `${file}, line ${number}`, vocabulary) : { kind: 'text', text: line },
  );
}

function promptOf(line: string, place: string, vocabulary: number): BatchPrompt {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    value = undefined;
  }
  const entry = isRecord(value) ? value : {};
  const kinds = ['prompt', 'messages', 'ids'].filter((key) => entry[key] !== undefined);
  if (kinds.length === 1) {
    const { prompt, messages, ids } = entry;
    if (typeof prompt === 'string') return { kind: 'text', text: prompt };
    if (isChat(messages)) return { kind: 'messages', messages };
    if (Array.isArray(ids) && ids.length > 0)
      return { kind: 'ids', ids: validIds(ids, place, vocabulary) };
  }
  throw new UserError(
    'refused-file',
    `${place}: expected {"prompt": "…"}, {"messages": [{"role": "user", "content": "…"}]} or {"ids": [1, 2, 3]}`,
    { suggestion: 'write one JSON object with one of these keys on each line' },
  );
}

const ROLES: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant']);

const isChat = (value: unknown): value is ChatMessage[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((each) => isRecord(each) && ROLES.has(each.role) && typeof each.content === 'string');

function validIds(ids: readonly unknown[], place: string, vocabulary: number): readonly number[] {
  const invalid = firstInvalidId(ids, vocabulary);
  if (invalid === undefined) return ids as readonly number[];
  throw new UserError(
    'refused-file',
    `${place}: expected ids from 0 to ${vocabulary - 1}, found ${invalid.found}`,
    { suggestion: 'write ids of the vocabulary of the model' },
  );
}
