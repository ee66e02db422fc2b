/** Prompts as token ids: texts, chats, lists of ids, and files of prompts. */
import { UserError } from '../errors.js';
import { readText } from '../files/read-file.js';
import { isRecord } from '../text/words.js';
import type { ChatMessage } from '../tokenizer/chat-template.js';
import { renderChat } from '../tokenizer/chat-template.js';
import type { ModelText } from '../tokenizer/model-text.js';
import { requireTokenizer } from '../tokenizer/model-text.js';

export interface PromptReader {
  /** Folders of the model, for messages. */
  readonly folders: readonly string[];
  readonly text: ModelText;
  readonly isChat: boolean;
  readonly system: string | undefined;
}

/**
 * Token ids of a text that the model continues, or of a user's message in a chat.
 * @param earlier Earlier messages of the chat.
 * @throws UserError without a tokenizer or a chat template, or when the prompt has no tokens.
 */
export async function promptIds(
  { folders, text, isChat, system }: PromptReader,
  prompt: string,
  earlier: readonly ChatMessage[] = [],
): Promise<number[]> {
  const tokenizer = requireTokenizer(text, folders);
  if (!isChat) return nonEmpty(tokenizer.encode(prompt, { special: true }));
  if (text.template === undefined) {
    throw new UserError('usage', '--chat: expected a chat template, found none', {
      suggestion:
        'add chat_template.jinja to the folder of the model, or leave --chat out to continue a text',
    });
  }
  const messages: ChatMessage[] = [
    ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
    ...earlier,
    { role: 'user', content: prompt },
  ];
  const rendered = await renderChat(text.template, messages, text.specialTokens);
  // The template writes the special tokens.
  return nonEmpty(tokenizer.encode(rendered, { special: false }));
}

function nonEmpty(ids: number[]): number[] {
  if (ids.length > 0) return ids;
  throw new UserError('usage', 'expected a prompt with at least one token, found none', {
    suggestion: 'write a prompt that is not empty',
  });
}

/** More than any batch here needs. */
const MAX_BATCH_BYTES = 16_000_000;

/** A text, or token ids. */
export type BatchPrompt = string | readonly number[];

/**
 * Prompts of a file: one for each line, or JSON Lines with "prompt" or "ids".
 * @throws UserError when it cannot be read, or a line is not valid.
 */
export async function readPrompts(file: string, vocabulary: number): Promise<BatchPrompt[]> {
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
    isJson ? promptOf(line, `${file}, line ${number}`, vocabulary) : line,
  );
}

function promptOf(line: string, place: string, vocabulary: number): BatchPrompt {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = undefined;
  }
  if (isRecord(value) && typeof value.prompt === 'string') return value.prompt;
  const ids: unknown = isRecord(value) ? value.ids : undefined;
  if (!Array.isArray(ids) || ids.length === 0) {
    throw new UserError(
      'refused-file',
      `${place}: expected {"prompt": "…"} or {"ids": [1, 2, 3]}`,
      {
        suggestion: 'write one JSON object with a "prompt" or "ids" on each line',
      },
    );
  }
  const isId = (id: unknown) => Number.isInteger(id) && Number(id) >= 0 && Number(id) < vocabulary;
  const wrong = ids.findIndex((id) => !isId(id));
  if (wrong < 0) return ids;
  const found = String(JSON.stringify(ids[wrong])).slice(0, 60);
  throw new UserError(
    'refused-file',
    `${place}: expected ids from 0 to ${vocabulary - 1}, found ${found}`,
    { suggestion: 'write ids of the vocabulary of the model' },
  );
}

/**
 * Token ids of a command line: `1,2,3`; undefined for anything else, which is the name of a file.
 * @throws UserError for an id that the vocabulary does not have.
 */
export function listedIds(text: string, vocabulary: number): number[] | undefined {
  if (!/^[\d_]+(?:\s*[,\s]\s*[\d_]+)*,?$/.test(text.trim())) return undefined;
  const ids = text
    .split(/[,\s]+/)
    .filter(Boolean)
    .map((each) => Number(each.replaceAll('_', '')));
  const wrong = ids.find((id) => !(id < vocabulary));
  if (wrong === undefined) return ids;
  throw new UserError('usage', `--ids: expected ids from 0 to ${vocabulary - 1}, found ${wrong}`, {
    suggestion: 'write ids of the vocabulary of the model',
  });
}
