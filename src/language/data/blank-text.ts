/** Samples without content: no text, only white space, or only answers of white space. */
import { chatsOf } from './record-texts.js';
import type { DataMessage, DataRecord } from './records.js';

/**
 * `empty` for no text, `white-space` for no visible text, `answers` for chats in which all answers are one of these.
 */
export type Blank = 'empty' | 'white-space' | 'answers';

/** Characters that `str.strip` of Python removes, and invisible ones such as U+200B. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are white space in Python.
const INVISIBLE = /^[\s\u001c-\u001f\u0085\p{Default_Ignorable_Code_Point}]*$/u;

const isInvisible = (text: string): boolean => INVISIBLE.test(text);

/** Texts of a message that a model learns or reads, including calls of tools. */
const messageText = ({
  content,
  reasoning_content: reasoning = '',
  tool_calls: calls,
}: DataMessage) => `${content}${reasoning}${hasCalls(calls) ? JSON.stringify(calls) : ''}`;

const hasCalls = (calls: unknown): boolean =>
  Array.isArray(calls) ? calls.length > 0 : Boolean(calls);

/** Kind of blank sample; undefined for a sample with content, and for token ids. */
export function blankOf(record: DataRecord): Blank | undefined {
  if (record.kind === 'ids') return undefined;
  const chats = chatsOf(record);
  const texts =
    record.kind === 'text'
      ? [record.text]
      : chats.flatMap(({ messages }) => messages.map((message) => messageText(message)));
  if (texts.every(isInvisible)) return texts.every((text) => text === '') ? 'empty' : 'white-space';
  const hasBlankAnswers = chats.some(({ messages }) => {
    const answers = messages.filter(({ role }) => role === 'assistant');
    return answers.length > 0 && answers.every((message) => isInvisible(messageText(message)));
  });
  return hasBlankAnswers ? 'answers' : undefined;
}
