/** Tasks and jobs of schedulers, and the flags of parts. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { partsMode } from '../../../src/cli/flags/parts-flags.js';
import { type LaunchOptions, launchText, type PartsJob } from '../../../src/scale/launch.js';
import { type LaunchName, partsOfTask } from '../../../src/scale/task-index.js';
import { arrayText } from '../../../src/scale/unit-store.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { opened, type Planned, plan } from './parts.js';

const slurm = (id: number, min: number, max: number, count = max - min + 1) => ({
  SLURM_ARRAY_TASK_ID: String(id),
  SLURM_ARRAY_TASK_MIN: String(min),
  SLURM_ARRAY_TASK_MAX: String(max),
  SLURM_ARRAY_TASK_COUNT: String(count),
});

describe('partsOfTask', () => {
  it.each<[string, Record<string, string>, number, number | undefined, number[]]>([
    ['a task for each part', slurm(3, 1, 8), 8, undefined, [3]],
    ['an array from 0', slurm(3, 0, 7), 8, undefined, [4]],
    ['fewer tasks share the parts', slurm(2, 1, 3), 8, undefined, [2, 5, 8]],
    ['fewer tasks from 0', slurm(0, 0, 2), 8, undefined, [1, 4, 7]],
    ['more tasks than parts', slurm(9, 1, 9), 8, undefined, []],
    ['missing parts', slurm(7, 7, 19, 2), 64, undefined, [7]],
    ['a range of missing parts', slurm(8, 7, 9), 64, undefined, [8]],
    ['an array with steps', slurm(5, 1, 7, 4), 8, undefined, [5]],
    ['a single task', slurm(1, 1, 1), 3, undefined, [1, 2, 3]],
    ['an index of Kubernetes', { JOB_COMPLETION_INDEX: '0' }, 8, undefined, [1]],
    ['fewer pods of Kubernetes', { JOB_COMPLETION_INDEX: '1' }, 8, 3, [2, 5, 8]],
    ['a job of GNU parallel', { PARALLEL_SEQ: '8' }, 8, undefined, [8]],
    ['fewer jobs of GNU parallel', { PARALLEL_SEQ: '1' }, 4, 2, [1, 3]],
  ])('returns the parts of %s', (_, environment, parts, tasks, expected) => {
    expect(partsOfTask(environment, parts, tasks)).toEqual(expected);
  });

  it('assigns every part to exactly one task', () => {
    for (const parts of [1, 7, 64]) {
      for (let tasks = 1; tasks <= 70; tasks += 3) {
        const all = Array.from({ length: tasks }, (_, index) =>
          partsOfTask(slurm(index + 1, 1, tasks), parts, undefined),
        ).flat();
        expect(all.toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: parts }, (_, index) => index + 1),
        );
      }
    }
  });

  it.each<[string, Record<string, string>, number | undefined, string]>([
    ['no task', { SLURM_JOB_ID: '5' }, undefined, 'found none of SLURM_ARRAY_TASK_ID'],
    [
      'two schedulers',
      { ...slurm(1, 1, 2), PARALLEL_SEQ: '1' },
      undefined,
      'expected one scheduler',
    ],
    ['a text', { JOB_COMPLETION_INDEX: 'x' }, undefined, 'expected a whole number'],
    ['an empty value', { PARALLEL_SEQ: '' }, undefined, 'expected a whole number'],
    ['a missing part', slurm(70, 7, 70, 2), undefined, 'expected a task of 1 to 64'],
    ['another number of tasks', slurm(1, 1, 4), 3, 'expected the 4 tasks of the job'],
  ])('refuses %s', (_, environment, tasks, message) => {
    expect(() => partsOfTask(environment, 64, tasks)).toThrow(message);
  });
});

describe('arrayText', () => {
  it.each([
    [[], ''],
    [[7], '7'],
    [[19, 7], '7,19'],
    [[1, 2], '1,2'],
    [[1, 2, 3, 5, 7, 8], '1-3,5,7,8'],
  ])('formats %j', (parts, text) => expect(arrayText(parts)).toBe(text));
});

const OLD = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');

/** Plan with paths that need every kind of quoting. */
async function oddPlan() {
  const folder = folderOf({ "it's {} $HOME `x` {#}/in.pt": fs.readFileSync(OLD) });
  const odd = path.join(folder, "it's {} $HOME `x` {#}");
  const flags = { layout: 'shared', noConfig: true, shardSize: 15e3 } as const;
  const planned = await plan(path.join(odd, 'in.pt'), path.join(odd, 'out'), flags, 3, 8);
  return { odd, ...planned };
}

const program = ['/opt/no de', '/a "b"/run.js'];

