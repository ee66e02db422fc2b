/** Chat templates: the Jinja program with which a model turns messages into its prompt. */
import { Worker } from 'node:worker_threads';
import { UserError } from '../errors.js';
import { builtThread } from '../files/file-system.js';
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
  const worker = startThread({
    template,
    values: { ...tokens, messages, tools: null, documents: null, add_generation_prompt: true },
  });
  const answer = await answerOf<TemplateAnswer>(worker, file, limit);
  // The thread can be in an endless loop.
  void worker.terminate();
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
  #failure: NodeJS.ErrnoException | undefined;

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
    if (this.#failure !== undefined) throw threadError(this.#file, this.#failure);
    this.#worker.postMessage(json);
    const answers = await answerOf<readonly TemplateAnswer[]>(this.#worker, this.#file, limit);
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

const threadError = (file: string, error: NodeJS.ErrnoException): Error =>
  error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? refused(file, `takes more than ${MEMORY_LIMIT} MiB of memory`)
    : error;

const refused = (file: string, what: string) =>
  new UserError('refused-file', `the chat template of ${file} ${what}`, {
    suggestion: 'leave --chat out, and write the whole prompt',
  });

/** The next message of a thread, which is stopped after `limit` milliseconds. @throws UserError when it takes too long. */
function answerOf<Answer>(worker: Worker, file: string, limit: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      clearTimeout(timer);
      worker.off('error', onError);
      worker.removeAllListeners('message');
      act();
    };
    const timer = setTimeout(() => {
      void worker.terminate();
      settle(() => reject(refused(file, `takes more than ${limit / 1000} s and was stopped`)));
    }, limit);
    const onError = (error: NodeJS.ErrnoException) =>
      settle(() => reject(threadError(file, error)));
    worker.once('error', onError);
    worker.once('message', (answer: Answer) => settle(() => resolve(answer)));
  });
}

const startThread = (workerData: TemplateTask | TemplateSeries) =>
  new Worker(builtThread('dist/tokenizer/template-worker.js'), {
    workerData,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT, maxYoungGenerationSizeMb: 32 },
  });
