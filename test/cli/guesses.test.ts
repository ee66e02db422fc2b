import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { imatrix } from '../checkpoint/gguf/imatrix-files.js';
import { onFileEnd } from '../cleanup.js';
import { inPackage } from '../fixtures.js';
import type { Run } from '../run-cli.js';
import { runHere } from '../run-here.js';
import { GUESSES, type Right } from './guesses.js';
import { HABIT_GUESSES } from './habit-guesses.js';
import { ADDED_GUESSES, VERB_GUESSES } from './program-guesses/added.js';
import { FRESH_GUESSES } from './program-guesses/fresh.js';
import { FURTHER_GUESSES } from './program-guesses/further.js';
import { MISREAD_GUESSES } from './program-guesses/misread.js';
import { MIXED_GUESSES } from './program-guesses/mixed.js';
import { PUBLISHED_GUESSES } from './program-guesses/published.js';
import { QUOTED_GUESSES } from './program-guesses/quoted.js';
import { SERVING_GUESSES } from './program-guesses/serving.js';
import { SPEECH_GUESSES } from './program-guesses/speech.js';
import { TRAINING_GUESSES } from './program-guesses/training.js';
import { WILD_GUESSES } from './program-guesses/wild.js';
import { CARDLESS_GUESSES } from './program-guesses/without-cards.js';
import { SENTENCE_GUESSES } from './sentence-guesses.js';
import { TOOL_GUESSES } from './tool-guesses.js';
import { userFolder, wordsOf } from './user-folder.js';

/** Words with the values of flags apart, in any order. */
const comparable = (words: readonly string[]): string[] =>
  words
    .flatMap((word) => (/^--[\w-]+=/.test(word) ? word.split(/=(.*)/s, 2) : [word]))
    // Flags can be written with underscores, and choices in any case.
    .map((word) => (word.startsWith('--') ? word.replaceAll('_', '-') : word).toLowerCase())
    .sort();

const PAGE_ROW = /^\| `([^`]+)` \| `([^`]+)` \|$/gm;

/** Lines of the page for people of other tools, and how they are read. */
const pageLines = (): string[][] =>
  [...fs.readFileSync(inPackage('docs/coming-from.md'), 'utf8').matchAll(PAGE_ROW)].map(
    ([, line = '', right = '']) => [line, right],
  );

/** Whether a line has the words of another one; `…` stands for further words. */
function isLine(words: readonly string[], right: string): boolean {
  const wanted = wordsOf(right);
  const isOpen = wanted.at(-1) === '…';
  const own = comparable(words);
  if (!isOpen) return comparable(wanted).join(' ') === own.join(' ');
  return comparable(wanted.slice(0, -1)).every((word) => own.includes(word));
}

/** The line that a run was read as, or that its error proposes first. */
function understood({ stderr }: Run): string[] | undefined {
  const [, line] =
    /^reading this as: minimind (.*)$/m.exec(stderr) ??
    /^ +→ .*?\bwrite minimind (.*?)(?:, or .*|; .*)?$/m.exec(stderr) ??
    [];
  return line === undefined ? undefined : wordsOf(line);
}

/** Fault of an answer; undefined for a right one. */
function fault(right: Right, run: Run): string | undefined {
  const text = `${run.stdout}${run.stderr}`;
  if (right === 'as it is') return run.code === 0 ? undefined : run.stderr;
  if ('says' in right) {
    const missing = right.says.filter((each) => !text.includes(each));
    const wrong = (right.never ?? []).filter((each) => text.includes(each));
    const isRight = missing.length === 0 && wrong.length === 0;
    return isRight ? undefined : `missing ${missing}, wrong ${wrong}: ${run.stderr}`;
  }
  const words = understood(run);
  return words && right.some((each) => isLine(words, each)) ? undefined : run.stderr || 'it ran';
}

describe('a first guess', () => {
  let folder = '';
  let other = '';
  beforeAll(() => {
    folder = userFolder(undefined, onFileEnd);
    fs.cpSync(inPackage('fixtures/distributed/zero3-world3'), path.join(folder, 'zero'), {
      recursive: true,
    });
    fs.cpSync(inPackage('fixtures/lora/llama-patterns'), path.join(folder, 'lora'), {
      recursive: true,
    });
    // A model with a tokenizer, which reads a prompt.
    for (const from of ['hf', 'tokenizer']) {
      fs.cpSync(path.join(folder, from), path.join(folder, 'talk'), { recursive: true });
    }
    // Of one matrix of this model.
    const matrix = { 'blk.0.attn_q.weight': { sums: Array(32).fill(1), counts: [1] } };
    fs.writeFileSync(path.join(folder, 'imatrix.gguf'), imatrix(matrix));
    // Another config would be another model of this folder.
    fs.cpSync(path.join(folder, 'my.yaml'), path.join(folder, 'minimind.yaml'));
    other = userFolder(folder, onFileEnd);
  });

  it.each(pageLines())('is read as the page says: minimind %s', async (line, right) => {
    const run = await runHere(wordsOf(line), { cwd: other });
    expect(understood(run)?.join(' ')).toBe(right);
    const { code, stderr } = await runHere(wordsOf(right), { cwd: other });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  });

  const PROGRAM_GUESSES = [
    ...SERVING_GUESSES,
    ...TRAINING_GUESSES,
    ...SPEECH_GUESSES,
    ...FURTHER_GUESSES,
    ...MIXED_GUESSES,
    ...FRESH_GUESSES,
    ...CARDLESS_GUESSES,
    ...WILD_GUESSES,
    ...QUOTED_GUESSES,
    ...PUBLISHED_GUESSES,
    ...ADDED_GUESSES,
    ...VERB_GUESSES,
    ...MISREAD_GUESSES,
  ];

  it.each([...GUESSES, ...TOOL_GUESSES, ...HABIT_GUESSES, ...SENTENCE_GUESSES, ...PROGRAM_GUESSES])(
    'is understood: minimind %s',
    async (line, right) => {
      const run = await runHere(wordsOf(line), { cwd: folder });
      expect(fault(right, run)).toBeUndefined();
    },
  );

  // A line that is proposed runs when it is pasted.
  it.each(SENTENCE_GUESSES.flatMap(([, right]) => (Array.isArray(right) ? [[right[0]]] : [])))(
    'runs: minimind %s',
    async (right) => {
      const { code, stderr } = await runHere(wordsOf(right), { cwd: other });
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    },
  );
});