/** Runs a script with stubs of the schedulers, and returns the arguments of each call. */
function argumentsIn(script: string, name: string): string[][] {
  const bin = folderOf({});
  const stub = `#!/bin/bash\n{ printf '%s\\0' "$@"; printf '\\n'; } >>"${bin}/calls"\n[ "${name}" = sbatch ] && echo 17\n[ "${name}" = parallel ] && cat >>"${bin}/input"\nexit 0\n`;
  fs.writeFileSync(path.join(bin, name), stub, { mode: 0o755 });
  const odd = `#!/bin/bash\nprintf '%s\\0' "$@" >>"${bin}/commands"; printf '\\n' >>"${bin}/commands"\n`;
  fs.writeFileSync(path.join(bin, 'minimind'), odd, { mode: 0o755 });
  const PATH = `${bin}:${process.env.PATH}`;
  execFileSync('bash', ['-s'], { input: script, env: { PATH } });
  const read = (file: string) => {
    const at = path.join(bin, file);
    return fs.existsSync(at) ? fs.readFileSync(at, 'utf8') : '';
  };
  const words = (text: string) =>
    text
      .split('\0\n')
      .filter(Boolean)
      .map((line) => line.split('\0'));
  const calls = words(read('calls'));
  const inner = name === 'sbatch' ? calls.map((call) => wrapOf(call)) : read('input').split('\n');
  for (const command of inner.filter(Boolean)) {
    execFileSync('sh', ['-c', command.replace(/^exec /, '')], { env: { PATH } });
  }
  return [...calls, ...words(read('commands'))];
}

const wrapOf = (call: readonly string[]) =>
  (call.find((word) => word.startsWith('--wrap=')) ?? '').slice('--wrap='.length);

/** Text of the job of a plan. */
async function jobOf(planned: Planned, scheduler: LaunchName, options: LaunchOptions) {
  const parts = await opened(planned);
  const { job } = await parts.launch(scheduler, { ...options, isSubmitted: false });
  return job?.text ?? expect.unreachable();
}

describe('the job of a conversion', () => {
  const optionsFor = (more: Partial<LaunchOptions> = {}): LaunchOptions => ({
    ...{ tasks: undefined, program: ['minimind'], image: undefined, claim: undefined },
    isOffline: false,
    ...more,
  });

  it('quotes every word for Slurm, for any path', async () => {
    const planned = await oddPlan();
    const { file } = planned;
    const calls = argumentsIn(await jobOf(planned, 'slurm', optionsFor()), 'sbatch');
    const common = ['convert-checkpoint', '--plan', file];
    expect(calls.slice(3)).toEqual([
      [...common, '--part', 'auto', '--phase', '1'],
      [...common, '--part', 'auto', '--phase', '2'],
      [...common, '--finish'],
    ]);
    const [rows = [], files = [], end = []] = calls;
    expect(rows).toContain('--array=1-3');
    expect(rows.some((word) => word.startsWith('--dependency'))).toBe(false);
    expect(files).toContain('--dependency=afterany:17');
    expect(end).toContain('--dependency=afterany:17');
    expect(end.some((word) => word.startsWith('--array'))).toBe(false);
    expect(rows).toEqual(expect.arrayContaining(['--mem=512M', '--time=10', '--requeue']));
  });

  it('quotes every word for GNU parallel, which replaces braces only in a command', async () => {
    const planned = await oddPlan();
    const { file } = planned;
    const text = await jobOf(planned, 'parallel', optionsFor({ tasks: 2 }));
    const calls = argumentsIn(text, 'parallel');
    expect(calls[0]).toEqual(['--jobs', '2', '--line-buffer']);
    const commands = calls.slice(2);
    expect(commands.map((words) => words.slice(0, 3))).toEqual(
      commands.map(() => ['convert-checkpoint', '--plan', file]),
    );
    expect(commands.filter((words) => words.includes('--finish'))).toHaveLength(1);
    expect(commands.filter((words) => words.includes('--part'))).toHaveLength(6);
  });

  it('writes a manifest of two jobs for Kubernetes', async () => {
    const planned = await oddPlan();
    const { file, odd } = planned;
    const options = optionsFor({ image: 'registry/minimind:1', claim: 'data', program });
    const { kind, items } = JSON.parse(await jobOf(planned, 'kubernetes', options));
    expect(kind).toBe('List');
    const [parts, end] = items;
    expect(parts).toMatchObject({
      apiVersion: 'batch/v1',
      kind: 'Job',
      spec: { completionMode: 'Indexed', completions: 3, parallelism: 3 },
    });
    for (const { metadata, spec } of items) {
      // RFC 1123, and the limit of 63 characters of a Job.
      expect(metadata.name).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/);
      const { restartPolicy, containers, volumes } = spec.template.spec;
      expect(restartPolicy).toBe('Never');
      expect(volumes).toEqual([{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]);
      expect(containers[0].volumeMounts).toEqual([{ name: 'data', mountPath: odd }]);
      expect(containers[0].resources.limits.memory).toBe('512Mi');
    }
    const common = ['minimind', 'convert-checkpoint', '--plan', file];
    const commandOf = (job: typeof parts) => job.spec.template.spec.containers[0].command;
    expect(commandOf(parts)).toEqual([...common, '--part', 'auto', '--tasks', '3']);
    expect(commandOf(end)).toEqual([...common, '--finish', '--wait']);
    await expect(jobOf(planned, 'kubernetes', optionsFor())).rejects.toThrow('requires --image');
  });
});

