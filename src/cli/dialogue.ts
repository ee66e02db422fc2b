/** Dialogues on a terminal: questions with defaults, and prompts one after the other. */

import { createInterface, type Interface } from 'node:readline/promises';
import { UserError } from '../base/errors.js';
import { printable } from '../base/text/escape.js';
import { Interruption } from './output.js';

/** Whether a person can answer: in a pipe, no question is asked. */
export const isInteractive = () => process.stdin.isTTY === true && process.stdout.isTTY === true;

export interface Choice<Value> {
  readonly name: string;
  /** Description next to the name. */
  readonly text: string;
  readonly value: Value;
}

export class Questions {
  readonly #lines: Interface;
  readonly #stopped = new AbortController();
  readonly #output: NodeJS.WritableStream;
  /** Error of the input: a terminal that was closed. */
  #failure: Error | undefined;

  constructor(
    input: NodeJS.ReadableStream = process.stdin,
    output: NodeJS.WritableStream = process.stderr,
  ) {
    this.#output = output;
    this.#lines = createInterface({ input, output });
    // Ctrl-C and Ctrl-D.
    for (const event of ['SIGINT', 'close']) this.#lines.on(event, () => this.#stopped.abort());
    // The lines repeat an error of the input.
    this.#lines.on('error', (error: Error) => {
      this.#failure = error;
      this.#stopped.abort();
    });
  }

  close(): void {
    this.#lines.close();
  }

  /** Answer to a question; empty for the default. @throws UserError when the user stops. */
  async ask(question: string): Promise<string> {
    try {
      const answer = await this.#lines.question(`${question}: `, { signal: this.#stopped.signal });
      return answer.trim();
    } catch (error) {
      if (this.#failure !== undefined || !this.#stopped.signal.aborted) {
        throw this.#failure ?? error;
      }
      this.#output.write('\n');
      throw new UserError('interrupted', 'stopped; nothing was written');
    }
  }

  /** Choice by its number or name; the first for an empty answer. Asks again for any other answer. */
  async choose<Value>(question: string, choices: readonly Choice<Value>[]): Promise<Value> {
    const widest = Math.max(...choices.map(({ name }) => name.length));
    choices.forEach(({ name, text }, index) => {
      const number = String(index + 1).padStart(String(choices.length).length);
      this.#output.write(`  ${number}  ${name.padEnd(widest)}  ${printable(text)}\n`);
    });
    for (;;) {
      const answer = await this.ask(`${question} [${choices[0]?.name}]`);
      const chosen = choices.find(
        ({ name }, index) => answer === name || answer === String(index + 1),
      );
      const choice = answer === '' ? choices[0] : chosen;
      if (choice) return choice.value;
      this.#output.write(`  write a number from 1 to ${choices.length}, or a name\n`);
    }
  }

  /** Parsed answer; undefined for an empty one. Asks again for an answer that `parse` does not take. */
  async value<Value>(
    question: string,
    parse: (text: string) => Value | undefined,
    example: string,
  ): Promise<Value | undefined> {
    for (;;) {
      const answer = await this.ask(question);
      if (answer === '') return undefined;
      const value = parse(answer);
      if (value !== undefined) return value;
      this.#output.write(`  write it as ${example}\n`);
    }
  }
}

/**
 * Reads lines until /exit, Ctrl-D, or Ctrl-C without an answer in progress. Ctrl-C ends the answer first.
 * @param answer Called for each line that is not empty.
 * @throws The error of the input, where the terminal was closed.
 */
export async function runChat(
  answer: (line: string, isStopped: () => boolean) => Promise<void>,
  input: NodeJS.ReadableStream & Pick<Partial<NodeJS.ReadStream>, 'setRawMode'> = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<void> {
  const lines = createInterface({ input, output, prompt: '> ' });
  let isAnswering = false;
  let isStopped = false;
  let isClosed = false;
  let failure: Error | undefined;
  lines.once('close', () => {
    isClosed = true;
  });
  // The terminal was closed. The lines repeat its errors, and each further step on it fails as well, also that of
  // closing them.
  const fail = (error: Error) => {
    if (failure !== undefined) return;
    failure = error;
    lines.close();
  };
  input.on('error', fail);
  lines.on('error', fail);
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
        // A busy engine reads no key for seconds, so the terminal has to turn Ctrl-C into a signal.
        input.setRawMode?.(false);
        const interruption = new Interruption('asks');
        try {
          await answer(text, () => isStopped || interruption.isRequested);
        } finally {
          interruption.end();
        }
        isAnswering = false;
        input.setRawMode?.(true);
      }
      // Lines that arrived before the end of the input are still answered.
      if (!isClosed) lines.prompt();
    }
  } finally {
    lines.close();
    output.write('\n');
  }
  if (failure !== undefined) throw failure;
}

/** Text of a model for a terminal: line breaks and tabs stay, other control characters are escaped. */
export const shownText = (text: string): string =>
  text.replace(/[^\n\t]+/g, (part) => printable(part));
