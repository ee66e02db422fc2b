/** The job of a plan for a scheduler: its tasks, what follows them, and the memory and time to ask for. */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { UserError } from '../../errors.js';
import { formatDuration } from '../../text/units.js';
import { shellWord, sumOf } from '../../text/words.js';
import type { LaunchName } from '../conversion-choices.js';
import { hubModelsOf, type PartsPlan } from './parts-plan.js';

export interface LaunchOptions {
  /** The file of the plan. */
  readonly planFile: string;
  /** Tasks that share the parts; undefined for one each. */
  readonly tasks: number | undefined;
  /** Words that start minimind on every machine. */
  readonly program: readonly string[];
  /** Container image and claim of the shared volume, for Kubernetes. */
  readonly image: string | undefined;
  readonly claim: string | undefined;
  /** Whether models of the hub are read only from caches. */
  readonly isOffline: boolean;
}

/** Bytes read and written per second that a part is sure to reach; half of a slow shared disk. */
const LEAST_RATE = 50e6;
const LEAST_SECONDS = 600;
/** Memory beyond the prediction, and the least that is asked for. */
const SPARE_MEMORY = 1.25;
const LEAST_MEMORY = 512 * 2 ** 20;
/** Memory of the finish for each tensor of the input: it also reads the index of the output. */
const FINISH_INDEX_BYTES = 2e3;
const CPUS = 2;

interface Needs {
  readonly tasks: number;
  readonly hasRows: boolean;
  /** MiB of a task. */
  readonly memoryMiB: number;
  readonly seconds: number;
}

function needsOf({ input, parts }: PartsPlan, { tasks = parts.length }: LaunchOptions): Needs {
  const count = Math.min(tasks, parts.length);
  const shares = Array.from({ length: count }, (_, task) =>
    sumOf(
      parts.filter(({ part }) => (part - 1) % count === task),
      ({ readBytes, writeBytes }) => readBytes + writeBytes,
    ),
  );
  const largest = Math.max(...parts.map(({ memoryBytes }) => memoryBytes));
  const most = Math.max(
    (largest + FINISH_INDEX_BYTES * input.tensors) * SPARE_MEMORY,
    LEAST_MEMORY,
  );
  return {
    tasks: count,
    hasRows: parts.some(({ slices }) => slices.length > 0),
    memoryMiB: Math.ceil(most / 2 ** 26) * 64,
    seconds: Math.max(LEAST_SECONDS, Math.ceil(Math.max(...shares) / LEAST_RATE / 60) * 60),
  };
}

/** The job as text: a shell script, or a manifest. */
export function launchText(plan: PartsPlan, name: LaunchName, options: LaunchOptions): string {
  const needs = needsOf(plan, options);
  return JOBS[name](plan, needs, options);
}

const JOBS = {
  slurm: slurmScript,
  kubernetes: kubernetesManifest,
  parallel: parallelScript,
} as const satisfies Record<LaunchName, unknown>;

const wordsOf = (
  { program, planFile, isOffline }: LaunchOptions,
  ...words: readonly string[]
): string[] => [
  ...program,
  'convert-checkpoint',
  '--plan',
  path.resolve(planFile),
  ...words,
  ...(isOffline ? ['--offline'] : []),
];

const line = (words: readonly string[]) => words.map(shellWord).join(' ');

/** One line of a comment, whatever the paths contain. */
const comment = (text: string) => `# ${text.replaceAll(/[\r\n]+/g, ' ')}`;

/** What tasks need for models of the hub. A token is never part of a job. */
function hubNote(plan: PartsPlan, { isOffline }: LaunchOptions): string | undefined {
  const models = [...new Set(hubModelsOf(plan))];
  if (models.length === 0) return undefined;
  const access = isOffline
    ? 'each task reads it from a cache of its machine (HF_HOME, HF_HUB_CACHE)'
    : 'each task needs access to the hub, or a cache with the model (HF_HOME, HF_HUB_CACHE)';
  return `Reads ${models.join(', ')}: ${access}. The token of a gated or private model comes from HF_TOKEN or HF_TOKEN_PATH of the task; this job has none.`;
}

function headOf(plan: PartsPlan, { memoryMiB, seconds }: Needs, options: LaunchOptions): string[] {
  const { input, output, parts } = plan;
  const note = hubNote(plan, options);
  return [
    '#!/bin/bash',
    comment(`Converts ${input.path} into ${output.path} in ${parts.length} parts.`),
    comment(
      `Each task: ${memoryMiB} MiB and ${formatDuration(seconds)}, for at least ${LEAST_RATE / 1e6} MB/s read and written.`,
    ),
    ...(note === undefined ? [] : [comment(note)]),
  ];
}

