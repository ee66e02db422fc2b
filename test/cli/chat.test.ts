import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Questions, runChat, shownText } from '../../src/cli/dialogue.js';

function terminal() {
  const input = new PassThrough();
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  output.resume();
  return { input, output };
}

describe('a chat on a terminal', () => {
  it('answers prompts until /exit', async () => {
    const { input, output } = terminal();
    const lines: string[] = [];
    input.write('first\n\n  second \n/exit\nthird\n');
    await runChat(async (line) => void lines.push(line), input, output);
    expect(lines).toEqual(['first', 'second']);
  });

  it('stops an answer with Ctrl-C, and ends with a second Ctrl-C', async () => {
    const { input, output } = terminal();
    const stopped: boolean[] = [];
    input.write('first\n');
    await runChat(
      async (_, isStopped) => {
        input.write('\x03');
        for (let wait = 0; wait < 100 && !isStopped(); wait++) await sleep(5);
        stopped.push(isStopped());
        setImmediate(() => input.write('\x03'));
      },
      input,
      output,
    );
    expect(stopped).toEqual([true]);
  });

  it('ends with the input', async () => {
    const { input, output } = terminal();
    input.end('only\n');
    const lines: string[] = [];
    await runChat(async (line) => void lines.push(line), input, output);
    expect(lines).toEqual(['only']);
  });

  it('ends with the error of a terminal that was closed', async () => {
    const { input, output } = terminal();
    setImmediate(() => input.destroy(new Error('read EIO')));
    await expect(runChat(async () => undefined, input, output)).rejects.toThrow('read EIO');
  });

  it('fails once where each further step on that terminal fails too', async () => {
    const { input, output } = terminal();
    setImmediate(() => input.emit('error', new Error('read EIO')));
    await expect(runChat(async () => undefined, input, output)).rejects.toThrow('read EIO');
    // The mode of the terminal is restored as the lines are closed.
    input.emit('error', new Error('setRawMode EIO'));
  });
});

it('a question ends with the error of a terminal that was closed', async () => {
  const { input, output } = terminal();
  const questions = new Questions(input, output);
  setImmediate(() => input.destroy(new Error('read EIO')));
  await expect(questions.ask('Name')).rejects.toThrow('read EIO');
});

it('shownText keeps line breaks and escapes control characters', () => {
  expect(shownText('a\n\tb\x1b[31m\u202e')).toBe('a\n\tb\\x1b[31m\\u{202e}');
});
