/** Answers of the command line, from a process of its own: it can be stopped, and a hostile file ends only itself. */
import { spawn } from 'node:child_process';
import { READ_ROOT } from '../../base/files/confined-reads.js';
import { endsWithProgram } from '../../base/files/early-end.js';
import { packagePath } from '../../base/files/file-system.js';

/** Milliseconds of an answer. */
const TIME_LIMIT = 120_000;

/** Maximum bytes of an answer: a client reads it as a whole. */
const MOST_BYTES = 1_000_000;

export interface Answer {
  readonly text: string;
  /** Whether the command failed; a failed check also has an answer. */
  readonly isError: boolean;
}

/**
 * Runs a command line of this package.
 * @param root The folder where it runs, and out of which it reads no file.
 * @param signal Ends the process when the client no longer waits.
 */
export function answerOf(
  words: readonly string[],
  { root, signal }: { readonly root: string; readonly signal: AbortSignal },
): Promise<Answer> {
  const program = packagePath('bin/run.js');
  if (program === undefined) throw new Error('bin/run.js is missing');
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...words], {
      cwd: root,
      env: { ...process.env, NO_COLOR: '1', [READ_ROOT]: root },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = endsWithProgram(child);
    const stop = () => child.kill('SIGKILL');
    const timer = setTimeout(stop, TIME_LIMIT);
    signal.addEventListener('abort', stop, { once: true });
    let [out, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      if (out.length > MOST_BYTES) stop();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (errors.length < MOST_BYTES) errors += text;
    });
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      ended();
    };
    child.once('error', (error) => {
      settle();
      reject(error);
    });
    child.once('close', (code) => {
      settle();
      if (code === null) {
        const limits = `${TIME_LIMIT / 1000} s and ${MOST_BYTES / 1e6} MB`;
        resolve({ text: `the answer takes more than ${limits}: ask for less`, isError: true });
        return;
      }
      // A failed check has its answer on stdout and its reason on stderr.
      const text = code === 0 ? out + warningsOf(errors) : out + errors;
      resolve({ text, isError: code !== 0 });
    });
  });
}

/** Warnings below an answer. */
const warningsOf = (errors: string): string => (errors.trim() === '' ? '' : `\n${errors}`);
