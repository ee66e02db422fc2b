/** Base class of commands whose work can be divided into parts: `compare`, `plan`, `evaluate`. */
import path from 'node:path';
import { UserError, usageError } from '../base/errors.js';
import { type Sweep, solveSweep } from '../base/sweep.js';
import type { SweepResult } from '../scale/sweeps/sweep.js';
import { BaseCommand } from './base-command.js';
import { baseFlags, details } from './flags/flags.js';
import { type PartsMode, partsMode, sweepFlags } from './flags/parts-flags.js';
import { type DeclaredFlags, type Word, wordsOfLine } from './line/words-of-line.js';
import { isStdout } from './output.js';
import { answeredFromPlan } from './plan-answer.js';

/** A command line with a sweep to answer, to plan, or to do in part. */
export interface SweepRun {
  /** The command line of the single run. */
  readonly words: string[];
  /** Units of the parts to do; undefined for all. */
  readonly units?: number;
  /** @returns The result of all units; undefined when only a part or a plan was asked for. */
  solve<Value, Result, Backend>(sweep: Sweep<Value, Result, Backend>): Promise<Result | undefined>;
}

/** Whether a flag concerns only the answer, so that a plan does not keep it. */
const isOfAnswer = (flag: string): boolean => Object.hasOwn(baseFlags, flag) || flag === 'details';

/** Whether a flag concerns parts or names another output, so that a plan does not keep it. */
const isOfOutput = (flag: string): boolean => Object.hasOwn(sweepFlags, flag) || flag === 'save';

export abstract class SweepCommand extends BaseCommand {
  /**
   * Flags that only affect how the answer is shown. `--finish` takes them too, with precedence over those of the plan.
   */
  static viewFlags: readonly string[] = [];

  /**
   * Reads the flags of parts. A request without a sweep is answered at once.
   * @returns Undefined when the command is done.
   */
  protected async sweepRun(): Promise<SweepRun | undefined> {
    const { viewFlags, flags: declared } = this.constructor as typeof SweepCommand;
    const words = wordsOfLine(this.argv, this.#declared);
    const given = words.flatMap(({ flag }) => flag ?? []);
    const files = words.flatMap(({ flag, texts }) => (flag === undefined ? texts : []));
    const mode = partsMode(given, files, {
      planned: Object.keys(declared).filter((name) => !(name in sweepFlags)),
      more: { finish: viewFlags },
      files: 'files',
      request: '',
      kept: 'it is in the plan',
    });
    if (mode === undefined) {
      return { words: this.argv, solve: solveSweep };
    }
    return mode === 'parts' ? this.#planned(words) : this.#opened(mode, words, viewFlags);
  }

  /** Whether the command writes a plan. */
  #isPlan = false;

  /** Maps references to models of the hub to paths with their commits. */
  readonly #pinned = new Map<string, string>();

  protected override pinsModels(): boolean {
    return this.#isPlan;
  }

  protected override async mountModels(
    ...request: Parameters<BaseCommand['mountModels']>
  ): Promise<ReadonlyMap<string, string>> {
    const paths = await super.mountModels(...request);
    for (const [reference, pinned] of paths) this.#pinned.set(reference, pinned);
    return paths;
  }

  /** A word of the command line, in which each model of the hub has its commit. */
  #pinnedText(text: string): string {
    const [, flag = '', value = text] = /^(--[\w-]+=)(.*)$/s.exec(text) ?? [];
    return `${flag}${this.#pinned.get(value) ?? value}`;
  }