describe('launchText', () => {
  const job: PartsJob = {
    ...{ command: 'compare', planFile: '/shared/plan.json', planHash: '0'.repeat(64) },
    ...{ comments: ['Compares.', 'enough.'], hasRows: false, hubModels: [], cpus: 1 },
    partSeconds: Array(2500).fill(700),
    memoryBytes: 1e9,
    operands: [],
    places: ['/shared/x'],
  };
  const options: LaunchOptions = {
    ...{ tasks: undefined, program: ['minimind'], image: 'a', claim: 'b', isOffline: false },
  };

  it('shares parts among the maximum number of tasks of Slurm', () => {
    const [parts = [], finish = []] = argumentsIn(launchText(job, 'slurm', options), 'sbatch');
    expect(parts).toEqual(expect.arrayContaining(['--array=1-1000', '--mem=1216M', '--time=35']));
    expect(finish).toContain('--time=35');
    const own = argumentsIn(launchText(job, 'slurm', { ...options, tasks: 2000 }), 'sbatch');
    expect(own[0]).toEqual(expect.arrayContaining(['--array=1-2000', '--time=24']));
  });

  it('limits the heap of a task to its memory', () => {
    for (const name of ['slurm', 'parallel'] as const) {
      const script = launchText({ ...job, partSeconds: [1] }, name, options);
      expect(script).toMatch(
        /export NODE_OPTIONS="\$\{NODE_OPTIONS:-\} --max-old-space-size=1216"/,
      );
    }
    const { items } = JSON.parse(launchText(job, 'kubernetes', options));
    for (const { spec } of items) {
      expect(spec.template.spec.containers[0].env).toEqual([
        { name: 'NODE_OPTIONS', value: '--max-old-space-size=1216' },
      ]);
    }
  });

  it('refuses a path that would be two commands of GNU parallel', () => {
    const odd = { ...job, planFile: '/shared/a\nEND_OF_PARTS\nrm b/plan.json' };
    expect(() => launchText(odd, 'parallel', options)).toThrow('without line breaks in its path');
    expect(argumentsIn(launchText(odd, 'slurm', options), 'sbatch').at(-1)).toEqual([
      ...['compare', '--plan', odd.planFile, '--finish'],
    ]);
  });

  it('mounts folders below the root of a pod', () => {
    const apart = { ...job, places: ['/data/in', '/home/user/out', '/data/more'] };
    const { items } = JSON.parse(launchText(apart, 'kubernetes', options));
    for (const { spec } of items) {
      expect(spec.template.spec.containers[0].volumeMounts).toEqual([
        { name: 'data', mountPath: '/data', subPath: 'data' },
        { name: 'data', mountPath: '/home', subPath: 'home' },
        { name: 'data', mountPath: '/shared', subPath: 'shared' },
      ]);
    }
  });
});

describe('partsMode', () => {
  it.each<[string[], string[], string | undefined]>([
    [['dtype', 'force'], ['in', 'out'], undefined],
    [['parts', 'plan', 'dtype', 'shard-size', 'quantize'], ['in', 'out'], 'parts'],
    [['plan', 'part', 'phase', 'tasks', 'json'], [], 'part'],
    [['plan', 'finish', 'check', 'wait'], [], 'finish'],
    [['plan', 'status'], [], 'status'],
    [['plan', 'part'], ['out'], 'part'],
    [['plan', 'finish', 'force'], ['out'], 'finish'],
    [['plan', 'launch', 'submit', 'tasks'], [], 'launch'],
  ])('finds the mode of %j', (given, files, mode) => expect(partsMode(given, files)).toBe(mode));

  it.each<[string[], string[], string]>([
    [['plan'], [], '--plan: expected also one of --parts, --part'],
    [['plan'], ['in', 'out'], '--plan: expected also one of'],
    [['submit'], [], '--submit: expected also one of'],
    [['parts'], ['in', 'out'], '--parts requires --plan'],
    [['part'], [], '--part requires --plan'],
    [['plan', 'part', 'finish'], [], '--part and --finish contradict each other'],
    [['plan', 'parts', 'part'], [], '--parts and --part contradict each other'],
    [['plan', 'part', 'dtype'], [], '--dtype has no effect with --part'],
    [['plan', 'part', 'max-memory'], [], '--max-memory has no effect with --part'],
    [['plan', 'part', 'force'], [], '--force has no effect with --part'],
    [['plan', 'status', 'force'], [], '--force has no effect with --status'],
    [['plan', 'part', 'wait'], [], '--wait has no effect with --part'],
    [['plan', 'status', 'submit'], [], '--submit has no effect with --status'],
    [['plan', 'parts', 'check'], ['in', 'out'], '--check has no effect with --parts'],
    [['plan', 'parts', 'dry-run'], ['in', 'out'], '--dry-run has no effect with --parts'],
    [['plan', 'parts', 'max-kl'], ['in', 'out'], '--max-kl has no effect with --parts'],
    [['plan', 'finish'], ['in', 'out'], '--finish: expected at most OUT, found "in" and "out"'],
    [['plan', 'status'], ['out'], '--status: expected no IN and OUT, found "out"'],
  ])('refuses %j', (given, files, message) => {
    expect(() => partsMode(given, files)).toThrow(message);
  });
});
