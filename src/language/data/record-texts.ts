/** Records of lines with the texts to tokenize: chats are rendered by the template of the tokenizer. */
import { ChatRenderer } from '../tokenizer/chat-template.js';
import type { ModelText } from '../tokenizer/model-text.js';
import type { Line } from './lines.js';
import { RECIPES, type RecipeName } from './recipes.js';
import {
  type DataChat,
  type DataRecord,
  type InvalidLine,
  isInvalid,
  type LineKind,
  readRecord,
} from './records.js';

/** A record of a line, or why it has none; undefined for a blank line. */
interface ReadRecord {
  readonly line: Line;
  readonly record: DataRecord | InvalidLine | undefined;
}

/** A record of a line and its texts. */
export interface RecordTexts extends ReadRecord {
  /** Texts to tokenize: one, or those of a pair. */
  readonly texts: readonly string[];
}

const EMPTY_THINKING = '<think>\n\n</think>\n\n';

/** Reads the records of lines, and renders their chats in a thread. */
export class RecordReader {
  readonly #text: ModelText;
  readonly #key: string | undefined;
  readonly #removesEmptyThinking: boolean;
  #renderer: ChatRenderer | undefined;

  /** @param key Key of the text. */
  constructor(text: ModelText, recipe: RecipeName, key: string | undefined) {
    this.#text = text;
    this.#key = key;
    this.#removesEmptyThinking = RECIPES[recipe].removesEmptyThinking;
  }

  close(): void {
    this.#renderer?.close();
  }

  /** Records of batches of lines. */
  async *of(
    batches: AsyncIterable<readonly Line[]>,
    kind: LineKind,
  ): AsyncGenerator<readonly RecordTexts[]> {
    for await (const lines of batches) {
      const read: ReadRecord[] = [];
      for (const line of lines) {
        const found = readRecord(line, kind, this.#key);
        if (isRead(found)) read.push({ line, record: found });
        else for (const record of found) read.push({ line, record });
      }
      yield await this.#withTexts(read);
    }
  }

  async #withTexts(read: readonly ReadRecord[]): Promise<readonly RecordTexts[]> {
    const chats: DataChat[] = [];
    for (const { record } of read) {
      if (record === undefined || isInvalid(record)) continue;
      for (const chat of chatsOf(record)) chats.push(chat);
    }
    const rendered = await this.#rendered(chats);
    let next = 0;
    return read.map(({ line, record }) => {
      if (record === undefined || isInvalid(record)) return { line, record, texts: [] };
      if (record.kind === 'text') return { line, record, texts: [record.text] };
      if (record.kind === 'ids') return { line, record, texts: [] };
      const own = rendered.slice(next, next + chatsOf(record).length);
      next += own.length;
      const failed = own.find((each) => 'problem' in each);
      if (failed && 'problem' in failed) {
        return { line, record: { fault: 'not-rendered', message: failed.problem }, texts: [] };
      }
      return { line, record, texts: own.map((each) => ('text' in each ? each.text : '')) };
    });
  }

  async #rendered(chats: readonly DataChat[]) {
    if (chats.length === 0) return [];
    const { template, specialTokens, tokenizer } = this.#text;
    // Without a tokenizer, only the texts of the messages are counted.
    if (template === undefined || tokenizer === undefined) {
      return chats.map(({ messages }) => ({
        text: messages.map(({ content }) => content).join('\n'),
      }));
    }
    this.#renderer ??= new ChatRenderer(template, specialTokens);
    const rendered = await this.#renderer.render(chats);
    if (!this.#removesEmptyThinking) return rendered;
    return rendered.map((each) =>
      'text' in each ? { text: each.text.replaceAll(EMPTY_THINKING, '') } : each,
    );
  }
}

const isRead = (found: ReturnType<typeof readRecord>): found is ReadRecord['record'] =>
  !Array.isArray(found);

const NO_CHATS: readonly DataChat[] = [];

export function chatsOf(record: DataRecord): readonly DataChat[] {
  if (record.kind === 'chat') return [record.chat];
  return record.kind === 'preference' ? [record.chosen, record.rejected] : NO_CHATS;
}
