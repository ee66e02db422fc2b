/** Writes the answers of a model: to stdout token by token, or one after the other in a conversation. */
import { ERROR_CODES, usageError } from '../base/errors.js';
import type { ProgressDisplay } from '../base/progress-display.js';
import type { Generation } from '../language/generation/open-generation.js';
import type { ReportedAnswer } from '../language/generation/session.js';
import type { ChatMessage } from '../language/tokenizer/chat-template.js';
import { Interruption, writeStdout } from './output.js';

/**
 * Answers all prompts. After the first token, Ctrl-C ends the answer; the answers so far are returned, and the exit
 * code shows the interruption.
 * @param isStreamed Whether the text is written to stdout as it is generated. If not, progress is shown.
 */
export async function answerPrompts(
  { session, prompts }: Generation,
  display: ProgressDisplay,
  isStreamed: boolean,
): Promise<ReportedAnswer[]> {
  const shown =
    process.stdout.isTTY === true
      ? (await import('./dialogue.js')).shownText
      : (text: string) => text;
  const answers: ReportedAnswer[] = [];
  let interruption: Interruption | undefined;
  const progress = display.steps();
  try {
    for (const [index, ids] of prompts.entries()) {
      let [last, tokens] = ['', 0];
      const answer = await session.answer(ids, {
        watch: async (part) => {
          if (!isStreamed || part === '') return;
          last = part;
          await writeStdout(shown(part));
        },
        isStopped: () => {
          interruption ??= new Interruption();
          if (!isStreamed) {
            progress.doing(`answer ${index + 1} of ${prompts.length}, token ${++tokens}`);
          }
          return interruption.isRequested;
        },
      });
      answers.push(answer);
      if (isStreamed && !last.endsWith('\n')) await writeStdout('\n');
      if (interruption?.isRequested) break;
    }
  } finally {
    interruption?.end();
    progress.end();
  }
  if (interruption?.isRequested) process.exitCode = ERROR_CODES.interrupted.exitCode;
  return answers;
}

/**
 * Asks for prompts on the terminal and answers them; a chat keeps its messages.
 * @param say Prints a line on stderr.
 * @param figures Text about an answer.
 */
export async function talk(
  { session, reader, head: { context } }: Generation,
  say: (text: string) => void,
  figures: (answer: ReportedAnswer) => string,
): Promise<void> {
  const { runChat, shownText } = await import('./dialogue.js');
  const { promptIds } = await import('../language/generation/prompts.js');
  const messages: ChatMessage[] = [];
  say(
    `${reader.isChat ? 'Chat' : 'Each line is continued'}. Ctrl-C ends an answer, /exit ends the program.`,
  );
  await runChat(async (line, isStopped) => {
    const ids = await promptIds(reader, line, messages);
    if (ids.length >= context) {
      throw usageError(
        `the conversation has ${ids.length} tokens, and the context ${context}`,
        'begin a new conversation, or write a larger --context',
      );
    }
    const answer = await session.answer(ids, {
      watch: (part) => writeStdout(shownText(part)),
      isStopped,
    });
    await writeStdout('\n');
    say(figures(answer));
    if (!reader.isChat) return;
    messages.push(
      { role: 'user', content: line },
      { role: 'assistant', content: answer.text ?? '' },
    );
  });
}
