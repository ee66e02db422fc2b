/** The job of a plan for a scheduler: its tasks, what follows them, and the memory and time to ask for. */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { UserError, usageError } from '../base/errors.js';
import { endsWithProgram } from '../base/files/early-end.js';
import { printable } from '../base/text/escape.js';
import { setting, settingWords } from '../base/text/setting.js';
import { posixWord, shellWord } from '../base/text/shell-words.js';
import { formatDuration } from '../base/text/units.js';
import type { LaunchName } from './task-index.js';
import { arrayOption } from './task-index.js';

/** A job, and what became of it. */
export interface LaunchedJob {
  /** Scheduler of the job. */
  readonly scheduler: LaunchName;
  /** The job, ready to submit. */
  readonly text: string;
  /** Answer of the scheduler; null when the job was only printed. */
  readonly answer: string | null;
}

/** The work that a plan asks of a scheduler. */
export interface PartsJob {
  /** Command of the plan, `convert-checkpoint`. */
  readonly command: string;
  readonly planFile: string;
  readonly planHash: string;
  /** Seconds of each part on a slow machine. */
  readonly partSeconds: readonly number[];
  /** First lines of a script: its purpose, and what a task needs. */
  readonly comments: readonly string[];
  /** Whether rows of tables are a phase of their own. */
  readonly hasRows: boolean;
  /** Models of the hub that all tasks read. */
  readonly hubModels: readonly string[];
  /** Prediction for a task. */
  readonly memoryBytes: number;
  readonly cpus: number;
  /** Arguments of the command: the output, where it was named. */
  readonly operands: readonly string[];
  /** Files and folders that all tasks use. */
  readonly places: readonly string[];
}

export interface LaunchOptions {
  /** Number of tasks that share the parts. Default: one for each part, up to the limit of the scheduler. */
  readonly tasks: number | undefined;
  /** Words that start minimind on every machine. */
  readonly program: readonly string[];
  /** Container image and claim of the shared volume, for Kubernetes. */
  readonly image: string | undefined;
  readonly claim: string | undefined;
  /** Whether --finish replaces an output that exists. */
  readonly isForced?: boolean;
  /** Whether models of the hub are read only from caches. */
  readonly isOffline: boolean;
}

/** Least time that is asked for. */
const LEAST_SECONDS = 600;
/** Memory beyond the prediction, and the least that is asked for. */
const SPARE_MEMORY = 1.25;
const LEAST_MEMORY = 512 * 2 ** 20;
/** Processors of a task. */
export const CPUS = 2;
/** Most tasks of an array of Slurm: MaxArraySize is 1001 by default. */
const MOST_SLURM_TASKS = 1000;

interface Needs {
  readonly tasks: number;
  /** MiB of a task. */
  readonly memoryMiB: number;
  readonly seconds: number;
}

function needsOf({ memoryBytes, partSeconds }: PartsJob, most: number): Needs {
  const tasks = Math.min(most, partSeconds.length);
  const shares: number[] = Array(tasks).fill(0);
  for (const [index, seconds] of partSeconds.entries()) {
    shares[index % tasks] = (shares[index % tasks] ?? 0) + seconds;
  }
  const longest = shares.reduce((most, each) => Math.max(most, each), LEAST_SECONDS);
  const memory = Math.max(memoryBytes * SPARE_MEMORY, LEAST_MEMORY);
  return {
    tasks,
    memoryMiB: Math.ceil(memory / 2 ** 26) * 64,
    seconds: Math.ceil(longest / 60) * 60,
  };
}

/** Writes a job and submits it if asked. @throws UserError when it cannot be submitted. */
export async function launch(
  job: PartsJob,
  scheduler: LaunchName,
  options: LaunchOptions & { readonly isSubmitted: boolean },
): Promise<LaunchedJob> {
  const text = launchText(job, scheduler, options);
  return { scheduler, text, answer: options.isSubmitted ? await submit(scheduler, text) : null };
}

/** The job as text: a shell script, or a manifest. */
export function launchText(job: PartsJob, name: LaunchName, options: LaunchOptions): string {
  const most = name === 'slurm' ? MOST_SLURM_TASKS : Number.POSITIVE_INFINITY;
  return JOBS[name](job, needsOf(job, options.tasks ?? most), options);
}

const JOBS = {
  slurm: slurmScript,
  kubernetes: kubernetesManifest,
  parallel: parallelScript,
} as const satisfies Record<LaunchName, unknown>;

const launchWords = (
  { command, planFile, operands }: PartsJob,
  { program, isOffline }: LaunchOptions,
  ...words: readonly string[]
): string[] => [
  ...program,
  command,
  ...operands,
  ...settingWords('plan', path.resolve(planFile)),
  ...words,
  ...(isOffline ? settingWords('offline') : []),
];

const finishWords = ({ isForced = false }: LaunchOptions): string[] => [
  ...settingWords('finish'),
  ...(isForced ? settingWords('force') : []),
];

