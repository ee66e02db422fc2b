/** Samples without content: nothing at all, white space only, or answers of white space only. */
import { chatsOf } from './record-texts.js';
import type { DataMessage, DataRecord } from './records.js';

/** `empty` for no text, `white-space` for nothing visible in it, `answers` for chats in which that is true of all answers. */
export type Blank = 'empty' | 'white-space' | 'answers';

/** Characters that `str.strip` of Python removes, and those that show nothing, such as U+200B. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are white space in Python.
const INVISIBLE = /^[\s\u001c-\u001f\u0085\p{Default_Ignorable_Code_Point}]*$/u;

const isInvisible = (text: string): boolean => INVISIBLE.test(text);

/** Texts of a message that a model learns or reads. A call of a tool is one. */
const messageText = ({
  content,
  reasoning_content: reasoning = '',
  tool_calls: calls,
}: DataMessage) => `${content}${reasoning}${hasCalls(calls) ? JSON.stringify(calls) : ''}`;

const hasCalls = (calls: unknown): boolean =>
  Array.isArray(calls) ? calls.length > 0 : Boolean(calls);

/** How a sample is blank; undefined for a sample with content, and for token ids. */
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