  get #presets(): string {
    return path.join(this.config.root, 'configs');
  }

  /** The flags of parts and of the answer among the words. */
  #parts(words: readonly Word[]) {
    const own = words.filter(
      ({ flag = '' }) => Object.hasOwn(sweepFlags, flag) || isOfAnswer(flag),
    );
    return this.parse({ flags: { ...sweepFlags, details }, baseFlags, args: {} }, textsOf(own));
  }

  async #planned(words: readonly Word[]): Promise<SweepRun> {
    const { SweepParts } = await import('../scale/sweeps/sweep.js');
    refuseOwnInputs(words);
    const { flags } = await this.#parts(words);
    const { plan: file = '', parts = 1, force } = flags;
    this.#isPlan = true;
    const { refuseUnwritable } = await import('../base/files/write-whole.js');
    await refuseUnwritable(file, force);
    if (words.some(({ flag }) => flag === 'save')) {
      throw usageError('--save has no effect with --parts', 'write it with --finish');
    }
    const request = words.filter(({ flag = '' }) => !(isOfOutput(flag) || isOfAnswer(flag)));
    return {
      words: textsOf([...request, ...words.filter(isQuiet)]),
      solve: async (sweep) => {
        const { id, config } = this;
        const backend = await sweep.backend.here();
        const settled = Object.entries(sweep.backend.flags(backend)).map(
          ([flag, value]): Word => ({ flag, texts: [`--${flag}`, String(value)] }),
        );
        const result = await SweepParts.make(file, sweep, backend, {
          ...{ command: id ?? '', version: config.version, parts, force, presets: this.#presets },
          arguments: textsOf(replaced(request, settled)).map((text) => this.#pinnedText(text)),
        });
        return this.#report(flags, result);
      },
    };
  }

  async #opened(
    mode: Exclude<PartsMode, 'parts'>,
    words: readonly Word[],
    viewFlags: readonly string[],
  ): Promise<SweepRun | undefined> {
    const { SweepParts } = await import('../scale/sweeps/sweep.js');
    const { flags } = await this.#parts(words);
    const { plan: file = '', part = 'auto', tasks } = flags;
    const { id, config } = this;
    const parts = await SweepParts.open(file, config.version, id ?? '');
    const planned = wordsOfLine(parts.plan.arguments, this.#declared);
    refuseOutputs(file, planned);
    const isAnswered = await answeredFromPlan(mode, flags, parts, {
      answer: (result) => this.#report(flags, result),
      write: (text) => this.write(flags, text),
      program: this.program,
      isOffline: false,
    });
    if (isAnswered) return undefined;
    const numbers = mode === 'part' && parts.partsFor({ part, tasks, environment: process.env });
    parts.refuseChangedInputs(this.#presets);
    const before = enter(parts.plan.folder);
    if (numbers) {
      const { output } = flags;
      if (!isStdout(output)) flags.output = path.resolve(before, output);
      return {
        units: parts.unitsIn(numbers),
        words: [...parts.plan.arguments, ...textsOf(words.filter(isQuiet))],
        solve: async (sweep) => this.#report(flags, await parts.run(sweep, numbers)),
      };
    }
    const own = words
      .filter(({ flag = '' }) => isOfAnswer(flag) || viewFlags.includes(flag))
      .map((word) => (before === process.cwd() ? word : fromFolder(word, before)));
    return { words: textsOf(replaced(planned, own)), solve: (sweep) => parts.finish(sweep) };
  }

  get #declared(): DeclaredFlags {
    const { flags } = this.constructor as typeof SweepCommand;
    return { ...baseFlags, ...flags } as DeclaredFlags;
  }

  async #report(
    flags: Parameters<BaseCommand['answer']>[0],
    result: SweepResult,
  ): Promise<undefined> {
    const { sweepReport } = await import('../report/parts-report.js');
    await this.answer(flags, result, sweepReport);
    return undefined;
  }
}

const isQuiet = ({ flag }: Word): boolean => flag === 'quiet';

const textsOf = (words: readonly Word[]): string[] => words.flatMap(({ texts }) => texts);

/** The words with the values of some flags replaced. */
const replaced = (words: readonly Word[], others: readonly Word[]): Word[] => [
  ...words.filter(({ flag }) => flag === undefined || !others.some((other) => other.flag === flag)),
  ...others,
];

/** A word that names a written file, with its path resolved from another folder. */
function fromFolder(word: Word, folder: string): Word {
  const { flag, texts } = word;
  if (flag !== 'output' && flag !== 'save') return word;
  const [first = '', second] = texts;
  const file = second ?? first.replace(/^(?:--\w+=|-o)/, '');
  return { flag, texts: [`--${flag}`, file === '-' ? file : path.resolve(folder, file)] };
}

/** @throws UserError for an input that other machines cannot read. */
function refuseOwnInputs(words: readonly Word[]): void {
  const values = words
    .filter(({ flag }) => flag !== 'save')
    .flatMap(({ texts }) => texts.map((text) => text.replace(/^--[\w-]+=/, '')));
  const isStdin = values.includes('-');
  const isMachine = words.some(({ flag }) => flag === 'this-machine');
  if (!isStdin && !isMachine) return;
  throw usageError(
    `--parts: expected files that every machine can read, found ${isStdin ? '"-"' : '--this-machine'}`,
    isStdin ? 'write it into a file in a shared folder' : 'name the GPU: --gpu NAME',
  );
}

/**
 * Refuses a plan that names outputs: a plan can come from someone else, so only the command line may name them.
 * @throws UserError for flags of outputs among the words of a plan.
 */
function refuseOutputs(file: string, words: readonly Word[]): void {
  const found = words.find(({ flag = '' }) => isOfAnswer(flag) || isOfOutput(flag));
  if (found?.flag === undefined) return;
  throw new UserError(
    'refused-file',
    `${file} is not a valid plan: arguments: expected no --${found.flag}`,
    { suggestion: 'plan again, and write it with --finish' },
  );
}

/**
 * Changes to the folder from which the paths of a plan are read.
 * @returns The previous folder.
 * @throws UserError when it is missing here.
 */
function enter(folder: string): string {
  const before = process.cwd();
  if (before === folder) return before;
  try {
    process.chdir(folder);
  } catch (cause) {
    throw new UserError('system', `expected the folder of the plan, ${folder}, found none here`, {
      suggestion: 'use the same paths on every machine, or plan again',
      cause,
    });
  }
  return before;
}
