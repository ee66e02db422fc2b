/** Follows docs/adding-parts.md in a copy of the source: each part takes few files, and works. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CommandProcess } from './command-process.js';
import {
  applySteps,
  buildCopy,
  copyOfSource,
  DOCUMENTATION,
  readPage,
  sectionOf,
  typeErrorsIn,
  writeManifest,
  writePresets,
  writeTables,
} from './executed-pages.js';
import { inPackage } from './fixtures.js';
import { isWhole } from './sampled.js';

const PAGE = readPage('docs/adding-parts.md');
const BUILD_INPUTS = ['package-lock.json', 'tsconfig.build.json'];
const ATTACKS = 'test/checkpoint/npy/rules.test.ts';

let copy: string;
let program: CommandProcess;
const touchedBy = new Map<string, string[]>();

beforeAll(async () => {
  copy = copyOfSource(...DOCUMENTATION, ...BUILD_INPUTS, 'configs', 'test', 'vitest.config.ts');
  for (const part of ['A preset', 'A check of quick-test', 'A flag', 'A column of compare']) {
    touchedBy.set(part, [...applySteps(sectionOf(PAGE, part), copy)].sort());
  }
  const reader = 'A reader of a checkpoint format';
  touchedBy.set(reader, [...applySteps(sectionOf(PAGE, reader), copy)].sort());
  writePresets(copy);
  await buildCopy(copy);
  writeManifest(copy);
  program = new CommandProcess(process.env, copy);
  // Its tests build a copy whose build is of other sources.
  const { sourceHash, writeBuiltHash } = await import(path.join(copy, 'scripts/source-hash.js'));
  writeBuiltHash(sourceHash());
}, 60_000);

afterAll(() => {
  program.close();
  fs.rmSync(copy, { recursive: true, force: true });
}, 60_000);

const answerOf = async (...args: readonly string[]) => {
  const { code, stdout, stderr } = await program.run([...args, '--json']);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
};

/** Runs tests of the copy. */
function testsOf(...args: readonly string[]) {
  const vitest = inPackage('node_modules/vitest/vitest.mjs');
  const run = spawnSync(process.execPath, [vitest, 'run', ...args], {
    cwd: copy,
    encoding: 'utf8',
  });
  return { status: run.status, output: run.stdout + run.stderr };
}

describe('the parts of docs/adding-parts.md', () => {
  it('touch few files', () => {
    expect(Object.fromEntries(touchedBy)).toEqual({
      'A preset': ['configs/minigpt/minigpt-nano.yaml'],
      'A check of quick-test': [
        'src/check/checks.ts',
        'src/check/checks/spread.ts',
        'test/check/checks.test.ts',
      ],
      'A flag': ['src/commands/list.ts', 'test/commands/list.test.ts'],
      'A column of compare': ['src/estimate/comparison/columns.ts'],
      'A reader of a checkpoint format': [
        'src/checkpoint/checkpoint-rules.ts',
        'src/checkpoint/formats.ts',
        'src/checkpoint/npy/read-npy.ts',
        'src/checkpoint/open-file.ts',
        ATTACKS,
      ],
    });
  });

  it.runIf(isWhole)(
    'compile',
    () => {
      const tests = ['check/checks', 'checkpoint/npy/rules', 'commands/list'];
      const include = ['src', ...tests.map((name) => `test/${name}.test.ts`)];
      expect(typeErrorsIn(copy, include)).toBe('');
    },
    300_000,
  );

  it('give a preset, which lists, completion and commands know', async () => {
    const { families } = await answerOf('list', 'minigpt');
    expect(families[0].presets[0]).toEqual({
      ...{ name: 'minigpt-nano', title: 'MiniGPT nano: 0.8M', parameters: 828_992 },
    });
    expect((await answerOf('completion', 'bash')).script).toContain('minigpt-nano');
    expect((await answerOf('profile', 'minigpt-nano')).parameters.total.value).toBe(828_992);
    const { stdout } = await program.run(['init', 'minigpt-nano', '--save', '-']);
    expect(stdout.split('\n').slice(-2)).toEqual([
      '  max_position_embeddings: 512          # longest input, in tokens',
      '',
    ]);
  });

  it('give a check, which runs among the usual ones and by its name', async () => {
    const args = ['quick-test', 'hybrid/tiny', '--engine', 'tfjs', '--context', '8', '--quiet'];
    const named = (result: { checks: { check: string }[] }) =>
      result.checks.map(({ check }) => check);
    expect(named(await answerOf(...args, '--only', 'spread'))).toEqual(['spread']);
    expect(named(await answerOf(...args))).toContain('spread');
  });

  it('give a flag', async () => {
    const { families } = await answerOf('list', '--dense');
    expect(new Set(families.map((each: { architecture: string }) => each.architecture))).toEqual(
      new Set(['dense']),
    );
  });

  it('give a column, by which models are sorted', async () => {
    const { columns, rows } = await answerOf(
      ...['compare', 'minimind2', 'minimind2-small', '--columns', 'embedding-share'],
      ...['--sort=-embedding-share'],
    );
    expect(columns).toMatchObject([{ name: 'embedding-share', title: 'embedding share' }]);
    expect(rows[0].figures['embedding-share']).toBeGreaterThan(rows[1].figures['embedding-share']);
  });

  it('give a reader of files', async () => {
    const file = path.join(copy, 'a.npy');
    const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n";
    const length = String.fromCharCode(header.length);
    const text = `\x93NUMPY\x01\0${length}\0${header}${'\0'.repeat(48)}`;
    fs.writeFileSync(file, Buffer.from(text, 'latin1'));
    expect(await answerOf('inspect', file)).toMatchObject({
      format: 'npy',
      totals: { elements: 12 },
    });
  });

  it('are in the tables of the documentation', () => {
    writeTables(copy);
    const page = (name: string) => fs.readFileSync(path.join(copy, name), 'utf8');
    expect(page('docs/running.md')).toContain('| `spread` | the logits differ from each other |');
    expect(page('docs/checkpoint-formats.md')).toContain('| `npy-data` | The file ends with');
  });

  it('pass their tests; those of the rules fail without the attacks', () => {
    const rules = 'test/checkpoint/rules.test.ts';
    const files = [ATTACKS, rules, 'test/check/checks.test.ts', 'test/commands/list.test.ts'];
    const run = testsOf(...files, '-t', 'rule|refused|head without|dense families');
    expect(run.status, run.output).toBe(0);
    // test/checkpoint/rules.test.ts itself has a table without attacks.
    if (!isWhole) return;
    fs.rmSync(path.join(copy, ATTACKS));
    const without = testsOf(rules, '-t', 'is attacked');
    expect(without.output).toContain('npy-version');
    expect(without.status).toBe(1);
  }, 120_000);
});
