/** The parts of one task of a job, from the environment of its scheduler. */
import { usageError } from '../base/errors.js';
import { setting } from '../base/text/setting.js';
import { joined } from '../base/text/words.js';

/** Option of Slurm for some tasks: `--array=3,7-9`. */
export const arrayOption = (array: string): string => `--array=${array}`;

/** Schedulers that `--launch` writes a job for. */
export const LAUNCH_NAMES = ['slurm', 'kubernetes', 'parallel'] as const;

export type LaunchName = (typeof LAUNCH_NAMES)[number];

type Environment = Readonly<Record<string, string | undefined>>;

/** The parts to do. */
export interface AskedParts {
  /** Number of the part, or `auto` for those of the task that this process is. */
  readonly part: number | 'auto';
  readonly tasks: number | undefined;
  readonly environment: Environment;
}

/**
 * Numbers of the parts to do, of those of a plan.
 * @throws UserError for a part that the plan lacks.
 */
export function askedParts(
  { part, tasks, environment }: AskedParts,
  parts: number,
  file: string,
): number[] {
  if (part === 'auto') return partsOfTask(environment, parts, tasks);
  if (part >= 1 && part <= parts) return [part];
  throw usageError(
    `${setting('part', part)}: expected 1 to ${parts}, the parts of ${file}`,
    `write ${setting('part', Math.max(1, Math.min(parts, part)))}`,
  );
}

/** Numbers of parts, from 1; empty for a task beyond the last part. */
export function partsOfTask(
  environment: Environment,
  parts: number,
  tasks: number | undefined,
): number[] {
  const found = SCHEDULERS.filter(({ variable }) => environment[variable] !== undefined);
  const [scheduler] = found;
  if (scheduler === undefined) {
    const names = SCHEDULERS.map(({ variable }) => variable);
    throw usageError(
      `${setting('part', 'auto')}: expected a task of a job, found none of ${joined(names)}`,
      `write ${setting('part', '1')} for one part of ${parts}, or start the job with ${setting('launch')}`,
    );
  }
  if (found.length > 1) {
    const names = joined(found.map(({ variable }) => variable));
    throw usageError(
      `${setting('part', 'auto')}: expected one scheduler, found ${names}`,
      `write the number of the part: ${setting('part', '1')}, or ${setting('part')} {} for GNU parallel`,
    );
  }
  const { index, count, isPart } = scheduler.task(environment, tasks);
  if (tasks !== undefined && tasks !== count) {
    throw usageError(
      `${setting('tasks', tasks)}: expected the ${count} tasks of the job`,
      `write ${setting('tasks', count)}, or leave it out`,
    );
  }
  if (isPart) {
    if (index < parts) return [index + 1];
    throw usageError(
      `${setting('part', 'auto')}: expected a task of 1 to ${parts}, found ${scheduler.variable}=${environment[scheduler.variable]}`,
      `start the array with at most ${parts}: ${arrayOption(`1-${parts}`)}`,
    );
  }
  return Array.from({ length: parts }, (_, part) => part + 1).filter(
    (part) => (part - 1) % (count ?? parts) === index,
  );
}

interface Task {
  /** From 0. */
  readonly index: number;
  /** Tasks that share the parts; undefined when each has its own. */
  readonly count: number | undefined;
  /** Whether the index is the number of a part, less 1. */
  readonly isPart: boolean;
}

interface Scheduler {
  readonly variable: string;
  readonly task: (environment: Environment, tasks: number | undefined) => Task;
}

const SCHEDULERS: readonly Scheduler[] = [
  { variable: 'SLURM_ARRAY_TASK_ID', task: slurmTask },
  {
    variable: 'JOB_COMPLETION_INDEX',
    task: (environment, tasks) => numbered(integerIn(environment, 'JOB_COMPLETION_INDEX'), tasks),
  },
  {
    variable: 'PARALLEL_SEQ',
    task: (environment, tasks) => numbered(integerIn(environment, 'PARALLEL_SEQ') - 1, tasks),
  },
];

/**
 * A whole array from 0 or 1 shares the parts. Of any other array, as of `--array=7,19` for what is missing, each task is
 * the part of its number.
 */
function slurmTask(environment: Environment, tasks: number | undefined): Task {
  const id = integerIn(environment, 'SLURM_ARRAY_TASK_ID');
  const known = (name: string) => environment[name] !== undefined;
  if (!['MIN', 'MAX', 'COUNT'].every((each) => known(`SLURM_ARRAY_TASK_${each}`))) {
    return numbered(id - 1, tasks);
  }
  const [first, last, count] = ['MIN', 'MAX', 'COUNT'].map((each) =>
    integerIn(environment, `SLURM_ARRAY_TASK_${each}`),
  );
  const isWhole =
    first !== undefined && first <= 1 && last !== undefined && count === last - first + 1;
  return isWhole
    ? { index: id - first, count, isPart: false }
    : { index: id - 1, count: undefined, isPart: true };
}

const numbered = (index: number, tasks: number | undefined): Task =>
  tasks === undefined
    ? { index, count: undefined, isPart: true }
    : { index, count: tasks, isPart: false };

function integerIn(environment: Environment, name: string): number {
  const text = environment[name] ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usageError(
    `expected a whole number in ${name}, found ${JSON.stringify(text)}`,
    `write the number of the part: ${setting('part', '1')}`,
  );
}
