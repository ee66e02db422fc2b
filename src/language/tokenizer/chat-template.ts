/** Chat templates: Jinja programs with which models turn messages into prompts. */
import { type ChildProcess, fork } from 'node:child_process';
import { UserError } from '../../base/errors.js';
import { endsWithProgram, watchEnd } from '../../base/files/early-end.js';
import { builtThread } from '../../base/files/file-system.js';
import { setting } from '../../base/text/setting.js';
import type { TemplateAnswer, TemplateSeries } from './template-process.js';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface ChatTemplate {
  readonly text: string;
  /** File that contains the template. */
  readonly file: string;
}

/** Milliseconds; templates take a few, and the start of the process about eighty. */
const TIME_LIMIT = 5000;

/** Limit for many chats: in a long run a busy machine can stop the process for seconds. */
const SERIES_LIMIT = 60_000;

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
  const process = new TemplateProcess(file, {
    template,
    shared: { ...tokens, tools: null, documents: null, add_generation_prompt: true },
  });
  try {
    const [answer = { error: 'no answer' }] = await process.answers([{ messages }], limit);
    if ('error' in answer) throw refused(file, `is not valid: ${answer.error}`);
    if ('text' in answer) return answer.text;
    throw new UserError(
      'refused-file',
      `the chat template of ${file} refuses the messages: ${answer.raised}`,
      { suggestion: `change the messages, for example leave ${setting('system')} out` },
    );
  } finally {
    process.end();
  }
}

/** A chat as its template sees it. */
export interface TemplateChat {
  readonly messages: readonly object[];
  readonly tools?: unknown;
}

/** A chat rendered by a template; `problem` when the template does not render it. */
export type RenderedChat = { readonly text: string } | { readonly problem: string };

/** Renders many whole chats with one template, in one process. */
export class ChatRenderer {
  readonly #process: TemplateProcess;

  /** @param tokens Special tokens that templates name: `bos_token`, `eos_token`, …. */
  constructor({ text: template, file }: ChatTemplate, tokens: Readonly<Record<string, string>>) {
    const shared = { ...tokens, tools: null, documents: null, add_generation_prompt: false };
    this.#process = new TemplateProcess(file, { template, shared });
  }

  /** @throws UserError when the template is not valid, does not end, or takes too much memory. */
  async render(chats: readonly TemplateChat[], limit = SERIES_LIMIT): Promise<RenderedChat[]> {
    await watchEnd();
    const answers = await this.#process.answers(chats, limit);
    return answers.map((answer) => {
      if ('text' in answer) return answer;
      return { problem: 'raised' in answer ? answer.raised : answer.error };
    });
  }

  close(): void {
    this.#process.end();
  }
}

const refused = (file: string, what: string) =>
  new UserError('refused-file', `the chat template of ${file} ${what}`, {
    suggestion: `leave ${setting('chat')} out, and write the whole prompt`,
  });

/** Process with one template. It does not keep the program alive, and ends with it. */
class TemplateProcess {
  readonly #file: string;
  readonly #child: ChildProcess;
  readonly #ended: () => void;

  constructor(file: string, series: TemplateSeries) {
    this.#file = file;
    // Windows starts no program without SystemRoot.
    const { SystemRoot } = process.env;
    this.#child = fork(builtThread('dist/language/tokenizer/template-process.js'), ['render'], {
      env: SystemRoot === undefined ? {} : { SystemRoot },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#ended = endsWithProgram(this.#child);
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.send(series, () => {});
  }

  end(): void {
    this.#child.kill('SIGKILL');
    this.#ended();
  }

  /**
   * Answers for chats, in their order.
   * @throws UserError when the process ends before, or takes more than `limit` milliseconds.
   */
  answers(chats: readonly TemplateChat[], limit: number): Promise<readonly TemplateAnswer[]> {
    const child = this.#child;
    return new Promise<readonly TemplateAnswer[]>((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        child.off('message', onMessage).off('error', onError).off('exit', onExit);
        act();
      };
      const onMessage = (answers: readonly TemplateAnswer[]) => settle(() => resolve(answers));
      const onError = (error: Error) => settle(() => reject(error));
      const onExit = () =>
        settle(() => reject(refused(this.#file, 'takes too much memory and was stopped')));
      const timer = setTimeout(() => {
        this.end();
        const seconds = limit / 1000;
        settle(() => reject(refused(this.#file, `takes more than ${seconds} s and was stopped`)));
      }, limit);
      child.on('message', onMessage).on('error', onError).on('exit', onExit);
      if (child.exitCode !== null || child.signalCode !== null) onExit();
      // An error of the channel is followed by the end of the process.
      else
        child.send(
          chats.map((chat) => JSON.stringify(chat)),
          () => {},
        );
    });
  }
}