function slurmScript(plan: PartsPlan, needs: Needs, options: LaunchOptions): string {
  const { tasks, hasRows, memoryMiB, seconds } = needs;
  const name = `minimind-${plan.hash.slice(0, 8)}`;
  const submit = (
    variable: string,
    after: string | undefined,
    isArray: boolean,
    words: string[],
  ) => {
    const asked = [
      'sbatch',
      '--parsable',
      `--job-name=${name}-${variable}`,
      ...(isArray ? [`--array=1-${tasks}`] : []),
      `--cpus-per-task=${CPUS}`,
      `--mem=${memoryMiB}M`,
      `--time=${Math.ceil(seconds / 60)}`,
      '--requeue',
    ];
    const dependency = after === undefined ? '' : ` --dependency=afterany:"\${${after}%%;*}"`;
    const wrapped = `exec ${line(wordsOf(options, ...words))}`;
    return `${variable}=$(${line(asked)}${dependency} --wrap=${shellWord(wrapped)})`;
  };
  const auto = ['--part', 'auto'];
  return lines([
    ...headOf(plan, needs, options),
    '# A phase follows also a failed one: the last job names what is missing.',
    'set -euo pipefail',
    ...(hasRows ? [submit('rows', undefined, true, [...auto, '--phase', '1'])] : []),
    hasRows
      ? submit('files', 'rows', true, [...auto, '--phase', '2'])
      : submit('files', undefined, true, auto),
    submit('finish', 'files', false, ['--finish']),
    `echo "${hasRows ? 'rows $rows, ' : ''}files $files, finish $finish"`,
  ]);
}

/** Whole commands as input: parallel replaces braces in a command, but not in its input. */
function parallelScript(plan: PartsPlan, needs: Needs, options: LaunchOptions): string {
  const { hasRows } = needs;
  const numbers = plan.parts.map(({ part }) => part);
  const jobs = options.tasks === undefined ? '' : ` --jobs ${options.tasks}`;
  const phase = (words: readonly string[]) => [
    `parallel${jobs} --line-buffer <<'END_OF_PARTS' || true`,
    ...numbers.map((part) => line(wordsOf(options, '--part', String(part), ...words))),
    'END_OF_PARTS',
  ];
  return lines([
    ...headOf(plan, needs, options),
    'set -euo pipefail',
    'export PARALLEL_SHELL=/bin/sh',
    ...(hasRows ? [...phase(['--phase', '1']), ...phase(['--phase', '2'])] : phase([])),
    line(wordsOf(options, '--finish')),
  ]);
}

const lines = (texts: readonly string[]) => `${texts.join('\n')}\n`;

const MOUNT = 'data';

/** JSON, which is YAML too and needs no quoting. An indexed job, and one that waits for it and finishes. */
function kubernetesManifest(plan: PartsPlan, needs: Needs, options: LaunchOptions): string {
  const { image, claim } = options;
  if (image === undefined || claim === undefined) {
    const missing = image === undefined ? '--image' : '--claim';
    throw new UserError('usage', `--launch kubernetes requires ${missing}`, {
      suggestion:
        'write --image registry/minimind:TAG and --claim NAME of the volume that holds IN, OUT and the plan',
    });
  }
  const { tasks, memoryMiB, seconds } = needs;
  const name = `minimind-${plan.hash.slice(0, 8)}`;
  const files = [plan.input.path, plan.output.path, path.resolve(options.planFile)];
  const note = hubNote(plan, options);
  const annotations = note === undefined ? {} : { annotations: { 'minimind/hub': note } };
  const mountPath = commonFolder(files.filter((file) => path.isAbsolute(file)));
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
              command: wordsOf({ ...options, program: ['minimind'] }, ...words),
              resources: {
                requests: { cpu: String(CPUS), memory: `${memoryMiB}Mi` },
                limits: { memory: `${memoryMiB}Mi` },
              },
              volumeMounts: [{ name: MOUNT, mountPath }],
            },
          ],
          volumes: [{ name: MOUNT, persistentVolumeClaim: { claimName: claim } }],
        },
      },
    },
  });
  // A failed pod is started again: finished units are kept.
  const retries = 3;
  const parts = job('parts', ['--part', 'auto', '--tasks', String(tasks)], {
    completionMode: 'Indexed',
    completions: tasks,
    parallelism: tasks,
    backoffLimit: retries * tasks,
    activeDeadlineSeconds: 4 * seconds,
  });
  const finish = job('finish', ['--finish', '--wait'], {
    backoffLimit: retries,
    activeDeadlineSeconds: 5 * seconds,
  });
  const list = { apiVersion: 'v1', kind: 'List', items: [parts, finish] };
  return `${JSON.stringify(list, null, 2)}\n`;
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
export async function submit(name: LaunchName, text: string): Promise<string> {
  const [program, ...args] = SUBMITTERS[name];
  const { code, out, error } = await new Promise<{
    readonly code: number | null;
    readonly out: string;
    readonly error?: Error;
  }>((resolve) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const pieces: Buffer[] = [];
    child.stdout.on('data', (piece: Buffer) => pieces.push(piece));
    child.on('error', (failure) => resolve({ code: null, out: '', error: failure }));
    child.on('close', (status) => resolve({ code: status, out: Buffer.concat(pieces).toString() }));
    child.stdin.on('error', () => {});
    child.stdin.end(text);
  });
  if (code === 0) return out;
  // The last command of this script is --finish, which names missing parts.
  if (name === 'parallel' && code === 1) return out;
  const why = error?.message ?? `it ended with exit code ${code}`;
  throw new UserError('system', `cannot submit the job to ${name}: ${why}`, {
    suggestion: 'print the job without --submit, and run it where the scheduler is installed',
  });
}