const line = (words: readonly string[]) => words.map(shellWord).join(' ');

/** One line of a comment, for any path in it. */
const comment = (text: string) => `# ${printable(text.replaceAll(/[\r\n]+/g, ' '))}`;

/** Needs of tasks for models of the hub. A token is never part of a job. */
function hubNote({ hubModels }: PartsJob, { isOffline }: LaunchOptions): string | undefined {
  if (hubModels.length === 0) return undefined;
  const access = isOffline
    ? 'each task reads it from a cache of its machine (HF_HOME, HF_HUB_CACHE)'
    : 'each task needs access to the hub, or a cache with the model (HF_HOME, HF_HUB_CACHE)';
  return `Reads ${hubModels.join(', ')}: ${access}. The token of a gated or private model comes from HF_TOKEN or HF_TOKEN_PATH of the task; this job has none.`;
}

function headOf(job: PartsJob, { memoryMiB, seconds }: Needs, options: LaunchOptions): string[] {
  const [purpose = '', ...more] = job.comments;
  const needs = `Each task: ${memoryMiB} MiB and ${formatDuration(seconds)}, ${more.join(' ')}`;
  const note = hubNote(job, options);
  return [
    '#!/bin/bash',
    comment(purpose),
    comment(needs),
    ...(note === undefined ? [] : [comment(note)]),
  ];
}

/** Option of Node that keeps a heap within the memory of a task: by default it grows with that of the machine. */
const heapOption = ({ memoryMiB }: Needs) => `--max-old-space-size=${memoryMiB}`;

const heapLine = (needs: Needs) => `export NODE_OPTIONS="\${NODE_OPTIONS:-} ${heapOption(needs)}"`;

function slurmScript(job: PartsJob, needs: Needs, options: LaunchOptions): string {
  const { tasks, memoryMiB, seconds } = needs;
  const { hasRows } = job;
  const name = jobName(job);
  const submit = (
    variable: string,
    after: string | undefined,
    isArray: boolean,
    words: readonly string[],
  ) => {
    const asked = [
      'sbatch',
      ...['--parsable', `--job-name=${name}-${variable}`],
      ...(isArray ? [arrayOption(`1-${tasks}`)] : []),
      ...[`--cpus-per-task=${job.cpus}`, `--mem=${memoryMiB}M`],
      ...[`--time=${Math.ceil(seconds / 60)}`, '--requeue'],
    ];
    const dependency = after === undefined ? '' : ` --dependency=afterany:"\${${after}%%;*}"`;
    // Slurm gives this to sh, which does not know the other way to quote.
    const wrapped = `exec ${launchWords(job, options, ...words)
      .map(posixWord)
      .join(' ')}`;
    return `${variable}=$(${line(asked)}${dependency} --wrap=${shellWord(wrapped)})`;
  };
  const auto = settingWords('part', 'auto');
  return lines([
    ...headOf(job, needs, options),
    '# Each phase runs also after a failed one: the last job lists what is missing.',
    'set -euo pipefail',
    heapLine(needs),
    ...(hasRows ? [submit('rows', undefined, true, [...auto, ...settingWords('phase', 1)])] : []),
    hasRows
      ? submit('files', 'rows', true, [...auto, ...settingWords('phase', 2)])
      : submit('files', undefined, true, auto),
    submit('finish', 'files', false, finishWords(options)),
    `echo "${hasRows ? 'rows $rows, ' : ''}files $files, finish $finish"`,
  ]);
}

/** Whole commands as input: parallel replaces braces in a command, but not in its input. */
function parallelScript(job: PartsJob, needs: Needs, options: LaunchOptions): string {
  const { hasRows, planFile, partSeconds } = job;
  if (/[\r\n]/.test(planFile)) {
    throw usageError(
      `${setting('launch', 'parallel')}: expected a plan without line breaks in its path`,
      'rename the file or its folder: GNU parallel reads a command from each line',
    );
  }
  const numbers = partSeconds.map((_, index) => index + 1);
  const jobs = options.tasks === undefined ? '' : ` --jobs ${options.tasks}`;
  const phase = (words: readonly string[]) => [
    `parallel${jobs} --line-buffer <<'END_OF_PARTS' || true`,
    ...numbers.map((part) =>
      line(launchWords(job, options, ...settingWords('part', part), ...words)),
    ),
    'END_OF_PARTS',
  ];
  return lines([
    ...headOf(job, needs, options),
    'set -euo pipefail',
    heapLine(needs),
    'export PARALLEL_SHELL=/bin/sh',
    ...(hasRows ? [1, 2].flatMap((number) => phase(settingWords('phase', number))) : phase([])),
    line(launchWords(job, options, ...finishWords(options))),
  ]);
}

const jobName = ({ planHash }: PartsJob) => `minimind-${planHash.slice(0, 8)}`;

const lines = (texts: readonly string[]) => `${texts.join('\n')}\n`;

const MOUNT = 'data';

