/** Sweeps in parts on the command line: the answers of single runs, and refusals. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import type { Run } from '../run-cli.js';
import { runHere } from '../run-here.js';
import { sampled } from '../sampled.js';

const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const at = (name: string) => path.join(folder, name);
const TEXT = [
  '--tokenizer',
  'fixtures/tokenizers/bpe-512.json',
  '--text',
  'fixtures/tokenizers/text.txt',
];
const SWEEP = ['--set', 'model.num_layers=2,3,x,5,9', '--set', 'model.hidden_size=64,100,128'];

const REQUESTS: Readonly<Record<string, readonly string[]>> = {
  'compare two files': ['compare', 'configs/hybrid/tiny.yaml', 'hybrid/recommended', ...SWEEP],
  'compare by another setting': [
    ...['compare', 'configs/hybrid/tiny.yaml', '--sort=-parameters', '--baseline', '3', ...TEXT],
    ...['--set', 'model.max_position_embeddings=512,64,128', '--set', 'model.vocab_size=512,600'],
  ],
  'compare without a sweep': ['compare', 'hybrid/tiny', 'minimind2-small', 'fixtures/hf/llama'],
  'compare models that are not valid': ['compare', 'hybrid/tiny', '--set', 'model.num_layers=x,0'],
  plan: ['plan', '--max-params', '3M', '--vocab', '512', '--context', '256', '--gpu', 'h100-80gb'],
  'plan for vocabularies': [
    ...['plan', '--max-params', '3M', '--context', '256', '--sqrt-rule', '--text'],
    ...['fixtures/tokenizers/text.txt', '--tokenizer'],
    'fixtures/tokenizers/bpe-512.json,fixtures/tokenizers/bpe-4096.json',
  ],
  'plan far below the budget': [
    ...['plan', '--max-params', '3M', '--vocab', '512', '--context', '256'],
    ...['--depth', '2..3', '--width', '64..128'],
  ],
  'plan without models': ['plan', '--max-params', '1k', '--vocab', '6400'],
  evaluate: [
    ...['evaluate', 'fixtures/hf/llama', '--ids', 'fixtures/evaluation/ids.json'],
    ...['--context', '24', '--stride', '11'],
  ],
  'evaluate against another model': [
    ...['evaluate', 'fixtures/hf/llama', '--ids', 'fixtures/evaluation/ids.json', '--context'],
    ...['64', '--stride', '32', '--bos', '1', '--against', 'fixtures/hf/llama-tied-rope3'],
  ],
  'evaluate a text': [
    ...['evaluate', 'hybrid/tiny', '--random', '--set', 'model.vocab_size=512', '--context', '64'],
    ...TEXT,
  ],
};

/** Plan with a correct hash. */
function hashed({ hash: _, ...plan }: Record<string, unknown>) {
  const { schema, ...content } = plan;
  const hash = createHash('sha256')
    .update(JSON.stringify({ schema, ...content }))
    .digest('hex');
  return { schema, hash, ...content };
}

/** Text without the time of the run. */
const timeless = (text: string) =>
  text.replace(/"seconds": [\d.e-]+/, '').replace(/[\d,.]+ tokens\/s/, '');

