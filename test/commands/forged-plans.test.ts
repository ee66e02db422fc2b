/** Plans of parts from strangers: with a correct hash, and any wrong value anywhere. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { isWhole, sampled } from '../sampled.js';

const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const at = (...names: readonly string[]) => path.join(folder, ...names);

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Plan = { [key: string]: Json };

/** A plan with the hash of its content. */
function hashed({ hash: _, schema, ...content }: Plan): Plan {
  const text = JSON.stringify({ schema, ...content });
  return {
    schema: schema ?? null,
    hash: createHash('sha256').update(text).digest('hex'),
    ...content,
  };
}

/** Paths of all values in a plan. */
function* pathsIn(value: Json, above: readonly string[] = []): Generator<readonly string[]> {
  if (above.length > 0) yield above;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, each] of Object.entries(value)) yield* pathsIn(each, [...above, key]);
}

/** A copy with another value at a path. */
function changed(plan: Plan, keys: readonly string[], to: Json): Plan {
  const copy: Plan = structuredClone(plan);
  let holder: Json = copy;
  for (const key of keys.slice(0, -1)) holder = (holder as { [key: string]: Json })[key] ?? null;
  (holder as { [key: string]: Json })[keys.at(-1) ?? ''] = to;
  return copy;
}

const VICTIM = at('away', 'victim.txt');

/** Working folder of the commands, where they may write. */
const WORK = at('work');

/** Values of every kind that a field should not have. */
const WRONG: readonly Json[] = [
  ...[null, true, -1, 0, 0.5, 7, 1e300, 2 ** 53, '', 'x', '__proto__', 'null', '\u001b[31m\n'],
  ...[VICTIM, '../away/victim.txt', '-o', '--force', 'f'.repeat(64), [], [[]], {}, { $: 'bigint' }],
];

/** Plans, and the options that run and finish them. */
const PLANS: Readonly<Record<string, readonly string[]>> = {
  compare: ['compare', 'hybrid/tiny', '--set', 'model.num_layers=2,4'],
  evaluate: [
    ...[
      'evaluate',
      inPackage('fixtures/hf/llama'),
      '--ids',
      inPackage('fixtures/evaluation/ids.json'),
    ],
    ...['--context', '24', '--stride', '24'],
  ],
  'convert-checkpoint': [
    ...[
      'convert-checkpoint',
      inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt'),
      `${at('work', 'out')}/`,
    ],
    ...['--to', 'shared', '--shard-size', '20KB'],
  ],
};

const planned = new Map<string, Plan>();

beforeAll(async () => {
  for (const place of [at('away'), WORK]) fs.mkdirSync(place);
  fs.writeFileSync(VICTIM, 'mine');
  for (const [name, words] of Object.entries(PLANS)) {
    const file = at('work', `${name}.json`);
    const { code, stderr } = await runHere([...words, '--parts', '2', '--plan', file], {
      cwd: WORK,
    });
    expect(code, stderr).toBe(0);
    planned.set(name, JSON.parse(fs.readFileSync(file, 'utf8')));
  }
});

/** Exit code and text of each step of a plan. */
async function steps(plan: Plan, name: string): Promise<readonly (readonly [number, string])[]> {
  const file = at('work', 'forged.json');
  fs.writeFileSync(file, JSON.stringify(hashed(plan)));
  const ends: (readonly [number, string])[] = [];
  for (const step of [
    ['--status'],
    ['--part', '1'],
    ['--part', '2'],
    ['--finish'],
    ['--launch', 'slurm'],
  ]) {
    const { code, stdout, stderr } = await runHere([name, '--plan', file, ...step], {
      cwd: WORK,
    });
    ends.push([code ?? -1, stdout + stderr]);
  }
  return ends;
}

/** Thousands of plans take some minutes. */
const MOST_TIME = isWhole ? 1_800_000 : undefined;

const CASES = ['compare', 'evaluate', 'convert-checkpoint'] as const;

describe.each(CASES)('a forged plan of %s', (name) => {
  it(
    'never ends in a fault of minimind, or with another file changed',
    async () => {
      const plan = planned.get(name) ?? expect.fail();
      const cases = [...pathsIn(plan)]
        .filter(([first]) => first !== 'hash' && first !== 'schema')
        .flatMap((keys) => WRONG.map((to) => [keys, to] as const));
      for (const [keys, to] of sampled(cases, 37)) {
        const what = `${keys.join('.')} = ${JSON.stringify(to)}`;
        for (const [code, text] of await steps(changed(plan, keys, to), name)) {
          expect([0, 1, 2, 3], `${what}\n${text}`).toContain(code);
          expect(text, what).not.toContain('\u001b');
        }
        expect(fs.readFileSync(VICTIM, 'utf8'), what).toBe('mine');
        expect(fs.readdirSync(at('away')), what).toEqual(['victim.txt']);
      }
    },
    MOST_TIME,
  );
});

describe('a forged plan', () => {
  it.each(['-o', '--output', '--save', '--force', '--parts', '--plan', '--json'])(
    'does not choose what is written, with %s',
    async (flag) => {
      const plan = planned.get('compare') ?? expect.fail();
      const words = [...(plan.arguments as string[]), flag, VICTIM, '--force'];
      for (const [code, text] of await steps({ ...plan, arguments: words }, 'compare')) {
        expect(code, text).toBe(2);
      }
      expect(fs.readFileSync(VICTIM, 'utf8')).toBe('mine');
    },
  );

  it('writes a converted checkpoint elsewhere only where it is named', async () => {
    const plan = planned.get('convert-checkpoint') ?? expect.fail();
    const target = at('away', 'out');
    const inner = WORK;
    const forged = { ...plan, output: { ...(plan.output as Plan), path: target } };
    const file = path.join(inner, 'forged.json');
    fs.writeFileSync(file, JSON.stringify(hashed(forged)));
    const run = (...words: readonly string[]) =>
      runHere(['convert-checkpoint', ...words, '--plan', file], { cwd: inner });
    for (const step of [['--part', '1'], ['--finish'], ['--launch', 'slurm']]) {
      expect(await run(...step)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('another folder'),
      });
      expect((await run('other', ...step)).stderr).toContain('expected the output of');
    }
    for (const part of ['1', '2']) expect((await run(target, '--part', part)).code).toBe(0);
    expect((await run(target, '--launch', 'slurm', '--force')).stdout).toContain(
      `convert-checkpoint ${target} --plan ${file} --finish --force`,
    );
    fs.mkdirSync(target);
    fs.writeFileSync(path.join(target, 'model.safetensors'), 'old');
    expect((await run(target, '--finish')).stderr).toContain('exists already');
    expect((await run(target, '--finish', '--force')).code).toBe(0);
    expect(fs.readdirSync(target)).toContain('config.yaml');
    fs.rmSync(target, { recursive: true });
    for (const name of fs.readdirSync(at('away')).filter((each) => each.startsWith('.out'))) {
      fs.rmSync(at('away', name), { recursive: true });
    }
  });
});
