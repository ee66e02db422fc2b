/** Chat templates: the Jinja program with which a model turns messages into its prompt. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { UserError } from '../errors.js';
import { shortened } from '../text/words.js';
import type { TemplateAnswer, TemplateSeries, TemplateTask } from './template-worker.js';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface ChatTemplate {
  readonly text: string;
  /** File that has it. */
  readonly file: string;
}

/** Milliseconds; templates take a few, and the start of the thread about fifty. */
const TIME_LIMIT = 5000;

/** Limit for many chats: in a long run a busy machine can stop the process for seconds. */
const SERIES_LIMIT = 60_000;

/** Memory of the thread in MiB. */
const MEMORY_LIMIT = 256;

/**
 * Prompt for messages, up to the beginning of the answer.
 * @param tokens Special tokens that templates name: `bos_token`, `eos_token`, ….
 * @throws UserError when the template is not valid, does not end, or refuses the messages.
 */
export async function renderChat(
  { text: template, file }: ChatTemplate,
  messages: readonly ChatMessage[],
  tokens: Readonly<Record<string, string>>,
  limit = TIME_LIMIT,
): Promise<string> {
  const answer = await answerWithin(limit, {
    template,
    values: { ...tokens, messages, tools: null, documents: null, add_generation_prompt: true },
  });
  if (answer === 'time') throw slow(file, limit);
  if (answer === 'memory') throw refused(file, `takes more than ${MEMORY_LIMIT} MiB of memory`);
  if ('error' in answer) throw refused(file, `is not valid: ${shortened(answer.error, 300)}`);
  if ('text' in answer) return answer.text;
  throw new UserError(
    'refused-file',
    `the chat template of ${file} refuses the messages: ${shortened(answer.raised, 300)}`,
    { suggestion: 'change the messages, for example leave --system out' },
  );
}

/** A chat as its template sees it. */
export interface TemplateChat {
  readonly messages: readonly object[];
  readonly tools?: unknown;
}

/** A chat rendered by a template; `problem` when the template does not render it. */
export type RenderedChat = { readonly text: string } | { readonly problem: string };

/** Renders many whole chats with one template, in one thread. */
export class ChatRenderer {
  readonly #file: string;
  readonly #worker: Worker;
  /** Reason for which the thread ended. */
  #failure: unknown;

  /** @param tokens Special tokens that templates name: `bos_token`, `eos_token`, …. */
  constructor({ text: template, file }: ChatTemplate, tokens: Readonly<Record<string, string>>) {
    const shared = { ...tokens, tools: null, documents: null, add_generation_prompt: false };
    this.#file = file;
    this.#worker = startThread({ template, shared });
    this.#worker.unref();
    this.#worker.on('error', (error) => {
      this.#failure = error;
    });
  }

  /** @throws UserError when the template is not valid, does not end, or takes too much memory. */
  async render(chats: readonly TemplateChat[], limit = SERIES_LIMIT): Promise<RenderedChat[]> {
    const json = chats.map((chat) => JSON.stringify(chat));
    const answers = await new Promise<readonly TemplateAnswer[]>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.close();
        finish(() => reject(slow(this.#file, limit)));
      }, limit);
      const onError = (error: NodeJS.ErrnoException) =>
        finish(() => reject(threadError(this.#file, error)));
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        this.#worker.off('error', onError);
        this.#worker.removeAllListeners('message');
        settle();
      };
      this.#worker.once('error', onError);
      this.#worker.once('message', (answer: readonly TemplateAnswer[]) =>
        finish(() => resolve(answer)),
      );
      if (this.#failure === undefined) this.#worker.postMessage(json);
      else onError(this.#failure as NodeJS.ErrnoException);
    });
    return answers.map((answer) => {
      if ('text' in answer) return answer;
      if ('raised' in answer) return { problem: shortened(answer.raised, 300) };
      return { problem: shortened(answer.error, 300) };
    });
  }

  close(): void {
    void this.#worker.terminate();
  }
}

const slow = (file: string, limit: number) =>
  refused(file, `takes more than ${limit / 1000} s and was stopped`);

const threadError = (file: string, error: NodeJS.ErrnoException): Error =>
  error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? refused(file, `takes more than ${MEMORY_LIMIT} MiB of memory`)
    : error;

const refused = (file: string, what: string) =>
  new UserError('refused-file', `the chat template of ${file} ${what}`, {
    suggestion: 'leave --chat out, and write the whole prompt',
  });

function answerWithin(
  limit: number,
  workerData: TemplateTask,
): Promise<TemplateAnswer | 'time' | 'memory'> {
  const worker = startThread(workerData);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(() => resolve('time')), limit);
    function settle(answer: () => void): void {
      clearTimeout(timer);
      // The thread can be in an endless loop.
      void worker.terminate();
      answer();
    }
    worker.once('message', (answer: TemplateAnswer) => settle(() => resolve(answer)));
    worker.once('error', (error: NodeJS.ErrnoException) =>
      settle(() => {
        if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve('memory');
        else reject(error);
      }),
    );
  });
}

const startThread = (workerData: TemplateTask | TemplateSeries) =>
  new Worker(workerFile(), {
    workerData,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT, maxYoungGenerationSizeMb: 32 },
  });

/** The built thread, from the sources as from any depth of the built files. */
function workerFile(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (let depth = 0; depth < 4; depth++) {
    const file = path.join(folder, 'dist/tokenizer/template-worker.js');
    if (fs.existsSync(file)) return file;
    folder = path.dirname(folder);
  }
  throw new Error('dist/tokenizer/template-worker.js is missing: run npm run build');
}
