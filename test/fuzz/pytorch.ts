/** PyTorch in a process of its own, where there is one: `PYTHON` names another Python than `python3`. */
import { spawnSync } from 'node:child_process';
import { inPackage } from '../fixtures.js';

const PYTHON = process.env.PYTHON || 'python3';

/** A tensor by PyTorch's name of its type, its shape, and the hash of its contiguous bytes. */
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

/** Why PyTorch cannot be asked; undefined when it can. */
export function whyNoPyTorch(): string | undefined {
  const { status, error } = spawnSync(PYTHON, [script], { input: '' });
  if (status === 0) return undefined;
  return `${PYTHON} ${error ? 'does not start' : 'has no torch'}: name a Python that has, with PYTHON=…`;
}

/** What PyTorch makes of files, in their order. A file that ends the process is not loaded. */
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
