/** Chat templates: the Jinja program with which a model turns messages into its prompt. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { UserError } from '../errors.js';
import { shortened } from '../text/words.js';
import type { TemplateAnswer, TemplateTask } from './template-worker.js';

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
  if (answer === 'time') throw refused(file, `takes more than ${limit / 1000} s and was stopped`);
  if (answer === 'memory') throw refused(file, `takes more than ${MEMORY_LIMIT} MiB of memory`);
  if ('error' in answer) throw refused(file, `is not valid: ${shortened(answer.error, 300)}`);
  if ('text' in answer) return answer.text;
  throw new UserError(
    'refused-file',
    `the chat template of ${file} refuses the messages: ${shortened(answer.raised, 300)}`,
    { suggestion: 'change the messages, for example leave --system out' },
  );
}

const refused = (file: string, what: string) =>
  new UserError('refused-file', `the chat template of ${file} ${what}`, {
    suggestion: 'leave --chat out, and write the whole prompt',
  });

function answerWithin(
  limit: number,
  workerData: TemplateTask,
): Promise<TemplateAnswer | 'time' | 'memory'> {
  const worker = new Worker(workerFile(), {
    workerData,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT, maxYoungGenerationSizeMb: 32 },
  });
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