/** JSON, which is YAML too and needs no quoting. An indexed job, and one that waits for it and finishes. */
function kubernetesManifest(work: PartsJob, needs: Needs, options: LaunchOptions): string {
  const { image, claim } = options;
  if (image === undefined || claim === undefined) {
    const missing = setting(image === undefined ? 'image' : 'claim');
    throw usageError(
      `${setting('launch', 'kubernetes')} requires ${missing}`,
      `write ${setting('image', 'registry/minimind:TAG')} and ${setting('claim', 'NAME')} of the volume that holds the plan and its files`,
    );
  }
  const { tasks, memoryMiB, seconds } = needs;
  const name = jobName(work);
  const note = hubNote(work, options);
  const annotations = note === undefined ? {} : { annotations: { 'minimind/hub': note } };
  const files = [...work.places, path.resolve(work.planFile)];
  const volumeMounts = mountsOf(files.filter((file) => path.isAbsolute(file)));
  const job = (suffix: string, words: readonly string[], limits: object) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: `${name}-${suffix}`,
      labels: { app: 'minimind', plan: name },
      ...annotations,
    },
    spec: {
      ...limits,
      template: {
        metadata: { labels: { app: 'minimind', plan: name } },
        spec: {
          restartPolicy: 'Never',
          containers: [
            {
              name: 'minimind',
              image,
              command: launchWords(work, { ...options, program: ['minimind'] }, ...words),
              env: [{ name: 'NODE_OPTIONS', value: heapOption(needs) }],
              resources: {
                requests: { cpu: String(work.cpus), memory: `${memoryMiB}Mi` },
                limits: { memory: `${memoryMiB}Mi` },
              },
              volumeMounts,
            },
          ],
          volumes: [{ name: MOUNT, persistentVolumeClaim: { claimName: claim } }],
        },
      },
    },
  });
  // A failed pod is started again: finished units are kept.
  const retries = 3;
  const parts = job('parts', [...settingWords('part', 'auto'), ...settingWords('tasks', tasks)], {
    completionMode: 'Indexed',
    completions: tasks,
    parallelism: tasks,
    backoffLimit: retries * tasks,
    activeDeadlineSeconds: 4 * seconds,
  });
  const finish = job('finish', [...finishWords(options), ...settingWords('wait')], {
    backoffLimit: retries,
    activeDeadlineSeconds: 5 * seconds,
  });
  const list = { apiVersion: 'v1', kind: 'List', items: [parts, finish] };
  return `${JSON.stringify(list, null, 2)}\n`;
}

/** The folder of all files as the volume; where only the root has all, its folders. A pod cannot replace its root. */
function mountsOf(files: readonly string[]) {
  const common = commonFolder(files);
  const { root } = path.parse(common);
  if (common !== root) return [{ name: MOUNT, mountPath: common }];
  const folders = new Set(files.map((file) => file.slice(root.length).split(path.sep)[0] ?? ''));
  return [...folders].map((subPath) => ({ name: MOUNT, mountPath: `${root}${subPath}`, subPath }));
}

/** The folder that holds all of some files. */
function commonFolder(files: readonly string[]): string {
  const [first = [], ...others] = files.map((file) => path.dirname(file).split(path.sep));
  const length = first.findIndex((part, index) => others.some((each) => each[index] !== part));
  const common = first.slice(0, length < 0 ? first.length : length).join(path.sep);
  return common === '' ? path.parse(files[0] ?? '').root : common;
}

/** Programs that take a job, with their arguments; the job is their input. */
const SUBMITTERS = {
  slurm: ['bash', '-s'],
  kubernetes: ['kubectl', 'apply', '-f', '-'],
  parallel: ['bash', '-s'],
} as const satisfies Record<LaunchName, readonly [string, ...string[]]>;

/**
 * Hands a job to its scheduler. @returns What the scheduler printed.
 * @throws UserError when the program is missing or fails.
 */
async function submit(name: LaunchName, text: string): Promise<string> {
  const [program, ...args] = SUBMITTERS[name];
  const { code, out, error } = await new Promise<{
    readonly code: number | null;
    readonly out: string;
    readonly error?: Error;
  }>((resolve) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = endsWithProgram(child);
    const pieces: Buffer[] = [];
    child.stdout.on('data', (piece: Buffer) => pieces.push(piece));
    child.on('error', (failure) => resolve({ code: null, out: '', error: failure }));
    child.on('close', (status) => {
      ended();
      resolve({ code: status, out: Buffer.concat(pieces).toString() });
    });
    child.stdin.on('error', () => {});
    child.stdin.end(text);
  });
  if (code === 0) return out;
  // The last command of this script is --finish, which names missing parts.
  if (name === 'parallel' && code === 1) return out;
  const why = error?.message ?? `it ended with exit code ${code}`;
  throw new UserError('system', `cannot submit the job to ${name}: ${why}`, {
    suggestion: `print the job without ${setting('submit')}, and run it where the scheduler is installed`,
  });
}
