import { describe, expect, it } from 'vitest';
import type { Run } from '../run-cli.js';
import { runHere } from '../run-here.js';
import { isWhole, sampled } from '../sampled.js';
import {
  ANSWERS,
  MEANT,
  MISTAKES,
  NEXT_STEPS,
  TWO_MISTAKES,
  UNMENDABLE,
} from './proposal-lines.js';
import { userFolder, wordsOf } from './user-folder.js';

/** A word that stands for a value of the user: `CHECKPOINT`, `FILE`. */
const FORM = /^(?:[A-Z]+|path\.to\.key=value)$/;

/** A whole line in a suggestion. */
const LINE =
  /(?:\bwrite(?: it as in)?|\bsee|, or) minimind (.*?)(?=, or |; |$)|^minimind ((?!is\b).*?) (?:lists|shows)\b/g;

/** A flag with its value in a suggestion, for the line as it is. */
const FLAGS =
  /(?:\b(?:write|add|as in)|, or) (--[a-z-]+(?: (?!(?:and|or|with|for)\b)[^\s;]*[^\s;,])?)/g;

/** The line that one with another spelling was read as. */
const READ_AS = /^reading this as: minimind (.*)$/gm;

/** The lines that an answer or an error proposes. */
function proposed(typed: readonly string[], { stdout, stderr }: Run): string[][] {
  const found: string[][] = [];
  for (const [, line = ''] of stderr.matchAll(READ_AS)) found.push(wordsOf(line));
  for (const [, next = ''] of stdout.matchAll(/^Next: minimind (.*?)(?: {4}Details: .*)?$/gm)) {
    found.push(wordsOf(next));
  }
  for (const [, suggestion = ''] of stderr.matchAll(/^ +→ (.*)$/gm)) {
    const lines = [...suggestion.matchAll(LINE)].map((match) =>
      wordsOf(match[1] ?? match[2] ?? ''),
    );
    const flags = [...suggestion.matchAll(FLAGS)].map(([, flag = '']) => wordsOf(flag));
    found.push(...lines, ...(lines.length > 0 ? [] : flags.map((each) => withFlag(typed, each))));
  }
  return found.filter((words) => !words.some((word) => FORM.test(word)));
}

/** The line with a flag and its value, instead of another value. */
function withFlag(typed: readonly string[], [flag = '', value]: readonly string[]): string[] {
  const at = typed.indexOf(flag);
  const values = value === undefined ? [] : [value];
  return at < 0 ? [...typed, flag, ...values] : typed.toSpliced(at + 1, values.length, ...values);
}

/** Lines that only look something up. */
const LOOK_UP = /^list\b|--(?:help|list-gpus|details)$/;

/** Words of the user that a line lacks, though no message has quoted them and their flag is in it. */
function lostWords(typed: readonly string[], { stderr }: Run, words: readonly string[]): string[] {
  if (LOOK_UP.test(words.join(' '))) return [];
  const errors = stderr.split('\n').filter((each) => each.startsWith('error:'));
  const isReplaced = (at: number) => {
    const flag = typed[at - 1] ?? '';
    const isGone = !words.includes(flag) || errors.some((each) => each.includes(flag));
    return flag.startsWith('-') && isGone;
  };
  return typed.filter(
    (word, at) =>
      at > 0 &&
      !word.startsWith('-') &&
      !isReplaced(at) &&
      !words.some((each) => each === word || each.endsWith(`=${word}`)) &&
      !errors.some((each) => each.includes(word)),
  );
}

/** Commands and flags that check: exit code 1 is an answer. */
const CHECKS = /^(?:verify|validate)\b|--(?:max-|min-|check)/;

/** The error of a machine without a network, for a model of the hub. */
const UNREACHABLE = /^error: cannot read \S+ from the hub: \S+ cannot be reached/m;

/** When a proposed line runs: at once, after a further proposal, or never. */
type End = 'at once' | 'later' | 'never';

/** Runs every proposed line, and those that it proposes. @returns The first of them. */
async function follow(line: string, end: End = 'at once'): Promise<string | undefined> {
  const folder = userFolder();
  const typed = wordsOf(line);
  const first = await runHere(typed, { cwd: folder });
  const firstLines = proposed(typed, first);
  for (const words of firstLines) {
    const wasMistake = first.code === 2 || words === readAs(firstLines, first);
    if (wasMistake && end === 'at once') {
      expect(lostWords(typed, first, words), `lost in ${words.join(' ')}`).toEqual([]);
    }
    // A line that was read as another one has run, and left its files.
    const from = words === readAs(firstLines, first) ? userFolder() : folder;
    await runs([line], words, from, end, wasMistake && end === 'at once');
  }
  return firstLines[0]?.join(' ');
}

