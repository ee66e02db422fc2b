/** PyTorch in its own process. `PYTHON` names a Python other than `python3`. */
import { spawnSync } from 'node:child_process';
import { inPackage } from '../fixtures.js';
import { WITHOUT_PYTORCH } from './settings.js';

const PYTHON = process.env.PYTHON || 'python3';

/** A tensor by its PyTorch type, its shape and the hash of its contiguous bytes. */
export interface Described {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly sha256: string;
}

export interface Question {
  readonly file: string;
  /** Keys that lead to the dict with the tensors. */
  readonly keys: readonly string[];
}

export type Answer =
  | { readonly refused: string }
  | { readonly unlike: string }
  | { readonly tensors: Readonly<Record<string, Described>> };

const MOST_ANSWER_BYTES = 2 ** 28;

const script = inPackage('test/fuzz/agreement.py');

/** Reason why a Python cannot load files with PyTorch, and how to name another; undefined when it can. */
export function whyNoPyTorch(python = PYTHON): string | undefined {
  const { status, stderr, error } = spawnSync(python, [script], { input: '', encoding: 'utf8' });
  if (status === 0) return undefined;
  const reason = error
    ? `${python} does not start (${error.message})`
    : `${python} cannot import torch and safetensors (${stderr.trim().split('\n').at(-1)})`;
  return `${reason}; name another Python: PYTHON=/path/to/python npm run test:fuzz`;
}

/** Ends the run of `npm run test:fuzz` before its first test when there is nothing to compare with. */
export function setup(): void {
  const reason = WITHOUT_PYTORCH ? undefined : whyNoPyTorch();
  if (reason === undefined) return;
  process.stderr.write(
    `error: expected a Python with PyTorch to compare with; ${reason}\nto check only for crashes and refusals: MINIMIND_FUZZ_WITHOUT_PYTORCH=1 npm run test:fuzz\n`,
  );
  // An error thrown here would be reported as missing tests.
  process.exit(1);
}

/** Answers of PyTorch about files, in order. A file that ends the process counts as refused. */
export function askPyTorch(questions: readonly Question[]): Answer[] {
  const answers: Answer[] = [];
  while (answers.length < questions.length) {
    const input = questions
      .slice(answers.length)
      .map((question) => `${JSON.stringify(question)}\n`)
      .join('');
    const { stdout, signal, status } = spawnSync(PYTHON, [script], {
      input,
      encoding: 'utf8',
      maxBuffer: MOST_ANSWER_BYTES,
    });
    const lines = stdout.split('\n').slice(0, -1);
    answers.push(...lines.map((line) => JSON.parse(line) as Answer));
    if (answers.length < questions.length)
      answers.push({ refused: `ended by ${signal ?? status}` });
  }
  return answers;
}