async function withTask<Result>(variables: object, run: () => Promise<Result>): Promise<Result> {
  Object.assign(process.env, variables);
  try {
    return await run();
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
}

/** Pseudo-random number of a text and a seed. */
const chance = (text: string, seed: number, most: number) =>
  [...`${text}${seed}`].reduce((sum, each) => (sum * 31 + each.charCodeAt(0)) % 1009, 7) % most;

/** Flags of the compared outputs. */
const OUTPUTS = [
  ['-q'],
  ['--json', '-q'],
  ['--details', '-q'],
  ['--format', 'csv', '-q'],
  ['--format', 'markdown', '-q'],
] as const;
/** Single runs, compared with every number of parts. */
const singles = new Map<string, Run>();

async function singleRun(name: string, output: readonly string[]): Promise<Run> {
  const key = [name, ...output].join(' ');
  const result = singles.get(key) ?? (await runHere([...(REQUESTS[name] ?? []), ...output]));
  singles.set(key, result);
  return result;
}

describe('a sweep in parts has the answer of a single run', () => {
  const cases = Object.keys(REQUESTS).flatMap((name) =>
    [0, 1].map((seed): [string, number] => [name, 1 + chance(name, seed, seed === 0 ? 6 : 64)]),
  );

  it.each(sampled(cases, 4))('for %s in %i parts', async (name, parts) => {
    const [command = '', ...request] = REQUESTS[name] ?? [];
    const file = at(`${name}-${parts}.json`.replaceAll(' ', '-'));
    const planned = await runHere([command, ...request, '--parts', String(parts), '--plan', file]);
    const work = (...flags: string[]) => runHere([command, '--plan', file, ...flags]);
    if (planned.code !== 0) {
      // A request that the plan refuses is refused by a single run with the same words.
      const { code, stderr } = await singleRun(name, []);
      expect({ code, stderr }).toEqual({ code: planned.code, stderr: planned.stderr });
      return;
    }
    // Three tasks share the parts. The last one runs first, and again at the end.
    for (const id of [3, 1, 2, 3]) {
      const [MIN, MAX, COUNT] = ['1', '3', '3'];
      const task = {
        SLURM_ARRAY_TASK_ID: String(id),
        ...{ SLURM_ARRAY_TASK_MIN: MIN, SLURM_ARRAY_TASK_MAX: MAX, SLURM_ARRAY_TASK_COUNT: COUNT },
      };
      const { code, stderr } = await withTask(task, () => work('--part', 'auto', '-q'));
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    }
    for (const output of sampled(OUTPUTS, 2)) {
      const merged = await work('--finish', ...output);
      const single = await singleRun(name, output);
      expect({ ...merged, stdout: timeless(merged.stdout) }).toEqual({
        ...single,
        stdout: timeless(single.stdout),
      });
    }
  });

  it('for files, other columns and another folder', async () => {
    const file = at('view.json');
    const request = ['compare', 'configs/hybrid/tiny.yaml', ...SWEEP];
    await runHere([...request, '--parts', '2', '--plan', file]);
    const elsewhere = { cwd: folder };
    for (const part of ['1', '2']) {
      await runHere(['compare', '--plan', 'view.json', '--part', part], elsewhere);
    }
    const view = ['--columns', 'weights,parameters', '--sort=-weights'];
    const { code } = await runHere(
      ['compare', '--plan', 'view.json', '--finish', ...view, '-o', 'answer.csv'],
      elsewhere,
    );
    expect(code).toBe(0);
    await runHere([...request, ...view, '-o', at('single.csv')]);
    expect(fs.readFileSync(at('answer.csv'), 'utf8')).toBe(
      fs.readFileSync(at('single.csv'), 'utf8'),
    );
  });
});

describe('an answer in a file', () => {
  it.each(sampled(['md', 'csv', 'json', 'txt'], 2))(
    'has the bytes of the single run: .%s',
    async (ending) => {
      const file = at(`file-${ending}.json`);
      const request = ['compare', 'configs/hybrid/tiny.yaml', ...SWEEP, '--text', TEXT[3] ?? ''];
      const [single, merged] = [at(`single-file.${ending}`), at(`merged-file.${ending}`)];
      const words = [...request, ...TEXT.slice(0, 2)];
      await runHere([...words, '--parts', '3', '--plan', file]);
      for (const part of ['2', '3', '1'])
        await runHere(['compare', '--plan', file, '--part', part]);
      expect((await runHere([...words, '-o', single])).code).toBe(0);
      expect((await runHere(['compare', '--plan', file, '--finish', '-o', merged])).code).toBe(0);
      expect(fs.readFileSync(merged)).toEqual(fs.readFileSync(single));
    },
  );
});

describe('a sweep in one process', () => {
  it.each([
    ['compare', ['hybrid/tiny', '--set', 'model.num_layers=1,2,3,4,5,6,7,8,9,10'], 10],
    ['plan', ['--max-params', '30M', '--vocab', '512'], 10],
  ] as const)('lets timers and Ctrl-C run: %s', async (command, words, units) => {
    let turns = 0;
    let isRunning = true;
    const count = () => {
      turns++;
      if (isRunning) setImmediate(count);
    };
    // After the first run, all modules are loaded, and the second run awaits nothing else.
    await runHere([command, ...words, '-q']);
    setImmediate(count);
    await runHere([command, ...words, '-q']);
    isRunning = false;
    expect(turns).toBeGreaterThanOrEqual(units);
  });
});

describe('a killed part', () => {
  it('leaves no results, and can be repeated', async () => {
    const file = at('killed.json');
    // The part takes about a second; the loop below looks for its lock every 5 ms.
    const widths = Array.from({ length: 60 }, (_, index) => 64 * (index + 1)).join();
    const sweep = ['--set', 'model.num_layers=12', '--set', `model.hidden_size=${widths}`];
    const request = ['compare', 'hybrid/tiny', ...sweep];
    await runHere([...request, '--parts', '1', '--plan', file]);
    const words = [inPackage('bin/run.js'), 'compare', '--plan', file, '--part', '1'];
    const { results } = JSON.parse(
      (await runHere(['compare', '--plan', file, '--status', '--json'])).stdout,
    );
    const child = spawn(process.execPath, words, { stdio: 'ignore' });
    while (!fs.existsSync(path.join(results, 'part-1.lock')) && child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    child.kill('SIGKILL');
    await once(child, 'exit');
    const early = await runHere(['compare', '--plan', file, '--finish']);
    expect(early.code).toBe(1);
    expect(early.stdout).toMatch(/^Not finished: 0 of 1 part done; missing: --array=1\n/);
    const again = await runHere(['compare', '--plan', file, '--part', '1']);
    expect(again.stdout).toMatch(/^Part 1 is done\n/);
    expect(fs.readdirSync(results)).toEqual(['part-1.jsonl']);
    const [merged, single] = [
      await runHere(['compare', '--plan', file, '--finish', '--json']),
      await runHere([...request, '--json']),
    ];
    expect(merged.stdout).toBe(single.stdout);
  });
});

describe('a sweep in parts', () => {
  const file = at('refused.json');
  const config = at('tiny.yaml');
  const work = (...flags: string[]) => runHere(['compare', '--plan', file, ...flags]);
  const plan = (...flags: string[]) =>
    runHere(['compare', config, '--set', 'model.num_layers=2,4', '--parts', '2', ...flags]);

  it('refuses a changed input, plan, version or command', async () => {
    const text = fs.readFileSync(inPackage('configs/hybrid/tiny.yaml'), 'utf8');
    fs.writeFileSync(config, text);
    expect((await plan('--plan', file)).code).toBe(0);
    fs.writeFileSync(config, text.replace('hidden_size: 64', 'hidden_size: 96'));
    const other = await work('--part', '1');
    expect(other).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('other bytes than when'),
    });
    fs.rmSync(config);
    expect((await work('--part', '1')).stderr).toContain('is missing, and was read when');
    fs.writeFileSync(config, text);
    expect((await plan('--plan', file)).stderr).toContain('exists already');
    expect((await plan('--plan', file, '--force')).code).toBe(0);
    const command = await runHere(['evaluate', '--plan', file, '--status']);
    expect(command.stderr).toContain('is a plan of minimind compare');
    const json = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, json.replace('num_layers=2,4', 'num_layers=2,5'));
    expect((await work('--status')).stderr).toContain('was changed after it was written');
    fs.writeFileSync(file, json);
  });

  it.each<[string, (plan: Record<string, unknown>) => unknown, string, string]>([
    [
      'another version',
      (plan) => hashed({ ...plan, version: '0.0.9' }),
      'is a plan of minimind 0.0.9, and this is',
      'run minimind 0.0.9 on every machine, or plan again',
    ],
    [
      'another schema',
      (plan) => hashed({ ...plan, schema: 'minimind/sweep-plan@2' }),
      'expected minimind/sweep-plan@1, found the schema "minimind/sweep-plan@2"',
      'plan again with compare --parts N --plan FILE',
    ],
    [
      'a plan of a conversion',
      (plan) => hashed({ ...plan, schema: 'minimind/convert-plan@1' }),
      'is not a plan of --parts',
      'plan again with compare --parts N --plan FILE',
    ],
    [
      'a value of another type',
      (plan) => hashed({ ...plan, parts: [] }),
      'is not a valid plan: parts',
      'plan again with compare',
    ],
    [
      'a number of parts as a text',
      (plan) => hashed({ ...plan, cpus: 'two' }),
      'is not a valid plan: cpus: must be an integer ≥ 1, but is "two"',
      'plan again with compare',
    ],
    [
      'several mistakes',
      (plan) => hashed({ ...plan, cpus: 0, memoryBytes: null }),
      'is not a valid plan: cpus: must be an integer ≥ 1, but is 0, and 1 more mistake',
      'plan again with compare',
    ],
    [
      'an unknown key',
      (plan) => ({ ...plan, extra: 1 }),
      'is not a valid plan: extra: unknown key "extra"',
      'plan again with compare',
    ],
    [
      'other units of a part',
      (plan) => ({ ...plan, parts: [{ part: 1, first: 0, end: 2, seconds: 1 }] }),
      'was changed after it was written',
      'plan again with compare',
    ],
    [
      'another hash',
      (plan) => ({ ...plan, hash: 'f'.repeat(64) }),
      'was changed after it was written',
      'plan again with compare',
    ],
    [
      'a list instead of an object',
      () => [1],
      'is not a plan of --parts: expected',
      'plan again with compare',
    ],
  ])('refuses a plan with %s, in every action', async (_, change, message, suggestion) => {
    const own = at('plan-of-others.json');
    const config = inPackage('configs/hybrid/tiny.yaml');
    const words = ['compare', config, '--set', 'model.num_layers=2,4', '--parts', '2'];
    await runHere([...words, '--plan', own, '--force']);
    fs.writeFileSync(own, JSON.stringify(change(JSON.parse(fs.readFileSync(own, 'utf8')))));
    for (const action of [['--part', '1'], ['--finish'], ['--status'], ['--launch', 'slurm']]) {
      const { code, stderr } = await runHere(['compare', '--plan', own, ...action]);
      expect(code).toBe(2);
      expect(stderr.replaceAll(/\s+/g, ' ')).toContain(message);
      expect(stderr.replaceAll(/\s+/g, ' ')).toContain(suggestion);
    }
    expect(fs.readdirSync(folder).filter((name) => name.startsWith('.plan-of'))).toEqual([]);
  });

  it.each([
    [['--part', '3'], '--part 3: expected 1 to 2, the parts of'],
    [['--part', '1', '--set', 'model.num_layers=2'], '--set has no effect with --part'],
    [['--finish', '--batch', '2'], '--batch has no effect with --finish'],
    [['--status', '--columns', 'weights'], '--columns has no effect with --status'],
    [['--part', '1', 'hybrid/tiny'], '--part: expected no files, found "hybrid/tiny"'],
    [['--part', 'auto'], '--part auto: expected a task of a job'],
    [['--part', '1', '--finish'], '--part and --finish contradict each other'],
    [['--finish', '--force'], '--force has no effect with --finish'],
    [['--launch', 'kubernetes'], '--launch kubernetes requires --image'],
    [['--launch', 'slurm', '--image', 'x'], '--image has no effect with --launch slurm'],
    [[], '--plan: expected also one of --parts, --part'],
  ])('refuses the flags %j', async (flags, message) => {
    const { code, stderr } = await work(...flags);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });

  it.each([
    [['compare', '-', '--parts', '2'], 'files that every machine can read, found "-"'],
    [
      ['plan', '--max-params', '3M', '--this-machine', '--parts', '2'],
      'files that every machine can read, found --this-machine',
    ],
    [['compare', 'hybrid/tiny', '--parts', '10001'], '--parts: expected at most 10000 parts'],
  ])('refuses the command line %j', async (words, message) => {
    const { code, stderr } = await runHere([...words, '--plan', at('none.json')]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
    expect(fs.existsSync(at('none.json'))).toBe(false);
  });

  it('prints only the job with --launch', async () => {
    const { stdout, code } = await work('--launch', 'parallel');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^#!\/bin\/bash\n# minimind compare: 2 models in 2 parts\./);
    expect(stdout).toContain('--part 2\nEND_OF_PARTS\n');
  });
});

describe('a sweep of one model', () => {
  it('uses the singular', async () => {
    const plan = at('one-unit.json');
    const { stdout } = await runHere([
      ...['compare', 'hybrid/tiny', '--parts', '2', '--plan', plan],
    ]);
    expect(stdout).toContain('Plan for 1 model in 2 parts');
    expect(stdout).toContain('1 of 2 have work: the sweep has only 1 model');
    const part = await runHere(['compare', '--plan', plan, '--part', '2']);
    expect(part.stdout).toContain('computed  1 model in');
  });
});