/** The line that was read in place of the typed one. */
const readAs = (lines: readonly string[][], { stderr }: Run) =>
  stderr.includes('reading this as: ') ? lines[0] : undefined;

/** Most lines that follow one another. */
const LONGEST_CHAIN = 4;

/** Lines after which the next step of a line runs too. One is enough to find most faults, and any circle of two. */
const FOLLOWED = isWhole ? 2 : 1;

/** Lines that have run without a fault in the files of the user as they are, with what they propose. */
const proven = new Map<string, string[][]>();

const notInCircle = (before: readonly string[], line: string) =>
  expect(before, `a circle: ${line}`).not.toContain(line);

/**
 * Fails if a line has a mistake, a warning, or leads back to one of those before it.
 * @param isUnchanged Whether the folder has the files of the user as they are.
 */
async function runs(
  before: readonly string[],
  words: readonly string[],
  from: string,
  end: End,
  isUnchanged = false,
): Promise<void> {
  const line = words.join(' ');
  notInCircle(before, line);
  if (before.length === LONGEST_CHAIN) return;
  const known = isUnchanged ? proven.get(line) : undefined;
  if (known) {
    for (const each of known) notInCircle([...before, line], each.join(' '));
    return;
  }
  const folder = userFolder(from);
  const run = await runHere(words, { cwd: folder });
  const faults = run.stderr.split('\n').filter((each) => /^(?:error|warning):/.test(each));
  const isChecked =
    (run.code === 1 && CHECKS.test(line)) || (run.code === 3 && UNREACHABLE.test(run.stderr));
  const further = proposed(words, run);
  const chain = [...before, line].join(' → ');
  const isOpen = end === 'never' || (end === 'later' && further.length > 0);
  if (!isOpen && !isChecked) {
    expect(`${chain}: ${[run.code, ...faults].join(' ')}`).toBe(`${chain}: 0`);
  }
  for (const each of further) notInCircle([...before, line], each.join(' '));
  const isFollowed = end === 'at once' ? before.length < FOLLOWED : run.code !== 0;
  if (!isFollowed) {
    if (isUnchanged) proven.set(line, further);
    return;
  }
  for (const each of further) await runs([...before, line], each, folder, end);
}

const commandOf = (line: string) => line.split(' ', 1)[0];

describe('a proposed line', () => {
  it.each(MEANT)('answers what was meant by minimind %s: %s', async (line, ...wanted) => {
    const found = await follow(line);
    for (const words of wanted) expect(found ?? '').toContain(words);
  });

  it.each(sampled(MISTAKES, 10, commandOf))('runs after minimind %s', async (line) => {
    await follow(line);
  });

  it.each(sampled(ANSWERS, 5, commandOf))('runs as the next step of minimind %s', async (line) => {
    await follow(line);
  });

  it.each(NEXT_STEPS)('is the next step of minimind %s: %s', async (line, next) => {
    const found = (await follow(line)) ?? '';
    expect(found.slice(0, next.length)).toBe(next);
  });

  it('leads from the progress of parts to a part, and to the end', async () => {
    const folder = userFolder();
    const step = async (words: readonly string[]) => {
      const run = await runHere(words, { cwd: folder });
      expect({
        code: run.code,
        stderr: run.stderr.replaceAll(/^(?!error|warning).*\n/gm, ''),
      }).toEqual({
        code: 0,
        stderr: '',
      });
      return proposed(words, run)[0] ?? [];
    };
    const launch = await step(wordsOf('convert-checkpoint old.pt out --parts 2 --plan c.json'));
    expect(launch.join(' ')).toBe('convert-checkpoint --plan c.json --launch slurm');
    await step(launch);
    const seen: string[] = [];
    let words = wordsOf('convert-checkpoint --plan c.json --status');
    while (words.includes('c.json')) {
      seen.push(words.slice(3).join(' '));
      words = await step(words);
    }
    expect(seen).toEqual(['--status', '--part 1', '--finish']);
    expect(words[0]).toBe('inspect');
  });

  it.each(TWO_MISTAKES)('leads to one that runs: minimind %s', async (line) => {
    await follow(line, 'later');
  });

  it.each(UNMENDABLE)('ends where no line can help: minimind %s', async (line) => {
    await follow(line, 'never');
  });
});
