import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-plan-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const BUDGET = ['plan', '--max-params', '26M', '--vocab', '6400'];

describe('plan --save', () => {
  it('writes a config that validate and profile read, with the same figures', async () => {
    const file = path.join(folder, 'second.yaml');
    const { code, stdout, stderr } = await runHere([
      ...BUDGET,
      '--row',
      '2',
      '--save',
      file,
      '--json',
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `wrote ${file}\n` });
    const { rows } = JSON.parse(stdout);
    expect((await runHere(['validate', file, '--strict'])).code).toBe(0);
    const profile = JSON.parse(
      (await runHere(['profile', file, '--context', '2048', '--json'])).stdout,
    );
    expect(profile.parameters.total).toEqual(rows[1].parameters);
    expect(profile.inference.total).toEqual(rows[1].memory);
    expect(profile.setting.inference).toMatchObject({ batch: 1, context: 2048, dtype: 'bf16' });
  });

  it.each(['int4', 'int8', 'f32'])('counts memory in %s as profile does', async (dtype) => {
    const file = path.join(folder, `${dtype}.yaml`);
    const words = [...BUDGET, '--dtype', dtype, '--save', file, '--json'];
    const plan = JSON.parse((await runHere(words)).stdout);
    const setting = ['--context', '2048', '--dtype', dtype, '--json'];
    const profile = JSON.parse((await runHere(['profile', file, ...setting])).stdout);
    expect(plan.rows[0].memory).toEqual(profile.inference.total);
    expect(plan.inference.cacheDtype).toBe(profile.setting.inference.cacheDtype);
  });

  it('shows the command that writes the best model', async () => {
    const { stdout } = await runHere(BUDGET);
    const next = /^Next: minimind (.*)$/m.exec(stdout)?.[1]?.replace(/ {4}Details.*$/, '') ?? '';
    expect(next).toBe('plan --max-params 26M --vocab 6400 --save minimind-24.9M.yaml');
    const written = await runHere(next.split(' '), { cwd: folder });
    expect(written.code).toBe(0);
    expect(written.stdout).toContain('Next: minimind profile minimind-24.9M.yaml --context 2048');
    expect(stdout).toMatch(
      /^Best minimind model by balance: 16 layers of width 384, 24\.9M of 26\.0M/,
    );
    expect(stdout).toContain('82 of 183 candidates are Pareto-optimal.');
  });

  it('keeps an existing file without --force', async () => {
    const file = path.join(folder, 'kept.yaml');
    fs.writeFileSync(file, 'kept');
    expect((await runHere([...BUDGET, '--save', file])).code).not.toBe(0);
    expect(fs.readFileSync(file, 'utf8')).toBe('kept');
    expect((await runHere([...BUDGET, '--save', file, '--force', '-q'])).code).toBe(0);
    expect((await runHere(['validate', file])).code).toBe(0);
  });

  it('writes the answer to the file of -o, in addition to the config', async () => {
    const [saved, answer] = ['both.yaml', 'both.json'].map((name) => path.join(folder, name));
    const words = [...BUDGET, '--save', saved ?? '', '-o', answer ?? ''];
    expect(await runHere(words)).toMatchObject({ code: 0, stdout: '' });
    expect(JSON.parse(fs.readFileSync(answer ?? '', 'utf8')).schema).toBe('minimind/plan@1');
    expect((await runHere(['validate', saved ?? ''])).code).toBe(0);
  });

  it('writes only the config to standard output', async () => {
    const { stdout } = await runHere([...BUDGET, '--save', '-']);
    expect(stdout).toMatch(/^# A minimind model of [\d,]+ parameters/);
    expect(runCli(['validate', '-', '--strict'], { input: stdout }).code).toBe(0);
  });

  it.each([
    ['a missing row', ['--save', '-', '--row', '11'], /--row: expected 1 to 10, found 11/],
    ['a row without a file', ['--row', '2'], /--row requires --save/],
    [
      'one file for two outputs',
      ['--save', 'both', '-o', './both'],
      /--output and --save are the same file, "both"/,
    ],
    [
      'two answers on standard output',
      ['--save', '-', '--format', 'csv'],
      /--save - and --format csv both need standard output/,
    ],
  ])('refuses %s', async (_, flags, message) => {
    const { code, stderr } = await runHere([...BUDGET, ...flags]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('plan', () => {
  it.each([
    [['--max-params', 'NaN'], /expected a count, found "NaN"/],
    [['--max-params=-1'], /expected a count, found "-1"/],
    [['--max-params', '0'], /the smallest candidate has/],
    [['--max-params', '26M', '--vocab', '0'], /expected a positive whole number, found "0"/],
    [['--max-params', '26M', '--vocab', '1e400'], /expected a positive whole number/],
    [
      ['--max-params', '26M', '--depth', '40..4'],
      /expected a range from small to large, found "40\.\.4"/,
    ],
    [['--max-params', '26M', '--depth', '4..8..9'], /expected a range/],
    [['--max-params', '26M', '--depth', '..'], /expected a range from small to large/],
    [['--max-params', '26M', '--width', '0'], /expected a range from small to large/],
    [['--max-params', '26M', '--context', '9007199254740993'], /expected a positive whole number/],
    [['--max-params', '26M', '--gpu', 'h1000'], /unknown GPU/],
    [
      ['--max-params', '26M', '--dtype', 'f64', '--gpu', 'h100-80gb'],
      /--dtype: decoding speed has no estimate for f64/,
    ],
    [['--max-params', '26M', '--set', 'model.x=1'], /unknown key "x"/],
    [
      ['--max-params', '26M', '--set', 'model.num_hidden_layers=8', '--depth', '4..6'],
      /contradicting sizes: --set model\.num_hidden_layers=8 and --depth 4\.\.6/,
    ],
    [
      ['--max-params', '26M', '--set', 'model.hidden_size=512', '--width', '64..256'],
      /--set model\.hidden_size=512 and --width 64\.\.256/,
    ],
    [
      ['--max-params', '26M', '--set', 'model.head_dim=64', '--head-dim', '32,96'],
      /--set model\.head_dim=64 and --head-dim 32,96/,
    ],
    [
      ['--max-params', '26M', '--set', 'model.vocab_size=6400', '--vocab', '1000'],
      /--set model\.vocab_size=6400 and a vocabulary of 1000/,
    ],
    [
      ['--max-params', '26M', '--set', 'model.intermediate_size=1000', '--align', '128'],
      /--set model\.intermediate_size=1000 and --align 128/,
    ],
    [
      ['--max-params', '26M', '--family', 'hybrid', '--align', '64'],
      /--align requires a feed-forward width to search, which hybrid has not/,
    ],
    [['--max-params', '26M', '--set', 'model.__proto__=1'], /unknown key "__proto__"/],
    [[], /max-params/],
  ])('refuses %j', async (flags, message) => {
    const { code, stdout, stderr } = await runHere(['plan', ...flags]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('accepts the largest safe integers', async () => {
    const most = String(Number.MAX_SAFE_INTEGER);
    const flags = [
      '--depth',
      `1..${most}`,
      '--width',
      `1..${most}`,
      '--top',
      most,
      '--batch',
      most,
    ];
    expect((await runHere([...BUDGET, ...flags])).code).toBe(0);
  });
});
