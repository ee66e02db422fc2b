/** Prompts on a terminal, one after the other. */
import { createInterface } from 'node:readline';
import { printable } from '../text/escape.js';

/**
 * Reads lines until /exit, Ctrl-D, or Ctrl-C without an answer in progress. Ctrl-C ends the answer first.
 * @param answer Called for each line that is not empty.
 */
export async function runChat(
  answer: (line: string, isStopped: () => boolean) => Promise<void>,
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<void> {
  const lines = createInterface({ input, output, prompt: '> ' });
  let isAnswering = false;
  let isStopped = false;
  lines.on('SIGINT', () => {
    if (isAnswering && !isStopped) isStopped = true;
    else lines.close();
  });
  lines.prompt();
  try {
    for await (const line of lines) {
      const text = line.trim();
      if (text === '/exit' || text === '/quit') break;
      if (text !== '') {
        isAnswering = true;
        isStopped = false;
        await answer(text, () => isStopped);
        isAnswering = false;
      }
      lines.prompt();
    }
  } finally {
    lines.close();
    output.write('\n');
  }
}

/** Text of a model for a terminal: line breaks and tabs stay, other control characters are escaped. */
export const shownText = (text: string): string =>
  text.replace(/[^\n\t]+/g, (part) => printable(part));
